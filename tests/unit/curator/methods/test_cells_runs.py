"""Histogram and DPCocGen over in-process parties: awkward shapes, both kinds of cost, what comes out, what is told."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import Grouping, SumMarginals
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.methods import base
from synod.curator.methods.base import Publication, publisher_of
from synod.curator.methods.dpcocgen import axes_of, order_of
from synod.curator.structure.cells import read_cells
from synod.curator.structure.grouped import GroupedFeatures
from synod.deploy.simulate import InProcessParties
from synod.deploy.study.forecast import forecast_study, remark_on
from tests.support.keys import seeded
from tests.support.recipes import check_publication, check_run, draw_tables, record
from tests.support.reports import render_report, section, text_of
from tests.support.studies import categorical, fill_table, integer, make_study, real

METHODS: dict[str, dict[str, Any]] = {
    "histogram": {"name": "histogram"},
    "dpcocgen": {"name": "dpcocgen"},
    "modl": {"name": "dpcocgen", "parts": "modl"},
    "few": {"name": "dpcocgen", "parts": 4},
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
MIXED = [
    categorical("sex", 2),
    integer("age", 17, 90, bins=5, nullable=True, spikes=[17, 50]),
    categorical("one", ("one0",)),
    real("income", "-1.5", "2.5", bins=4, nullable=True),
    integer("year", 2020, 2020),
    categorical("ward", 3, nullable=True),
]


# Shapes


@every_method
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.1", "10"])
@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_few_attributes(method: dict[str, Any], d: int, epsilon: str, delta: str | None) -> None:
    schema = [categorical(f"x{i}", 2 + i) for i in range(d)]
    check_run(make_study(schema=schema, method=method, epsilon=epsilon, delta=delta))


@every_method
@pytest.mark.parametrize("epsilon", ["0.5", "30"])
def test_mixed_types_nullable_spikes_and_one_category(method: dict[str, Any], epsilon: str) -> None:
    study = make_study(schema=MIXED, method=method, epsilon=epsilon, rows=(150, 120, 90))
    table = check_publication(study, check_run(study))
    assert set(table["one"].to_pylist()) == {"one0"}
    assert set(table["year"].to_pylist()) == {2020}


@every_method
@pytest.mark.parametrize(("names", "rows"), [(("north",), (90,)), (tuple("abcdef"), (1, 1, 1, 50, 60, 1))])
def test_one_party_and_many(method: dict[str, Any], names: Sequence[str], rows: Sequence[int]) -> None:
    schema = [categorical(f"x{i}", 3) for i in range(3)]
    check_run(make_study(names=names, rows=rows, schema=schema, method=method, epsilon="10", collusion=len(names) // 2))


@every_method
def test_only_the_named_columns_are_published(method: dict[str, Any]) -> None:
    study = make_study(schema=MIXED, method={**method, "attributes": ["ward", "age"]}, epsilon="5")
    table = check_publication(study, check_run(study))
    assert table.column_names == ["age", "ward"]


@every_method
def test_the_same_coins_and_seed_give_the_same_publication(method: dict[str, Any]) -> None:
    study = make_study(schema=MIXED, method=method, epsilon="20")
    tables = draw_tables(study)
    (one, _), (again, _) = record(study, tables), record(study, tables)
    assert canonical_bytes(one.model) == canonical_bytes(again.model)
    assert all(np.array_equal(a, b) for a, b in zip(one.columns, again.columns, strict=True))


# What comes out


def linked(study: Study) -> list[tuple[Codes, ...]]:
    """Four values that are two blocks; the second column is in the first's block but for one row in twenty."""
    tables: list[tuple[Codes, ...]] = []
    for index, entry in enumerate(study.roster):
        rng = np.random.default_rng(index)
        first = rng.integers(0, 4, entry.rows)
        block = np.where(rng.random(entry.rows) < 0.95, first // 2, 1 - first // 2)
        tables.append((first.astype(np.uint8), (2 * rng.integers(0, 2, entry.rows) + block).astype(np.uint8)))
    return tables


def joint(columns: Sequence[Codes]) -> np.ndarray:
    return np.bincount(columns[0].astype(int) * 4 + columns[1], minlength=16) / len(columns[0])


@every_method
@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_with_much_epsilon_the_rows_look_like_the_data(method: dict[str, Any], delta: str | None) -> None:
    schema = [categorical("a", 4), categorical("b", 4)]
    study = make_study(schema=schema, method=method, epsilon="30", rows=(900, 800, 700), delta=delta)
    tables = linked(study)
    publication, _ = record(study, tables)
    data = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
    # what blocks leave out of a table with four cells is its chance within them
    assert np.abs(joint(data) - joint(publication.columns)).sum() / 2 < (
        0.02 if method["name"] == "histogram" else 0.05
    )
    independent = np.outer(joint(data).reshape(4, 4).sum(1), joint(data).reshape(4, 4).sum(0)).ravel()
    assert np.abs(joint(data) - independent).sum() / 2 > 0.4


def test_dpcocgen_finds_the_blocks() -> None:
    schema = [categorical("a", 4), categorical("b", 4)]
    study = make_study(schema=schema, method={"name": "dpcocgen", "parts": 4}, epsilon="3", rows=(900, 800, 700))
    publication, recorder = record(study, linked(study))
    assert read_cells(study, publication.model).groups == ((0, 0, 1, 1), (0, 1, 0, 1))
    assert recorder.remembered == ["parts", "model"]


def test_values_with_nothing_to_tell_are_one_cell_and_the_first_attribute_is_asked() -> None:
    schema = [categorical("a", 3), categorical("b", 2)]
    study = make_study(schema=schema, method={"name": "dpcocgen"}, epsilon="0.001", rows=(3, 3, 3))
    assert GroupedFeatures(((0, 1, 2), (0, 0)), ()).ask_together() == SumMarginals(((0,),))
    found = []
    for coins in range(20):
        parties = InProcessParties(study, draw_tables(study), seeded(coins), np.random.default_rng(1))
        publication = asyncio.run(base.publish(study, parties, seed=1))
        found.append(read_cells(study, publication.model).groups)
        check_publication(study, publication)
    assert found.count(((0, 1, 2), (0, 0))) >= 5, "noise alone: all values are one part"


def test_parts_are_asked_as_groupings_of_what_was_joined() -> None:
    query = GroupedFeatures(((0, 1, 0), (0, 0), (0, 1, 2, 3)), ()).ask_together()
    assert query == SumMarginals(((3, 2),), (Grouping(0, (0, 1, 0)),))


def test_numbers_are_in_order_with_a_missing_value_last() -> None:
    study = make_study(schema=MIXED, method={"name": "dpcocgen"})
    age = codings_of(study)[1]
    axes = axes_of(study)
    assert [(axis.size, axis.is_ordered, axis.has_missing) for axis in axes] == [
        (2, False, False),
        (8, True, True),
        (5, True, True),
        (4, False, False),
    ]
    assert order_of(study, 1) == [*age.in_order(), age.null_code]
    assert order_of(study, 1)[0] == 5, "the spike at the least value comes before its bin"
    assert order_of(study, 3) == [0, 1, 2, 3]


def test_parts_of_numbers_are_intervals_in_the_order_of_the_numbers() -> None:
    study = make_study(schema=MIXED, method={"name": "dpcocgen", "parts": 24}, epsilon="3", rows=(300, 300, 300))
    publication, _ = record(study, draw_tables(study))
    for place, own in enumerate(read_cells(study, publication.model).groups):
        if axes_of(study)[place].is_ordered:
            along = [own[code] for code in order_of(study, place)]
            assert len(set(along)) == 1 + sum(a != b for a, b in pairwise(along))


@pytest.mark.parametrize("name", ["histogram", "dpcocgen"])
def test_all_rows_alike_come_back(name: str) -> None:
    """By expected error; MODL alone joins values of any frequency that go with the others in the same way."""
    method = {"name": name}
    study = make_study(schema=[categorical("a", 3), categorical("b", 4)], method=method, epsilon="60", rows=(500,) * 3)
    publication, _ = record(study, [fill_table(study, (2, 1), 500)] * 3)
    assert (publication.columns[0] == 2).mean() > 0.98
    assert (publication.columns[1] == 1).mean() > 0.98


# What is told


def published(method: dict[str, Any], epsilon: str = "5", **changes: Any) -> tuple[Study, Publication, Any]:
    study = make_study(**{"schema": MIXED, "method": method, "epsilon": epsilon, "rows": (500, 400, 300), **changes})
    report = render_report(study)
    return study, report.publication, report.tree


def test_the_error_of_two_values_is_that_of_the_cells_that_they_add_up() -> None:
    study, publication, tree = published({"name": "histogram"}, schema=[categorical(f"x{i}", 2 + i) for i in range(3)])
    (variance,) = SumMarginals(((0, 1, 2),)).variances(plan_study(study).step("histogram"), study)
    error = publisher_of(study).expected_error(study, publication)
    assert error.deviation == pytest.approx((variance * (4 + 3 + 2) / 3) ** 0.5, rel=1e-4)
    assert (error.pairs, error.covered) == (3, 3)
    assert "A count of two values together" in text_of(section(tree, "error"))


def test_the_error_of_two_parts_speaks_of_parts() -> None:
    study, publication, tree = published({"name": "dpcocgen", "parts": 40})
    error = publisher_of(study).expected_error(study, publication)
    sizes = [max(own) + 1 for own in read_cells(study, publication.model).groups]
    assert error.pairs == 6
    assert error.covered == sum(a > 1 and b > 1 for i, a in enumerate(sizes) for b in sizes[i + 1 :])
    assert "parts of columns together" in text_of(section(tree, "error"))
    model = text_of(section(tree, "model"))
    assert "Which values were counted as one" in model
    assert "Do not compare values inside one part" in text_of(section(tree, "caveats"))


def test_columns_of_one_part_are_told_as_independent() -> None:
    schema = [categorical("a", 3), categorical("b", 2)]
    study, publication, tree = published({"name": "dpcocgen", "parts": 2}, "0.01", schema=schema, rows=(9, 9, 9))
    error = publisher_of(study).expected_error(study, publication)
    assert (error.covered, error.deviation) == (0, None)
    assert "as if they were independent" in text_of(section(tree, "error"))


def test_both_sums_make_less_noise_than_the_second_alone() -> None:
    study, publication, _ = published({"name": "dpcocgen", "parts": "modl"}, "50")
    (variance,) = SumMarginals(((0,),)).variances(plan_study(study).step("parts"), study)
    assert 0.7 * variance**0.5 <= read_cells(study, publication.model).deviation < variance**0.5


@pytest.mark.parametrize("name", ["histogram", "dpcocgen"])
def test_the_forecast_has_every_round(name: str) -> None:
    study = make_study(schema=MIXED, method={"name": name})
    rounds = forecast_study(study)
    assert [r.label for r in rounds] == [step.label for step in plan_study(study).steps]
    assert rounds[0].numbers == 2 * 8 * 5 * 4


def test_a_forecast_counts_the_memory_of_many_cells() -> None:
    few, many = (
        forecast_study(make_study(schema=[categorical(f"x{i}", size) for i in range(3)], method={"name": "histogram"}))
        for size in (3, 100)
    )
    assert many[0].memory_mib - few[0].memory_mib == pytest.approx(10**6 * 24 / 2**20, rel=0.01)


def test_the_forecast_says_where_cells_are_noise_and_where_parts_gain_little() -> None:
    schema = [categorical(f"x{i}", 10) for i in range(3)]
    sparse, dense = (
        [make_study(schema=schema, method={"name": name}, rows=(rows,) * 3) for name in ("histogram", "dpcocgen")]
        for rows in (100, 100_000)
    )
    assert "An average cell has" in remark_on(sparse[0], None)[0]
    assert remark_on(sparse[1], None) == []
    assert remark_on(dense[0], None) == []
    assert "joining values gains little" in remark_on(dense[1], None)[0]
    assert remark_on(dense[1], {}) == []
    absurd = make_study(schema=schema, method={"name": "dpcocgen"}, rows=(9,) * 3)
    assert "most values will be joined" in remark_on(absurd, None)[0]
