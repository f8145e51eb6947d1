"""One process at a time over a state folder."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.locks import exclusive_lock

HOLD = """
import sys
from pathlib import Path
from synod.common.runtime.locks import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with exclusive_lock(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with pytest.raises(SynodError, match=f"another process is serving {folder}") as caught, exclusive_lock(folder):
            raise AssertionError("held twice")
        assert caught.value.code is Code.CONFLICT
        with exclusive_lock(tmp_path / "other"):
            pass
    with exclusive_lock(folder):
        pass


def test_an_error_inside_lets_go_and_is_not_mistaken_for_the_lock(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk"), exclusive_lock(tmp_path):
        raise OSError("disk")
    with exclusive_lock(tmp_path):
        pass


def test_the_lock_is_gone_with_a_killed_process(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(SynodError, match="another process"), exclusive_lock(tmp_path):
                raise AssertionError("held twice")
        finally:
            holder.kill()
            holder.wait(timeout=60)
    with exclusive_lock(tmp_path):
        pass
