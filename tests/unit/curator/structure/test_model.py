"""The published model: from what was fitted to JSON and back, and rows that anyone draws again, now and later."""

import json
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study
from synod.curator.inference.junction import build_tree
from synod.curator.inference.propagation import propagate
from synod.curator.structure import model as module
from synod.curator.structure.grouped import GroupedFeatures
from synod.curator.structure.model import UNIT, draw_model, read_tree, write_model
from tests.support.studies import binary, categorical, integer, make_study, real

SCHEMA = [
    binary("sex"),
    integer("year", 2020, 2020),
    integer("age", 0, 99, bins=8, spikes=[0, 99], nullable=True),
    real("pay", "-1", "1", bins=300, spikes=["0"]),
    categorical("one", 1),
    categorical("ward", 4, nullable=True),
]
PAIRS = [(0, 1), (1, 2), (2, 3), (1, 3)]
PINNED_HASH = "59a7e72680f18019f60ad6b8b255164080b9a039a871f8cb06305cac5c33d2e1"


def make_grouped(study: Study, seed: int = 5) -> GroupedFeatures:
    """Groups of neighbouring codes, at most five for each feature, and random shares, some of them nothing."""
    rng = np.random.default_rng(seed)
    groups = tuple(tuple(code * min(size, 5) // size for code in range(size)) for size in sizes_of(study))
    shares = [rng.random(size) * (np.arange(size) != 1) for size in sizes_of(study)]
    return GroupedFeatures(groups, tuple(own / own.sum() for own in shares))


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(schema=SCHEMA, method={"name": "adaptive"}, output_rows=4_000)


def fitted(study: Study, seed: int = 5) -> tuple[GroupedFeatures, Any, list[Any]]:
    grouped = make_grouped(study, seed)
    tree = build_tree(grouped.sizes, PAIRS)
    rng = np.random.default_rng(seed)
    potentials = [rng.normal(size=tree.shape(clique)) for clique in tree.cliques]
    return grouped, tree, propagate(tree, potentials)[1]


@pytest.fixture(scope="module")
def model(study: Study) -> Any:
    return write_model(study, *fitted(study), [((0,), 3.0), ((0, 1), 12.3456789)])


def test_what_is_written_is_plain_json_in_whole_numbers(study: Study, model: Any) -> None:
    assert canonical_bytes(model)
    assert json.loads(json.dumps(model)) == model
    assert model["unit"] == UNIT
    assert [attribute["name"] for attribute in model["attributes"]] == ["sex", "age", "pay", "ward"]
    assert [len(attribute["groups"]) for attribute in model["attributes"]] == list(sizes_of(study))
    assert model["tables"] == [
        {"attributes": [0], "deviation": "3"},
        {"attributes": [0, 1], "deviation": "12.3457"},
    ]


def test_the_tree_comes_back(study: Study, model: Any) -> None:
    grouped, tree, tables = fitted(study)
    found, weights = read_tree(model)
    assert found.sizes == grouped.sizes
    assert found.cliques == tuple(tree.cliques[place] for place in tree.order)
    assert found.separators == tuple(tree.separators[place] for place in tree.order)
    assert found.order == tuple(range(len(tree.order)))
    assert found.parents[0] == -1
    for own, place in zip(weights, tree.order, strict=True):
        assert np.abs(own / UNIT - tables[place]).max() <= 1 / UNIT
    for place, children in enumerate(found.children):
        assert all(found.parents[child] == place for child in children)


# Rows


def test_rows_are_a_function_of_model_and_seed(study: Study, model: Any) -> None:
    first, again, other = (draw_model(study, deepcopy(model), seed) for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert [column.dtype for column in first] == [coding.dtype for coding in codings_of(study)]
    assert {str(column.dtype) for column in first} == {"uint8", "uint16"}
    assert all(len(column) == study.rows for column in first)
    assert all(int(c.max()) < coding.size for c, coding in zip(first, codings_of(study), strict=True))
    assert not first[1].any()
    assert not first[4].any()


def test_rows_are_what_they_were() -> None:
    """Whoever changes how rows are drawn from a model makes every older release fail to verify."""
    grouped = {"groups": [0, 0, 1, 1, 0], "weights": [3, 1, 2, 3, 5]}
    small: Json = {
        "unit": UNIT,
        "attributes": [{"name": "sex", "groups": [0, 1], "weights": [1, 1]}, {"name": "ward", **grouped}],
        "cliques": [{"attributes": [0, 1], "parent": -1, "weights": [5, 1, 2, 7]}],
        "tables": [],
    }
    study = make_study(
        schema=[binary("sex"), categorical("ward", 4, nullable=True)], method={"name": "adaptive"}, output_rows=47
    )
    columns = draw_model(study, small, 7)
    rows = np.stack(columns, axis=1).astype(np.uint8)
    assert rows[:6].tolist() == [[1, 2], [1, 3], [1, 2], [1, 2], [1, 2], [1, 0]]
    assert sha256(rows.tobytes()).hexdigest() == PINNED_HASH


def group_columns(study: Study, columns: Any, grouped: GroupedFeatures) -> list[Any]:
    found = zip(features_of(study), grouped.groups, strict=True)
    return [np.asarray(groups)[columns[feature.attribute]] for feature, groups in found]


def test_rows_have_the_models_margins(study: Study, model: Any) -> None:
    grouped, tree, tables = fitted(study)
    columns = draw_model(study, model, 7)
    groups = group_columns(study, columns, grouped)
    assert study.rows is not None
    for clique, table in zip(tree.cliques, tables, strict=True):
        flat = np.ravel_multi_index([groups[a] for a in clique], table.shape)
        missed = np.bincount(flat, minlength=table.size) - study.rows * table.ravel()
        assert np.abs(missed).max() <= 10  # independent rows would miss by about sqrt(4000 / 5) = 28 in large cells


def test_a_groups_rows_become_values_by_their_weights(study: Study, model: Any) -> None:
    columns = draw_model(study, model, 7)
    for feature, attribute in zip(features_of(study), model["attributes"], strict=True):
        counts = np.bincount(columns[feature.attribute], minlength=feature.size)
        groups, weights = np.array(attribute["groups"]), np.array(attribute["weights"])
        for group in range(groups.max() + 1):
            own = groups == group
            shares = weights[own] / weights[own].sum() if weights[own].any() else np.full(own.sum(), 1 / own.sum())
            assert np.abs(counts[own] - counts[own].sum() * shares).max() <= 1


def test_values_of_a_group_do_not_depend_on_other_columns(study: Study, model: Any) -> None:
    """Dealt at random: the halves of a group are spread alike over the rows of another column."""
    columns = draw_model(study, model, 7)
    sex, pay = columns[0].astype(int), columns[3].astype(int)
    inside = np.asarray(model["attributes"][2]["groups"])[pay] == 2
    low = pay[inside] < np.median(pay[inside])
    shares = [float(low[sex[inside] == code].mean()) for code in (0, 1)]
    assert abs(shares[0] - shares[1]) < 0.15


@given(st.integers(0, 10**9), st.lists(st.integers(0, UNIT), min_size=1, max_size=40))
def test_rows_are_divided_in_proportion(rows: int, weights: list[int]) -> None:
    parts = module._divide(rows, weights)
    shares = weights if any(weights) else [1] * len(weights)
    assert sum(parts) == rows
    assert all(part >= 0 for part in parts)
    assert all(abs(part * sum(shares) - rows * share) <= sum(shares) for part, share in zip(parts, shares, strict=True))
    assert all(part == 0 for part, share in zip(parts, shares, strict=True) if share == 0)


# Models that are not sound


def drop(*path: Any) -> Callable[[Any], None]:
    return lambda model: _at(model, path[:-1]).pop(path[-1])


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        _at(model, path[:-1])[path[-1]] = value

    return change


def _at(model: Any, path: Any) -> Any:
    for part in path:
        model = model[part]
    return model


HUGE = 10**400
BROKEN: dict[str, tuple[Callable[[Any], None], str]] = {
    "no unit": (drop("unit"), "the model is not a mapping of unit, attributes, cliques, tables"),
    "no attributes": (drop("attributes"), "the model is not a mapping"),
    "no cliques": (drop("cliques"), "the model is not a mapping"),
    "no tables": (drop("tables"), "the model is not a mapping"),
    "another key": (put(1, "more"), "the model is not a mapping"),
    "another unit": (put(1 << 30, "unit"), "unit"),
    "a unit of text": (put("1", "unit"), "the model is not a mapping"),
    "attributes of nothing": (put([], "attributes"), "attributes"),
    "attributes as a mapping": (put({}, "attributes"), "the model is not a mapping"),
    "an attribute of text": (put("sex", "attributes", 0), "attribute 0 is not a mapping of name, groups, weights"),
    "no name": (drop("attributes", 0, "name"), "attribute 0"),
    "another name": (put("gender", "attributes", 0, "name"), "not those of the study"),
    "no groups": (drop("attributes", 1, "groups"), "attribute 1"),
    "empty groups": (put([], "attributes", 1, "groups"), "the groups of attribute 1"),
    "a group that is left out": (put([0, 2], "attributes", 0, "groups"), "the groups of attribute 0 are not numbered"),
    "groups in another order": (put([1, 0], "attributes", 0, "groups"), "the groups of attribute 0 are not numbered"),
    "a negative group": (put([0, -1], "attributes", 0, "groups"), "the groups of attribute 0"),
    "a huge group": (put([0, HUGE], "attributes", 0, "groups"), "the groups of attribute 0"),
    "a group of text": (put([0, "1"], "attributes", 0, "groups"), "the groups of attribute 0"),
    "a group that is true": (put([0, True], "attributes", 0, "groups"), "the groups of attribute 0"),
    "a group of a list": (put([0, [1]], "attributes", 0, "groups"), "the groups of attribute 0"),
    "a code too many": (put([0, 1, 1], "attributes", 0, "groups"), "the weights of attribute 0"),
    "a weight too few": (drop("attributes", 1, "weights", 0), "the weights of attribute 1 are not those of its codes"),
    "a negative weight of a code": (put(-1, "attributes", 1, "weights", 0), "the weights of attribute 1"),
    "a fraction": (put(0.5, "attributes", 1, "weights", 0), "the weights of attribute 1"),
    "a huge weight of a code": (put(HUGE, "attributes", 1, "weights", 0), "from 0 to 1099511627776"),
    "no cliques at all": (put([], "cliques"), "do not hold every attribute"),
    "cliques that do not cover": (drop("cliques", -1), "do not hold every attribute"),
    "a clique of text": (put("x", "cliques", 0), "clique 0 is not a mapping of attributes, parent, weights"),
    "a clique without a parent": (drop("cliques", 0, "parent"), "clique 0"),
    "a clique of nothing": (put([], "cliques", 0, "attributes"), "the attributes of clique 0"),
    "attributes in another order": (put([3, 1], "cliques", 0, "attributes"), "the attributes of clique 0"),
    "an attribute twice": (put([1, 1], "cliques", 0, "attributes"), "the attributes of clique 0"),
    "an attribute that is not there": (put([1, 4], "cliques", 0, "attributes"), "the attributes of clique 0"),
    "a negative attribute": (put([-1, 1], "cliques", 0, "attributes"), "the attributes of clique 0"),
    "a root with a parent": (put(1, "cliques", 0, "parent"), "clique 0 does not come after its parent"),
    "a clique that is its own parent": (put(1, "cliques", 1, "parent"), "clique 1 does not come after its parent"),
    "a second root": (put(-1, "cliques", 1, "parent"), "clique 1 does not come after its parent"),
    "a parent that is not there": (put(HUGE, "cliques", 1, "parent"), "clique 1 does not come after its parent"),
    "a parent that is true": (put(True, "cliques", 1, "parent"), "clique 1"),
    "a cell too few": (drop("cliques", 0, "weights", 0), "the weights of clique 0 are not those of its cells"),
    "a negative cell": (put(-5, "cliques", 0, "weights", 0), "the weights of clique 0"),
    "a huge cell": (put(HUGE, "cliques", 0, "weights", 0), "the weights of clique 0"),
    "a cell of nothing": (put(None, "cliques", 0, "weights", 0), "the weights of clique 0"),
    "a cell that is not a number": (put(float("nan"), "cliques", 0, "weights", 0), "the weights of clique 0"),
}


@pytest.mark.parametrize(("change", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_model_is_refused_in_one_sentence(
    study: Study, model: Any, change: Callable[[Any], None], why: str
) -> None:
    broken = deepcopy(model)
    change(broken)
    with pytest.raises(SynodError) as caught:
        draw_model(study, broken, 7)
    assert caught.value.code is Code.CHECK_FAILED
    assert caught.value.sentence.startswith("model.json is not a model that rows can be drawn from: ")
    assert why in caught.value.sentence
    assert len(caught.value.sentence) < 200
    assert "\n" not in caught.value.sentence


@pytest.mark.parametrize("model", [None, 5, "model", [], [[]]])
def test_what_is_no_model_is_refused(study: Study, model: Any) -> None:
    with pytest.raises(SynodError, match="the model is not a mapping"):
        draw_model(study, model, 7)


def test_a_clique_without_any_weight_is_refused(study: Study, model: Any) -> None:
    broken = deepcopy(model)
    broken["cliques"][0]["weights"] = [0] * len(broken["cliques"][0]["weights"])
    with pytest.raises(SynodError, match="the weights of clique 0 are not those of its cells"):
        draw_model(study, broken, 7)


def test_cliques_that_share_what_their_parent_lacks_are_refused() -> None:
    """A ring 0-1, 1-2, 0-2 in three cliques: rows would depend on which came first."""
    attributes = [{"name": f"x{i}", "groups": [0, 1], "weights": [1, 1]} for i in range(3)]

    def clique(pair: list[int], parent: int) -> dict[str, Any]:
        return {"attributes": pair, "parent": parent, "weights": [1] * prod(2 for _ in pair)}

    ring = [clique([0, 1], -1), clique([1, 2], 0), clique([0, 2], 1)]
    whole = {"unit": UNIT, "attributes": attributes, "cliques": ring[:2], "tables": []}
    assert read_tree(whole)[0].separators == ((), (1,))
    with pytest.raises(SynodError, match="clique 2 shares attributes with others that its parent lacks"):
        read_tree({**whole, "cliques": ring})
