"""Points measured on small made tables, beside slow twins."""

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from bench.reproduction.measure import measure_point, measure_release
from bench.reproduction.messages import count_candidates, forecast_candidates, most_candidates
from bench.reproduction.noisyviews import MAKERS, add_noise, measure_cover, measure_views, project_pairs
from bench.reproduction.points import COVERS, METHODS, Point
from bench.reproduction.tables import MADE_ROWS, MADE_SIZES, Rows, deal_rows, load_rows, make_rows, source_of, study_for
from synod.common.models.candidates import maximal_sets
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import codings_of, to_bins
from synod.common.study.features import FeatureSpace, sizes_of
from synod.deploy.evaluate.tables import split_bits
from synod.party.count.marginals import count_marginals

SMALL = ("nltcs", 1_500)


@pytest.fixture(scope="module")
def rows() -> Rows:
    return make_rows(*SMALL)


def point(method: str, **settings: object) -> Point:
    values = {"table": "nltcs", "source": "made", "parties": 3, "epsilon": "0.8", **settings}
    return Point("release", method, **values)  # type: ignore[arg-type]


def test_made_tables_have_the_papers_shapes() -> None:
    assert MADE_ROWS == {"nltcs": 21_574, "adult": 45_222}
    bits = {
        name: len(split_bits(made.study, made.columns).names) for name in MADE_SIZES for made in [make_rows(name, 50)]
    }
    assert bits == {"nltcs": 16, "adult": 52}


def test_a_made_table_is_the_same_every_time_and_its_columns_depend_on_each_other(rows: Rows) -> None:
    again = make_rows(*SMALL)
    assert all(np.array_equal(a, b) for a, b in zip(rows.columns, again.columns, strict=True))
    correlations = np.corrcoef(np.array(rows.columns))[np.triu_indices(16, 1)]
    assert np.abs(correlations).max() > 0.3


def test_dealing_keeps_every_row_once(rows: Rows) -> None:
    parts = deal_rows([np.arange(rows.count, dtype=np.uint16)], 7, rng=np.random.default_rng(1))
    assert sorted(np.concatenate([part[0] for part in parts]).tolist()) == list(range(rows.count))
    assert {len(part[0]) for part in parts} == {214, 215}


def test_bits_come_back_as_codes() -> None:
    wide = make_rows("adult", 200)
    bits = wide.on_bits()
    assert len(bits.columns) == 52
    back = FeatureSpace(codings_of(wide.study), "binary").decode(bits.columns, 200)
    assert all(np.array_equal(a, b) for a, b in zip(wide.columns, back, strict=True))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_measured(method: str, rows: Rows) -> None:
    figures = measure_release(point(method, parties=2), rows)
    assert {"tvd2", "tvd3", "wrong outside", "real money", "majority money", "bytes", "paper_bytes"} <= set(figures)
    assert 0 < figures["tvd2"] < figures["tvd3"] < 0.5
    assert ("components" in figures) == method.startswith("hpdp-dp")


def test_more_epsilon_is_closer(rows: Rows) -> None:
    distances = [measure_release(point("independent", epsilon=epsilon), rows)["tvd2"] for epsilon in ("0.05", "5")]
    assert distances[1] < distances[0] / 2


def test_a_contribution_rate_decides_the_components(rows: Rows) -> None:
    name = "hpdp-dp, linear on bits"
    few, all_of_them = (measure_release(point(name, epsilon="50", contribution=rate), rows) for rate in ("0.3", "1"))
    assert few["components"] < all_of_them["components"] == 16
    assert few["first"] == pytest.approx(all_of_them["first"], abs=1e-6)


def test_candidates_that_would_take_too_long_are_left_out(rows: Rows) -> None:
    assert measure_release(point("dp-ccbn", epsilon="50"), rows) == {}


@pytest.mark.parametrize(("parties", "epsilon"), [(2, "0.8"), (3, "2"), (4, "0.1")])
def test_forecast_bytes_of_candidates_are_those_of_a_run(parties: int, epsilon: str, rows: Rows) -> None:
    run = measure_release(point("dp-ccbn", parties=parties, epsilon=epsilon), rows)
    forecast = forecast_candidates(study_for(rows, {"name": "dp-ccbn"}, parties, epsilon))
    expected = [forecast["bytes"], forecast["paper_bytes"]]
    assert [run["bytes"], run["paper_bytes"]] == pytest.approx(expected, rel=0.01)  # a family may lie inside another


@pytest.mark.parametrize(("features", "degree"), [(5, 1), (7, 2), (8, 3)])
def test_candidates_are_counted_as_listed(features: int, degree: int) -> None:
    sizes = (2,) * features
    listed = [
        sum(1 for x in range(placed, features) for _ in maximal_sets(x, range(placed), sizes, 2 ** (degree + 1)))
        for placed in range(1, features)
    ]
    assert listed == [count_candidates(features, degree, placed) for placed in range(1, features)]
    assert most_candidates(features, degree) == max(listed)
    assert most_candidates(features, 0) == 0


@pytest.mark.parametrize("cover", COVERS)
def test_pairs_out_of_views_without_noise_are_exact(cover: str, rows: Rows) -> None:
    sizes = sizes_of(rows.study)
    views = MAKERS[cover](sizes)
    tables = [table.astype(np.float64) for table in count_marginals(rows.columns, sizes, views)]
    estimates = project_pairs(views, tables, sizes)
    assert set(estimates) == set(combinations(range(16), 2))
    for (a, b), estimate in estimates.items():
        slowly = [sum((rows.columns[a] == i) & (rows.columns[b] == j)) for i in (0, 1) for j in (0, 1)]
        assert estimate == pytest.approx(slowly)


def test_noise_on_views_has_the_promised_scale() -> None:
    tables = [np.zeros(20_000, dtype=np.int64)] * 2
    noisy = np.concatenate(add_noise(tables, Fraction(1, 2), coins=Coins(bytes(32))))
    assert noisy.std() == pytest.approx(2**0.5 * 2 * 2 / 0.5, rel=0.05)


def test_noisy_views_get_closer_with_epsilon(rows: Rows) -> None:
    bits = split_bits(rows.study, rows.columns)
    far, near = (measure_views("NOCD", bits, epsilon, coins=Coins(bytes(32)))["tvd2"] for epsilon in ("0.1", "10"))
    assert near < far / 5


def test_covers_are_those_of_the_forecast() -> None:
    assert measure_cover("NOCD", 52)["views"] == 281
    assert measure_cover("chosen", 52) == {"views": 57, "variance": pytest.approx(149_851, rel=1e-4)}
    narrow, wide = (measure_cover(f"overlapping, {width}", 52) for width in ("best width", "width 8"))
    assert narrow["variance"] < wide["variance"]


def test_a_given_folder_is_read_with_its_own_codes(tmp_path: Path) -> None:
    (tmp_path / "nltcs").mkdir()
    schema = "".join(f"  - {{name: a{i}, type: integer, min: 0, max: 99, bins: 4}}\n" for i in range(3))
    text = f"name: t\nmethod: {{name: hpdp-dp}}\nepsilon: 1\nschema:\n{schema}"
    (tmp_path / "nltcs" / "study.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "nltcs" / "nltcs.csv").write_text("a0,a1,a2\n0,30,99\n26,60,1\n", encoding="utf-8")
    source = source_of("nltcs", tmp_path)
    given = load_rows("nltcs", tmp_path)
    assert [column.tolist() for column in given.columns] == [[0, 1], [1, 2], [3, 0]]
    fine = given.codes_for(study_for(given, {"name": "hpdp-dp"}, 2, "1"))
    assert fine[2][0] > 200  # one of 256 levels, not one of 4 bins
    assert [column.tolist() for column in to_bins(study_for(given, {"name": "hpdp-dp"}, 2, "1"), fine)] == [
        column.tolist() for column in given.columns
    ]
    (tmp_path / "nltcs" / "nltcs.csv").write_text("a0,a1,a2\n0,30,98\n26,60,1\n", encoding="utf-8")
    assert source_of("nltcs", tmp_path) != source


def test_a_folder_without_the_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SynodError, match=r"no file .*study.yaml"):
        source_of("adult", tmp_path)


def test_kinds_are_told_apart(rows: Rows) -> None:
    assert measure_point(Point("cover", "NOCD", features=8), None) == {"views": 1, "variance": 64}
