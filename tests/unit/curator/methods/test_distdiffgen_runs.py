"""DistDiffGen over in-process parties: within its plan and domains, what it learns, and what comes out uniform."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, publisher_of
from synod.curator.release.report.accuracy import value_error
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.recipes import check_run, record
from tests.support.reports import render_report, section, text_of
from tests.support.studies import Attribute, binary, categorical, draw_columns, integer, make_study, real

SCHEMAS: dict[str, list[Attribute]] = {
    "mixed": [
        categorical("ward", 5, nullable=True),
        binary("sex"),
        integer("age", -3, 90, nullable=True, spikes=[0]),
        real("pay", "-1.5", "2.5", bins=9),
        integer("year", 2020, 2020),
        categorical("perhaps", 1, nullable=True),
    ],
    "taxonomy": [
        {"name": "work", "type": "categorical", "taxonomy": [["a", "b", "c"], "d", ["e", ["f", "g"]]]},
        binary("y"),
    ],
    "one": [categorical("a", 5)],
    "many": [binary(f"x{i}") for i in range(70)],
}
BUDGETS: list[dict[str, Any]] = [{"epsilon": "2"}, {"epsilon": "200"}, {"epsilon": "2", "delta": "1e-9"}]


def study_of(schema: list[Attribute], rows: tuple[int, ...] = (700, 900, 1_100), **keys: Any) -> Study:
    written: dict[str, Any] = {
        key: keys.pop(key) for key in ("target", "specializations", "split", "theta") if key in keys
    }
    names = tuple(f"p{i}" for i in range(len(rows)))
    method: dict[str, Any] = {"name": "distdiffgen", **written}
    return make_study(schema=schema, method=method, names=names, rows=rows, collusion=min(1, len(rows) - 1), **keys)


def publish(study: Study, tables: Any, coins: int = 1, seed: int = 1) -> Publication:
    return publish_in_process(study, tables, coins=seeded(coins), rng=np.random.default_rng(seed))


def parts_of(publication: Publication) -> dict[str, int]:
    model: Any = publication.model
    return {attribute["name"]: max(attribute["groups"]) + 1 for attribute in model["attributes"]}


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure, little", "pure, much", "rho"])
@pytest.mark.parametrize("rows", [(2_700,), (700, 900, 1_100), (300,) * 7], ids=["one", "three", "seven"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_shapes(schema: list[Attribute], budget: dict[str, Any], rows: tuple[int, ...]) -> None:
    study = study_of(schema, rows, **budget)
    check_feasible(study)
    parts = parts_of(check_run(study))
    assert np.prod(list(parts.values())) <= plan_study(study).step("leaves").limit.cells


@st.composite
def studies(draw: st.DrawFn) -> Study:
    schema: list[Attribute] = []
    for place in range(draw(st.integers(1, 5))):
        name, nullable = f"x{place}", draw(st.booleans())
        kind = draw(st.sampled_from(["categorical", "integer", "real"]))
        if kind == "categorical":
            schema.append(categorical(name, draw(st.integers(1, 9)), nullable=nullable))
        elif kind == "integer":
            schema.append(integer(name, 0, draw(st.integers(0, 60)), nullable=nullable))
        else:
            schema.append(real(name, "0", "1", bins=draw(st.integers(1, 20)), nullable=nullable))
    schema.insert(draw(st.integers(0, len(schema))), categorical("class", draw(st.integers(2, 4))))
    rows = tuple(draw(st.lists(st.integers(1, 600), min_size=1, max_size=4)))
    classes = [
        ["c0"],
        ["c1", *[f"c{i}" for i in range(2, len(next(a for a in schema if a["name"] == "class")["categories"]))]],
    ]
    target = draw(st.sampled_from([None, "class", {"attribute": "class", "classes": classes}]))
    budget = {"epsilon": draw(st.sampled_from(["0.1", "3", "100"])), "delta": draw(st.sampled_from([None, "1e-9"]))}
    keys = {"specializations": draw(st.integers(1, 12)), "theta": draw(st.sampled_from(["4", "0.01"]))}
    return study_of(schema, rows, target=target, output_rows=draw(st.none() | st.integers(1, 99)), **keys, **budget)


@settings(max_examples=60, deadline=None)
@given(studies())
def test_any_small_study_is_published_within_its_plan_or_refused_before(study: Study) -> None:
    try:
        check_feasible(study)
    except SynodError as error:
        if "no room for any split" not in error.sentence:
            raise
        return
    check_run(study)


# What comes out


def deciding(study: Study, seed: int = 1) -> list[tuple[Codes, ...]]:
    """The last column is whether the second is in the upper half of its eight values; all else is chance."""
    tables: list[tuple[Codes, ...]] = []
    for entry in study.roster:
        first, second, third, _ = draw_columns(study, entry.name, seed)
        tables.append((first, second, third, (second > 3).astype(np.uint8)))
    return tables


DECIDED = [categorical("a", 4), integer("b", 0, 7), binary("c"), binary("y")]


def test_the_attribute_that_decides_the_class_is_split_first_and_kept() -> None:
    study = study_of(DECIDED, specializations=1, epsilon="50")
    publication = publish(study, deciding(study))
    assert parts_of(publication) == {"a": 1, "b": 2, "c": 1, "y": 2}
    _, second, _, last = publication.columns
    assert ((second > 3) == last).mean() > 0.99


def test_a_column_that_was_never_split_is_uniform_and_the_report_names_it() -> None:
    study = study_of([binary("rare <b>"), *DECIDED[:2], binary("y")], specializations=1, epsilon="50")
    tables = [(np.zeros_like(c), a, b, y) for a, b, c, y in deciding(study_of(DECIDED))]
    report = render_report(study, tables)
    assert parts_of(report.publication) == {"rare <b>": 1, "a": 1, "b": 2, "y": 2}
    assert abs(report.publication.columns[0].mean() - 0.5) < 0.01, "though every real row has the first value"
    assert np.ptp(np.bincount(report.publication.columns[1])) <= 1
    words = text_of(section(report.tree, "model"))
    assert "2 columns never split: rare <b>, a. They say nothing about the rows" in words
    assert "b20 to 3; 4 to 7" in words
    caveats = text_of(section(report.tree, "caveats"))
    assert "it comes out uniform over its domain" in caveats


def test_where_all_were_split_the_report_names_none() -> None:
    study = study_of([binary("a"), binary("y")], epsilon="50")
    assert "never split" not in text_of(section(render_report(study).tree, "model"))


def test_values_inside_a_part_are_uniform() -> None:
    study = study_of(DECIDED, specializations=1, epsilon="50")
    tables = [(a, np.where(b > 3, 7, 0).astype(np.uint8), c, y) for a, b, c, y in deciding(study)]
    counts = np.bincount(publish(study, tables).columns[1], minlength=8)
    assert np.ptp(counts[:4]) <= 1
    assert np.ptp(counts[4:]) <= 1


def test_classes_of_grouped_categories_come_out_uniform_within_their_class() -> None:
    target = {"attribute": "y", "classes": [["c0", "c1", "c2"], ["c3"]]}
    study = study_of([binary("a"), categorical("y", 4)], target=target, epsilon="50", rows=(3_000,))
    rng = np.random.default_rng(5)
    last = rng.choice([0, 3], 3_000, p=[0.75, 0.25]).astype(np.uint8)
    publication, recorder = record(study, [((last == 3).astype(np.uint8), last)])
    counts = np.bincount(publication.columns[1], minlength=4)
    assert np.ptp(counts[:3]) <= 1
    assert abs(int(counts[3]) - int((last == 3).sum())) < 10
    assert [label for label, _ in recorder.asked] == ["classes", "leaves"]
    assert recorder.remembered == ["cuts", "model"]
    assert [table.features for table in publication.tables] == [(0,)], "the class was not counted by value"


def test_what_is_asked_by_hand() -> None:
    study = study_of(DECIDED, specializations=1, epsilon="50", target="b")
    report = render_report(study, deciding(study))
    classes, leaves = report.queries["classes"], report.queries["leaves"]
    assert classes == SumMarginals(((0, 1), (1, 2), (1, 3)))
    assert leaves == SumMarginals(((1, 3),))
    assert [table.features for table in report.publication.tables] == [(0, 1), (1, 2), (1, 3)]
    truth = np.zeros((8, 2))
    for _, b, _, y in deciding(study):
        np.add.at(truth, (b, y), 1)
    assert np.abs(report.publication.tables[2].counts.reshape(8, 2) - truth).max() < 5


def test_tables_with_a_class_in_the_middle_of_the_schema_are_read_the_right_way_round() -> None:
    """So that rows and columns are not mixed up, each pair has another cell that all rows are in."""
    schema = [categorical("a", 3), categorical("y", 4), categorical("b", 5)]
    study = study_of(schema, rows=(600,), target="y", epsilon="100")
    tables = [[np.full(600, code, dtype=np.uint8) for code in (2, 1, 3)]]
    publication = publish(study, tables)
    assert parts_of(publication) == {"a": 3, "y": 4, "b": 5}
    assert [np.bincount(column).argmax() for column in publication.columns] == [2, 1, 3]
    assert all(np.bincount(column).max() > 590 for column in publication.columns)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_class_anywhere_in_the_schema_is_decided_by_what_decides_it(place: int) -> None:
    """The other column agrees with it in seven rows of ten: it would be taken if tables were read the wrong way."""
    schema = [categorical("half", 2), integer("decides", 0, 7)]
    study = study_of([*schema[:place], binary("y"), *schema[place:]], target="y", specializations=1, epsilon="50")
    tables = []
    for entry in study.roster:
        rng = np.random.default_rng(entry.rows)
        decides = rng.integers(0, 8, entry.rows)
        own = decides > 3
        half = np.where(rng.random(entry.rows) < 0.7, own, ~own)
        columns = [half.astype(np.uint8), decides.astype(np.uint8)]
        tables.append([*columns[:place], own.astype(np.uint8), *columns[place:]])
    assert parts_of(publish(study, tables)) == {"half": 1, "decides": 2, "y": 2}


def test_the_same_coins_and_seed_give_the_same_publication() -> None:
    study = study_of(SCHEMAS["mixed"], epsilon="20")
    tables = [draw_columns(study, entry.name) for entry in study.roster]
    one, again = publish(study, tables), publish(study, tables)
    assert canonical_bytes(one.model) == canonical_bytes(again.model)
    assert all(np.array_equal(a, b) for a, b in zip(one.columns, again.columns, strict=True))
    for other in (publish(study, tables, coins=2), publish(study, tables, seed=2)):
        assert not all(np.array_equal(a, b) for a, b in zip(one.columns, other.columns, strict=True))


# What the report says of errors


def test_the_error_of_two_parts_is_that_of_the_leaves_that_they_share() -> None:
    study = study_of([binary("a"), categorical("b", 3), binary("y")], epsilon="50")
    publication = publish(study, [draw_columns(study, entry.name) for entry in study.roster])
    assert parts_of(publication) == {"a": 2, "b": 3, "y": 2}
    error = publisher_of(study).expected_error(study, publication)
    leaf = SumMarginals(((0, 1, 2),)).variances(plan_study(study).step("leaves"), study)[0]
    assert error.deviation is not None
    assert error.deviation**2 == pytest.approx(leaf * (2 + 3 + 2) / 3, rel=1e-5)
    assert (error.pairs, error.covered) == (3, 3)


def test_no_two_columns_in_one_table_have_no_error() -> None:
    study = study_of([categorical("a", 5)])
    publication = publish(study, [draw_columns(study, entry.name) for entry in study.roster])
    assert publisher_of(study).expected_error(study, publication).deviation is None
    assert value_error(study, publication) is not None
