"""The published model of cells: what is written is read, rows have its shares, and what is no model is refused."""

import json
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator.structure.cells import (
    SHARE_UNIT,
    UNIT,
    CellModel,
    draw_cells,
    read_cells,
    spread_cells,
    write_cells,
)
from tests.support.studies import categorical, make_study

SIZES = (3, 4, 2)
GROUPS = [(0, 1, 0), (0, 1, 2, 3), (0, 0)]
SHARES = np.array([0.5, 0.0, 0.25, 0.05, 0.1, 0.1, 0.0, 0.0])


def study_of(rows: int = 1000) -> Study:
    schema = [categorical("one", 1), *(categorical(f"x{i}", size) for i, size in enumerate(SIZES))]
    return make_study(schema=schema, method={"name": "histogram"}, output_rows=rows)


def model_of(shares: np.ndarray = SHARES, groups: Any = GROUPS) -> Any:
    return json.loads(json.dumps(write_cells(study_of(), groups, shares, 2.5)))


def test_what_is_written_is_read() -> None:
    model = model_of()
    assert model["cells"] == [0, 2, 3, 4, 5], "cells without a weight are left out"
    found = read_cells(study_of(), model)
    assert (found.groups, found.deviation, found.sizes) == (tuple(GROUPS), 2.5, (2, 4, 1))
    assert found.weights == pytest.approx(SHARES * UNIT, abs=1)


def law_of(shares: np.ndarray, groups: Any) -> np.ndarray:
    """The chance of each cell of codes, cell by cell."""
    law = np.zeros(SIZES)
    sizes = [max(own) + 1 for own in groups]
    table = shares.reshape(sizes)
    for place in product(*map(range, SIZES)):
        part = tuple(own[code] for own, code in zip(groups, place, strict=True))
        members = np.prod([own.count(one) for own, one in zip(groups, part, strict=True)])
        law[place] = table[part] / members
    return law


def test_codes_of_a_group_are_alike() -> None:
    spread = spread_cells(read_cells(study_of(), model_of())).reshape(SIZES)
    assert spread / spread.sum() == pytest.approx(law_of(SHARES, GROUPS), abs=1e-6)
    assert int(spread.sum()) < 2**62


def test_codes_have_their_shares_of_a_group() -> None:
    inside = [np.array([0.9, 1.0, 0.1]), np.ones(4), np.array([0.25, 0.75])]
    model = json.loads(json.dumps(write_cells(study_of(), GROUPS, SHARES, 2.5, inside)))
    assert model["attributes"][2]["weights"] == [SHARE_UNIT // 4, 3 * SHARE_UNIT // 4]
    spread = spread_cells(read_cells(study_of(), model)).reshape(SIZES)
    table, law = SHARES.reshape(2, 4, 1), np.zeros(SIZES)
    for place in product(*map(range, SIZES)):
        part = tuple(own[code] for own, code in zip(GROUPS, place, strict=True))
        law[place] = table[part] * inside[0][place[0]] * inside[2][place[2]]
    assert spread / spread.sum() == pytest.approx(law, abs=1e-6)


def test_rows_have_the_models_shares() -> None:
    """Far nearer than independent rows: those would be off by 15 of 1,000 where the share is a half."""
    study = study_of()
    columns = draw_cells(study, model_of(), 3)
    assert [column.dtype for column in columns] == [np.uint8] * 4
    assert not columns[0].any()
    counts = np.zeros(SIZES, dtype=int)
    np.add.at(counts, tuple(columns[1:]), 1)
    law = law_of(SHARES, GROUPS)
    assert counts.sum() == 1000
    assert np.abs(counts - 1000 * law).max() < 3
    assert not counts[law == 0].any()
    for axes in ((1, 2), (0, 2), (0, 1)):
        assert np.abs(counts.sum(axis=axes) - 1000 * law.sum(axis=axes)).max() < 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3000))
def test_any_table_is_drawn_to_within_a_few_rows(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.gamma(0.3, 1, 24)
    shares /= shares.sum()
    groups = [tuple(range(size)) for size in SIZES]
    columns = draw_cells(study_of(rows), model_of(shares, groups), seed)
    counts = np.zeros(SIZES, dtype=int)
    np.add.at(counts, tuple(columns[1:]), 1)
    assert np.abs(counts - rows * shares.reshape(SIZES)).max() < 4


def test_the_rows_are_a_function_of_model_and_seed() -> None:
    study, model = study_of(), model_of()
    first, again, other = (draw_cells(study, model, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_small_draw_stays_as_it_is() -> None:
    """Releases are drawn again for ever: what changes these rows changes those."""
    columns = draw_cells(study_of(12), model_of(), 5)
    assert ["".join(map(str, column)) for column in columns[1:]] == HELD


HELD = ["210022021200", "012030200200", "011011000011"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda m: m.pop("cells"), "not a mapping of unit, attributes, cells, weights, deviation"),
        (lambda m: m.update(more=1), "not a mapping"),
        (lambda m: m.update(unit=5), "unit is not 2^40"),
        (lambda m: m.update(unit=True), "not a mapping"),
        (lambda m: m["attributes"][0].update(name="y"), "attributes are not those of the study"),
        (lambda m: m["attributes"].pop(), "attributes are not those of the study"),
        (lambda m: m["attributes"][0].pop("groups"), "attribute 0 is not a mapping of name, groups, weights"),
        (lambda m: m["attributes"][0].update(groups=[0, 1]), "attributes are not those of the study"),
        (lambda m: m["attributes"][0].update(groups=[1, 0, 1]), "numbered by first occurrence"),
        (lambda m: m["attributes"][0].update(groups=[0, 2, 0]), "numbered by first occurrence"),
        (lambda m: m["attributes"][0].update(groups=[0, "1", 0]), "are not whole numbers"),
        (lambda m: m["attributes"][0].update(weights=[1, 1]), "the weights of x0 are not those of its codes"),
        (
            lambda m: m["attributes"][0].update(weights=[0, 1, 0]),
            "the weights of x0 do not add up to one in each group",
        ),
        (
            lambda m: m["attributes"][0].update(weights=[2**20] * 3),
            "the weights of x0 do not add up to one in each group",
        ),
        (lambda m: m["attributes"][0].update(weights=[-1, 1, 2]), "the weights of x0 are not whole numbers"),
        (lambda m: m["attributes"][0].update(weights=[2**21, 1, 1]), "the weights of x0 are not whole numbers"),
        (lambda m: m["cells"].__setitem__(4, 8), "its cells are not whole numbers from 0 to 7"),
        (lambda m: m["cells"].__setitem__(4, 4), "ascending"),
        (lambda m: m["cells"].pop(), "ascending"),
        (lambda m: m.update(cells=[], weights=[]), "ascending"),
        (lambda m: m["weights"].__setitem__(0, 0), "each with a weight"),
        (lambda m: m["weights"].__setitem__(0, -1), "its weights are not whole numbers"),
        (lambda m: m["weights"].__setitem__(0, 0.5), "its weights are not whole numbers"),
        (lambda m: m["weights"].__setitem__(0, UNIT + 1), "its weights are not whole numbers"),
        (lambda m: m["weights"].__setitem__(0, 2**40), "its weights do not add up to its unit"),
        (lambda m: m.update(deviation="much"), "deviation is not a number"),
        (lambda m: m.update(deviation="nan"), "deviation is not a number above 0"),
        (lambda m: m.update(deviation="inf"), "deviation is not a number above 0"),
        (lambda m: m.update(deviation="-1"), "deviation is not a number above 0"),
    ],
)
def test_what_is_no_model_is_refused(change: Any, told: str) -> None:
    model = deepcopy(model_of())
    change(model)
    with pytest.raises(SynodError) as caught:
        draw_cells(study_of(), model, 1)
    assert caught.value.code is Code.CHECK_FAILED
    assert told in caught.value.sentence


@pytest.mark.parametrize("model", [None, 5, [], "x", {}])
def test_what_is_no_mapping_is_refused(model: Any) -> None:
    with pytest.raises(SynodError, match="not a model that rows can be drawn from"):
        read_cells(study_of(), model)


def test_a_model_of_many_codes_does_not_overflow() -> None:
    """All rows in one cell of groups with 10^6 codes, and in the finest grid."""
    groups = ((0,) * 1000, (0,) * 1000)
    shares = (np.full(1000, SHARE_UNIT // 1000),) * 2
    spread = spread_cells(CellModel(groups, shares, np.array([UNIT], dtype=np.int64), 1.0))
    assert len(spread) == 10**6
    assert 0 < spread.min() == spread.max()
    assert int(spread.sum()) < 2**62
