"""The page: what it says is what the manifest and the model say; it loads nothing, and outside text stays text."""

import json
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

from synod.common.models.gaussian import GRID
from synod.common.protocol.manifest import noise_law
from synod.common.protocol.plan import plan_study
from synod.common.study.features import bases_of, features_of
from synod.common.study.study import Study
from synod.curator.release.report import figures, spending
from synod.curator.release.report.accuracy import value_error
from synod.curator.release.report.budget import list_phases
from synod.curator.release.report.models.components import read_components
from synod.curator.release.report.models.graph import has_bits
from synod.curator.release.report.rows import FILES
from synod.curator.release.report.sections import name_error
from synod.curator.release.report.spending import bound_factor
from synod.curator.release.report.wording import measured, percent, percent_about, percent_and_band, rounded, whole
from tests.support.reports import IMPRINT, RenderedReport, cards, edges, render_report, section, text_of
from tests.support.studies import SCHEMA, categorical, integer, make_study, real

ROWS = (1200, 900, 700)
METHODS: dict[str, dict[str, Any]] = {
    "hpdp-dp": {"name": "hpdp-dp", "link": "linear"},
    "dp-subn": {"name": "dp-subn"},
    "dp-subn, joint": {"name": "dp-subn", "update": "joint"},
    "dp-ccbn": {"name": "dp-ccbn"},
    "independent": {"name": "independent"},
    "adaptive": {"name": "adaptive", "rounds": 5},
    "distdiffgen": {"name": "distdiffgen"},
    "histogram": {"name": "histogram"},
    "dpcocgen": {"name": "dpcocgen"},
    "privbayes": {"name": "privbayes"},
    "privbayes, pooled": {"name": "privbayes", "structure": "pooled"},
    "hpprivbayes": {"name": "hpprivbayes", "weights": "rare"},
}
SPENT = {  # of an epsilon of 4, by hand
    ("hpdp-dp", ""): {"moments": "4", "rows": "0"},
    ("dp-subn", "sequential"): {"correlations": "0.8", "initialize": "0.2", "update": "0.6", "parameters": "2.4"},
    ("dp-subn", "joint"): {"correlations": "1.2", "initialize": "0.08", "update": "1.2", "parameters": "1.52"},
    ("dp-ccbn", ""): {"candidates": "2", "parameters": "2"},
    ("independent", ""): {"choose": "1.2", "tables": "2.8"},
    ("distdiffgen", ""): {"classes": "2", "leaves": "2"},
    ("privbayes", "turns"): {"structure": "1.2", "parameters": "2.8"},
    ("privbayes", "pooled"): {"correlations": "1.2", "parameters": "2.8"},
    ("hpprivbayes", ""): {"reading": "0.4", "structure": "1.2", "parameters": "2.4"},
    ("adaptive", ""): {"one-way tables": "1.2", "agreements": "0.64", "tables": "2.16"},
    ("histogram", ""): {"histogram": "4"},
    ("dpcocgen", ""): {"histogram": "2", "parts": "2"},
}
HOSTILE: list[dict[str, Any]] = [
    categorical('"><script>alert(1)</script>', ("</style><b>", "' onload='x", "&lt;")),
    categorical("שלום txt", ("مرحبا \u202e", "😀 \u2066x", "\x00\x1b[31m\n\r\t")),
    integer("<svg onload=x>]]>", 0, 9, nullable=True),
    real("--><!--", "-0.5", "0.5"),
]


def study_of(method: str, **changes: Any) -> Study:
    return make_study(**{"rows": ROWS, "epsilon": "4", "method": METHODS[method], **changes})


@pytest.fixture(scope="module", params=METHODS)
def report(request: pytest.FixtureRequest) -> RenderedReport:
    return render_report(study_of(request.param))


def test_it_says_who_published_what(report: RenderedReport) -> None:
    words = text_of(section(report.tree, "parties"))
    study = report.study
    for fact in (study.name, study.digest().hex(), IMPRINT.curator, IMPRINT.transcript_hash, "2,800"):
        assert fact in words
    for entry in study.roster:
        assert f"{entry.name}{whole(entry.rows)}{entry.key}" in words.replace(" ", "")


def test_it_says_what_was_spent_on_what(report: RenderedReport) -> None:
    study, words = report.study, section(report.tree, "budget")
    tables = {text_of(table.find("caption")): table for table in words.iter("table")}
    spent = {
        text_of(row.find("th")): text_of(row.find("td")) for row in tables["What each party spent"].findall("tbody/tr")
    }
    for entry in study.roster:
        assert spent[entry.name] == plan_study(study).cost_of(entry.name).describe()
    phases = {
        text_of(row.find("th"))[2:]: text_of(row.findall("td")[-1]) for row in tables["Phases"].findall("tbody/tr")
    }
    method = study.method
    by_hand = SPENT[method.name, getattr(method, "update", getattr(method, "structure", ""))]
    assert phases == {name: f"epsilon {amount}" for name, amount in by_hand.items()}
    laws: list[Any] = noise_law(study, report.queries)
    for law in laws:
        runs = [own for run in law.get("runs", [law]) for own in run.get("runs", [run])]
        numbers = {str(run.get("scale", run.get("epsilon_each"))) for run in runs}
        for number in (min(numbers, key=Fraction), max(numbers, key=Fraction)):
            assert number in text_of(words)
    assert "replace it by any other row" in text_of(words)
    promise = (
        "together with all of the other parties"
        if study.method.name == "independent"
        else "together with up to 1 of the 3 parties"
    )
    assert promise in text_of(words)
    widths = [float(x) for x in re.findall(r'style="width:([\d.]+)%', report.page)]
    assert sum(widths) == pytest.approx(100 * 3, abs=0.5)


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn"])
def test_a_study_with_delta_says_what_delta_means_and_what_part_of_rho_was_spent(method: str) -> None:
    report = render_report(
        study_of(method, epsilon="1", delta="1e-9", schema=[categorical(f"a{i}", 2) for i in range(4)])
    )
    words = text_of(section(report.tree, "budget"))
    assert "The study's (epsilon, delta) is (1, 1e-9)." in words
    assert words.count(", and by 1e-9 beside that, which is delta") == 1
    assert "a person with m rows has m\u00b2 times that" in words
    assert "ε = 1, δ = 1e-9" in text_of(report.tree)
    assert "(epsilon, delta) = (1, 1e-9) per row" in text_of(section(report.tree, "cite"))
    assert "epsilon 1 per row" not in report.page
    tables = {text_of(table.find("caption")): table for table in report.tree.iter("table")}
    spent = [text_of(row.find("td")) for row in tables["What each party spent"].findall("tbody/tr")]
    assert set(spent) == {"100.0 % of rho"}
    phases = [text_of(row.findall("td")[-1]) for row in tables["Phases"].findall("tbody/tr")]
    assert phases == (
        ["100.0 % of rho", "0.0 % of rho"]
        if method == "hpdp-dp"
        else [f"{part}.0 % of rho" for part in (20, 5, 15, 60)]
    )
    assert "discrete Gaussian" in words
    assert "squared sensitivity" in words
    assert "NB(" not in words


def test_a_study_of_persons_speaks_of_persons() -> None:
    study = study_of("hpdp-dp", epsilon="1", max_rows_per_unit=3)
    report = render_report(study)
    words, unit = text_of(section(report.tree, "budget")), "person with up to 3 rows at a party"
    assert f"Take any one {unit}, and replace these rows by any others" in words
    assert "what anybody can learn about one person" in words
    assert f"It is per {unit}: a person with 6 rows" in words
    assert f"for each {unit}; " in text_of(report.tree.find(".//header"))
    assert f"epsilon 1 per {unit}" in text_of(section(report.tree, "cite"))
    assert "per row" not in report.page
    assert "for each row" not in report.page


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_a_round_has_one_row_of_law_however_many_tables_it_has(delta: str | None) -> None:
    schema = [categorical(f"x{i}", 2 + 3 * i) for i in range(5)]
    report = render_report(study_of("adaptive", schema=schema, delta=delta))
    tables = {text_of(table.find("caption")): table for table in report.tree.iter("table")}
    rows = {text_of(row.find("th")): text_of(row) for row in tables["Round by round"].findall("tbody/tr")}
    laws: list[Any] = noise_law(report.study, report.queries)
    assert list(rows) == [law["label"] for law in laws]
    key = "square" if delta else "scale"
    numbers = sorted({Fraction(run[key]) for run in laws[0]["runs"]})
    assert len(numbers) > 1
    assert f"{key} {numbers[0]} to {numbers[-1]}, by table" in rows["ones"]
    assert "by table" not in rows["agreements-1"]
    assert "where a round's tables differ, manifest.json has each" in text_of(section(report.tree, "budget"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("column", [categorical("x", 5), categorical("x", 2)], ids=["five values", "two values"])
def test_a_page_of_one_column_speaks_of_no_pairs(method: str, column: dict[str, Any]) -> None:
    keys = {key: value for key, value in METHODS[method].items() if key != "rounds"}
    schema = [column, categorical("one", 1)]
    report = render_report(make_study(rows=ROWS, epsilon="4", method=keys, schema=schema))
    one_value = value_error(report.study, report.publication)
    assert one_value is not None
    error, header = text_of(section(report.tree, "error")), text_of(report.tree.find(".//header"))
    assert f"Error of a count{name_error(one_value)}" in header
    assert f"{name_error(one_value)} out of 2,800A count of one value is typically off by" in error
    assert error.count("Not in this figure:") == 1
    words = text_of(report.tree)
    assert not re.search(r"[Nn]o two columns|columns alone|2-way|independently of|\brelations", words)


def test_a_number_alone_has_no_figure() -> None:
    tree = render_report(study_of("hpdp-dp", schema=[integer("age", 0, 100)])).tree
    assert "The mean of a number is typically off by" in text_of(section(tree, "error"))
    assert "Not in this figure" not in text_of(section(tree, "error"))


@pytest.mark.parametrize(("epsilon", "some_were_not"), [("8", True), ("1000", False)])
def test_columns_that_were_not_counted_together_are_told_of_if_there_are_some(
    epsilon: str, some_were_not: bool
) -> None:
    report = render_report(study_of("adaptive", schema=[categorical(f"x{i}", 3) for i in range(4)], epsilon=epsilon))
    model: Any = report.publication.model
    counted = {tuple(table["attributes"]) for table in model["tables"] if len(table["attributes"]) == 2}
    assert (0 < len(counted) < 6) == some_were_not
    assert ("Columns that were not counted together" in text_of(section(report.tree, "model"))) == some_were_not


def test_every_attribute_has_a_card_with_its_numbers(report: RenderedReport) -> None:
    shown = {card.attrib["data-attribute"]: card for card in cards(report.tree)}
    assert list(shown) == [attribute.name for attribute in report.study.attributes]
    wards = shown["ward"]
    for code, name in enumerate("abc"):
        share = (report.publication.columns[3] == code).mean()
        shown_text = text_of(wards).replace(f"{name} ", name).replace("outside its band", "")
        assert f"{name}{percent(share)}".replace("\u00a0", " ") in shown_text
    assert all(card.iter("svg") for card in shown.values())
    for card in shown.values():
        assert re.search(r"± \d|\d to \d", text_of(card)), "every attribute has a released number with a band"


def test_the_model_is_drawn(report: RenderedReport) -> None:
    model: Any = report.publication.model
    drawn = section(report.tree, "model")
    if "loadings" in model:
        first = text_of(drawn)
        assert f"{len(model['loadings'])} columns" in first
        assert f"{len(model['loadings'][0])} direction" in first
        return
    if report.study.method.name == "distdiffgen":
        parts = [(attribute["name"], max(attribute["groups"]) + 1) for attribute in model["attributes"]]
        rows = {text_of(row.find("th")): text_of(row.find("td")) for row in drawn.findall(".//tbody/tr")}
        assert rows == {name: str(count) for name, count in parts if count > 1}
        assert rows
        return
    if "cliques" in model:
        counted = [table["attributes"] for table in model["tables"] if len(table["attributes"]) == 2]
        names = [attribute["name"] for attribute in model["attributes"]]
        assert counted
        assert all(f"{names[a]} with {names[b]}" in text_of(drawn) for a, b in counted)
        return
    if "cells" in model:
        sizes = [max(attribute["groups"]) + 1 for attribute in model["attributes"]]
        assert f"{whole(prod(sizes))} cells, of which {whole(len(model['cells']))} have rows" in text_of(drawn)
        values = [len(attribute["groups"]) for attribute in model["attributes"]]
        assert ("were counted as one part" in text_of(drawn)) == (sizes != values)
        return
    networks = [model["network"]] if "network" in model else [own["network"] for own in model["networks"]]
    bases = bases_of(report.study)
    expected = [(bases[parent], child) for network in networks for child, parents in network for parent in parents]
    assert expected
    if not has_bits(report.study):
        assert sorted(edges(drawn)) == sorted(expected)
        return
    owner = [feature.attribute for feature in features_of(report.study)]
    between = Counter("-".join(map(str, sorted((owner[x], owner[y])))) for x, y in expected if owner[x] != owner[y])
    lines = {g.attrib["data-pair"]: int(g.attrib["data-arrows"]) for g in drawn.iter("g") if "data-pair" in g.attrib}
    assert lines == between


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "% were asked for."),
        ({"components": 2}, "2 directions were asked for."),
        ({"components": 1}, "1 direction was asked for."),
    ],
)
def test_it_says_how_many_components_were_asked_for(keys: dict[str, Any], words: str) -> None:
    report = render_report(make_study(rows=ROWS, epsilon="4", method={"name": "hpdp-dp", "link": "linear", **keys}))
    assert words in text_of(section(report.tree, "model"))
    if keys:
        assert len(read_components(report.study, report.publication).kept) == keys["components"]


def test_components_are_the_models_eigenvalues() -> None:
    """Against the covariance that the published loadings imply, put together in full."""
    report = render_report(study_of("hpdp-dp"))
    model: Any = report.publication.model
    loadings, noise = np.array(model["loadings"]) / GRID, model["noise"] / GRID
    values = np.linalg.eigvalsh(loadings @ loadings.T + noise**2 * np.eye(len(loadings)))[::-1]
    found = read_components(report.study, report.publication)
    shares = [*found.kept, *[found.dropped_share] * found.dropped]
    assert shares == pytest.approx(list(values / values.sum()), abs=1e-6)
    weights = {(one.attribute, one.value): one.weight for one in found.first}
    spread = np.sqrt((loadings**2).sum(axis=1) + noise**2)
    assert weights["sex", "M"] == pytest.approx(loadings[0, 0] / spread[0])
    assert weights["ward", "c"] == pytest.approx(loadings[-1, 0] / spread[-1])
    sizes = [abs(one.weight) for one in found.first]
    assert sizes == sorted(sizes, reverse=True)


def test_it_tells_how_to_verify_and_how_to_cite(report: RenderedReport) -> None:
    verify = text_of(section(report.tree, "verify"))
    assert "synod verify DIR --trust FILE" in verify
    fixed = ("adaptive", "distdiffgen", "histogram", "dpcocgen", "privbayes", "hpprivbayes")
    is_fixed = report.study.method.name in fixed
    assert ("It also draws the rows again, from the model and the seed" in verify) == is_fixed
    assert f"does not prove that the {'model follows' if is_fixed else 'rows follow'} from the answers" in verify
    cite, study = text_of(section(report.tree, "cite")), report.study
    assert f"@misc{{{study.name}-{study.digest().hex()[:8]}," in cite
    assert "author = {{north} and {harbour} and {valley}}" in cite
    assert cite.count("{") == cite.count("}")
    assert cite.count(study.digest().hex()) == 2
    assert "Do not look for a person" in text_of(section(report.tree, "caveats"))


def test_the_same_log_gives_the_same_page(report: RenderedReport) -> None:
    again = render_report(report.study)
    assert again.page == report.page
    other = render_report(report.study, seed=2)
    assert other.page != report.page


def test_it_loads_nothing_and_runs_nothing(report: RenderedReport) -> None:
    tree = report.tree
    policy = [m for m in tree.iter("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy[0].get("content") == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert list(tree.iter("meta")).index(policy[0]) == 1, "before anything that could load"
    elements = {element.tag for element in tree.iter()}
    assert not elements & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image", "use"}
    for element in tree.iter():
        assert not {name for name in element.attrib if name.startswith("on") or name in ("src", "srcset")}
        assert element.attrib.get("href", "#").startswith("#") or element.attrib["href"] in FILES
    assert not re.search(r"https?:|//|url\((?!#)|@import", report.page.replace("<!DOCTYPE html>", ""))


def test_names_are_told_to_whoever_cannot_see(report: RenderedReport) -> None:
    tree = report.tree
    headings = [element.tag for element in tree.iter() if element.tag in ("h1", "h2", "h3")]
    assert headings.count("h1") == 1
    assert headings[:2] == ["h1", "h2"]
    for drawing in tree.iter("svg"):
        assert drawing.get("aria-hidden") == "true" or (
            drawing.find("title") is not None and drawing.find("desc") is not None
        )
    assert all(text_of(table.find("caption")) for table in tree.iter("table"))
    names = [element.attrib["id"] for element in tree.iter() if "id" in element.attrib]
    assert len(set(names)) == len(names)
    links = {link.attrib["href"] for link in tree.iter("a")} - set(FILES)
    assert links <= {f"#{name}" for name in names}


@pytest.mark.parametrize("method", METHODS)
def test_text_from_outside_stays_text(method: str) -> None:
    report = render_report(study_of(method, schema=HOSTILE))
    page = report.page
    tree = report.tree
    assert not {element.tag for element in tree.iter()} & {"script", "b>"}
    assert "alert(1)" in page
    assert "<script" not in page
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert {card.attrib["data-attribute"] for card in cards(tree)} == {
        '"><script>alert(1)</script>', "שלום txt", "<svg onload=x>]]>", "--><!--",
    }  # fmt: skip
    words = [text_of(bdi) for bdi in tree.iter("bdi")]
    assert "</style><b>" in words
    assert "' onload='x" in words
    assert "مرحبا \ufffd" in words
    assert not any("onload" in element.attrib for element in tree.iter())


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn"])
def test_a_large_page_stays_small(method: str) -> None:
    many = [f"a category with a rather long name, {i}" for i in range(300)]
    schema = [categorical(f"attribute {i}", many[: 300 if i < 2 else 40]) for i in range(100)]
    changes: dict[str, Any] = {"schema": schema[:8] if method == "hpdp-dp" else schema}
    report = render_report(study_of(method, **changes, rows=(40, 30, 30)))
    assert len(report.page.encode()) < 2_000_000
    assert len(cards(report.tree)) == len(changes["schema"])
    assert "together" in text_of(cards(report.tree)[0]) or method == "hpdp-dp"
    assert report.tree.find(".//article//details") is not None


def test_values_without_room_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = [categorical("x", 60), *SCHEMA[:1]]
    report = render_report(study_of("hpdp-dp", schema=schema))
    monkeypatch.setattr(figures, "MOST_ROWS", 40)
    counts = np.sort(np.bincount(report.publication.columns[0], minlength=60))[::-1]
    rest = counts[20:].sum() / counts.sum()
    card = cards(report.tree)[0]
    assert f"the other 40 together{percent(rest)}".replace("\u00a0", " ") in text_of(card)
    monkeypatch.setattr(figures, "MOST_CARDS", 1)
    assert len(cards(report.tree)) == 1
    assert "1 more column would make this page too long" in text_of(section(report.tree, "columns"))


def test_many_parties_are_folded() -> None:
    names = [f"party-{i}" for i in range(40)]
    report = render_report(make_study(names=names, rows=[20] * 40, method=METHODS["hpdp-dp"]))
    words = section(report.tree, "parties")
    assert text_of(words.find("details/summary")) == "28 more rows"
    assert all(name in text_of(words) for name in names)
    assert "and 35 others" in text_of(report.tree.find(".//header"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"collusion": 0}, "does not hold towards another party"),
        ({"collusion": 0, "names": ["north"], "rows": ROWS[:1]}, "There is one party"),
        ({"epsilon": "50"}, "so large that it promises little"),
        ({"epsilon": "0.5"}, "at most by a factor of 1.649."),
        ({"collusion": 2}, "together with up to 2 of the 3 parties"),
    ],
)
def test_the_promise_is_the_studys(changes: dict[str, Any], words: str) -> None:
    assert words in text_of(section(render_report(study_of("hpdp-dp", **changes)).tree, "budget"))


@pytest.mark.parametrize("collusion", [0, 2])
def test_parties_that_answer_alone_need_to_trust_nobody(collusion: int) -> None:
    """Nothing is summed up, so no party can take its share of the noise out of anything."""
    tree = render_report(study_of("independent", collusion=collusion)).tree
    words = text_of(section(tree, "budget"))
    assert "holds towards everybody: the public, and the curator together with all of the other parties" in words
    assert "does not hold" not in words
    assert "for each row; against the curator with all other parties" in text_of(tree.find(".//header"))


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [
        ("0.001", "1.00101"),
        ("0.05", "1.0513"),
        ("0.2", "1.222"),
        ("1", "2.72"),
        ("5", "149"),
        ("0.000001", "1.00000101"),
    ],
)
def test_the_factor_is_never_below_the_true_one(epsilon: str, factor: str) -> None:
    assert bound_factor(Decimal(epsilon)) == factor
    assert Decimal(factor) >= Decimal(epsilon).exp()


@pytest.mark.parametrize("method", METHODS)
def test_a_party_alone_is_not_many(method: str) -> None:
    tree = render_report(study_of(method, names=["north"], rows=ROWS[:1], collusion=0)).tree
    assert "for each row; against everybody else" in text_of(tree.find(".//header"))
    assert "the promise holds towards everybody else" in text_of(section(tree, "budget"))
    words = " ".join(text_of(line) for line in tree.iter() if line.tag in ("p", "li", "dd"))
    assert not re.search("the parties(?! begin)|each other|Each party|each holds|of their own", words)
    assert not re.search("all parties|not a party", text_of(section(tree, "budget")))
    assert "what the party released about it" in text_of(section(tree, "columns"))


def test_the_chance_in_the_draw_is_told() -> None:
    words = text_of(section(render_report(study_of("dp-ccbn")).tree, "columns"))
    assert "comes from the model, or from the chance in the draw of the rows: 2,800 of them" in words
    assert "move a share by up to about 1.9 %." in words


def test_every_phase_has_a_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    report = render_report(study_of("hpdp-dp"))
    (first, last) = list_phases(report.study, report.queries)
    monkeypatch.setattr(spending, "list_phases", lambda *_: [first, *[replace(last, name=f"n{i}") for i in range(29)]])
    letters = [text_of(e) for e in section(report.tree, "budget").iter("span") if e.get("class") == "letter"]
    assert (letters[:2], letters[25:28], len(set(letters))) == (["A", "B"], ["Z", "AA", "BB"], 30)


def test_groups_of_bits_are_never_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They overlap: the rest of them together is no share."""
    schema = [categorical(f"x{i}", 64) for i in range(2)]
    method = {"name": "dp-subn", "encoding": "binary"}
    report = render_report(make_study(schema=schema, rows=ROWS, epsilon="0.5", method=method))
    monkeypatch.setattr(figures, "MOST_ROWS", 2)
    monkeypatch.setattr(figures, "FEWEST_ROWS", 2)
    words = text_of(cards(report.tree)[0])
    parts = words.partition("rows that have one of some values:")[2]
    assert parts.count(" more") == 6, "one part for each of the six bits of its code"
    assert words.count("together") == 1


def test_a_page_is_made_of_the_publication_alone() -> None:
    """Another released number, another page."""
    report = render_report(study_of("hpdp-dp"))
    assert report.publication.moments is not None
    moved = replace(report.publication, moments=report.publication.moments + 20_000_000)
    assert replace(report, publication=moved).page != report.page
    assert json.dumps(report.publication.model)


def test_numbers_are_written_for_people() -> None:
    assert [rounded(n) for n in (0.1, 0.5, 3.14, 9.96, 10.4, 237.2, 7949)] == [
        "0.1", "0.5", "3.1", "10", "10", "240", "7,900",
    ]  # fmt: skip
    assert [percent_about(s) for s in (0.02, 0.0004)] == ["about 2.0\u00a0%", "less than 0.1\u00a0%"]
    assert [percent(s) for s in (0.1234, -0.0001, -0.02, 1)] == [
        "12.3\u00a0%",
        "0.0\u00a0%",
        "\u22122.0\u00a0%",
        "100.0\u00a0%",
    ]
    assert percent_and_band(0.5, 0.0123) == "50.0\u00a0±\u00a01.3\u00a0%"
    assert percent_and_band(0.5, 0.0) == "50.0\u00a0±\u00a00.1\u00a0%"
    assert [measured(59.84, 79.0), measured(1234.5, 60000.0), measured(-0.01234, 1.0)] == [
        "59.8",
        "1,234",
        "\u22120.01",
    ]
