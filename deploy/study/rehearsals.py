"""Rehearsals side by side: each in a process of its own, which ends where it takes too long.

A process reads a resolved study as JSON and writes a rehearsal as JSON, within so many seconds of one core:
`python -m synod.deploy.study.rehearsals 60`.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np

from synod.common.study.study import Study, parse_study
from synod.deploy.study.rehearsal import Rehearsal, rehearse

MOST_WORKERS = 4
SEED = 0
PATIENCE = 20  # a machine with other work to do takes so many times as long, at most
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
ARRAYS = ("columns", "coarse_columns")


def rehearse_all(
    studies: Mapping[str, Study], seconds: int, *, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Rehearsal | None]:
    """The rehearsal of each resolved study; None for one that was not over in time, or that failed."""
    with ThreadPoolExecutor(min(MOST_WORKERS, os.cpu_count() or 1)) as pool:
        running = {name: pool.submit(_rehearse_apart, study, seconds) for name, study in studies.items()}
        found = {}
        for name, future in running.items():
            tell(name)
            found[name] = future.result()
    return found


def _rehearse_apart(study: Study, seconds: int) -> Rehearsal | None:
    command = [sys.executable, "-m", "synod.deploy.study.rehearsals", str(seconds)]
    try:
        ended = subprocess.run(  # noqa: S603  (this program itself)
            command,
            input=json.dumps(study.to_json()),
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE * seconds,
            env=os.environ | ONE_THREAD,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    return read_rehearsal(json.loads(ended.stdout))


def write_rehearsal(rehearsal: Rehearsal) -> dict[str, Any]:
    """A rehearsal as JSON."""
    pairs = [[*pair, kept] for pair, kept in rehearsal.pairs.items()]
    columns = {key: getattr(rehearsal, key).tolist() for key in ARRAYS}
    return {**asdict(rehearsal), **columns, "pairs": pairs}


def read_rehearsal(data: dict[str, Any]) -> Rehearsal:
    """The inverse of `write_rehearsal`."""
    pairs = {(first, second): kept for first, second, kept in data["pairs"]}
    columns = {key: np.array(data[key]) for key in ARRAYS}
    return Rehearsal(**{**data, **columns, "names": tuple(data["names"]), "pairs": pairs})


def main() -> None:
    """One rehearsal; the system ends it where it takes longer than it may."""
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    study = parse_study(json.load(sys.stdin), "the study")
    json.dump(write_rehearsal(rehearse(study, seed=SEED)), sys.stdout)


if __name__ == "__main__":
    main()
