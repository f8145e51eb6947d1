"""Margins: readings are those of the rows and of the released numbers, and bands hold what they promise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from synod.common.privacy.coins import Coins
from synod.common.privacy.noise import sample_shares, share_variance
from synod.common.study.encoding import Codes, codings_of, encode_numbers, to_bins
from synod.common.study.study import Study
from synod.curator.release.files import decode_table
from synod.curator.release.report.margins import BAND, Margin, read_margins
from synod.curator.release.report.wording import name_codes, name_runs
from tests.support.keys import seeded
from tests.support.reports import RenderedReport, cards, render_report, text_of
from tests.support.studies import categorical, draw_columns, integer, make_study, real

SCHEMA: list[dict[str, Any]] = [
    categorical("sex", ("F", "M")),
    integer("age", 0, 100, bins=8),
    real("income", "0", "1000", bins=5, nullable=True),
    categorical("ward", ("a", "b", "c"), nullable=True),
    categorical("unit", ("only",)),
]
ROWS = (4000, 5000, 6000)


def exact(method: dict[str, Any]) -> Study:
    """With so much epsilon that released numbers are the true ones."""
    return make_study(schema=SCHEMA, rows=ROWS, epsilon="1000", method=method, collusion=0)


def skewed(study: Study) -> list[list[Codes]]:
    """Low codes are the likely ones, so that no mean is in the middle and no share is one half."""
    tables = [draw_columns(study, entry.name) for entry in study.roster]
    others = [draw_columns(study, entry.name, seed=1) for entry in study.roster]
    return [[np.minimum(a, b) for a, b in zip(*pair, strict=True)] for pair in zip(tables, others, strict=True)]


def pooled(study: Study) -> list[Codes]:
    return [np.concatenate(parts) for parts in zip(*skewed(study), strict=True)]


def by_name(report: RenderedReport) -> dict[str, Margin]:
    return {margin.name: margin for margin in read_margins(report.study, report.publication)}


@pytest.fixture(scope="module")
def moments() -> RenderedReport:
    study = exact({"name": "hpdp-dp", "link": "linear"})
    return render_report(study, skewed(study))


@pytest.mark.parametrize("name", ["sex", "ward"])
def test_moments_give_shares_of_categories(moments: RenderedReport, name: str) -> None:
    place = [attribute.name for attribute in moments.study.attributes].index(name)
    true, drawn = pooled(moments.study)[place], moments.publication.columns[place]
    margin = by_name(moments)[name]
    assert len(margin.shares) == codings_of(moments.study)[place].size
    for code, reading in enumerate(margin.shares):
        assert reading.synthetic == (drawn == code).mean()
        assert reading.released == pytest.approx((true == code).mean(), abs=1e-3)
        assert 0 < reading.band < 1e-3


def test_moments_give_mean_and_deviation_of_numbers(moments: RenderedReport) -> None:
    place = 2
    coding = codings_of(moments.study)[place]
    mean, deviation = by_name(moments)["income"].gauges
    for codes, values in (
        (pooled(moments.study)[place], (mean.released, deviation.released)),
        (moments.publication.columns[place], (mean.synthetic, deviation.synthetic)),
    ):
        assert coding.levels is not None
        numbers = np.where(codes == coding.null_code, 500.0, codes / coding.levels * 1000)
        assert values == pytest.approx((numbers.mean(), numbers.std()), abs=1)
    assert mean.band[0] < mean.released < mean.band[1]
    assert deviation.band[0] < deviation.released < deviation.band[1]
    (missing,) = by_name(moments)["income"].shares
    assert missing.released == pytest.approx((pooled(moments.study)[place] == coding.null_code).mean(), abs=1e-3)


def test_a_histogram_is_that_of_the_decoded_rows(moments: RenderedReport) -> None:
    table = decode_table(moments.study, moments.publication.columns, coins=Coins.public(1, "values")).to_pydict()
    ages, incomes = table["age"], [value for value in table["income"] if value is not None]
    counts = [sum(a * 101 <= 8 * x < (a + 1) * 101 for x in ages) for a in range(8)]
    assert [r.synthetic * len(ages) for r in by_name(moments)["age"].histogram] == pytest.approx(counts)
    counts = [sum(i * 200 <= x < (i + 1) * 200 or (i == 4 and x == 1000) for x in incomes) for i in range(5)]
    assert [r.synthetic * len(ages) for r in by_name(moments)["income"].histogram] == pytest.approx(counts)


@pytest.mark.parametrize("encoding", ["vanilla", "binary", "gray"])
@pytest.mark.parametrize("name", ["dp-subn", "dp-ccbn", "independent", "privbayes"])
def test_tables_give_shares_of_categories_and_bins(name: str, encoding: str) -> None:
    study = exact({"name": name, "encoding": encoding})
    report = render_report(study, skewed(study))
    true, margins = pooled(report.study), by_name(report)
    for place, coding in enumerate(codings_of(report.study)[:4]):
        margin, labels = margins[coding.attribute.name], name_codes(coding)
        bars = margin.shares or margin.histogram
        assert [bar.label for bar in bars] == labels
        for code, bar in enumerate(bars):
            assert bar.synthetic == pytest.approx((report.publication.columns[place] == code).mean())
            if bar.released is not None:
                assert bar.released == pytest.approx((true[place] == code).mean(), abs=3e-3)
        compared = [r for r in (*margin.shares, *margin.groups) if r.released is not None]
        assert compared, "something was released about every attribute"
        for group in margin.groups:
            assert group.released is not None
            assert abs(group.released - group.synthetic) < 0.05
    assert margins["unit"].is_constant


def unlike(study: Study, seed: int) -> list[list[Codes]]:
    """What is likely at one party is rare at the next; columns follow the first one."""
    rng = np.random.default_rng(seed)
    tables: list[list[Codes]] = []
    for party, entry in enumerate(study.roster):
        law = np.roll(np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01]), 4 * party)
        first = rng.choice(8, entry.rows, p=law)
        others = [np.where(rng.random(entry.rows) < 0.7, first, rng.choice(8, entry.rows, p=law)) for _ in range(2)]
        tables.append([column.astype(np.uint8) for column in (first, *others, first > 3)])
    return tables


@pytest.mark.parametrize("name", ["independent", "dp-subn"])
def test_bands_hold_where_parties_are_not_alike(name: str) -> None:
    """A party's own table says nothing about the others' rows, however little noise it has."""
    schema = [categorical(f"x{i}", list("abcdefgh")) for i in range(3)]
    study = make_study(schema=[*schema, SCHEMA[0]], rows=(20_000, 9_000, 3_000), epsilon="3", method={"name": name})
    held = []
    for seed in range(3):
        tables = unlike(study, seed)
        columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
        margins = read_margins(study, render_report(study, tables, seed).publication)
        for column, margin in zip(columns, margins, strict=True):
            shares = np.bincount(column, minlength=len(margin.shares)) / len(column)
            bits = [shares[np.arange(len(shares)) >> bit & 1 == 1].sum() for bit in (2, 1, 0)]
            assert any(r.released is not None for r in (*margin.shares, *margin.groups))
            for reading, true in (*zip(margin.shares, shares, strict=True), *zip(margin.groups, bits, strict=False)):
                if reading.released is not None:
                    held.append(abs(reading.released - true) <= reading.band)
    assert np.mean(held) >= 0.9


def test_a_bit_is_named_by_what_it_stands_for() -> None:
    """The whole attribute's counts drown in noise, one bit's do not."""
    categories = [f"c{i}" for i in range(16)]
    schema = [categorical(f"x{i}", categories) for i in range(4)]
    method = {"name": "dp-subn", "encoding": "binary"}
    report = render_report(make_study(schema=schema, rows=ROWS, epsilon="0.5", method=method))
    margin = by_name(report)["x0"]
    assert [group.label for group in margin.groups] == [
        "c8, c9, c10 and 5 more",
        "c4, c5, c6 and 5 more",
        "c2, c3, c6 and 5 more",
        "c1, c3, c5 and 5 more",
    ]
    assert all(share.released is None for share in margin.shares)
    ones = np.isin(report.publication.columns[0], range(8, 16)).mean()
    assert margin.groups[0].synthetic == pytest.approx(ones)


def test_bins_that_lie_side_by_side_are_one_range() -> None:
    age, income, ward = codings_of(exact({"name": "dp-subn"}))[1:4]
    assert name_codes(age) == [
        "0 to 12", "13 to 25", "26 to 37", "38 to 50", "51 to 63", "64 to 75", "76 to 88", "89 to 100",
    ]  # fmt: skip
    assert name_runs(age, [0, 1, 4, 6, 7]) == ["0 to 25", "51 to 63", "76 to 100"]
    assert name_runs(income, [1, 3, 4, 5]) == ["200 to 400", "600 to 1,000", "missing"]
    assert name_runs(ward, [0, 1, 3]) == ["a", "b", "missing"]


NUMBERS = [
    integer("days", 1, 40, bins=20, spikes=[1, 40]),
    integer("change", -50, 50, bins=1, spikes=[-50, 0, 50]),
    real("cost", "0", "60000", bins=24, spikes=["0", "3000", "5000", "60000"], nullable=True),
    real("share", "0", "1", bins=1, spikes=["0", "1"]),
]


def test_bins_are_named_without_their_spikes() -> None:
    days, change, cost, share = codings_of(make_study(schema=NUMBERS, method={"name": "adaptive"}))
    names = name_codes(days)
    assert (names[:2], names[18:]) == (["2", "3 to 4"], ["37 to 38", "39", "exactly 1", "exactly 40"])
    assert name_codes(change)[0] == "\u221249 to 49 without 0"
    names = name_codes(cost)
    assert names[:3] == ["above 0 to 2,500", "2,500 to 5,000 without 3,000", "above 5,000 to 7,500"]
    assert names[23:] == [
        "57,500 to below 60,000", "exactly 0", "exactly 3,000", "exactly 5,000", "exactly 60,000", "missing",
    ]  # fmt: skip
    assert name_codes(share)[0] == "above 0 to below 1"
    assert name_runs(cost, [0, 1, 2, 24]) == ["above 0 to 7,500 without 3,000 and 5,000", "exactly 0"]


def test_a_name_holds_the_integers_of_its_code() -> None:
    """Every integer is in the one name whose code it has."""
    attribute = integer("x", -7, 30, bins=6, spikes=[-7, -6, 0, 12, 13, 29, 30])
    coding = codings_of(make_study(schema=[attribute, SCHEMA[0]], method={"name": "adaptive"}))[0]
    values = np.arange(-7, 31)
    codes = encode_numbers(coding, values.astype(np.float64))
    names = [name.replace("\u2212", "-") for name in name_codes(coding)]
    held: dict[int, list[int]] = {}
    for code, name in enumerate(names):
        span, _, holes = name.removeprefix("exactly ").partition(" without ")
        ends = [int(end) for end in span.split(" to ")]
        out = [int(hole) for hole in holes.replace(" and ", ", ").split(", ") if hole]
        held[code] = [x for x in range(ends[0], ends[-1] + 1) if x not in out]
    assert held == {code: values[codes == code].tolist() for code in range(coding.size)}


@pytest.fixture(scope="module")
def spiked() -> RenderedReport:
    study = make_study(schema=NUMBERS, rows=ROWS, epsilon="1000", method={"name": "adaptive"}, collusion=0)
    return render_report(study)


def test_a_list_has_spikes_in_the_order_of_the_numbers(spiked: RenderedReport) -> None:
    margins, (days, _, cost, _) = by_name(spiked), codings_of(spiked.study)
    labels = [reading.label for reading in margins["days"].shares]
    assert labels[:3] + labels[-3:] == ["exactly 1", "2", "3 to 4", "37 to 38", "39", "exactly 40"]
    assert labels == [name_codes(days)[code] for code in days.in_order()]
    labels = [reading.label for reading in margins["cost"].shares]
    assert labels == [*(name_codes(cost)[code] for code in cost.in_order()), "missing"]
    for place, (coding, margin) in enumerate(zip(codings_of(spiked.study), margins.values(), strict=True)):
        drawn = spiked.publication.columns[place]
        shares = {name: (drawn == code).mean() for code, name in enumerate(name_codes(coding))}
        assert {r.label: r.synthetic for r in margin.shares} == pytest.approx(shares)


def test_a_drawing_has_spikes_in_their_bins(spiked: RenderedReport) -> None:
    margins, columns = by_name(spiked), to_bins(spiked.study, spiked.publication.columns)
    for name, column in (("days", columns[0]), ("cost", columns[2])):
        drawn = margins[name].histogram
        assert [r.synthetic for r in drawn] == pytest.approx([(column == place).mean() for place in range(len(drawn))])
    assert (len(margins["days"].histogram), margins["days"].histogram[0].label) == (20, "1 to 2")
    assert (len(margins["cost"].histogram), margins["cost"].histogram[-1].label) == (24, "57,500 to 60,000")
    assert not margins["change"].histogram, "a list of a few bins is enough"
    card = next(card for card in cards(spiked.tree) if card.attrib["data-attribute"] == "cost")
    largest = max(margins["cost"].histogram, key=lambda reading: reading.synthetic)
    assert f"24 bins; the largest is {largest.label}, with" in text_of(card)


@pytest.mark.parametrize("name", ["adaptive", "dp-ccbn"])
def test_a_number_that_is_one_value_or_missing_is_not_drawn(name: str) -> None:
    schema = [integer("x", 5, 5, nullable=True), *SCHEMA[:1]]
    margin = by_name(render_report(make_study(schema=schema, rows=ROWS, method={"name": name})))["x"]
    assert [reading.label for reading in margin.shares] == ["5", "missing"]
    assert not margin.histogram


def test_a_number_in_bits_is_drawn_by_bin_with_spikes_listed() -> None:
    schema = [integer(f"x{i}", 0, 63, bins=16, spikes=[0], nullable=True) for i in range(4)]
    method = {"name": "dp-subn", "encoding": "binary"}
    report = render_report(make_study(schema=schema, rows=ROWS, epsilon="0.5", method=method))
    margin, drawn = by_name(report)["x0"], report.publication.columns[0]
    assert margin.groups
    assert [reading.label for reading in margin.histogram][:2] == ["0 to 3", "4 to 7"]
    assert len(margin.histogram) == 16
    assert margin.histogram[0].synthetic == pytest.approx(np.isin(drawn, (0, 16)).mean())
    shares = {"exactly 0": (drawn == 16).mean(), "missing": (drawn == 17).mean()}
    assert {reading.label: reading.synthetic for reading in margin.shares} == pytest.approx(shares)


@pytest.mark.parametrize("parties", [1, 3, 9])
@pytest.mark.parametrize("scale", ["1/4", "2", "3000"])
@pytest.mark.parametrize("cells", [1, 4])
def test_a_band_holds_its_noise_as_often_as_it_says(parties: int, scale: str, cells: int) -> None:
    draws, shape = 20_000, Fraction(1, max(1, parties - 1))
    size = parties * cells * draws
    noise = sample_shares(size, shape=shape, scale=Fraction(scale), coins=seeded(5)).reshape(draws, -1).sum(axis=1)
    variance = parties * cells * share_variance(shape=shape, scale=Fraction(scale))
    held = float((np.abs(noise) <= math.ceil(BAND * math.sqrt(variance))).mean())
    assert held >= 0.945
    if scale == "3000":
        assert held <= 0.975, "a band that is far too wide says nothing"
