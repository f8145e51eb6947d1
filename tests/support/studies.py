"""The study that tests start from, the attributes that it may have, and tables of codes and models that fit it."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from tests.support.keys import identity_of

Attribute = dict[str, Any]
Table = Sequence[Codes]


def categorical(name: str, categories: int | Sequence[str], *, nullable: bool = False) -> Attribute:
    """A categorical attribute as a study writes it; a number stands for that many categories c0, c1, ..."""
    values = [f"c{i}" for i in range(categories)] if isinstance(categories, int) else list(categories)
    return {"name": name, "type": "categorical", "categories": values, "nullable": nullable}


def binary(name: str) -> Attribute:
    """An attribute with two categories."""
    return categorical(name, ("no", "yes"))


def integer(name: str, low: int, high: int, *, nullable: bool = False, **more: Any) -> Attribute:
    """An integer attribute as a study writes it; `more` are further keys, such as bins."""
    return {"name": name, "type": "integer", "min": low, "max": high, "nullable": nullable, **more}


def real(name: str, low: str, high: str, *, nullable: bool = False, **more: Any) -> Attribute:
    """A real attribute as a study writes it; `more` are further keys, such as bins."""
    return {"name": name, "type": "real", "min": low, "max": high, "nullable": nullable, **more}


NAMES = ("north", "harbour", "valley")
ROWS = (40, 50, 60)
SCHEMA: tuple[Attribute, ...] = (
    categorical("sex", ("F", "M")),
    integer("age", 0, 100),
    real("income", "0", "1000", nullable=True),
    categorical("ward", ("a", "b", "c")),
)
WIDE_SCHEMA = (*SCHEMA, categorical("region", [f"r{i}" for i in range(24)]))
"""The same and one more: its moments need several ciphertexts."""
LINEAR = {"name": "hpdp-dp", "link": "linear"}
"""The quickest method: without the copula's iteration."""


def make_roster(names: Sequence[str] = NAMES, rows: Sequence[int] = ROWS) -> list[dict[str, Any]]:
    """A roster that pins the identity of each name."""
    return [
        {"name": name, "key": identity_of(name).fingerprint, "rows": count}
        for name, count in zip(names, rows, strict=True)
    ]


def study_document(**changes: Any) -> dict[str, Any]:
    """A sound study as YAML would give it, with some keys changed; None removes a key."""
    document = {
        "name": "care-survey",
        "method": {"name": "hpdp-dp"},
        "epsilon": "1",
        "key_bits": 2048,
        "seed": 7,
        "roster": make_roster(),
        "schema": list(deepcopy(SCHEMA)),
    }
    return {key: value for key, value in (document | changes).items() if value is not None}


def make_study(
    *, names: Sequence[str] = NAMES, rows: Sequence[int] = ROWS, output_rows: int | None = None, **changes: Any
) -> Study:
    """A resolved study of parties with these row counts; `changes` are other keys of the study."""
    document = study_document(**{"roster": make_roster(names, rows), "rows": output_rows, **changes})
    return parse_study(document, "the test's study").resolve()


def draw_columns(study: Study, name: str, seed: int = 0) -> tuple[Codes, ...]:
    """Random codes for one party's table."""
    index = study.index_of(name)
    rng = np.random.default_rng([seed, index])
    rows = study.roster[index].rows
    return tuple(rng.integers(0, coding.size, rows).astype(coding.dtype) for coding in codings_of(study))


def fill_table(study: Study, codes: Sequence[int], rows: int) -> list[Codes]:
    """`rows` equal rows: each attribute has one of the given codes."""
    return [
        np.full(rows, code % coding.size, dtype=coding.dtype)
        for coding, code in zip(codings_of(study), codes, strict=True)
    ]


def make_model(study: Study) -> GaussianModel:
    """A model of one component that fits the study."""
    width = moment_design(study).width - 1
    return GaussianModel(np.full((width, 1), 0.5), 0.5, np.zeros(width), np.full(width, 0.2))
