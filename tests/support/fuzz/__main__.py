"""`make fuzz`: all readers, one after the other, on mutations that coverage guides where atheris is installed.

Without it mutations are drawn at random. What is found is kept in build/fuzz/findings; once it is mended, it belongs
into tests/fuzz/corpus/TARGET. With `--corpus DIR`, inputs that reach lines which no other input reaches are kept in
DIR/TARGET, the smallest ones, and the next run starts from them; tests/fuzz/units is what the project keeps.
"""

import argparse
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random, SystemRandom

from tests.support.fuzz.runs import LARGEST_BYTES, LONGEST_SECONDS, FindingError, run_mutations
from tests.support.fuzz.targets import TARGETS
from tests.support.fuzz.units import Units

WORK = Path("build/fuzz")


def main() -> int:
    """Runs each target for its part of the time; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--corpus", type=Path, help="a folder of inputs to start from, to which new ones are added")
    chosen = parser.parse_args()
    names, guided = chosen.targets or list(TARGETS), find_spec("atheris") is not None
    print("Mutations are guided by coverage." if guided else "atheris is not installed: mutations are drawn at random.")
    found = [name for name in names if not (_guide if guided else _draw)(name, chosen.seconds, chosen.corpus)]
    print(f"Found something in {', '.join(found)}; see {WORK / 'findings'}." if found else "Found nothing.")
    return 1 if found else 0


def _draw(name: str, seconds: float, corpus: Path | None) -> bool:
    seed = SystemRandom().randrange(2**32)
    started = time.monotonic()
    try:
        run = partial(run_mutations, name, seconds, rng=Random(seed), findings=WORK / "findings")
        if corpus is None:
            count, kept = run(), ""
        else:
            units = Units(name, corpus)
            count = run(more=units.kept, read_once=units.offer)
            kept = f", {len(Units(name, corpus).kept)} units"
    except FindingError as finding:
        print(finding, flush=True)
        return False
    print(f"{name}: {count} mutations in {time.monotonic() - started:.0f} s, seed {seed}{kept}", flush=True)
    return True


def _guide(name: str, seconds: float, corpus: Path | None) -> bool:
    """Each target has a process of its own, which libFuzzer ends."""
    units, findings = (corpus or WORK / "units") / name, WORK / "findings"
    units.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": round(seconds),
        "timeout": round(6 * LONGEST_SECONDS),  # libFuzzer's clock runs on while other processes have the machine
        "max_len": LARGEST_BYTES,
        "rss_limit_mb": 4096,
        "artifact_prefix": f"{findings}/{name}-",
        "print_final_stats": 1,
    }
    flags = [f"-{key}={value}" for key, value in options.items()]
    ending = subprocess.run([sys.executable, "-m", "tests.support.fuzz.guided", name, *flags, units], check=False)
    if corpus is not None and ending.returncode == 0:
        Units(name, corpus)
    return ending.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
