"""A hospital survey as its author drafts it, without a roster, and tables that fit it as CSV files."""

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synod.common.study.study import Study, parse_study
from tests.support.studies import NAMES, Attribute, categorical, integer, real, study_document

ROWS = (211, 157, 131)
WARDS = ("acute", "day", "long stay", "rehab")
SCHEMA: list[Attribute] = [
    categorical("sex", ("F", "M")),
    integer("age", 0, 99, bins=10),
    real("weight", "2", "200", bins=8, nullable=True),
    categorical("ward", WARDS),
    integer("stays", 0, 5),
]


def draft_survey(name: str = "survey", **changes: Any) -> Study:
    """A small study, not yet resolved; its seed is fixed, so that its releases can be compared."""
    usual = {"epsilon": "0.8", "seed": 20_260_101, "roster": None, "schema": SCHEMA}
    return parse_study(study_document(name=name, **{**usual, **changes}), "the test's study")


def make_rows(count: int, seed: int) -> list[list[str]]:
    """Rows that fit the schema, with some dependence between columns; many weights are missing, beyond any noise."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        sex = rng.choice("FM")
        age = rng.randint(0, 99)
        weight = f"{min(199.0, max(2.5, rng.gauss(60 + 12 * (sex == 'M'), 15))):.1f}" if rng.random() < 0.5 else ""
        ward = WARDS[min(3, age // 30)] if rng.random() < 0.7 else rng.choice(WARDS)
        rows.append([sex, str(age), weight, ward, str(min(5, age // 20 + rng.randint(0, 1)))])
    return rows


def write_table(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Writes a CSV file with the schema's header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[column["name"] for column in SCHEMA], *rows])
    return path


def write_tables(folder: Path) -> list[Path]:
    """One table of its own for each of three organizations."""
    return [
        write_table(folder / f"{name}.csv", make_rows(count, seed))
        for seed, (name, count) in enumerate(zip(NAMES, ROWS, strict=True))
    ]
