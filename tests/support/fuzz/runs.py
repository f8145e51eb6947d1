"""Runs a reader on bytes, and says what it did that it may not do."""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from synod.common.runtime.errors import SynodError
from tests.support.fuzz.mutations import mutate
from tests.support.fuzz.targets import TARGETS, seeds

LONGEST_SECONDS = 10.0
LARGEST_BYTES = 1 << 17


class FindingError(AssertionError):
    """A reader raised something else than the project's own error, with more than a sentence, or took too long."""


def run_once(read: Callable[[bytes], None], data: bytes) -> None:
    """Reads the data, once."""
    started = time.process_time()
    try:
        read(data)
    except SynodError as error:
        if not error.sentence or not str(error).isprintable():
            raise FindingError("an error without a sentence on one line") from error
    except Exception as error:
        raise FindingError(f"{type(error).__name__} is not the project's own error") from error
    if time.process_time() - started > LONGEST_SECONDS:
        raise FindingError(f"it took more than {LONGEST_SECONDS:.0f} s of processor time")


def run_mutations(
    name: str,
    seconds: float,
    *,
    rng: Random,
    findings: Path,
    more: Sequence[bytes] = (),
    read_once: Callable[[bytes], None] | None = None,
) -> int:
    """Reads mutations of the seeds for so long, and says how many; what is found is kept in `findings`, then raised.

    `more` are further inputs to start from, which may grow meanwhile.
    """
    read, kept, count = read_once or partial(run_once, TARGETS[name]), seeds(name), 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        start = rng.choice(more) if more and rng.random() < 0.5 else rng.choice(kept)
        data = mutate(start, rng=rng)[:LARGEST_BYTES]
        try:
            read(data)
        except FindingError as finding:
            findings.mkdir(parents=True, exist_ok=True)
            (findings / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
            raise FindingError(f"{name}: {finding}; the bytes are in {findings}") from finding.__cause__
        count += 1
    return count
