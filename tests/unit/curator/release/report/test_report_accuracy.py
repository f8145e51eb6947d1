"""The expected error of a 2-way count: the noise that such counts really have."""

import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from synod.common.models.moments import unfold
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, Publication, Released, publisher_of
from synod.curator.network.evidence import Evidence
from synod.curator.network.levels import levels_of
from synod.curator.release.report.accuracy import value_error
from synod.curator.release.report.margins import BAND, read_margins
from synod.curator.release.report.models.graph import read_networks
from tests.support.keys import seeded
from tests.support.reports import render_report, section, text_of
from tests.support.studies import categorical, integer, make_study

DRAWS = 600


def expected_error(study: Study, publication: Publication) -> CountError:
    return publisher_of(study).expected_error(study, publication)


def categories(*sizes: int) -> list[dict[str, Any]]:
    return [categorical(f"x{i}", size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("delta", [0, "1e-9"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 4, 3), (2, 3, 2, 4)])
def test_moments_have_the_error_that_is_stated(sizes: tuple[int, ...], delta: object) -> None:
    """Noise alone, drawn as parties draw it, turned into counts of two categories."""
    study = make_study(schema=categories(*sizes), delta=delta, method={"name": "hpdp-dp", "link": "linear"})
    design, terms = moment_design(study), SumMoments().terms(plan_study(study).step("moments"), study)
    count = DRAWS * 3 * terms.length
    (run,) = terms.runs
    noise = run.laws[0].sample(count, coins=seeded(3))
    squares: dict[tuple[int, int], list[float]] = {}
    indicator = indicators(design)
    for moments in noise.reshape(DRAWS, 3, -1).sum(axis=1):
        gram = unfold(design, moments, 1)
        gram[0, 0] = 0.0
        for place, column in enumerate(design.signed, 1):
            assert column.role == "binary"
            gram[place, place] = 0.0
        for a, b in combinations(sorted(indicator), 2):
            squares.setdefault((a, b), []).append(float(indicator[a] @ gram @ indicator[b]) ** 2)
    measured = np.sqrt(np.mean([np.mean(values) for values in squares.values()]))
    stated = expected_error(study, render_report(study).publication)
    assert stated.deviation == pytest.approx(measured, rel=0.1)
    assert (stated.pairs, stated.covered) == (len(squares), len(squares))


def indicators(design: Any) -> dict[int, Any]:
    """For each attribute, the combination of the design's columns that is 1 for its code 1 and 0 for others."""
    found = {}
    for place, column in enumerate(design.signed, 1):
        vector = np.zeros(design.width)
        vector[0], vector[place] = 1.0, 1.0
        found[column.attribute] = vector
    for block, span in design.block_slices():
        vector = np.zeros(design.width)
        vector[span.start + 1] = 1.0
        found[block.attribute] = vector
    return found


def test_numbers_have_no_counts_of_two() -> None:
    study = make_study(schema=[integer("a", 0, 9), *categories(3)])
    report = render_report(study)
    assert expected_error(study, report.publication).deviation is None
    assert "The mean of a number is typically off by about" in text_of(section(report.tree, "error"))


NAMES = [
    "hpdp-dp",
    "dp-subn",
    "dp-ccbn",
    "independent",
    "adaptive",
    "histogram",
    "dpcocgen",
    "privbayes",
    "hpprivbayes",
]


@pytest.mark.parametrize("name", NAMES)
def test_one_value_has_the_error_that_its_bands_show(name: str) -> None:
    schema = [*categories(2, 3, 5), integer("n", 0, 9, bins=5)]
    study = make_study(schema=schema, rows=(4000, 5000, 6000), epsilon="1", method={"name": name})
    publication = render_report(study).publication
    readings = [r for margin in read_margins(study, publication) for r in margin.shares if r.released is not None]
    sizes = [reading.band / BAND * study.total_rows for reading in readings]
    assert len(sizes) >= 10
    assert value_error(study, publication) == pytest.approx(np.sqrt(np.mean(np.square(sizes))), rel=0.02)


def test_numbers_have_no_counts_of_one_value() -> None:
    report = render_report(make_study(schema=[integer("a", 0, 9), integer("b", 0, 9)]))
    assert value_error(report.study, report.publication) is None
    header = text_of(report.tree.find(".//header"))
    assert re.search(r"none was released\. One value: not told here, ± [\d.,]+ with columns alone", header)


@pytest.mark.parametrize("name", ["dp-subn", "dp-ccbn", "independent", "privbayes"])
def test_tables_have_the_error_of_the_pairs_that_the_network_holds(name: str) -> None:
    method = {"name": name, "encoding": "binary"}
    study = make_study(schema=categories(2, 3, 2, 4), rows=(4000, 5000, 6000), epsilon="5", method=method)
    publication = render_report(study).publication
    stated = expected_error(study, publication)
    owner = (0, 1, 1, 2, 3, 3)
    pairs = {
        (min(x, y), max(x, y))
        for network in read_networks(study, publication).values()
        for pair in network.pairs
        for x in pair.family
        for y in pair.family
        if owner[x] != owner[y]
    }
    tables = [Evidence(study, list(publication.tables)).counted(pair) for pair in sorted(pairs)]
    assert stated.deviation == pytest.approx(np.sqrt(np.mean([table.mean_variance for table in tables if table])))
    covered = sum(table is not None for table in tables)
    assert (stated.pairs, stated.covered, stated.partial) == (13, covered, len(pairs) - covered)
    assert stated.is_of_bits


def test_pairs_on_levels_count_as_pairs_of_columns() -> None:
    """Each pair of columns once, on the coarsest level that the network has, whose average cell adds up many cells."""
    schema = [integer("a", 0, 15), integer("b", 0, 15), *categories(2, 3)]
    study = make_study(schema=schema, rows=(400, 500, 600), epsilon="20", method={"name": "privbayes"})
    report = render_report(study)
    (network,) = read_networks(study, report.publication).values()
    levels, evidence = levels_of(study), Evidence(study, list(report.publication.tables))
    assert any(parent >= 4 for pair in network.pairs for parent in pair.parents)
    coarsest: dict[frozenset[int], tuple[int, ...]] = {}
    for pair in network.pairs:
        for two in combinations(levels.order(pair.family), 2):
            bases = frozenset(map(levels.base, two))
            coarsest[bases] = tuple(map(max, zip(coarsest.get(bases, two), two, strict=True)))
    variances = [table.mean_variance for table in map(evidence.counted, coarsest.values()) if table is not None]
    assert len(variances) == len(coarsest)
    stated = expected_error(study, report.publication)
    assert (stated.pairs, stated.covered, stated.partial) == (6, len(coarsest), 0)
    assert stated.deviation == pytest.approx(np.sqrt(np.mean(variances)))
    assert not stated.is_of_bits
    assert "groups of another column's values" in text_of(section(report.tree, "model"))


@pytest.mark.parametrize("epsilon", ["5", "20", "60"])
def test_pairs_that_parties_counted_on_different_levels_have_an_error(epsilon: str) -> None:
    schema = [integer("a", 0, 15), integer("b", 0, 15), *categories(2, 3)]
    study = make_study(schema=schema, rows=(400, 500, 600), epsilon=epsilon, method={"name": "independent"})
    stated = expected_error(study, render_report(study).publication)
    assert (stated.deviation is not None) == (stated.covered > 0)


@pytest.mark.parametrize("shared", [False, True])
def test_what_some_parties_counted_is_no_count_of_all_rows(shared: bool) -> None:
    """The first party has a table of columns 0 and 1, the second of 0 and 2; both have one of 1 and 2, or neither."""
    method, rows = {"name": "independent"}, (1000, 3000)
    study = make_study(schema=categories(2, 2, 2), names=("north", "harbour"), rows=rows, method=method)
    networks: dict[str, list[Any]] = {"north": [[0, []], [1, [0]]], "harbour": [[0, []], [2, [0]]]}
    for name, last in (("north", 2), ("harbour", 1)):
        networks[name].append([last, [3 - last] if shared else []])
    tables = [
        Released((feature, *parents), np.full(2 ** (1 + len(parents)), 100.0), rows[party], 50.0, name)
        for party, (name, network) in enumerate(networks.items())
        for feature, parents in network
    ]
    model: Any = {"networks": [{"party": name, "network": network} for name, network in networks.items()]}
    report = render_report(study)
    report = replace(report, publication=replace(report.publication, model=model, tables=tables))
    stated = expected_error(study, report.publication)
    assert (stated.pairs, stated.covered, stated.partial) == (3, int(shared), 2)
    words = text_of(section(report.tree, "error"))
    if shared:
        assert stated.deviation == 10.0, "two tables of variance 50, added up"
        assert "There are 3 pairs of features of different columns. This figure speaks for 1 of them" in words
        assert "Some of the parties, not all, counted 2 more." in words
        assert "the others" not in words
    else:
        assert stated.deviation is None
        assert "No two columns were counted together by all parties" in words
        assert "none was released by all parties" in text_of(report.tree.find(".//header"))


def test_a_table_of_two_valued_columns_has_no_bits() -> None:
    study = make_study(schema=categories(2, 2, 2), rows=(4000, 5000, 6000), epsilon="5", method={"name": "dp-ccbn"})
    report = render_report(study)
    assert not expected_error(study, report.publication).is_of_bits
    for key in ("error", "model"):
        assert "bit" not in re.findall(r"\w+", text_of(section(report.tree, key)))


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-ccbn", "adaptive", "histogram", "dpcocgen"])
def test_hardly_any_noise_is_told_in_whole_sentences(method: str) -> None:
    report = render_report(
        make_study(schema=categories(2, 2), rows=(9000, 9000, 9000), epsilon="200", method={"name": method})
    )
    size = expected_error(report.study, report.publication).deviation
    assert size is not None
    assert size < 0.1
    words = text_of(section(report.tree, "error"))
    assert "< 0.1 out of 27,000" in words
    assert "off by less than a tenth of a row out of 27,000 because of the noise" in words
    assert "0.0 %" not in words
    assert "below" not in words


def test_a_network_without_arrows_says_so() -> None:
    report = render_report(make_study(schema=categories(2, 2, 3), epsilon="0.001", method={"name": "dp-subn"}))
    assert expected_error(report.study, report.publication).deviation is None
    assert "published as if they were independent" in text_of(section(report.tree, "error"))
    assert "drawn independently of each other" in text_of(section(report.tree, "model"))
