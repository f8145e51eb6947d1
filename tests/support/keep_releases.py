"""Makes the kept releases again, one for each method: `python -m tests.support.keep_releases [METHOD ...]`.

Each is a launched study of three organizations with invented rows, with the method's own defaults. Run it when a format
has changed that may still change, and never for the sake of a test that an older release fails.
"""

import argparse
import csv
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from synod.common.study.study import Study, known_methods, parse_study
from synod.curator.release.redraw import check_release
from synod.deploy.launch.launcher import launch
from synod.deploy.launch.processes import process_daemons
from tests.support.studies import NAMES, Attribute, categorical, integer, real

DATA = Path(__file__).resolve().parents[1] / "data"
ROWS = (120, 80, 60)
SCHEMA: list[Attribute] = [
    categorical("sex", ("F", "M")),
    integer("age", 18, 90, bins=8),
    categorical("ward", ("a", "b", "c")),
    real("score", "0", "1", bins=10),
]
OTHERWISE: dict[str, dict[str, Any]] = {"adaptive": {"delta": "1e-9"}}
"""What the study of a method has beside the name of the method."""


def kept_folder(method: str) -> Path:
    """Where the kept release of a method is."""
    return DATA / f"release-0.1-{method}"


def kept_study(method: str) -> Study:
    """The study of a kept release, without its roster; epsilon is enough for a method to ask all kinds of its queries
    of so few rows.
    """
    document = {
        "name": f"kept-{method}",
        "method": {"name": method},
        "epsilon": "20",
        "key_bits": 2048,
        "schema": SCHEMA,
        **OTHERWISE.get(method, {}),
    }
    return parse_study(document, "a kept study")


def write_invented_tables(folder: Path) -> list[Path]:
    """A table of its own for each organization, in which columns depend on each other."""
    paths = []
    for name, count in zip(NAMES, ROWS, strict=True):
        rng, path = random.Random(name), folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([attribute["name"] for attribute in SCHEMA])
            for _ in range(count):
                age = rng.randint(18, 90)
                ward = "abc"[min(2, age // 31)] if rng.random() < 0.7 else rng.choice("abc")
                score = min(1.0, max(0.0, rng.gauss(age / 100, 0.1)))
                writer.writerow([rng.choice("FM"), age, ward, f"{score:.3f}"])
        paths.append(path)
    return paths


def keep_release(method: str) -> None:
    """Publishes the method's study, verifies the release, and puts it where the old one was."""
    with tempfile.TemporaryDirectory(prefix="synod-kept-") as temporary:
        folder = Path(temporary)
        for name in ("tables", "site"):
            (folder / name).mkdir()
        tables, out = write_invented_tables(folder / "tables"), folder / "release"
        launch(kept_study(method), tables, out, folder / "site", start=process_daemons, progress=lambda _: None)
        proven = check_release(out, None).lines
        shutil.rmtree(kept_folder(method), ignore_errors=True)
        shutil.copytree(out, kept_folder(method))
    sys.stdout.write(f"{kept_folder(method).name}: {len(proven)} checks\n")


def main() -> None:
    """Makes all kept releases, or those of the methods that are named."""
    parser = argparse.ArgumentParser(description="Makes the kept releases again.")
    parser.add_argument("method", nargs="*", choices=[*known_methods(), []], help="by default every method")
    for method in parser.parse_args().method or known_methods():
        keep_release(method)


if __name__ == "__main__":
    main()
