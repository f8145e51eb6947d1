"""The published model of a junction tree: integers from which anyone can draw the rows again, on any machine.

`attributes` are those that vary, in the schema's order, each with the group of every code and the weights by which a
group's rows become codes. `cliques` come parents first, each with its place in the tree and the weight of every cell of
its groups, in C order. A weight is a probability in units of 2^-40. `tables` are what was counted, with the standard
deviation of the noise on a count.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.inference.junction import JunctionTree
from synod.curator.inference.synthesis import draw_rows
from synod.curator.structure.grouped import GroupedFeatures

UNIT = 1 << 40
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
    weights: list[Json] = np.rint(shares.ravel() * UNIT).astype(np.int64).tolist()
    return weights


def read_tree(model: Any) -> tuple[JunctionTree, list[NDArray[np.int64]]]:
    """The junction tree of a published model, and the weights of its cliques' cells."""
    sizes = tuple(max(attribute["groups"]) + 1 for attribute in model["attributes"])
    cliques = tuple(tuple(clique["attributes"]) for clique in model["cliques"])
    parents = tuple(clique["parent"] for clique in model["cliques"])
    tree = hang_cliques(sizes, cliques, parents)
    weights = [np.array(clique["weights"], dtype=np.int64) for clique in model["cliques"]]
    return tree, [w.reshape(tree.shape(clique)) for w, clique in zip(weights, cliques, strict=True)]


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


def draw_model(study: Study, model: Json, seed: int) -> list[Codes]:
    """The rows of a published model, a function of the model and the seed alone: groups down the tree, then values."""
    assert study.rows is not None
    coins, published = Coins.public(seed, "rows"), _as_mapping(model)
    drawn = draw_rows(*read_tree(published), study.rows, coins=coins)
    codings = codings_of(study)
    columns: list[Codes] = [np.zeros(study.rows, dtype=coding.dtype) for coding in codings]
    for place, feature in enumerate(features_of(study)):
        attribute = published["attributes"][place]
        codes = _ungroup(drawn[:, place], attribute["groups"], attribute["weights"], coins=coins)
        columns[feature.attribute] = codes.astype(codings[feature.attribute].dtype)
    return columns


def _as_mapping(model: Json) -> Any:
    assert isinstance(model, dict)
    return model


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
