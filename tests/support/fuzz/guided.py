"""One target under atheris: `python -m tests.support.fuzz.guided TARGET [libFuzzer's flags] FOLDER`."""

import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["synod", "yaml"]):
    from tests.support.fuzz.mutations import mutate
    from tests.support.fuzz.runs import run_once
    from tests.support.fuzz.targets import TARGETS, seeds


def main() -> None:
    """Puts the seeds into the folder, and never returns."""
    name, folder = sys.argv[1], Path(sys.argv[-1])
    for place, data in enumerate(seeds(name)):
        (folder / f"seed-{place}").write_bytes(data)
    read = TARGETS[name]

    def change(data: bytes, most_bytes: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, most_bytes))
        return mutate(bytes(data), rng=Random(seed))[:most_bytes]

    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: run_once(read, data), custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
