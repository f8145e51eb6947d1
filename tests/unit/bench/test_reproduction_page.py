"""The page is what the committed figures say: generated, complete, and never from made tables."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reproduction.__main__ import DOCS, RESULTS, choose_out, main
from bench.reproduction.claims.catalog import PAPERS
from bench.reproduction.claims.verdicts import Verdict
from bench.reproduction.page import FOLDER, PAGE, make_page
from bench.reproduction.plots import draw_figures
from bench.reproduction.points import Point
from bench.reproduction.store import Result
from bench.reproduction.summary import (
    FIGURES,
    Estimate,
    Figures,
    add_runs,
    estimate,
    merge_figures,
    read_figures,
    summarize,
    write_figures,
)
from synod.common.runtime.errors import SynodError
from tests.support.figures import RUN, make_nothing, make_world

LARGEST_PICTURE = 60_000


def test_the_committed_page_is_generated_from_the_committed_figures() -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == make_page(read_figures(DOCS / FOLDER))


def test_committed_figures_are_of_the_papers_tables_and_of_committed_code() -> None:
    run = read_figures(DOCS / FOLDER).run
    assert run.source == "given"
    assert run.commits
    assert not [commit for commit in run.commits if "changes" in commit or commit == "unknown"]


COMMITTED = read_figures(DOCS / FOLDER)


@pytest.mark.parametrize("name", sorted(name for name in FIGURES if COMMITTED.rows[name]))
def test_committed_pictures_are_small(name: str) -> None:
    picture = DOCS / FOLDER / f"{name}.png"
    assert 1_000 < picture.stat().st_size < LARGEST_PICTURE


def test_every_figure_has_numbers() -> None:
    assert [name for name in FIGURES if not COMMITTED.rows[name]] == []


def test_only_what_is_not_at_hand_is_not_measured() -> None:
    judged = {claim.text: claim.judge(COMMITTED) for claims in PAPERS.values() for claim in claims}
    unknown = [text for text, judgement in judged.items() if judgement.verdict is Verdict.UNKNOWN]
    assert unknown == ["misclassifies less than PrivGene", "the same on ACS and BR2000"]
    assert not [text for text, judgement in judged.items() if "not in this version" in judgement.measurement]


def test_no_row_of_a_table_is_committed() -> None:
    names = {path.name for path in (DOCS / FOLDER).iterdir()}
    drawn = {f"{name}.png" for name in FIGURES if COMMITTED.rows[name]}
    assert names == {"run.json", *(f"{name}.csv" for name in FIGURES), *drawn}


def test_measuring_a_part_keeps_the_other_numbers() -> None:
    old, new = make_world(is_true=True), make_world(is_true=False)
    only = replace(new, rows={**make_nothing().rows, "rivals": new.rows["rivals"]}, run=replace(RUN, commits=("xyz",)))
    merged = merge_figures(old, only)
    assert set(merged.rows["rivals"]) == set(new.rows["rivals"])
    assert {name: set(rows) for name, rows in merged.rows.items() if name != "rivals"} == {
        name: set(rows) for name, rows in old.rows.items() if name != "rivals"
    }
    assert merged.run.commits == ("abc", "xyz")


def test_added_runs_are_as_if_all_had_been_measured_at_once() -> None:
    numbers = [0.3, 0.1, 0.7, 0.2, 0.25]
    for cut in range(1, 5):
        added = add_runs(estimate(numbers[:cut]), estimate(numbers[cut:]))
        assert added.runs == 5
        assert added.mean == pytest.approx(estimate(numbers).mean)
        assert added.error == pytest.approx(estimate(numbers).error)
    assert add_runs(Estimate(0.0, 0.0, 0), estimate([0.4])) == estimate([0.4])


def test_runs_are_added_to_those_before_them() -> None:
    old = make_world(is_true=True)  # three runs of everything
    more = replace(make_nothing(), rows={**make_nothing().rows, "rivals": make_world(is_true=False).rows["rivals"]})
    merged = merge_figures(old, more, first_seed=3)
    assert {row.estimate.runs for row in merged.rows["rivals"]} == {6}
    assert {row.estimate.runs for row in merged.rows["views"]} == {3}


def test_runs_that_are_there_already_are_not_added_again() -> None:
    world = make_world(is_true=True)
    with pytest.raises(SynodError, match="where seeds go on at 2"):
        merge_figures(world, world, first_seed=2)
    with pytest.raises(SynodError, match="where seeds go on at 3"):
        merge_figures(merge_figures(world, world, first_seed=3), world, first_seed=3)


def test_the_page_says_how_many_runs_its_numbers_have() -> None:
    world = make_world(is_true=True)
    assert "3 runs of Adult (seeds 0 to 2)" in make_page(world)
    first, *others = world.rows["kept"]
    fewer = replace(first, estimate=replace(first.estimate, runs=2))
    page = make_page(replace(world, rows={**world.rows, "kept": (fewer, *others)}))
    assert "3 runs of Adult (seeds 0 to 2), of kept 2" in page
    assert "3 runs of NLTCS (seeds 0 to 2);" in page


def test_a_part_goes_into_a_folder_that_has_the_rest(tmp_path: Path) -> None:
    write_figures(make_world(is_true=True), tmp_path / FOLDER)
    (tmp_path / FOLDER / "rivals.csv").unlink()
    assert read_figures(tmp_path / FOLDER).rows["rivals"] == ()
    assert read_figures(tmp_path / FOLDER).rows["views"]


def test_figures_survive_being_written(tmp_path: Path) -> None:
    figures = make_world(is_true=True)
    write_figures(figures, tmp_path)
    again = read_figures(tmp_path)
    assert again.run == figures.run
    for name, rows in figures.rows.items():
        for row, read in zip(rows, again.rows[name], strict=True):
            assert replace(read, estimate=row.estimate) == row
            assert read.estimate.mean == pytest.approx(row.estimate.mean, rel=1e-5)


@pytest.mark.parametrize(("is_true", "verdict"), [(True, Verdict.HOLDS), (False, Verdict.FAILS)])
def test_the_page_says_what_came_out(is_true: bool, verdict: Verdict) -> None:
    page = make_page(make_world(is_true=is_true))
    assert page.count(f"| **{verdict.value}** |") >= 25
    assert "make bench DATA=DIR" in page
    assert "commit abc; 2026-01-01" in page
    assert "not the papers' data" not in page


def test_the_page_of_made_tables_says_so() -> None:
    world = make_world(is_true=True)
    page = make_page(replace(world, run=replace(world.run, source="made")))
    assert "These are not the papers' data" in page


def test_a_page_without_figures_claims_nothing() -> None:
    page = make_page(make_nothing())
    holding = [line for line in page.splitlines() if line.endswith(f"| **{Verdict.HOLDS.value}** |")]
    assert all("by proof, not by measurement" in line for line in holding)


def test_made_tables_never_reach_the_committed_page(tmp_path: Path) -> None:
    assert choose_out(None, tmp_path, quick=False) == DOCS
    assert RESULTS in choose_out(None, None, quick=False).parents
    assert RESULTS in choose_out(None, None, quick=True).parents
    assert choose_out(tmp_path, None, quick=True) == tmp_path


def test_page_only_rewrites_the_page(tmp_path: Path) -> None:
    write_figures(make_world(is_true=True), tmp_path / FOLDER)
    ran = CliRunner().invoke(main, ["--page-only", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / PAGE).read_text(encoding="utf-8") == make_page(read_figures(tmp_path / FOLDER))


def test_every_figure_is_drawn_small(tmp_path: Path) -> None:
    drawn = draw_figures(make_world(is_true=True), tmp_path)
    assert [path.stem for path in drawn] == list(FIGURES)
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size < LARGEST_PICTURE for path in drawn)


def result(method: str, seed: int, figures: dict[str, float], **settings: object) -> Result:
    values = {"table": "nltcs", "parties": 3, "epsilon": "0.2", "seed": seed, **settings}
    return Result(Point("release", method, **values), figures, "abc", "2026-01-01")  # type: ignore[arg-type]


def test_runs_of_a_setting_become_one_row() -> None:
    found = [result("dp-subn", seed, {"tvd2": value, "bytes": 8.0}) for seed, value in enumerate([0.1, 0.3])]
    rows = summarize(found)
    (row,) = rows["epsilon"]
    assert (row.method, row.x, row.estimate.runs) == ("dp-subn", 0.2, 2)
    assert (row.estimate.mean, row.estimate.error) == pytest.approx((0.2, 0.1))
    assert [each.metric for each in rows["parties"]] == ["tvd2"]
    assert [each.metric for each in rows["messages"]] == ["bytes"]


def test_what_real_rows_teach_counts_once_a_run() -> None:
    found = [result(method, seed, {"real money": 0.1 + seed}) for method in ("dp-subn", "hpdp-dp") for seed in (0, 1)]
    (row,) = summarize(found)["epsilon"]
    assert (row.method, row.metric, row.estimate.runs) == ("no privacy", "wrong money", 2)


def test_refused_points_and_other_settings_stay_out() -> None:
    found = [
        result("dp-ccbn", 0, {}),
        result("dp-subn", 0, {"tvd2": 0.1}, parties=4, epsilon="0.8"),
        result("dp-subn", 0, {"tvd2": 0.1}, contribution="0.5"),
    ]
    rows = summarize(found)
    assert not rows["epsilon"]
    assert not rows["parties"]
    assert [row.x for row in rows["components"]] == [0.5]


def test_lines_of_an_experiment_are_told_apart_by_epsilon() -> None:
    points = [Point("beta", "privbayes", "nltcs", epsilon=epsilon, setting="0.3") for epsilon in ("0.2", "0.8")]
    rows = summarize([Result(point, {"tvd3": 0.1}, "abc", "2026-01-01") for point in points])
    assert [(row.method, row.x, row.metric) for row in rows["beta"]] == [
        ("privbayes, ε = 0.2", 0.3, "tvd3"),
        ("privbayes, ε = 0.8", 0.3, "tvd3"),
    ]


def test_what_real_rows_teach_keeps_its_metric() -> None:
    point = Point("joint", "dpcocgen", "adult", epsilon="0.2")
    rows = summarize([Result(point, {"area sex, svm": 0.8, "real area sex, svm": 0.9}, "abc", "2026-01-01")])
    assert [(row.method, row.metric) for row in rows["joint"]] == [
        ("dpcocgen", "area sex, svm"),
        ("no privacy", "area sex, svm"),
    ]


def test_series_are_sorted_by_their_axis() -> None:
    figures: Figures = make_world(is_true=True)
    assert list(figures.series("parties", "adult", "dp-subn", "tvd2")) == [2.0, 10.0]
    assert figures.series("parties", "adult", "nobody", "tvd2") == {}
