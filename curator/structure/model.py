"""The published model of a junction tree: integers from which anyone can draw the rows again, on any machine.

`attributes` are those that vary, in the schema's order, each with the group of every code and the weights by which a
group's rows become codes. `cliques` come parents first, each with its place in the tree and the weight of every cell of
its groups, in C order. A weight is a probability in units of 2^-40. `tables` are what was counted, with the standard
deviation of the noise on a count.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study
from synod.curator.inference.junction import JunctionTree
from synod.curator.inference.synthesis import WEIGHT_BITS, draw_rows, integer_weights
from synod.curator.structure.grouped import GroupedFeatures

UNIT = 1 << WEIGHT_BITS
Counted = Sequence[tuple[tuple[int, ...], float]]
Floats = NDArray[np.float64]


def write_model(
    study: Study, grouped: GroupedFeatures, tree: JunctionTree, tables: Sequence[Floats], counted: Counted
) -> Json:
    """The model as the release holds it."""
    places = {clique: place for place, clique in enumerate(tree.order)}
    return {
        "unit": UNIT,
        "attributes": [
            {"name": name, "groups": list(groups), "weights": _weigh(shares)}
            for name, groups, shares in zip(_names(study), grouped.groups, grouped.shares, strict=True)
        ],
        "cliques": [
            {
                "attributes": list(tree.cliques[clique]),
                "parent": places.get(tree.parents[clique], -1),
                "weights": _weigh(tables[clique]),
            }
            for clique in tree.order
        ],
        "tables": [{"attributes": list(attributes), "deviation": f"{noise:.6g}"} for attributes, noise in counted],
    }


def _names(study: Study) -> list[str]:
    return [study.attributes[feature.attribute].name for feature in features_of(study)]


def _weigh(shares: Floats) -> list[Json]:
    (weights,) = integer_weights([shares.ravel()])
    listed: list[Json] = weights.tolist()
    return listed


def read_tree(model: Any) -> tuple[JunctionTree, list[NDArray[np.int64]]]:
    """The junction tree of a published model, and the weights of its cliques' cells.

    Raises:
        SynodError: the model is not one that rows can be drawn from.
    """
    parts = _read_record(model, "the model", unit=int, attributes=list, cliques=list, tables=list)
    if parts["unit"] != UNIT:
        raise _unsound("its unit is not 2^40")
    sizes = tuple(_read_size(attribute, place) for place, attribute in enumerate(parts["attributes"]))
    read = [_read_clique(clique, place, sizes) for place, clique in enumerate(parts["cliques"])]
    cliques, parents = tuple(clique for clique, _, _ in read), tuple(parent for _, parent, _ in read)
    _check_hung(sizes, cliques, parents)
    return hang_cliques(sizes, cliques, parents), [weights for _, _, weights in read]


def _read_clique(clique: Any, place: int, sizes: Sequence[int]) -> tuple[tuple[int, ...], int, NDArray[np.int64]]:
    """The attributes of a clique of a published model, its parent, and the weights of its cells."""
    what = f"clique {place}"
    own = _read_record(clique, what, attributes=list, parent=int, weights=list)
    attributes = tuple(_read_integers(own["attributes"], len(sizes) - 1, f"the attributes of {what}"))
    if not attributes or any(a >= b for a, b in pairwise(attributes)):
        raise _unsound(f"the attributes of {what} are not in ascending order")
    shape = tuple(sizes[attribute] for attribute in attributes)
    cells = _read_integers(own["weights"], UNIT, f"the weights of {what}")
    if len(cells) != prod(shape) or not any(cells):
        raise _unsound(f"the weights of {what} are not those of its cells")
    return attributes, own["parent"], np.array(cells, dtype=np.int64).reshape(shape)


def _check_hung(sizes: Sequence[int], cliques: Sequence[tuple[int, ...]], parents: Sequence[int]) -> None:
    """Refuses cliques that are not listed parents first, or whose parent lacks what they share with earlier ones."""
    held = set[int]()
    for place, (clique, parent) in enumerate(zip(cliques, parents, strict=True)):
        if parent not in (range(place) if place else [-1]):
            raise _unsound(f"clique {place} does not come after its parent")
        if place and not held.intersection(clique) <= set(cliques[parent]):
            raise _unsound(f"clique {place} shares attributes with others that its parent lacks")
        held.update(clique)
    if not sizes or held != set(range(len(sizes))):
        raise _unsound("its cliques do not hold every attribute")


def _read_size(attribute: Any, place: int) -> int:
    """How many groups an attribute of a published model has."""
    what = f"attribute {place}"
    own = _read_record(attribute, what, name=str, groups=list, weights=list)
    groups = _read_integers(own["groups"], len(own["groups"]), f"the groups of {what}")
    if not groups or list(dict.fromkeys(groups)) != list(range(max(groups) + 1)):
        raise _unsound(f"the groups of {what} are not numbered by first occurrence")
    if len(_read_integers(own["weights"], UNIT, f"the weights of {what}")) != len(groups):
        raise _unsound(f"the weights of {what} are not those of its codes")
    return max(groups) + 1


def _read_record(value: Any, what: str, **kinds: type) -> dict[str, Any]:
    """A mapping of exactly these keys to values of these types."""
    if not isinstance(value, dict) or {key: type(part) for key, part in value.items()} != kinds:
        raise _unsound(f"{what} is not a mapping of {', '.join(kinds)}")
    return value


def _read_integers(values: list[Any], largest: int, what: str) -> list[int]:
    if not all(type(value) is int and 0 <= value <= largest for value in values):
        raise _unsound(f"{what} are not whole numbers from 0 to {largest}")
    return values


def _unsound(why: str) -> SynodError:
    return check_failed(f"model.json is not a model that rows can be drawn from: {why}.")


def hang_cliques(
    sizes: tuple[int, ...], cliques: tuple[tuple[int, ...], ...], parents: tuple[int, ...]
) -> JunctionTree:
    """The tree of cliques that are listed parents first."""
    separators = tuple(
        tuple(a for a in clique if parent >= 0 and a in cliques[parent])
        for clique, parent in zip(cliques, parents, strict=True)
    )
    children = tuple(tuple(i for i, parent in enumerate(parents) if parent == place) for place in range(len(cliques)))
    return JunctionTree(sizes, cliques, parents, tuple(range(len(cliques))), separators, children)


def check_attributes(study: Study, model: Any) -> None:
    """Refuses a sound model that is not one of this study's attributes."""
    found = [(attribute["name"], len(attribute["groups"])) for attribute in model["attributes"]]
    if found != list(zip(_names(study), sizes_of(study), strict=True)):
        raise _unsound("its attributes are not those of the study")


def draw_model(study: Study, model: Json, seed: int) -> list[Codes]:
    """The rows of a published model, a function of the model and the seed alone: groups down the tree, then values.

    Raises:
        SynodError: the model is not sound, or not one of this study's attributes.
    """
    assert study.rows is not None
    published: Any = model
    coins, codings = Coins.public(seed, "rows"), codings_of(study)
    tree, weights = read_tree(published)
    check_attributes(study, published)
    drawn = draw_rows(tree, weights, study.rows, coins=coins)
    columns: list[Codes] = [np.zeros(study.rows, dtype=coding.dtype) for coding in codings]
    for place, feature in enumerate(features_of(study)):
        attribute = published["attributes"][place]
        codes = _ungroup(drawn[:, place], attribute["groups"], attribute["weights"], coins=coins)
        columns[feature.attribute] = codes.astype(codings[feature.attribute].dtype)
    return columns


def _ungroup(
    drawn: NDArray[np.int64], groups: Sequence[int], weights: Sequence[int], *, coins: Coins
) -> NDArray[np.int64]:
    """Each group's rows as its values in proportion to their weights, dealt at random."""
    members = [[code for code, own in enumerate(groups) if own == group] for group in range(max(groups) + 1)]
    codes = np.array([own[0] for own in members], dtype=np.int64)[drawn]
    for group, own in enumerate(members):
        rows = np.flatnonzero(drawn == group) if len(own) > 1 else np.empty(0, dtype=np.int64)
        shuffled = rows[np.argsort(coins.draw_words(len(rows)), kind="stable")]
        codes[shuffled] = np.repeat(own, _divide(len(rows), [weights[code] for code in own]))
    return codes


def _divide(rows: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers that add up to `rows`, in proportion to the weights to within one; evenly where all are zero."""
    shares = weights if any(weights) else [1] * len(weights)
    ends = [0]
    total, reached = sum(shares), 0
    for share in shares:
        reached += share
        ends.append((2 * reached * rows + total) // (2 * total))
    return [after - before for before, after in pairwise(ends)]
