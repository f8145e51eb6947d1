"""DP-SUBN's correlations: which views are asked, what they say of pairs, and pairs that are counted in groups."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import Grouping, SumMarginals
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes
from synod.common.study.features import chains_of, features_of, sizes_of, space_of
from synod.common.study.study import Study
from synod.curator.covers.views import design_views
from synod.curator.methods.base import Released
from synod.curator.methods.dp_subn import choose_views, compare_covers, typical_queries
from synod.curator.network.consistency import NoisyTable, reconcile
from synod.curator.network.evidence import Evidence, fit_tables
from synod.curator.network.graph import Network, Pair
from synod.curator.network.information import measure_information
from synod.curator.network.levels import Levels
from synod.curator.network.tables import mutual_information
from synod.deploy.simulate import publish_in_process
from synod.party.count.tables import exact_counts
from tests.support.keys import seeded
from tests.support.recipes import check_run, draw_tables, record
from tests.support.studies import categorical, draw_columns, integer, make_study

COVERS = ("best", "nocd", "overlapping")


def study_of(*sizes: int, epsilon: str = "60", **keys: Any) -> Study:
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    return make_study(schema=schema, method={"name": "dp-subn", "encoding": "vanilla", **keys}, epsilon=epsilon)


def large_study(**keys: Any) -> Study:
    """A pair of 12 and 10 values among others, and room for 40 cells in a view."""
    schema = [integer("a", 0, 11, bins=12), categorical("b", 3), integer("c", 0, 9, bins=10), categorical("d", 2)]
    method = {"name": "dp-subn", "max_view_cells": 40, "theta": "0.1", "theta_frontier": "0.1", **keys}
    return make_study(schema=schema, method=method, rows=(300, 200, 100), epsilon="60")


# Covers


def test_the_best_cover_is_asked_as_before_there_were_others() -> None:
    study = study_of(16, 7, 5, 2, 14)
    views = design_views(sizes_of(study), 4096)
    assert choose_views(study).to_json() == {"kind": "sum-marginals", "sets": [list(view) for view in views]}
    assert choose_views(study_of(16, 7, 5, 2, 14, cover="best")) == choose_views(study)


def test_every_cover_can_be_asked_for_and_is_another() -> None:
    asked = {cover: choose_views(study_of(*[2] * 17, cover=cover)).sets for cover in COVERS}
    assert len(set(asked.values())) == 3
    for views in asked.values():
        assert {pair for view in views for pair in combinations(view, 2)} == set(combinations(range(17), 2))


@pytest.mark.parametrize("cover", COVERS)
@pytest.mark.parametrize("max_view_cells", [4, 16, 4096])
def test_a_study_runs_with_every_cover(cover: str, max_view_cells: int) -> None:
    study = study_of(*[2] * 7, cover=cover, max_view_cells=max_view_cells)
    check_run(study)
    _, recorder = record(study, draw_tables(study))
    assert recorder.queries[0] == choose_views(study) == typical_queries(study)["correlations"]
    assert max(choose_views(study).cells(study)) <= max_view_cells


def test_nocd_is_refused_where_features_are_not_binary() -> None:
    with pytest.raises(SynodError, match="nocd is of binary features") as caught:
        study_of(2, 3, 2, cover="nocd")
    assert "binary or gray" in caught.value.hint
    study_of(2, 3, 2, cover="nocd", encoding="gray")
    study_of(2, 2, cover="nocd")


def test_an_unknown_cover_is_refused() -> None:
    with pytest.raises(SynodError, match="cover"):
        study_of(2, 2, cover="priview")


@pytest.mark.parametrize("cover", COVERS)
def test_the_forecast_has_the_number_of_views_of_each_cover(cover: str) -> None:
    found = compare_covers(study_of(*[2] * 52, cover=cover, parameter_cells=8))
    assert found is not None
    _, rows = found
    views = {name.split(",")[0].removesuffix(" (chosen)"): int(count) for name, count, _, _ in rows}
    assert views == {"best": 57, "nocd": 281, "overlapping": 66}
    assert rows[0][0].startswith(cover)
    assert rows[0][0].endswith(" (chosen)")
    assert rows[0][3] == "1.00"


def test_the_forecast_leaves_nocd_out_where_it_cannot_be_asked_for() -> None:
    found = compare_covers(study_of(2, 3, 4, parameter_cells=8))
    assert found is not None
    assert [row[0] for row in found[1]] == ["best (chosen)", "overlapping, as PriView's"]


# What views say of pairs


def count(study: Study, query: SumMarginals) -> list[NDArray[np.int64]]:
    counts = sum(exact_counts(query, study, draw_columns(study, name)) for name in study.party_names)
    assert not isinstance(counts, int)
    return query.split_tables(counts, study)


def information_of_rows(study: Study, groups: dict[int, tuple[int, ...]]) -> NDArray[np.float64]:
    """The slow twin: row after row, pair after pair, in these groups."""
    columns: list[Codes] = [
        np.concatenate(parts)
        for parts in zip(*(space_of(study).encode(table) for table in draw_tables(study)), strict=True)
    ]
    found = np.zeros((len(columns),) * 2)
    for x, y in combinations(range(len(columns)), 2):
        left, right = (
            np.array(groups.get(i, tuple(range(sizes_of(study)[i]))), dtype=np.intp)[columns[i]] for i in (x, y)
        )
        table = np.zeros((left.max() + 1, right.max() + 1))
        for a, b in zip(left, right, strict=True):
            table[a, b] += 1
        found[x, y] = found[y, x] = float(mutual_information(table.reshape(-1), len(table)))
    return found


@pytest.mark.parametrize("cover", COVERS)
def test_exact_views_tell_the_information_of_every_pair(cover: str) -> None:
    study = study_of(*[2] * 9, cover=cover, max_view_cells=16)
    query = choose_views(study)
    assert np.allclose(measure_information(study, query, count(study, query)), information_of_rows(study, {}))


def test_a_pair_in_two_views_is_their_mean_by_precision() -> None:
    """The view of three features adds up two cells for each of the pair's, so it counts half as much."""
    schema = [categorical(f"x{i}", 2) for i in range(3)]
    study = make_study(schema=schema, method={"name": "dp-subn"}, rows=(80, 80, 80), epsilon="60")
    wide, pair = np.array([70, 10, 5, 15, 20, 20, 60, 40]), np.array([90, 30, 20, 100])
    query = SumMarginals(((0, 1, 2), (0, 1)))
    mean = (wide.reshape(4, 2).sum(axis=1) * 0.5 + pair) / 1.5
    found = measure_information(study, query, [wide, pair])
    assert found[0, 1] == pytest.approx(float(mutual_information(mean, 2)))
    assert found[0, 1] != pytest.approx(float(mutual_information(pair.astype(float), 2)), rel=1e-2)


# Pairs in groups


def test_a_large_pair_is_counted_in_groups_and_the_rest_as_it_is() -> None:
    study = large_study()
    asked = choose_views(study)
    assert asked.groupings == (
        Grouping(0, tuple(i // 2 for i in range(12))),
        Grouping(2, tuple(i // 2 for i in range(10))),
    )
    assert (4, 5) in asked.sets
    assert max(asked.cells(study)) <= 40
    assert plan_study(study).step("correlations").limit.cells == 40


def test_the_information_of_a_large_pair_is_that_of_its_groups() -> None:
    study = large_study()
    query = choose_views(study)
    found = measure_information(study, query, count(study, query))
    fine, coarse = (
        information_of_rows(study, {}),
        information_of_rows(study, {g.feature: g.groups for g in query.groupings}),
    )
    assert found[0, 2] == found[2, 0] == pytest.approx(coarse[0, 2])
    assert coarse[0, 2] < fine[0, 2] - 0.01
    for x, y in combinations(range(4), 2):
        if (x, y) != (0, 2):
            assert found[x, y] == pytest.approx(fine[x, y])


@pytest.mark.parametrize("update", ["sequential", "joint"])
@pytest.mark.parametrize("cover", ["best", "overlapping"])
def test_a_study_with_a_large_pair_runs_and_publishes_tables_of_features(update: str, cover: str) -> None:
    study = large_study(update=update, cover=cover)
    publication = check_run(study)
    _, recorder = record(study, draw_tables(study))
    query = recorder.queries[0]
    assert isinstance(query, SumMarginals)
    assert query.groupings
    assert publication.tables
    assert all(max(table.features) < 4 for table in publication.tables)


def test_brute_force_a_row_moves_two_cells_of_each_table_in_groups() -> None:
    """Every table of two rows over the large pair, and every replacement of one row."""
    schema = [integer("a", 0, 3, bins=4), integer("b", 0, 2, bins=3, nullable=True)]
    study = make_study(schema=schema, method={"name": "dp-subn", "max_view_cells": 6}, epsilon="60")
    query = choose_views(study)
    assert query.sets == ((2, 3),)
    values = list(product(range(4), range(4)))

    def counts(*rows: tuple[int, int]) -> NDArray[np.int64]:
        columns: list[Codes] = [np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)]
        return exact_counts(query, study, columns)

    changes = [counts(one, third) - counts(other, third) for one, other, third in product(values, repeat=3)]
    assert max(int(np.abs(change).sum()) for change in changes) == 2 * len(query.sets)


# What is known from tables in groups

GROUPS = tuple(i // 3 for i in range(6))


def grouped_evidence(*tables: Released) -> Evidence:
    return Evidence(study_of(6, 2, 2), list(tables), groupings=(Grouping(0, GROUPS),))


def table_of(features: tuple[int, ...], cells: int, seed: int, variance: float = 1.0) -> Released:
    total = study_of(6, 2, 2).total_rows
    counts = np.random.default_rng(seed).multinomial(total, np.full(cells, 1 / cells)).astype(np.float64)
    return Released(features, counts, total, variance)


def test_groups_do_not_tell_values_and_values_tell_groups() -> None:
    coarse, fine = table_of((3, 1), 4, seed=1), table_of((0, 1), 12, seed=2)
    assert grouped_evidence(coarse).pooled((0, 1)) is None
    assert grouped_evidence(coarse).counted((0,)) is None
    assert grouped_evidence(coarse).score(0, (1,)) == -np.inf
    known = grouped_evidence(coarse).pooled((1,))
    assert known is not None
    assert np.array_equal(known.counts, coarse.counts.reshape(2, 2).sum(axis=0))
    both = grouped_evidence(coarse, fine).pooled((3, 1))
    assert both is not None
    folded = fine.counts.reshape(2, 3, 2).sum(axis=1).reshape(-1)
    assert np.allclose(both.counts, (coarse.counts * 3 + folded) / 4), "a group of three values has their noise"
    assert grouped_evidence(coarse, fine).ungrouped == [fine]


def test_tables_are_fitted_to_groups_that_others_have_counted() -> None:
    """A precise table in groups moves a noisy one of values to its groups' sums, and leaves the rest to the latter."""
    study = study_of(6, 2, 2)
    coarse, fine = table_of((3, 1), 4, seed=1, variance=1e-9), table_of((0, 1), 12, seed=2, variance=4.0)
    evidence = Evidence(study, [coarse, fine], groupings=(Grouping(0, GROUPS),))
    network = Network((Pair(0, ()), Pair(1, (0,)), Pair(2, ())))
    sets = ((0, 1), (2,))
    evidence.tables.append(table_of((2,), 2, seed=3))
    tables = fit_tables(study, network, evidence, sets)
    child = tables[1].reshape(2, 6)
    assert np.allclose(child.reshape(2, 2, 3).sum(axis=2).T.reshape(-1), coarse.counts, atol=1e-3)
    slow = reconcile(
        [NoisyTable((0, 1), fine.counts, 4.0), NoisyTable((3, 1), coarse.counts, 1e-9)],
        (6, 2, 2, 2),
        total=study.total_rows,
        levels=Levels((0, 1, 2, 0), ((), (), (), GROUPS)),
    )[0]
    assert np.allclose(child.T.reshape(-1), slow)


# Levels


def leveled_study(**keys: Any) -> Study:
    schema = [
        integer("age", 0, 15, bins=16),
        {"name": "place", "type": "categorical", "taxonomy": ["p", ["q", "r"], ["s", "t", "u"]], "nullable": True},
        categorical("sex", 2),
        integer("score", 0, 8, bins=9),
        categorical("ward", 3),
    ]
    method = {"name": "dp-subn", "encoding": "hierarchical", "theta": "0.5", **keys}
    return make_study(schema=schema, method=method, rows=(900, 600, 300), epsilon="20")


@pytest.mark.parametrize("update", ["sequential", "joint"])
@pytest.mark.parametrize("keys", [{}, {"cover": "overlapping", "max_view_cells": 32}, {"max_candidates": 100}])
def test_a_study_over_levels_runs(update: str, keys: dict[str, Any]) -> None:
    publication = check_run(leveled_study(update=update, **keys))
    model: Any = publication.model
    assert sorted(feature for feature, _ in model["network"]) == list(range(5))
    assert "levels" in model


def test_the_information_over_levels_is_that_of_base_features() -> None:
    study = leveled_study()
    query = choose_views(study)
    found = measure_information(study, query, count(study, query))
    assert found.shape == (5, 5)
    assert np.allclose(found, information_of_rows(study, {})[:5, :5])


def test_the_information_of_a_large_pair_is_that_of_the_levels_it_was_asked_on() -> None:
    study = leveled_study(max_view_cells=80)
    query = choose_views(study)
    chains = dict(enumerate(chains_of(study)))
    (asked,) = [entries for entries in query.sets if set(entries) & {0, *chains[0]} and set(entries) & {3, *chains[3]}]
    assert asked != (0, 3)
    groups = {base: features_of(study)[level].groups for base, level in zip((0, 3), asked, strict=True) if level > 4}
    assert measure_information(study, query, count(study, query))[0, 3] == pytest.approx(
        information_of_rows(study, groups)[0, 3]
    )


def test_over_levels_a_parent_is_found_that_has_too_many_values_itself() -> None:
    """Sex follows from the half of the ages: with all 16 ages a table has 32 cells, with halves 4. With this seed age
    is placed before sex; after it, no table of both fits.
    """
    shares = {}
    for encoding in ("hierarchical", "vanilla"):
        study = leveled_study(encoding=encoding, parameter_cells=20, frontier_cells=20)
        rng, tables = np.random.default_rng(1), []
        for entry in study.roster:
            age, place, score, ward = (rng.integers(0, size, entry.rows) for size in (16, 7, 9, 3))
            tables.append([column.astype(np.uint8) for column in (age, place, age >= 8, score, ward)])
        publication = publish_in_process(study, tables, coins=seeded(1), rng=np.random.default_rng(4))
        age, sex = (publication.columns[i].astype(int) for i in (0, 2))
        shares[encoding] = float(((age >= 8) == sex).mean())
    assert shares["hierarchical"] > 0.9
    assert shares["vanilla"] < 0.6
