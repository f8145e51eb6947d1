"""Reports of real releases in a real browser: what they show is what the release holds, on every screen."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.identity import fingerprint
from synod.common.privacy.cost import Cost
from synod.deploy.demo import write_tables
from tests.support.browser import CONTRAST, DEVICES, ROOT, Browser, Device, missing, open_browser
from tests.support.daemons import run_synod
from tests.support.tables import NAMES, write_study

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing()), reason=f"there is no {missing()} on this machine"),
]
LEAST_CONTRAST = 4.5
HOSPITALS = {"hospitals": "adaptive", "components": "hpdp-dp"}
NETWORKS = ("census",)


@dataclass(frozen=True)
class Release:
    """A release, as its files say it."""

    name: str
    folder: Path

    @property
    def page(self) -> Path:
        return self.folder / "report.html"

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
        return found

    @property
    def model(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "model.json").read_text())["model"]
        return found

    def column(self, name: str) -> Counter[str]:
        with (self.folder / "synthetic.csv").open(newline="", encoding="utf-8") as file:
            return Counter(row[name] for row in csv.DictReader(file))


def launch(name: str, folder: Path) -> Release:
    """A study run by daemons of their own, over mutual TLS, to a verified release."""
    if name in HOSPITALS:
        tables = list(write_tables(folder / "data", 1).values())
        written = (ROOT / "examples" / "hospitals" / "study.yaml").read_text(encoding="utf-8")
        study = folder / "study.yaml"
        study.write_text(written.replace("{name: adaptive}", f"{{name: {HOSPITALS[name]}}}"), encoding="utf-8")
    else:
        study = write_study(name, folder / "data")
        tables = [study.with_name(f"{party}.csv") for party in NAMES]
    data = [argument for table in tables for argument in ("--data", table)]
    ending = run_synod("launch", study, *data, "--out", folder / "release", seconds=600)
    assert ending.returncode == 0, ending.stderr
    return Release(name, folder / "release")


@pytest.fixture(scope="module", params=[*HOSPITALS, "census", "abilities"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return launch(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(params=DEVICES, ids=str)
def device(request: pytest.FixtureRequest) -> Device:
    found: Device = request.param
    return found


def texts(browser: Browser, selector: str) -> list[str]:
    """The words that elements show."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.replace(/\\s+/g, ' ').trim())"
    )
    found: list[str] = browser.ask(script, selector)
    return found


def test_it_fits_the_screen_and_can_be_read(release: Release, browser: Browser, device: Device) -> None:
    browser.show(release.page, device)
    browser.shoot(f"{release.name}-{device}-first", whole=False)
    browser.shoot(f"{release.name}-{device}", whole=True)
    assert browser.complaints() == []
    width, room = browser.ask("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= room == device.width
    browser.ask("document.querySelectorAll('details').forEach((fold) => fold.open = true)")
    width, room = browser.ask("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= room, "with all folds open"
    ratio, words = browser.ask(CONTRAST)
    assert ratio >= LEAST_CONTRAST, words
    smallest = browser.ask(
        "return Math.min(...[...document.querySelectorAll('p, li, td, th, dd, dt, summary, caption, span, small')]"
        ".map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12
    paper = browser.ask("return getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(int(part) for part in paper.removeprefix("rgb(").removesuffix(")").split(",")) / 3
    assert (brightness > 128) == (device.scheme == "light")


def test_the_first_screen_says_what_matters(release: Release, browser: Browser, device: Device) -> None:
    browser.show(release.page, device)
    study = release.manifest["study"]
    assert texts(browser, "h1") == [study["name"]]
    figures = texts(browser, ".tiles .figure")
    budget = f"ε = {study['epsilon']}" + (f", δ = {study['delta']}" if study["delta"] else "")
    assert figures[:3] == [f"{study['rows']:,}", "3", budget.replace("0.000000001", "1e-9")]
    assert figures[3].startswith("± ")
    bottom = browser.ask("return document.querySelector('.tiles div:nth-child(4)').getBoundingClientRect().bottom")
    assert bottom <= device.height, "rows, parties, budget and error are seen without scrolling"


def test_who_and_what_are_the_manifests(release: Release, browser: Browser) -> None:
    browser.show(release.page, DEVICES[0])
    manifest = release.manifest
    (words,) = texts(browser, "#parties")
    for fact in (manifest["study_hash"], manifest["transcript_hash"], fingerprint(bytes.fromhex(manifest["signer"]))):
        assert fact in words
    rows = browser.ask(
        "return [...document.querySelectorAll('#parties tbody tr')].map((r) => [...r.children].map((c) => c.innerText))"
    )
    assert rows == [[p["name"], f"{p['rows']:,}", p["key"]] for p in manifest["study"]["roster"]]
    spent = browser.ask(
        "return [...document.querySelectorAll('#budget .spent')].map((e) => {const r = e.closest('tr').children;"
        "const w = [...e.children].reduce((s, c) => s + c.getBoundingClientRect().width, 0);"
        "return [r[0].innerText, r[1].innerText, w / e.clientWidth]})"
    )
    for (party, account), (name, cost, filled) in zip(sorted(manifest["parties"].items()), sorted(spent), strict=True):
        study = manifest["study"]
        pure = study["delta"] is None
        budget = Cost.pure(Decimal(study["epsilon"])) if pure else Cost.concentrated(Decimal(study["rho"]))
        share = Cost.parse(account["spent"]).part_of(budget)
        told = Cost.parse(account["spent"]).describe() if pure else f"{100 * float(share):.1f}\u00a0% of rho"
        assert (name, cost) == (party, told)
        assert filled == pytest.approx(float(share), abs=0.02)
    labels = {law["label"] for law in manifest["noise"]}
    assert labels <= set(texts(browser, "#budget tbody th"))


def test_every_attribute_has_a_chart_of_its_rows(release: Release, browser: Browser) -> None:
    browser.show(release.page, DEVICES[0])
    schema = release.manifest["study"]["schema"]
    drawn = browser.ask(
        "return [...document.querySelectorAll('[data-attribute]')].map((card) => [card.dataset.attribute,"
        "[...card.querySelectorAll('svg rect, svg path')].filter((s) => s.getBoundingClientRect().width > 0).length])"
    )
    assert [name for name, _ in drawn] == [attribute["name"] for attribute in schema]
    assert all(shapes >= 2 for _, shapes in drawn)
    for attribute in schema:
        if attribute["type"] == "categorical" and len(attribute["categories"]) <= 14:
            check_bars(release, browser, attribute)


def check_bars(release: Release, browser: Browser, attribute: dict[str, Any]) -> None:
    """The numbers are those of synthetic.csv, and so are the lengths of the bars as they are drawn."""
    counts = release.column(attribute["name"])
    rows = sum(counts.values())
    table = browser.ask(
        "const width = (e) => e.getBoundingClientRect().width;"
        "const t = [...document.querySelectorAll('[data-attribute]')].find((c) => c.dataset.attribute === arguments[0])"
        ".querySelector('table'); return [t.querySelector('thead th').innerText, [...t.tBodies[0].rows].map((r) => ["
        "r.querySelector('.label').firstChild.textContent.trim(), r.cells[1].innerText,"
        "width(r.querySelector('.bar')) / width(r.querySelector('svg'))])]",
        attribute["name"],
    )
    reach = float(table[0].removeprefix("a full bar is").replace("\u00a0", " ").removesuffix("%")) / 100
    assert [label for label, _, _ in table[1]] == attribute["categories"]
    for label, number, length in table[1]:
        told = float(number.removesuffix("\u00a0%"))
        assert told == pytest.approx(100 * counts[label] / rows, abs=0.05 + 1e-9)  # a tie is rounded either way
        assert length * reach == pytest.approx(counts[label] / rows, abs=0.005)


def test_the_model_is_drawn_as_it_is(release: Release, browser: Browser) -> None:
    browser.show(release.page, DEVICES[0])
    if release.name == "hospitals":
        check_pairs(release, browser)
        return
    if release.name not in NETWORKS:
        check_components(release, browser)
        return
    network = release.model["network"]
    assert len(network) == 52, "bits, which a reader never sees"
    owner = [feature[0] for feature in release.model["features"]]
    arrows = Counter(tuple(sorted((owner[x], owner[y]))) for y, parents in network for x in set(parents))
    expected = {f"{x}-{y}": count for (x, y), count in arrows.items() if x != y}
    lines = browser.ask(
        "return [...document.querySelectorAll('#model [data-pair]')].map((g) => {const p = g.querySelector('path');"
        "const n = p.getTotalLength(), a = p.getPointAtLength(0), b = p.getPointAtLength(n);"
        "return [g.dataset.pair, Number(g.dataset.arrows), [a.y, b.y]]})"
    )
    heights = dict(
        browser.ask(
            "return [...document.querySelectorAll('#model .columns text')].map((t) =>"
            " [t.querySelector('title').textContent, t.y.baseVal[0].value - 4])"
        )
    )
    names = [attribute["name"] for attribute in release.manifest["study"]["schema"]]
    assert {pair: count for pair, count, _ in lines} == expected
    assert sorted(heights) == sorted(names)
    for pair, _, ends in lines:
        assert sorted(ends) == pytest.approx(sorted(heights[names[int(i)]] for i in pair.split("-")), abs=0.2)


def check_pairs(release: Release, browser: Browser) -> None:
    pairs = {tuple(table["attributes"]) for table in release.model["tables"] if len(table["attributes"]) == 2}
    (words,) = texts(browser, "#model > p")
    assert f"{len(pairs)} pair" in words
    assert f"in {len(release.model['cliques'])} table" in words
    assert browser.ask("return document.querySelectorAll('#model table.chart tbody tr').length") == len(pairs)


def check_components(release: Release, browser: Browser) -> None:
    loadings = release.model["loadings"]
    (words,) = texts(browser, "#model > p")
    assert f"The {len(loadings)} columns" in words
    assert f"along {len(loadings[0])} direction" in words
    assert browser.ask("return document.querySelectorAll('#model .outline .bar').length") == len(loadings)
    kept = browser.ask("return document.querySelectorAll('#model .outline .bar:not(.faint)').length")
    assert kept == len(loadings[0])
    variances = [sum(row[j] ** 2 for row in loadings) + release.model["noise"] ** 2 for j in range(kept)]
    total = sum(variances) + (len(loadings) - kept) * release.model["noise"] ** 2
    shown = texts(browser, "#model table.chart tbody td:nth-child(2)")
    assert shown[0] == f"{100 * variances[0] / total:.1f} %"


def test_the_browser_would_have_complained(browser: Browser, release: Release, tmp_path: Path) -> None:
    """A script and a picture from elsewhere, put into the same page, are stopped by its policy, and reported."""
    text = release.page.read_text(encoding="utf-8")
    spoiled = text.replace(
        "</main>", "<script>document.title = 'run'</script><img src='https://x.invalid/x.png'></main>"
    )
    (tmp_path / "spoiled.html").write_text(spoiled, encoding="utf-8")
    browser.show(tmp_path / "spoiled.html", DEVICES[0])
    complaints = browser.complaints()
    assert any("script" in complaint for complaint in complaints)
    assert any("x.invalid" in complaint for complaint in complaints)
    assert browser.driver.title != "run"
    browser.ask(
        "document.querySelector('.lead').style.color = '#999'; document.querySelector('.lead').style.width = '3000px'"
    )
    assert browser.ask(CONTRAST)[0] < LEAST_CONTRAST


@pytest.mark.parametrize(
    "style",
    ["opacity: .9", "background: linear-gradient(#fff, #fff)", "color: rgb(0 0 0 / .9)", "background: rgb(9 9 9 / .1)"],
)
def test_what_colours_alone_do_not_tell_counts_as_unreadable(browser: Browser, release: Release, style: str) -> None:
    browser.show(release.page, DEVICES[0])
    browser.ask("document.querySelector('.lead').style = arguments[0]", style)
    assert browser.ask(CONTRAST)[0] == 0
