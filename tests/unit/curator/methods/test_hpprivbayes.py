"""HPPrivBayes over in-process parties: what is asked, in which order, with which noise, and what the report says."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, publisher_of
from synod.curator.methods.hpprivbayes import find_noise_floor
from synod.curator.network.groups import split_model
from synod.curator.network.shortlists import shortlist_earlier
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.recipes import check_publication, check_run, draw_tables, record
from tests.support.reports import RenderedReport, render_report, section, text_of
from tests.support.studies import binary, categorical, integer, make_study

SCHEMA = [integer("age", 0, 79, bins=8, nullable=True), categorical("ward", 3), binary("sex"), binary("ill")]
PUBLIC = {"sensitive": ["ill"], "order": ["ward", "age", "ill", "sex"], "weights": "none"}


def study_of(schema: Sequence[dict[str, Any]] = tuple(SCHEMA), **changes: Any) -> Study:
    keys = changes.pop("keys", {})
    usual = {"schema": list(schema), "rows": (500, 400, 300), "epsilon": "20"}
    return make_study(**{**usual, "method": {"name": "hpprivbayes", **keys}, **changes})


def publish(study: Study, tables: Sequence[Sequence[Codes]], coins: int = 1) -> Publication:
    return publish_in_process(study, tables, coins=seeded(coins), rng=np.random.default_rng(1))


def asked(study: Study, publication: Publication) -> SumMarginals:
    _, groups = split_model(study, publication.model)
    return groups.query


def test_all_are_read_then_parties_choose_in_turn_and_all_answer_the_sum() -> None:
    study = study_of()
    publication, recorder = record(study, draw_tables(study))
    assert recorder.asked == [
        ("reading", QueryKind.SUM_MARGINALS),
        ("structure-north", QueryKind.CHOOSE_PARENTS),
        ("structure-harbour", QueryKind.CHOOSE_PARENTS),
        ("structure-valley", QueryKind.CHOOSE_PARENTS),
        ("parameters", QueryKind.SUM_MARGINALS),
    ]
    assert recorder.remembered == ["columns", "model"]
    check_publication(study, publication)


def test_what_the_study_lists_is_not_read() -> None:
    study = study_of(keys={**PUBLIC, "weights": {"age": [1, 2, 3, 4, 5, 6, 7, 8, 64]}})
    publication, recorder = record(study, draw_tables(study))
    assert [label for label, _ in recorder.asked] == [
        "structure-north",
        "structure-harbour",
        "structure-valley",
        "parameters",
    ]
    model: Any = publication.model
    assert [feature for feature, _ in model["network"]] == [1, 0, 3, 2]
    assert model["sensitive"] == [3]


@pytest.mark.parametrize("encoding", ["vanilla", "hierarchical"])
@pytest.mark.parametrize("weights", ["rare", "frequent", "none"])
@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("parties", [1, 3])
def test_every_encoding_weight_and_kind_of_cost(encoding: str, weights: str, delta: str | None, parties: int) -> None:
    alone: dict[str, Any] = {"names": ("north",), "rows": (900,), "collusion": 0} if parties == 1 else {}
    study = study_of(keys={"encoding": encoding, "weights": weights}, delta=delta, **alone)
    check_publication(study, check_run(study))


def related_tables(study: Study) -> list[list[Codes]]:
    """Ward decides illness and half of age; sex is independent of all, and one sex is rare."""
    rng, tables = np.random.default_rng(5), []
    for entry in study.roster:
        ward = rng.integers(0, 3, entry.rows)
        age = np.where(rng.random(entry.rows) < 0.5, ward, rng.integers(0, 9, entry.rows))
        sex = rng.random(entry.rows) < 0.02
        tables.append([column.astype(np.uint8) for column in (age, ward, sex, ward == 2)])
    return tables


RICH: dict[str, Any] = {"rows": (5000, 4000, 3000), "epsilon": "40"}


def test_order_groups_and_weights_follow_the_rows_where_there_is_little_noise() -> None:
    study = study_of(keys={"weights": "rare", "degree": 1}, **RICH)
    publication = publish(study, related_tables(study))
    model: Any = publication.model
    first, *_, last = [feature for feature, _ in model["network"]]
    assert (first, last) == (1, 2), "the ward tells most, and sex nothing"
    assert model["sensitive"] == [0, 1, 3]
    weighted = [weights for weights in asked(study, publication).weights if weights]
    assert [weights.entry for weights in weighted] == [2]
    frequent, rare = weighted[0].values
    assert (frequent, rare) == (1, 64)
    ward, ill = publication.columns[1].astype(int), publication.columns[3].astype(int)
    assert ((ward == 2) == ill).mean() > 0.95
    assert publication.columns[2].astype(int).mean() == pytest.approx(0.02, abs=0.01)


def test_frequent_is_the_other_way_round() -> None:
    study = study_of(keys={"weights": "frequent", "degree": 1}, **RICH)
    query = asked(study, publish(study, related_tables(study)))
    ((frequent, rare),) = [weights.values for weights in query.weights if weights]
    assert frequent == 64
    assert rare < 8


def test_a_sensitive_group_of_all_columns_leaves_even_shares() -> None:
    study = study_of(keys={"sensitive": ["age", "ward", "sex", "ill"], "weights": "rare", "order": "schema"})
    query = asked(study, publish(study, draw_tables(study)))
    assert (query.shares, query.weights) == ((), ())


def test_draws_are_ordered_and_forced_ones_are_free() -> None:
    """With room for everything placed, each column has all earlier ones as parents, and no draw is a choice."""
    study = study_of(keys={**PUBLIC, "parameter_cells": 108})
    queries = render_report(study, draw_tables(study)).queries
    structure = [query for query in queries.values() if isinstance(query, ChooseParents)]
    assert [query.open for query in structure] == [(0,), (3,), (2,)]
    assert all(query.ordered for query in structure)
    for query, name in zip(structure, study.party_names, strict=True):
        assert query.epsilon_each(plan_study(study).step(f"structure-{name}"), study) == 0


def test_without_parents_the_groups_of_the_study_still_hold() -> None:
    keys = {**PUBLIC, "parameter_cells": 0, "weights": {"ward": [1, 2, 3]}}
    query = asked(study_of(keys=keys), publish(study_of(keys=keys), draw_tables(study_of(keys=keys))))
    assert query.sets == ((0,), (1,), (2,), (3,))
    assert query.shares == ()
    assert [bool(own) for own in query.weights] == [False, True, False, False]
    study = study_of(keys={"parameter_cells": 0, "weights": "rare"})
    model: Any = publish(study, draw_tables(study)).model
    assert model["sensitive"] == []
    assert asked(study, publish(study, draw_tables(study))) == SumMarginals(((0,), (1,), (2,), (3,)))


def test_shortlists_take_earlier_columns_only_and_keep_the_options_few() -> None:
    study = study_of([integer(f"x{i}", 0, 15) for i in range(12)], keys={"encoding": "hierarchical"})
    order = [3, 0, 11, 5, 1, 2, 4, 6, 7, 8, 9, 10]
    long = shortlist_earlier(study, order, None, 200, 2_000_000)
    assert [(x, len(own)) for x, own in long] == [(x, place) for place, x in enumerate(order) if place]
    short = dict(shortlist_earlier(study, order, None, 200, 1000))
    assert 1 < len(short[10]) < 11
    assert set(short[10]) == set(order[-1 - len(short[10]) : -1]), "the nearest before it"
    information = np.zeros((12, 12))
    information[10, 3] = 1.0
    assert 3 in dict(shortlist_earlier(study, order, information, 200, 1000))[10]


# Rows that are drawn again, and the report


def test_rows_follow_from_the_model_and_the_seed() -> None:
    study = study_of()
    model: Any = publish(study, draw_tables(study)).model
    draw = publisher_of(study).draw
    assert draw is not None
    one, again, other = (draw(study, deepcopy(model), seed) for seed in (4, 4, 5))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    with pytest.raises(SynodError, match=r"model\.json"):
        draw(study, {key: value for key, value in model.items() if key != "parameters"}, 1)
    with pytest.raises(SynodError, match=r"model\.json"):
        draw(study, {**model, "more": 1}, 1)


def bounds_of(report: RenderedReport) -> dict[tuple[str, str], tuple[str, str]]:
    """Weight and bound by column and value."""
    (table,) = [
        table
        for table in section(report.tree, "model").iter("table")
        if text_of(table.find("caption")).startswith("What a row")
    ]
    rows = [[text_of(cell) for cell in row] for row in table.findall("tbody/tr")]
    return {(column, value): (weight, bound) for column, value, weight, bound in rows}


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_the_report_prints_the_bound_of_every_value(delta: str | None) -> None:
    """Two tables of shares 1 : 3 and all of the budget: the weighted one has 3/4 of it, half of which is the row's own
    cell. A weight of 1 in 4 saves 3/4 of that half.
    """
    keys = {"sensitive": ["ill"], "order": "schema", "weights": {"ward": [4, 1, 2]}, "parameter_cells": 0}
    study = study_of([binary("ill"), categorical("ward", 3)], keys=keys, delta=delta, epsilon="2")
    report = render_report(study)
    words = text_of(section(report.tree, "model"))
    found = bounds_of(report)
    if delta is None:
        assert found == {
            ("ward", "c0"): ("4", "2"),
            ("ward", "c1"): ("1", "1.4375"),
            ("ward", "c2"): ("2", "1.625"),
        }
    else:
        assert found["ward", "c1"] == ("1", "71.9 % of rho")
    assert "1 column counted as sensitive: ill." in words
    assert "bounds for values, not for persons" in words
    assert "The weights are those that the study lists." in words
    assert "a sensitive column together have 0.25 of the budget, all others 0.75." in words


def test_the_report_says_whom_rare_protects_least() -> None:
    study = study_of(keys={"weights": "rare", "degree": 1}, **RICH)
    words = text_of(section(render_report(study, related_tables(study)).tree, "model"))
    assert "rare values have the least noise and are protected least" in words
    assert "have 0.15 of the budget, all others 0.45." in words
    even = study_of(keys={"sensitive": ["age", "ward", "sex", "ill"]})
    assert "All tables have the same noise" in text_of(section(render_report(even).tree, "model"))


# The forecast


def remarks(study: Study) -> str:
    return " ".join(publisher_of(study).advise(study, None))


def test_the_forecast_says_how_large_tables_get_and_where_noise_decides() -> None:
    assert "such tables; the last draw of parents chooses among up to" in remarks(study_of())
    assert "by chance" not in remarks(study_of(**RICH))
    noisy = study_of(epsilon="1", keys={"parameter_cells": 20})
    assert "columns may count as sensitive by chance" in remarks(noisy)
    assert "by chance" not in remarks(study_of(epsilon="1", keys={"parameter_cells": 20, "threshold": "3"}))
    floor, feature = find_noise_floor(noisy)
    assert floor > 0.1
    assert feature in (0, 1, 2)
    assert remarks(study_of(keys={"degree": 0})).startswith("No column can have a parent")
    assert publisher_of(noisy).advise(noisy, {}) == ()
