"""Misclassification of the papers' targets by machines that learned from released rows, beside real ones.

What a machine learned from real rows does not depend on the method, so it is kept for the other points of a run.
"""

from collections.abc import Sequence

import numpy as np

from bench.reproduction.tables import Rows
from bench.rivals.classifiers import split_rows
from synod.common.study.encoding import Codes
from synod.deploy.evaluate.classifiers import classes_of, measure_learned
from synod.deploy.evaluate.tables import Table, make_table

Figures = dict[str, float]
_REAL: dict[tuple[object, ...], Figures] = {}
MOST_KEPT = 64


def measure_wrong(rows: Rows, columns: Sequence[Codes], seed: int) -> Figures:
    """For each target the wrong shares of a machine that learned from these rows (`wrong`), of one that learned from
    four fifths of the real ones (`real`), and of their most frequent class (`majority`), on the last fifth.
    """
    real, targets = make_table(rows.study, rows.columns), rows.parse_targets()
    found = measure_learned(real, make_table(rows.study, columns), targets, rng=_split(seed))
    return {**{f"wrong {label}": share for label, share in found.items()}, **_learn_from_real(rows, real, seed)}


def _learn_from_real(rows: Rows, real: Table, seed: int) -> Figures:
    key = (rows.name, rows.file, rows.count, real.names, tuple(rows.targets.items()), seed)
    if key not in _REAL:
        while len(_REAL) >= MOST_KEPT:
            _REAL.pop(next(iter(_REAL)))
        _REAL[key] = _measure_real(rows, real, seed)
    return _REAL[key]


def _measure_real(rows: Rows, real: Table, seed: int) -> Figures:
    targets = rows.parse_targets()
    trained, tested = split_rows(rows.count, rng=_split(seed))
    taught = Table(real.names, real.sizes, real.values, tuple(column[trained] for column in real.columns))
    found = measure_learned(real, taught, targets, rng=_split(seed))
    figures = {f"real {label}": share for label, share in found.items()}
    for target in targets:
        classes = classes_of(real, target)
        most = np.bincount(classes[trained]).argmax()
        figures[f"majority {target.label}"] = float((classes[tested] != most).mean())
    return figures


def _split(seed: int) -> np.random.Generator:
    """The generator that splits rows in one way for all methods of a run."""
    return np.random.default_rng([seed, 11])
