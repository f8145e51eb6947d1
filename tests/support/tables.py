"""Tables of the shapes that the papers use: 15 attributes in 52 bits, and 16 two-valued attributes.

They are the papers' own, Adult and NLTCS, from the folder that SYNOD_DATA names. NLTCS may not be redistributed, so
neither is in the repository. Without them the tables are invented: one hidden number makes columns depend on each
other, and no row comes from anywhere but the generator.
"""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

NAMES = ("north", "harbour", "valley")
SHARES = (0.5, 0.3, 0.2)

# name, and how many categories; or the bounds of a number in 16 bins
CENSUS: tuple[tuple[str, int | tuple[int, int]], ...] = (
    ("age", (17, 90)), ("work class", 7), ("weight", (0, 2_000_000)), ("education", 16), ("years at school", (1, 16)),
    ("marital status", 7), ("occupation", 14), ("relationship", 6), ("group", 5), ("sex", 2), ("gain", (0, 99_999)),
    ("loss", (0, 99_999)), ("hours per week", (1, 99)), ("country", 41), ("income <= 50K", 2),
)  # fmt: skip
ABILITIES = (
    "phone", "medicine", "money", "travel", "eating", "shopping", "cooking", "laundry", "light work", "heavy work",
    "toilet", "bathing", "dressing", "walking indoors", "getting up", "walking outside",
)  # fmt: skip


REAL = {"census": "adult", "abilities": "nltcs"}
METHODS: dict[str, dict[str, Any]] = {
    "census": {"name": "dp-subn", "encoding": "binary"},
    "abilities": {"name": "hpdp-dp"},
}
INVENTED_ROWS = 9_000


def write_study(name: str, folder: Path) -> Path:
    """A study with its tables, in a new folder."""
    data = os.environ.get("SYNOD_DATA")
    if data:
        return _copy_study(name, Path(data) / REAL[name], folder)
    return {"census": _write_census, "abilities": _write_abilities}[name](folder, INVENTED_ROWS)


def _copy_study(name: str, source: Path, folder: Path) -> Path:
    """A study of the papers' table: `study.yaml` for the schema, and one table named as its folder is."""
    schema = yaml.safe_load((source / "study.yaml").read_text(encoding="utf-8"))["schema"]
    with (source / f"{source.name}.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == [attribute["name"] for attribute in schema]
    return _write(folder, name, schema, rows)


def _write_census(folder: Path, rows: int) -> Path:
    """A study like Adult's for DP-SUBN, with its tables."""
    rng = np.random.default_rng(52)
    hidden = rng.standard_normal(rows)
    schema: list[dict[str, Any]] = []
    columns: list[list[str]] = []
    for place, (name, domain) in enumerate(CENSUS):
        score = 0.7 * hidden * (-1) ** place + rng.standard_normal(rows)
        rank = np.argsort(np.argsort(score)) / rows
        if isinstance(domain, int):
            categories = [f"{name}, no. {code + 1}" for code in range(domain)]
            schema.append({"name": name, "type": "categorical", "categories": categories})
            columns.append([categories[int(code)] for code in domain * rank**2])
        else:
            low, high = domain
            schema.append({"name": name, "type": "integer", "min": low, "max": high, "bins": 16})
            columns.append([str(int(low + (high - low) * place**1.5)) for place in rank])
    return _write(folder, "census", schema, list(zip(*columns, strict=True)))


def _write_abilities(folder: Path, rows: int) -> Path:
    """A study like NLTCS' for HPDP-DP, with its tables."""
    rng = np.random.default_rng(16)
    hidden = rng.standard_normal(rows)
    schema = [{"name": name, "type": "categorical", "categories": ["able", "not able"]} for name in ABILITIES]
    limits = np.linspace(0.3, 2.2, len(ABILITIES))
    answers = [hidden + 0.8 * rng.standard_normal(rows) > limit for limit in limits]
    columns = [["not able" if no else "able" for no in column] for column in answers]
    return _write(folder, "abilities", schema, list(zip(*columns, strict=True)))


def _write(folder: Path, name: str, schema: list[dict[str, Any]], rows: Sequence[Sequence[str]]) -> Path:
    folder.mkdir(parents=True)
    study = {"name": name, "method": METHODS[name], "epsilon": "0.8", "key_bits": 2048, "seed": 5, "schema": schema}
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    start = 0
    for party, share in zip(NAMES, SHARES, strict=True):
        end = len(rows) if party == NAMES[-1] else start + round(share * len(rows))
        with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[attribute["name"] for attribute in schema], *rows[start:end]])
        start = end
    return folder / "study.yaml"
