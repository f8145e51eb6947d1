"""PrivBayes over in-process parties: turns, levels, what one party alone does, and models that are refused."""

from copy import deepcopy
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from synod.common.models.candidates import count_options
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes
from synod.common.study.features import base_count, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, Released, publisher_of
from synod.curator.network.evidence import fit_asked, network_from_json
from synod.curator.network.published import draw_published, read_model
from synod.curator.network.shortlists import shortlist_parents
from synod.curator.network.tables import clip_table
from synod.deploy.simulate import publish_in_process
from synod.party.count.parents import choose_parents
from tests.support.keys import seeded
from tests.support.recipes import check_publication, check_run, draw_tables, record
from tests.support.studies import binary, categorical, integer, make_study

TREE = {"name": "place", "type": "categorical", "taxonomy": ["a", ["b", "c", "d"], ["e", ["f", "g"]]]}
SCHEMA = [
    integer("age", 0, 79, bins=16, nullable=True),
    TREE,
    binary("sex"),
    integer("stay", 0, 9),
    categorical("w", 3),
]


def study_of(**changes: Any) -> Study:
    usual = {"schema": SCHEMA, "method": {"name": "privbayes"}, "rows": (500, 400, 300), "epsilon": "5"}
    return make_study(**{**usual, **changes})


def publish(study: Study, tables: list[Any], coins: int = 1, seed: int = 1) -> Publication:
    return publish_in_process(study, tables, coins=seeded(coins), rng=np.random.default_rng(seed))


def test_parties_choose_in_turn_and_all_answer_the_sum() -> None:
    study = study_of()
    publication, recorder = record(study, draw_tables(study))
    assert recorder.asked == [
        ("structure-north", QueryKind.CHOOSE_PARENTS),
        ("structure-harbour", QueryKind.CHOOSE_PARENTS),
        ("structure-valley", QueryKind.CHOOSE_PARENTS),
        ("parameters", QueryKind.SUM_MARGINALS),
    ]
    assert recorder.remembered == ["model"]
    check_publication(study, publication)


@pytest.mark.parametrize("encoding", ["auto", "binary", "gray", "vanilla", "hierarchical"])
@pytest.mark.parametrize("score", ["auto", "R", "I"])
@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_every_encoding_and_score(encoding: str, score: str, delta: str | None) -> None:
    study = study_of(method={"name": "privbayes", "encoding": encoding, "score": score}, delta=delta)
    check_publication(study, check_run(study))


@pytest.mark.parametrize("degree", [1, 2])
def test_no_feature_has_more_parents_than_the_degree(degree: int) -> None:
    study = study_of(method={"name": "privbayes", "degree": degree}, epsilon="50")
    model: Any = publish(study, draw_tables(study)).model
    assert max(len(parents) for _, parents in model["network"]) == degree


def test_one_party_is_the_central_method_with_the_same_coins() -> None:
    """Its draws are those of all features at once, by Algorithm 4, at beta epsilon / (d - 1) each."""
    study = study_of(names=("north",), rows=(800,), collusion=0)
    tables = draw_tables(study)
    plan = plan_study(study)
    assert [step.label for step in plan.steps] == ["structure-north", "parameters"]
    model: Any = publish(study, tables, coins=3).model
    first, count = model["network"][0][0], base_count(study)
    everything = tuple((x, tuple(i for i in range(count) if i != x)) for x in range(count) if x != first)
    cells = plan.step("structure-north").limit.cells
    query = ChooseParents((first,), everything, count - 1, cells, "R")
    step = plan.step("structure-north")
    assert query.epsilon_each(step, study) == Fraction(3, 10) * 5 / (count - 1)
    chosen = choose_parents(query, step, study, tables[0], coins=seeded(3))
    assert model["network"][1:] == [[feature, list(parents)] for feature, parents in chosen]


def test_a_level_that_decides_is_in_the_network_and_in_the_rows() -> None:
    """Whether somebody is under 40 decides, and there is no room for the 16 bins of age beside it. The seed is one for
    which age is placed before what it decides: the other way round there is no room at all.
    """
    schema = [integer("age", 0, 79, bins=16), binary("old"), categorical("ward", 5), categorical("street", 7)]
    study = study_of(
        schema=schema, rows=(3000, 3000, 3000), epsilon="4", method={"name": "privbayes", "parameter_cells": 24}
    )
    rng = np.random.default_rng(1)
    tables = []
    for entry in study.roster:
        age = rng.integers(0, 16, entry.rows)
        columns = [age, age >= 8, rng.integers(0, 5, entry.rows), rng.integers(0, 7, entry.rows)]
        typed: list[Codes] = [column.astype(np.uint8) for column in columns]
        tables.append(typed)
    publication = publish(study, tables, seed=4)
    age, old = (publication.columns[i].astype(int) for i in (0, 1))
    assert ((age >= 8) == old).mean() > 0.9
    model: Any = publication.model
    parents = dict(map(tuple, model["network"]))[1]
    assert set(parents) & set(chains_of(study)[0][1:])


def test_a_limit_on_parents_leaves_all_candidates_to_features_without_levels() -> None:
    """Sets of two among 19 are few enough, and sets of five, for which tables have room, are not."""
    keys = {"name": "privbayes", "parameter_cells": 64, "max_candidates": 4000}
    for degree, length in ((2, 19), (None, 9)):
        study = study_of(schema=[categorical(f"x{i}", 2) for i in range(20)], method={**keys, "degree": degree})
        shortlists = shortlist_parents(study, 3, 64, 4000, degree)
        assert {len(parents) for _, parents in shortlists} == {length}
        check_run(study)


# A pooled structure


def pooled(**changes: Any) -> Study:
    keys = {"name": "privbayes", "structure": "pooled", **changes.pop("keys", {})}
    return study_of(method=keys, **changes)


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("names", [("north",), ("north", "harbour", "valley")])
def test_a_pooled_structure_asks_two_sums_of_everybody(names: tuple[str, ...], delta: str | None) -> None:
    study = pooled(names=names, rows=(500, 400, 300)[: len(names)], collusion=len(names) // 3, delta=delta)
    publication, recorder = record(study, draw_tables(study))
    sums = QueryKind.SUM_MARGINALS
    assert recorder.asked == [("correlations", sums), ("parameters", sums)]
    assert recorder.remembered == ["network", "model"]
    pairs = {pair for table in publication.tables for pair in combinations(sorted(table.features), 2)}
    assert pairs >= set(combinations(range(base_count(study)), 2))
    check_publication(study, publication)


@pytest.mark.parametrize("encoding", ["auto", "binary", "gray", "vanilla", "hierarchical"])
@pytest.mark.parametrize("tables", ["project", "clip"])
def test_a_pooled_structure_in_every_encoding(encoding: str, tables: str) -> None:
    check_run(pooled(keys={"encoding": encoding, "tables": tables}))


def test_a_pooled_structure_finds_what_decides() -> None:
    """The second column is decided by the ages in halves, the fourth by the third."""
    schema = [integer("age", 0, 79, bins=16), binary("old"), categorical("ward", 5), categorical("street", 5)]
    study = pooled(schema=schema, rows=(3000, 3000, 3000), epsilon="4", keys={"parameter_cells": 40})
    rng = np.random.default_rng(1)
    tables = []
    for entry in study.roster:
        age, ward = rng.integers(0, 16, entry.rows), rng.integers(0, 5, entry.rows)
        typed: list[Codes] = [column.astype(np.uint8) for column in (age, age >= 8, ward, (ward + 1) % 5)]
        tables.append(typed)
    publication = publish(study, tables, seed=2)
    age, old, ward, street = (column.astype(int) for column in publication.columns)
    assert ((age >= 8) == old).mean() > 0.9
    assert ((ward + 1) % 5 == street).mean() > 0.9


def test_tables_of_pairs_make_the_networks_tables_more_exact() -> None:
    """With the same pair counted twice, the mean by precision."""
    study = pooled(schema=[binary("a"), binary("b"), binary("c")], rows=(1000, 1000, 1000))
    asked = [Released((0, 1), np.array([1500.0, 300, 300, 900]), 3000, 4.0)]
    same = [Released((0, 1), np.array([1490.0, 310, 310, 890]), 3000, 1.0)]
    (fitted,) = fit_asked(study, asked, same)
    assert fitted == pytest.approx(np.array([1492.0, 308, 308, 892]))


def test_tables_of_pairs_with_much_noise_do_not_bias_the_networks_tables() -> None:
    """Cut at zero, a table of many cells and much noise would say that both values are about as frequent."""
    study = pooled(schema=[binary("a"), binary("b"), categorical("c", 16)], rows=(1000, 1000, 1000))
    asked = [Released((0, 1), np.array([2300.0, 250, 250, 200]), 3000, 1e4)]
    truth = np.repeat([2550.0, 450.0], 16) / 16
    rng, found = np.random.default_rng(1), []
    for _ in range(300):
        noise = [Released((1, 2), truth + rng.normal(0, 300, 32), 3000, 9e4)]
        found.append(fit_asked(study, asked, noise)[0])
    assert np.mean(found, axis=0) == pytest.approx(asked[0].counts, abs=3)


def test_shortlists_keep_the_options_within_the_limit() -> None:
    schema = [integer(f"x{i}", 0, 15) for i in range(12)]
    study = study_of(schema=schema, rows=(40_000,) * 3, method={"name": "privbayes", "max_candidates": 2000})
    cells = 200
    full = shortlist_parents(study, 3, cells, 2_000_000)
    assert all(len(parents) == 11 for _, parents in full)
    short = shortlist_parents(study, 3, cells, 2000)
    (length,) = {len(parents) for _, parents in short}
    assert 1 < length < 11
    sizes, chains = sizes_of(study), chains_of(study)
    assert count_options(short, sizes, chains, cells, most=2000) <= 2000
    assert count_options(shortlist_parents(study, 3, cells, 10**9), sizes, chains, cells, most=10**9) > 2000
    assert all(3 in parents for _, parents in short)


def test_clipping_is_as_printed() -> None:
    assert clip_table(np.array([-3.0, 1.0, 3.0]), 100).tolist() == [0, 25, 75]
    assert clip_table(np.array([-3.0, -1.0]), 10).tolist() == [5, 5]


def test_clipped_tables_are_nonnegative_and_have_all_rows() -> None:
    study = study_of(method={"name": "privbayes", "tables": "clip"}, epsilon="0.5")
    network, tables = read_model(study, publish(study, draw_tables(study)).model)
    assert network.pairs
    assert all(table.sum() == pytest.approx(1000 * study.total_rows, rel=1e-3) for table in tables)


# The forecast


def remarks(study: Study) -> str:
    return " ".join(publisher_of(study).advise(study, None))


def test_the_forecast_says_how_large_tables_get() -> None:
    words = remarks(study_of())
    assert "cells, and there are at most 5 such tables" in words
    assert "options" in words
    assert remarks(study_of(epsilon="0.001", method={"name": "privbayes", "theta": 1000})).startswith("No column can")
    plain = study_of(schema=[categorical(f"x{i}", 3) for i in range(3)])
    assert "No attribute has a coarser version" in remarks(plain)
    assert publisher_of(plain).advise(plain, {}) == ()


def test_the_forecast_of_a_pooled_structure_knows_its_views_and_says_if_pairs_are_noisy() -> None:
    few, noisy = pooled(), pooled(epsilon="0.5", keys={"parameter_cells": 12})
    assert "parents are chosen among up to" in remarks(few)
    assert "more noise in a count than rows" not in remarks(few)
    assert "more noise in a count than rows" in remarks(noisy)
    for study in (few, noisy):
        query = publisher_of(study).typical_queries(study)["correlations"]
        assert isinstance(query, SumMarginals)
        check_within(query, plan_study(study).step("correlations"), study)
    alone = pooled(keys={"parameter_cells": 0})
    assert list(publisher_of(alone).typical_queries(alone)) == ["parameters"]


# Rows that are drawn again


@pytest.fixture(scope="module")
def published() -> tuple[Study, Any]:
    study = study_of(epsilon="20")
    return study, publish(study, draw_tables(study)).model


def test_rows_are_a_function_of_the_model_and_the_seed(published: tuple[Study, Any]) -> None:
    study, model = published
    one, again, other = (draw_published(study, deepcopy(model), seed) for seed in (4, 4, 5))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_model_holds_the_groups_of_each_level(published: tuple[Study, Any]) -> None:
    study, model = published
    assert [place for place, _ in model["levels"]] == list(range(base_count(study), len(sizes_of(study))))
    assert all(max(groups) + 1 == sizes_of(study)[place] for place, groups in model["levels"])
    assert network_from_json(model["network"], study).degree > 1


def _break(model: Any, key: str) -> Any:
    """The model with one thing wrong."""
    broken = deepcopy(model)
    first, second = broken["network"][:2]
    changes: dict[str, Any] = {
        "no mapping": [],
        "no network": {**broken, "network": None},
        "a feature twice": {**broken, "network": [first, first, *broken["network"][2:]]},
        "a feature missing": {**broken, "network": broken["network"][:-1]},
        "a parent too early": {**broken, "network": [[first[0], [second[0]]], *broken["network"][1:]]},
        "an unknown parent": {**broken, "network": [[first[0], [99]], *broken["network"][1:]]},
        "a true parent": {**broken, "network": [[first[0], [True]], *broken["network"][1:]]},
        "no tables": {**broken, "tables": None},
        "a table missing": {**broken, "tables": broken["tables"][:-1]},
        "a cell missing": {**broken, "tables": [broken["tables"][0][:-1], *broken["tables"][1:]]},
        "a negative cell": {**broken, "tables": [[-1, *broken["tables"][0][1:]], *broken["tables"][1:]]},
        "a fraction": {**broken, "tables": [[0.5, *broken["tables"][0][1:]], *broken["tables"][1:]]},
        "a cell beyond all rows": {**broken, "tables": [[2**60, *broken["tables"][0][1:]], *broken["tables"][1:]]},
        "other features": {**broken, "features": broken["features"][:-1]},
        "other levels": {**broken, "levels": broken["levels"][:-1]},
        "another unit": {**broken, "table_unit": 1},
        "more than a model": {**broken, "more": 1},
    }
    return changes[key] if key else list(changes)


BROKEN = _break({"network": [[0, []], [1, []]], "tables": [[0]], "features": [], "levels": []}, "")


@pytest.mark.parametrize("key", BROKEN)
def test_a_model_that_is_not_sound_is_refused(key: str, published: tuple[Study, Any]) -> None:
    study, model = published
    with pytest.raises(SynodError, match=r"model\.json is not a model that rows can be drawn from") as caught:
        draw_published(study, _break(model, key), 1)
    assert caught.value.code is Code.CHECK_FAILED
