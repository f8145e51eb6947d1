"""The published model of a table of cells: integers from which anyone can draw the rows again, on any machine.

`attributes` are those that vary, in the schema's order, each with the group of every code and with its weight: its
share of the group, in units of 2^-20. `cells` are the cells of groups that have a weight, as places in C order,
ascending, and `weights` are theirs: probabilities in units of 2^-40. Inside a cell of groups columns are independent.
`deviation` is the standard deviation of the noise on a cell's count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study
from synod.curator.inference.synthesis import WEIGHT_BITS, draw_rows, integer_weights
from synod.curator.structure.model import hang_cliques

UNIT = 1 << WEIGHT_BITS
SHARE_UNIT = 1 << 20
SPREAD = float(1 << 20)  # of a cell of groups among its codes; with the unit it stays below 2^62
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Groups = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CellModel:
    """For each feature the group of each code and its share of it, the weight of each cell of groups, and the noise on
    a cell's count.
    """

    groups: tuple[Groups, ...]
    shares: tuple[Integers, ...]
    weights: Integers
    deviation: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each feature has."""
        return tuple(max(own) + 1 for own in self.groups)


def write_cells(
    study: Study, groups: Sequence[Groups], cell_shares: Floats, deviation: float, inside: Sequence[Floats] = ()
) -> Json:
    """The model as the release holds it; `cell_shares` are those of all cells of groups, flat in C order, and `inside`
    those of each feature's codes in their groups, equal ones where none are given.
    """
    (weights,) = integer_weights([cell_shares])
    cells = np.flatnonzero(weights)
    codes = [np.rint(own * SHARE_UNIT).astype(np.int64) for own in inside or map(equal_shares, groups)]
    listed = zip(_names(study), groups, codes, strict=True)
    return {
        "unit": UNIT,
        "attributes": [{"name": name, "groups": list(own), "weights": of.tolist()} for name, own, of in listed],
        "cells": cells.tolist(),
        "weights": weights[cells].tolist(),
        "deviation": f"{deviation:.6g}",
    }


def equal_shares(groups: Groups) -> Floats:
    """Each code's share of its group where all are alike."""
    shares: Floats = (1 / np.bincount(groups))[np.array(groups)]
    return shares


def _names(study: Study) -> list[str]:
    return [study.attributes[feature.attribute].name for feature in features_of(study)]


def read_cells(study: Study, model: Any) -> CellModel:
    """Reads what `write_cells` wrote.

    Raises:
        SynodError: the model is not one that rows can be drawn from, or not one of this study's attributes.
    """
    parts = _read_record(model, "the model", unit=int, attributes=list, cells=list, weights=list, deviation=str)
    if parts["unit"] != UNIT:
        raise _unsound("its unit is not 2^40")
    kinds = {"name": str, "groups": list, "weights": list}
    read = [_read_record(own, f"attribute {i}", **kinds) for i, own in enumerate(parts["attributes"])]
    found = [(own["name"], len(own["groups"])) for own in read]
    if found != list(zip(_names(study), sizes_of(study), strict=True)):
        raise _unsound("its attributes are not those of the study")
    groups = tuple(_read_groups(own["groups"], own["name"]) for own in read)
    shares = tuple(_read_shares(own["weights"], parted, own["name"]) for own, parted in zip(read, groups, strict=True))
    every = prod(max(own) + 1 for own in groups)
    cells = _read_integers(parts["cells"], every - 1, "its cells")
    weights = _read_integers(parts["weights"], UNIT, "its weights")
    if len(cells) == 0 or len(cells) != len(weights) or (np.diff(cells) <= 0).any() or weights.min() == 0:
        raise _unsound("its cells are not ascending, each with a weight")
    if abs(sum(parts["weights"]) - UNIT) > every:  # each was rounded
        raise _unsound("its weights do not add up to its unit")
    table = np.zeros(every, dtype=np.int64)
    table[cells] = weights
    return CellModel(groups, shares, table, _read_deviation(parts["deviation"]))


def _read_groups(groups: list[Any], name: str) -> Groups:
    values = _read_integers(groups, len(groups), f"the groups of {name}").tolist()
    if list(dict.fromkeys(values)) != list(range(max(values) + 1)):
        raise _unsound(f"the groups of {name} are not numbered by first occurrence")
    return tuple(values)


def _read_shares(weights: list[Any], groups: Groups, name: str) -> Integers:
    shares = _read_integers(weights, SHARE_UNIT, f"the weights of {name}")
    if len(shares) != len(groups):
        raise _unsound(f"the weights of {name} are not those of its codes")
    if (np.abs(np.bincount(groups, shares) - SHARE_UNIT) > len(groups)).any():
        raise _unsound(f"the weights of {name} do not add up to one in each group")
    return shares


def _read_integers(values: list[Any], largest: int, what: str) -> Integers:
    if not all(type(value) is int and 0 <= value <= largest for value in values):
        raise _unsound(f"{what} are not whole numbers from 0 to {largest}")
    return np.array(values, dtype=np.int64)


def _read_deviation(written: str) -> float:
    try:
        deviation = float(written)
    except ValueError:
        deviation = nan
    if not 0 < deviation < inf:
        raise _unsound("its deviation is not a number above 0")
    return deviation


def _read_record(value: Any, what: str, **kinds: type) -> dict[str, Any]:
    """A mapping of exactly these keys to values of these types."""
    if not isinstance(value, dict) or {key: type(part) for key, part in value.items()} != kinds:
        raise _unsound(f"{what} is not a mapping of {', '.join(kinds)}")
    return value


def _unsound(why: str) -> SynodError:
    return check_failed(f"model.json is not a model that rows can be drawn from: {why}.")


def draw_cells(study: Study, model: Json, seed: int) -> list[Codes]:
    """The rows of a published model, a function of the model and the seed alone; each cell has its share of the rows as
    nearly as whole rows allow, attribute by attribute.

    Raises:
        SynodError: the model is not sound.
    """
    assert study.rows is not None
    sizes, codings = sizes_of(study), codings_of(study)
    weights = spread_cells(read_cells(study, model)).reshape(sizes)
    tree = hang_cliques(sizes, (tuple(range(len(sizes))),), (-1,))
    drawn = draw_rows(tree, [weights], study.rows, coins=Coins.public(seed, "rows"))
    columns: list[Codes] = [np.zeros(study.rows, dtype=coding.dtype) for coding in codings]
    for place, feature in enumerate(features_of(study)):
        columns[feature.attribute] = drawn[:, place].astype(codings[feature.attribute].dtype)
    return columns


def spread_cells(model: CellModel) -> Integers:
    """A weight for each cell of codes: that of its cell of groups, times the share that each code has of its group.

    Each number is the outcome of single multiplications in a fixed order, so every machine gets the same.
    """
    if all(max(own) + 1 == len(own) for own in model.groups):
        return model.weights
    weights = model.weights.astype(np.float64).reshape(model.sizes)
    for axis, (own, shares) in enumerate(zip(model.groups, model.shares, strict=True)):
        shape = [-1 if place == axis else 1 for place in range(len(model.groups))]
        weights = np.take(weights, own, axis=axis)
        weights *= (shares / SHARE_UNIT).reshape(shape)
    weights *= SPREAD
    return np.rint(weights).astype(np.int64).reshape(-1)
