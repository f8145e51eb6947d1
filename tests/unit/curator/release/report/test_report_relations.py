"""How columns go together in the report: released numbers with their bands, beside the synthetic rows'."""

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.study.encoding import Codes
from synod.curator.release.report.margins import Reading
from synod.curator.release.report.page import count_outside
from synod.curator.release.report.relations.released import Relation, read_relations
from tests.support.reports import RenderedReport, render_report, section, text_of
from tests.support.studies import binary, categorical, integer, make_study

ROWS = 600


def rows_of(related: bool, sizes: tuple[int, ...], rows: int, seed: int) -> list[Codes]:
    """The first two columns are the same, modulo the smaller one's size, or have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    columns: list[Codes] = [rng.integers(0, size, rows).astype(np.uint8) for size in sizes]
    if related:
        columns[1] = (columns[0] % sizes[1]).astype(np.uint8)
    return columns


def report(method: str, *, related: bool, epsilon: str = "100") -> RenderedReport:
    schema = [binary("a"), binary("b"), binary("c")] if method == "adaptive" else [binary("a"), categorical("b", 3)]
    sizes = (2,) * 3 if method == "adaptive" else (2, 3)
    study = make_study(schema=schema, method={"name": method}, epsilon=epsilon)
    tables = [rows_of(related, sizes, entry.rows, place) for place, entry in enumerate(study.roster)]
    return render_report(study, tables)


@pytest.mark.parametrize("method", ["adaptive", "histogram"])
def test_a_relation_is_near_one_where_columns_are_the_same_and_within_its_band(method: str) -> None:
    made = report(method, related=True)
    found = {one.pair: one for one in read_relations(made.study, made.publication, made.queries, made.answers)}
    first = found[0, 1]
    assert first.released is not None
    assert abs(first.released) > 0.8
    assert abs(first.released - first.synthetic) <= first.band < 0.1
    alone = read_relations(made.study, made.publication, made.queries, {})
    assert all(one.released is None for one in alone)
    assert {one.pair for one in alone} == set(found)


def halves(codes: Codes, synthetic: Codes, size: int) -> NDArray[np.float64]:
    """The sides of rows, cut where the synthetic rows are halved best."""
    cut = min(range(1, size), key=lambda place: abs(round(float((synthetic < place).mean()) - 0.5, 9)))
    return np.where(codes < cut, -1.0, 1.0)


def test_moments_tell_the_relations_of_categories_and_of_no_number() -> None:
    sizes = (2, 5, 2, 3)
    schema = [binary("a"), categorical("b", 5), binary("c"), categorical("d", 3), integer("n", 0, 9, bins=10)]
    study = make_study(schema=schema, method={"name": "hpdp-dp"}, epsilon="1000", rows=(4000, 5000, 6000))
    rng = np.random.default_rng(1)
    tables = []
    for entry in study.roster:
        b = rng.choice(5, entry.rows, p=[0.1, 0.3, 0.1, 0.3, 0.2]).astype(np.uint8)
        noise = rng.random(entry.rows) < 0.2
        columns = [((b > 2) ^ noise), b, rng.random(entry.rows) < 0.3, (b % 3), 40 * (b > 1)]
        tables.append([column.astype(np.uint8) for column in columns])
    made = render_report(study, tables)
    found = {one.pair: one for one in read_relations(study, made.publication, made.queries, made.answers)}
    drawn = made.publication.columns
    for pair, one in found.items():
        assert (one.released is None) == (4 in pair), "a number's moments do not tell its sides"
        if one.released is not None:
            real = [np.concatenate([table[column] for table in tables]) for column in pair]
            sides = [halves(own, drawn[column], sizes[column]) for own, column in zip(real, pair, strict=True)]
            means = [halves(drawn[column], drawn[column], sizes[column]).mean() for column in pair]
            assert one.released == pytest.approx((sides[0] * sides[1]).mean() - means[0] * means[1], abs=0.002)
            assert 0 < one.band < 0.01
    assert abs(found[0, 1].released or 0) > 0.3
    page = text_of(section(made.tree, "relations"))
    assert "such a number about 6 of 10 pairs of columns" in page
    assert "Of a number its products with other columns were released" in page


def test_a_changed_table_is_outside_of_its_band_and_counted() -> None:
    made = report("histogram", related=True)
    spoiled = list(made.publication.columns)
    spoiled[1] = np.roll(spoiled[1], len(spoiled[1]) // 2)
    rng = np.random.default_rng(0)
    spoiled[1] = rng.permutation(spoiled[1])
    object.__setattr__(made.publication, "columns", spoiled)
    relations = read_relations(made.study, made.publication, made.queries, made.answers)
    assert [one.is_outside for one in relations] == [True]
    assert count_outside([], relations) == (1, 1)
    page = text_of(section(made.tree, "relations"))
    assert "1 of them is outside of the band" in page
    assert "outside its band" in page


def test_figures_are_outside_only_beyond_their_band() -> None:
    assert not Reading("x", 0.5).is_outside
    assert not Reading("x", 0.5, 0.4, 0.1 + 1e-9).is_outside
    assert Reading("x", 0.5, 0.4, 0.09).is_outside
    assert Relation((0, 1), 0.5, 0.1, 0.3).is_outside
    assert not Relation((0, 1), 0.5, 0.1, 0.5).is_outside


def test_the_page_has_date_files_rows_and_what_to_conclude() -> None:
    made = report("adaptive", related=True)
    words = text_of(made.tree.find("body/header"))
    assert "Report of a release of 2026-11-18" in words
    assert "Figures outside their band" in words
    links = {link.attrib["href"] for link in section(made.tree, "rows").iter("a")}
    assert links == {"synthetic.csv", "synthetic.parquet", "model.json", "answers.parquet", "manifest.json"}
    shown = section(made.tree, "rows").findall(".//tbody/tr")
    assert len(shown) == 8
    assert [len(row) for row in shown] == [3] * 8
    told = text_of(section(made.tree, "caveats"))
    assert told.index("What you may conclude") < told.index("What not")
    cells = [g for g in section(made.tree, "relations").iter("g") if g.find("rect") is not None]
    assert len(cells) == 6, "three pairs, released and synthetic"
