"""Consoles as processes of their own, as an operator starts them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from synod.deploy.launch.processes import PROGRAM

LINK = re.compile(rb"https?://\S+/enter\?token=\S+")


@dataclass
class Console:
    """A console process, and the link that it printed first."""

    process: "subprocess.Popen[bytes]"
    link: str

    @property
    def base(self) -> str:
        """Where its pages are."""
        return self.link.partition("/enter")[0]


@contextmanager
def console(*arguments: str | Path, program: Sequence[str] = PROGRAM) -> Iterator[Console]:
    """Starts `synod ... console`, and ends it."""
    process = subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "400", "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        told = b""
        while not (found := LINK.search(told)):
            line = process.stdout.readline()
            assert line, told.decode()
            told += line
        yield Console(process, found[0].decode())
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()
