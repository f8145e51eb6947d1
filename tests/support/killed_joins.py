"""A program: joins a curator many times, each time in a process that ends at once before or after one step, as if it
were killed. Prints the folder of each. It is a process of its own, because only one without threads may fork.
"""

import os
import sys
from pathlib import Path
from typing import Any

from synod.common.crypto.identity import Identity
from synod.deploy.enrolment import join as module
from synod.deploy.enrolment.kit import read_kit
from synod.party.ledger import Ledger

STEPS: list[tuple[Any, str]] = [
    (module, "read_authorities"),
    (module, "make_request"),
    (module, "initialize"),
    (module, "sync_files"),
    (Identity, "save"),
    (Ledger, "create"),
    (Path, "rename"),
]
KILLED = 9


def join_and_die(kit: Path, folder: Path, owner: Any, step: str, *, after: bool) -> None:
    """Joins in a child process that does not live to see the end."""
    real = getattr(owner, step)

    def die(*args: Any, **kwargs: Any) -> None:
        if step == "rename" and args[0] != folder.with_name(f"{folder.name}.draft"):  # others rename as well
            return real(*args, **kwargs)  # type: ignore[no-any-return]
        if after:
            real(*args, **kwargs)
        os._exit(KILLED)

    child = os.fork()
    if child == 0:
        setattr(owner, step, die)
        answers = module.Answers("north", "stays", folder.parent / "stays.csv", "3")
        module.join(read_kit(kit), answers, folder, now=1_700_000_000)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == KILLED, (step, ended)


if __name__ == "__main__":
    kit, where = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    for owner, step in STEPS:
        for after in (False, True):
            folder = where / f"{step}-{'after' if after else 'before'}"
            join_and_die(kit, folder, owner, step, after=after)
            sys.stdout.write(f"{folder}\n")
