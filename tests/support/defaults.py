"""A later version of the code, in which every default is another: what was resolved before must not notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from synod.common.methods import adaptive, dp_subn
from synod.common.models import usefulness
from synod.common.protocol.plan import plan_study
from synod.common.study import schema
from synod.common.study.features import features_of
from synod.common.study.study import Study, known_methods

DIFFERENT: dict[str, Any] = {
    "theta": Decimal(1),
    "theta_frontier": Decimal(1),
    "max_candidates": 100,
    "max_view_cells": 64,
    "update": "joint",
    "cover": "overlapping",
    "beta": Decimal("0.7"),
    "split": (Decimal("0.1"), Decimal("0.9")),
    "max_numbers": 7,
    "parameter_cells": 4,
    "frontier_cells": 8,
    "table_cells": (4, 4, 4),
    "contribution": Decimal("0.5"),
    "components": 2,
    "levels": 1024,
    "link": "linear",
    "encoding": "gray",
    "score": "R",
    "collusion": 0,
    "max_rows_per_unit": 2,
    "key_bits": 2048,
    "bins": 5,
    "rounds": 3,
    "max_model_cells": 2_000,
    "splits": 2,
    "target": "sex",
    "specializations": 1,
    "attributes": ("sex",),
    "max_cells": 999_999,
    "parts": "modl",
    "degree": 1,
    "tables": "clip",
    "structure": "turns",  # the other one takes no score but I
    "sensitive_to": "sex",
    "sensitive": (),  # another default would refuse every study that says `sensitive_to`
    "threshold": Decimal("0.3"),
    "weights": "frequent",
}
OWN: dict[tuple[str, str], Any] = {
    ("adaptive", "split"): "auto",
    ("distdiffgen", "split"): Decimal("0.4"),
    ("dp-subn", "split"): "paper",
    ("dpcocgen", "split"): Decimal("0.4"),
    ("hpprivbayes", "encoding"): "hierarchical",
    ("hpprivbayes", "order"): "schema",
    ("hpprivbayes", "split"): (Decimal("0.2"), Decimal("0.2"), Decimal("0.2"), Decimal("0.2")),
}


@contextmanager
def other_defaults() -> Iterator[None]:
    """Every default of every method, and those of the study and its schema, are others inside."""
    models: list[type[BaseModel]] = [
        *known_methods().values(),
        schema.RealAttribute,
        Study,
    ]  # the last holds the others
    changed = [
        (model, name, field.default)
        for model in models
        for name, field in model.model_fields.items()
        if name in DIFFERENT or _own_default(model, name) is not None
    ]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dp_subn, "BEST_SPLITS", dict.fromkeys(dp_subn.BEST_SPLITS, (Decimal("0.1"),) * 4))
            patch.setattr(usefulness, "LARGEST_TABLE", 8)
            patch.setattr(schema, "DEFAULT_BINS", 5)
            patch.setattr(adaptive, "FINE_BINS", 5)
            patch.setattr(adaptive, "BINARY_CELLS", 1_000)
            patch.setattr(adaptive, "FEWEST_CELLS", 1_000)
            patch.setattr(adaptive, "_usual_spikes", lambda low, high: [])
            patch.setattr(adaptive, "SHARES", {1: (Decimal(1),), 3: (Decimal("0.2"), *(Decimal("0.4"),) * 2)})
            patch.setattr(adaptive, "ONES_ONLY", Fraction(9))
            patch.setattr(adaptive, "ONE_STAGE", Fraction(0))
            patch.setattr(adaptive, "ALL_TO_ONES", Fraction(1, 3))
            patch.setattr(adaptive, "PURE_LOOK", Decimal("0.2"))
            for model, name, _ in changed:
                own = _own_default(model, name)
                _change_default(model, name, DIFFERENT[name] if own is None else own)
            _forget_plans()
            yield
    finally:
        for model, name, before in changed:
            _change_default(model, name, before)
        _forget_plans()


def _own_default(model: type[BaseModel], field: str) -> Any:
    """What is written for a method's key alone; None where there is nothing of the kind."""
    methods = get_args(model.model_fields["name"].annotation) if "name" in model.model_fields else ()
    return next((OWN[one, field] for one in methods if (one, field) in OWN), None)


def _change_default(model: type[BaseModel], field: str, value: object) -> None:
    model.model_fields[field].default = value
    model.model_rebuild(force=True)


def _forget_plans() -> None:
    plan_study.cache_clear()
    features_of.cache_clear()
