"""The page's baseline: the noise of columns alone, and what they would miss of how columns go together."""

from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, Publication
from synod.curator.release.report import alone
from synod.curator.release.report.accuracy import value_error
from synod.curator.release.report.alone import (
    Baseline,
    Dependence,
    distance_to_independence,
    measure_baseline,
    measure_dependence,
)
from synod.curator.release.report.page import write_report
from synod.curator.release.report.sections import name_error, show_error
from synod.curator.structure.columns import column_deviation
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.reports import IMPRINT, section, text_of
from tests.support.studies import LINEAR, categorical, draw_columns, integer, make_model, make_study

ROWS = 4_000


def column(codes: Any, size: int) -> tuple[Any, int]:
    return np.asarray(codes, dtype=np.int64), size


def measure(study: Study, *columns: Codes) -> Dependence:
    found = measure_dependence(study, Publication(list(columns), {}))
    assert found is not None
    return found


def study_of(*sizes: int, **changes: Any) -> Study:
    return make_study(schema=[categorical(f"x{i}", size) for i, size in enumerate(sizes)], **changes)


def draw(size: int, seed: int, rows: int = ROWS) -> Codes:
    return np.random.default_rng(seed).integers(0, size, rows).astype(np.uint8)


def test_two_equal_columns_are_as_far_from_independence_as_they_can_be() -> None:
    half = column([0, 1] * 50, 2)
    assert distance_to_independence(half, half) == 0.5
    assert distance_to_independence(half, column([0, 0, 1, 1] * 25, 2)) == 0


@pytest.mark.parametrize("sizes", [(2, 3), (7, 5), (40, 60)])
def test_the_distance_is_that_of_its_definition_however_large_the_table(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = (draw(size, seed, 200) for seed, size in enumerate(sizes))
    expected = sum(
        abs(((left == a) & (right == b)).mean() - (left == a).mean() * (right == b).mean())
        for a in range(sizes[0])
        for b in range(sizes[1])
    )
    pair = column(left, sizes[0]), column(right, sizes[1])
    assert distance_to_independence(*pair) == pytest.approx(expected / 2)
    monkeypatch.setattr(alone, "MOST_CELLS", 1)
    assert distance_to_independence(*pair) == pytest.approx(expected / 2)


def test_a_table_that_could_not_be_held_is_measured_by_its_rows() -> None:
    columns = [column(np.arange(500) * 130, 65_000)] * 2
    assert distance_to_independence(*columns) == pytest.approx(1 - 1 / 500)


def test_dependence_is_told_from_the_chance_in_the_draw() -> None:
    """A third column follows neither of two that are equal, so one pair of three is missed."""
    study, first = study_of(4, 4, 4), draw(4, 1)
    found = measure(study, first, first, draw(4, 2))
    assert found.pairs == 3
    assert found.missed == pytest.approx(0.75 / 3, abs=0.02)
    assert found.by_chance < 0.03
    baseline = measure_baseline(study, Publication([first, first, draw(4, 2)], {}))
    assert baseline == Baseline(column_deviation(study) or 0, found)
    free = measure(study, *(draw(4, seed) for seed in range(3)))
    assert free.missed == pytest.approx(free.by_chance, abs=0.01)
    assert found == measure(study, first, first, draw(4, 2)), "the same on every page"


@pytest.mark.parametrize(
    "method",
    ["hpdp-dp", "dp-subn", "dp-ccbn", "independent", "adaptive", "histogram", "dpcocgen", "privbayes", "hpprivbayes"],
)
def test_every_method_has_it_in_the_schemas_bins(method: str) -> None:
    """Numbers are in their bins even where the method publishes levels; a constant is no column."""
    schema = [integer("age", 0, 100, bins=4), categorical("one", 1), categorical("ward", 3)]
    study = make_study(schema=schema, method={"name": method})
    tables = [draw_columns(study, entry.name) for entry in study.roster]
    publication = publish_in_process(study, tables, coins=seeded(1), rng=np.random.default_rng(1))
    found = measure(study, *publication.columns)
    assert found.pairs == 1
    assert 0 <= found.missed < 0.5
    ages, wards = publication.columns[0], publication.columns[2]
    if method == "hpdp-dp":
        ages = (np.rint(ages / 256 * 100) * 4 // 101).astype(np.uint8)
    if method == "adaptive":
        assert codings_of(study)[0].spikes == (0, 100)
        ages = np.array([0, 1, 2, 3, 0, 3], dtype=np.uint8)[ages]
    assert found.missed == pytest.approx(distance_to_independence(column(ages, 4), column(wards, 3)))


def test_one_column_has_no_pairs() -> None:
    study = make_study(schema=[categorical("a", 3), integer("b", 0, 9, bins=1)])
    assert measure_baseline(study, Publication([draw(3, 1), draw(9, 2)], {})) is None
    error = CountError(None, 0, 0, "", "There is nothing to count.")
    assert "For comparison" not in show_error(study, error, None, None)


def test_many_columns_and_rows_are_sampled_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(*[3] * 12)
    columns = [draw(3, seed // 2) for seed in range(12)]
    every = measure(study, *columns)
    assert every.pairs == len(list(combinations(range(12), 2)))
    monkeypatch.setattr(alone, "MOST_PAIRS", 10)
    monkeypatch.setattr(alone, "MOST_ROWS", 1_000)
    some = measure(study, *columns)
    assert some.pairs == 10
    assert some == measure(study, *columns)


@pytest.mark.parametrize("deviation", [None, 40.0])
def test_it_is_said_in_plain_words(deviation: float | None) -> None:
    study = study_of(2, 2)
    error = CountError(deviation, 1, 1, "values together", "None was counted.")
    dependence = Dependence(0.081, 0.02, 1)
    words = show_error(study, error, 31.4, Baseline(12.34, dependence)).replace("\u00a0", " ")
    assert (
        "with columns published independently, at the same cost, a count of one value would typically be off by "
        in words
    )
    assert "about 12 rows because of the noise; here it is typically off by about 31 rows" in words
    assert "A count of two values would not be told at all" in words
    assert "Columns published independently would miss how columns go together" in words
    assert "8.1 % of the published rows" in words
    assert "If the columns had nothing in common, 2.0 % would" in words
    assert ("Not in this figure" in words) == (deviation is not None)
    little = show_error(study, error, None, Baseline(0.01, dependence))
    assert "off by less than a tenth of a row because of the noise; no such count of all rows was released" in little


def test_the_page_has_it_beside_the_error() -> None:
    study = make_study(method=LINEAR, rows=(400, 500, 600))
    tables = [draw_columns(study, entry.name) for entry in study.roster]
    publication = publish_in_process(study, tables, coins=seeded(1), rng=np.random.default_rng(1))
    queries: dict[str, AnyQuery] = {"moments": SumMoments(), "rows": Synthesize(make_model(study), share_rows(study))}
    page = write_report(study, publication, queries, IMPRINT)
    tree = ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    found, one_value = measure_baseline(study, publication), value_error(study, publication)
    assert found is not None
    assert one_value is not None
    assert f"{100 * found.dependence.missed:.1f} % of the published rows" in text_of(section(tree, "error"))
    here, alone = name_error(one_value), name_error(found.deviation)
    assert f"; not told with columns alone. One value: {here} here, {alone} with columns alone" in text_of(
        tree.find(".//header")
    )
