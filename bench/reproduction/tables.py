"""The tables of the papers, from a folder that the caller has, or tables of the same shapes that are made here.

A folder holds `nltcs/` and `adult/`, each with `study.yaml` and one CSV file of its name. A made table has the same
number of rows and cells, and attributes that depend on each other through a few hidden ones; it is nobody's data.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from synod.common.runtime.errors import invalid
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.deploy.evaluate.classifiers import Target, parse_target
from synod.deploy.evaluate.tables import make_table, read_columns, split_bits
from synod.party.table.encode import read_table

MADE = "made"
MADE_SIZES = {"nltcs": (2,) * 16, "adult": (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2)}
MADE_ROWS = {"nltcs": 21_574, "adult": 45_222}
HIDDEN = 4
MADE_SEED = 5

POST_SECONDARY = "Some-college|Assoc-voc|Assoc-acdm|Bachelors|Masters|Prof-school|Doctorate"
TARGETS = {
    "nltcs": {"outside": "getting about outside", "money": "managing money"},
    "adult": {"salary": "income", "education": f"education={POST_SECONDARY}"},
}
MADE_TARGETS = {
    "nltcs": {"outside": "a16", "money": "a3"},
    "adult": {"salary": "a15", "education": "a4=8|9|10|11|12|13|14|15"},
}
FOUR_TARGETS = {
    "nltcs": {**TARGETS["nltcs"], "bathing": "bathing", "traveling": "traveling"},
    "adult": {**TARGETS["adult"], "gender": "sex", "never married": "marital-status=Never-married"},
}
"""What the PrivBayes paper predicts (6.1)."""
MADE_FOUR_TARGETS = {
    "nltcs": {**MADE_TARGETS["nltcs"], "bathing": "a12", "traveling": "a4"},
    "adult": {**MADE_TARGETS["adult"], "gender": "a10", "never married": "a6=0"},
}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table in the schema's bins, the study that describes it, and what is predicted in it."""

    name: str
    data: dict[str, Any]
    columns: tuple[Codes, ...]
    targets: dict[str, str]
    file: Path | None = None

    @property
    def count(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])

    @property
    def study(self) -> Study:
        """The study as its file has it, without a roster."""
        return parse_study(self.data, self.name)

    def codes_for(self, study: Study) -> tuple[Codes, ...]:
        """The rows in the codes of the study's method, which may be finer than bins; made rows have no numbers."""
        if self.file is None:
            return self.columns
        return read_table(self.file, codings_of(study), unit=None, expected_rows=self.count).columns

    def on_bits(self) -> "Rows":
        """The same rows with every bit of a code as an attribute of its own."""
        bits = split_bits(self.study, self.columns)
        schema = [{"name": name, "type": "categorical", "categories": ["0", "1"]} for name in bits.names]
        return Rows(self.name, {**self.data, "schema": schema}, bits.columns, {})

    def of_attributes(self, names: Sequence[str]) -> "Rows":
        """The same rows with these attributes alone, in the schema's order, and nothing to predict."""
        kept = [place for place, attribute in enumerate(self.study.attributes) if attribute.name in names]
        schema = [self.data["schema"][place] for place in kept]
        columns = tuple(self.columns[place] for place in kept)
        return Rows(self.name, {**self.data, "schema": schema}, columns, {}, self.file)

    def with_four_targets(self) -> "Rows":
        """The same rows with all that the PrivBayes paper predicts."""
        targets = MADE_FOUR_TARGETS if self.file is None else FOUR_TARGETS
        return replace(self, targets=targets[self.name])

    def parse_targets(self) -> list[Target]:
        """The targets with the labels of the papers."""
        names = make_table(self.study, self.columns).names
        parsed = [(label, parse_target(text, self.study, names)) for label, text in self.targets.items()]
        return [Target(label, target.attribute, target.chosen) for label, target in parsed]


@lru_cache(maxsize=8)
def load_rows(name: str, folder: Path | None) -> Rows:
    """The table of this name in the folder, or a made one."""
    if folder is None:
        return make_rows(name, MADE_ROWS[name])
    data, table = load_yaml(folder / name / "study.yaml"), folder / name / f"{name}.csv"
    if not table.is_file():
        raise invalid(f"there is no table {table}.", "The folder of DATA holds nltcs/nltcs.csv and adult/adult.csv.")
    columns = read_columns([table], parse_study(data, name))
    return Rows(name, data, columns, TARGETS[name], table)


def source_of(name: str, folder: Path | None) -> str:
    """What tells results of this table from those of another: the beginning of a hash of its study and rows."""
    if folder is None:
        return MADE
    files = [folder / name / "study.yaml", folder / name / f"{name}.csv"]
    if missing := [file for file in files if not file.is_file()]:
        raise invalid(
            f"there is no file {missing[0]}.", "A folder with data holds nltcs/ and adult/, with a study each."
        )
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def make_rows(name: str, count: int) -> Rows:
    """A table of the same shape whose attributes follow a few hidden numbers."""
    rng = np.random.default_rng([MADE_SEED, *name.encode()])
    sizes = MADE_SIZES[name]
    hidden = rng.normal(size=(count, HIDDEN))
    columns = tuple(_make_column(size, hidden, rng=rng) for size in sizes)
    schema = [
        {"name": f"a{place}", "type": "categorical", "categories": [str(code) for code in range(size)]}
        for place, size in enumerate(sizes, start=1)
    ]
    data = {"name": f"{name}-shaped", "method": {"name": "dp-subn"}, "epsilon": "0.8", "schema": schema}
    return Rows(name, data, columns, MADE_TARGETS[name])


def _make_column(size: int, hidden: "np.ndarray[Any, np.dtype[np.float64]]", *, rng: np.random.Generator) -> Codes:
    """Codes by cutting a noisy mix of the hidden numbers at uneven quantiles."""
    mix = hidden @ rng.normal(size=HIDDEN) + rng.normal(size=len(hidden))
    shares = np.sort(rng.uniform(0.05, 0.95, size=size - 1))
    return np.searchsorted(np.quantile(mix, shares), mix).astype(np.uint8)


def deal_rows(columns: Sequence[Codes], parties: int, *, rng: np.random.Generator) -> list[list[Codes]]:
    """Rows dealt out at random in equal parts."""
    order = np.array_split(rng.permutation(len(columns[0])), parties)
    return [[column[part] for column in columns] for part in order]


def study_for(rows: Rows, keys: dict[str, Any], parties: int, epsilon: str) -> Study:
    """The resolved study over equal parties with threshold 0: one full share of noise, as the papers have it."""
    shares = [len(part) for part in np.array_split(np.arange(rows.count), parties)]
    roster = [{"name": f"p{i}", "key": f"sha256:{i:064x}", "rows": share} for i, share in enumerate(shares)]
    changes = {"epsilon": epsilon, "method": keys, "collusion": 0, "roster": roster}
    return parse_study({**rows.data, **changes}, "bench").resolve()
