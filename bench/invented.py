"""Invented tables whose rows are of a few kinds, unlike those that a forecast rehearses on: for `bench.forecast`.

A row is of one of five kinds, and given its kind the columns are independent: a category is drawn by the kind's own
shares, a number lies around the kind's own centre. Some pairs are strongly related by that and others hardly.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

KINDS = 5
ROWS = 20_000
WHERE_KINDS_LIE = 0.15  # how far a number is spread around its kind's centre, in parts of its range
TABLES: dict[str, list[dict[str, Any]]] = {
    "shops": [
        {"name": "town", "type": "categorical", "categories": [f"town {i}" for i in range(60)]},
        {"name": "goods", "type": "categorical", "categories": [f"goods {i}" for i in range(25)]},
        {"name": "paid", "type": "categorical", "categories": ["cash", "card", "bill"]},
        {"name": "amount", "type": "real", "min": 0, "max": 500, "bins": 32},
        {"name": "pieces", "type": "integer", "min": 1, "max": 40, "bins": 20},
        {"name": "member", "type": "categorical", "categories": ["no", "yes"]},
    ],
    "schools": [
        {"name": "stage", "type": "categorical", "categories": ["first", "second", "third", "fourth"]},
        {"name": "points", "type": "integer", "min": 0, "max": 100, "bins": 10},
        {"name": "missed days", "type": "integer", "min": 0, "max": 60, "bins": 12},
        {"name": "support", "type": "categorical", "categories": ["none", "some", "much"]},
    ],
}


def write_invented(name: str, folder: Path, *, seed: int) -> Path:
    """Writes the rows of a table of this name into the folder."""
    rng = np.random.default_rng([seed, len(name)])
    kinds = rng.choice(KINDS, ROWS, p=rng.dirichlet(np.full(KINDS, 3.0)))
    columns = [_draw(attribute, kinds, rng=rng) for attribute in TABLES[name]]
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(attribute["name"] for attribute in TABLES[name])
        writer.writerows(zip(*columns, strict=True))
    return path


def _draw(attribute: dict[str, Any], kinds: np.ndarray[Any, Any], *, rng: np.random.Generator) -> list[Any]:
    if attribute["type"] == "categorical":
        values = np.array(attribute["categories"])
        shares = np.cumsum([rng.dirichlet(np.full(len(values), 0.3)) for _ in range(KINDS)], axis=1)
        places = (rng.random(len(kinds))[:, None] > shares[kinds]).sum(axis=1)
        return [str(value) for value in values[np.minimum(places, len(values) - 1)]]
    low, high = attribute["min"], attribute["max"]
    centres = rng.uniform(0.1, 0.9, KINDS)
    places = np.clip(centres[kinds] + WHERE_KINDS_LIE * rng.standard_normal(len(kinds)), 0, 1)
    numbers = low + (high - low) * places
    return (
        [int(n) for n in np.rint(numbers)] if attribute["type"] == "integer" else [round(float(n), 2) for n in numbers]
    )
