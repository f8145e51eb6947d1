"""Methods on a small invented table: every figure has columns published independently beside it."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from bench.utility import page
from bench.utility.__main__ import main
from bench.utility.markdown import write_table
from bench.utility.measure import Source, deal_rows, load_real, measure_references, measure_run
from bench.utility.runs import append_run, forget_runs, make_rows, read_runs, run_settings
from bench.utility.settings import (
    ALIKE,
    CENTRAL,
    COLUMNS,
    METHODS,
    PURE,
    Setting,
    make_central,
    make_grid,
    study_of,
    with_baselines,
)

SCHEMA = [
    {"name": "ward", "type": "categorical", "categories": ["acute", "icu", "rehab"]},
    {"name": "ill", "type": "categorical", "categories": ["no", "yes"]},
    {"name": "age", "type": "integer", "min": 0, "max": 99, "bins": 5},
    {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
]
USUAL = Setting("adaptive", 3, 1, "4", "1e-9")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """900 rows in which the ward and the illness follow the age."""
    folder, rng = tmp_path_factory.mktemp("invented"), np.random.default_rng(1)
    ages = rng.integers(0, 100, 900)
    lines = ["ward,ill,age,sex"]
    for age in ages.tolist():
        ward, ill = ("acute", "icu", "rehab")[age // 34], ("no", "yes")[int(rng.random() * 90 < age)]
        lines.append(f"{ward},{ill},{age},{'FM'[int(rng.integers(2))]}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    study = {"name": "invented", "method": {"name": "dp-subn"}, "epsilon": "1", "schema": SCHEMA}
    (folder / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return Source(folder / "study.yaml", folder / "table.csv", "ill")


def test_a_grid_has_no_threshold_that_all_parties_reach() -> None:
    grid = list(make_grid(["adaptive"], [2, 10], [1, 3], ["1"], ["1e-9", PURE]))
    assert [(one.parties, one.collusion) for one in grid] == [(2, 1), (2, 1), (10, 1), (10, 1), (10, 3), (10, 3)]


def test_central_methods_are_measured_under_both_neighbours_and_never_pure() -> None:
    assert [one.method for one in make_central(["1"], [PURE, "1e-9"])] == list(CENTRAL)
    assert list(make_central(["1"], [PURE])) == []


def test_every_setting_gets_its_baseline_once() -> None:
    settings = [USUAL, Setting("adaptive", 3, 1, "4", "1e-9", "age"), Setting("hpdp-dp", 3, 1, "4", PURE)]
    added = with_baselines(settings)
    assert added[:3] == settings
    assert added[3:] == [Setting(COLUMNS, 3, 1, "4", "1e-9"), Setting(COLUMNS, 3, 1, "4", PURE)]


@pytest.mark.parametrize("method", ["adaptive", "adaptive, 3 rounds", "hpdp-dp", COLUMNS, *CENTRAL])
def test_a_run_has_all_figures(source: Source, method: str) -> None:
    parties = (1, 0) if method in CENTRAL else (3, 1)
    figures = measure_run(source, Setting(method, *parties, "4", "1e-9"), 0)
    assert set(figures) == {"seconds", "tvd1", "tvd2", "tvd3", "wrong"}
    assert 0 < figures["tvd1"] < figures["tvd2"] < figures["tvd3"] < 0.5


def test_what_tells_of_pairs_is_nearer_than_columns_alone(source: Source) -> None:
    own, alone = (measure_run(source, one, 0) for one in (USUAL, USUAL.baseline))
    assert own["tvd2"] < alone["tvd2"] / 2
    assert own["wrong"] < alone["wrong"]


def test_a_refused_setting_has_no_figures(source: Source) -> None:
    refused = Setting("adaptive", 3, 1, "0.000000000001", PURE)
    assert measure_run(source, refused, 0) == {}
    rows = make_rows([refused], {refused: [{}, {}], refused.baseline: [{}, {}]})
    assert "refused" in write_table(rows, {})[2]


def test_a_classifier_is_measured_beside_real_rows_and_the_majority(source: Source) -> None:
    references = measure_references(source)
    assert 0.1 < references["real"] < references["majority"] < 0.6
    assert measure_references(Source(source.study, source.table)) == {}


@pytest.mark.parametrize("order", [ALIKE, "age"])
def test_sorted_parties_hold_neighbouring_rows(source: Source, order: str) -> None:
    data, real = load_real(source)
    setting = Setting("adaptive", 3, 1, "4", "1e-9", order)
    study = study_of(data, real.rows, setting)
    dealt = deal_rows(source, setting, study, real, rng=np.random.default_rng(1))
    assert [len(part[0]) for part in dealt] == [300] * 3
    together = [np.concatenate([part[column] for part in dealt]) for column in range(4)]
    assert np.array_equal(np.sort(together[0]), np.sort(real.columns[0]))
    wards = [set(part[0].tolist()) for part in dealt]
    assert (max(wards[0]) <= min(wards[2])) == (order == "age")


def test_the_command_prints_every_setting_with_its_baseline(source: Source) -> None:
    arguments = [str(source.study), str(source.table), "--epsilon", "4", "--runs", "2", "--workers", "1", "--central"]
    arguments += ["--method", "adaptive", "--order", ALIKE, "--order", "age"]
    ran = CliRunner().invoke(main, arguments, catch_exceptions=False)
    told = json.loads(ran.output.splitlines()[-1])
    assert told["runs"] == 2
    assert [one["method"] for one in told["results"]] == ["adaptive", "adaptive", *CENTRAL]
    assert all({"tvd1", "tvd2", "tvd3"} <= set(one["columns"]) for one in told["results"])
    assert all(one["standard_errors"]["tvd2"] > 0 for one in told["results"])


def test_a_markdown_row_has_its_baseline_beside_it(source: Source) -> None:
    arguments = [str(source.study), str(source.table), "--epsilon", "4", "--runs", "1", "--workers", "1", "--markdown"]
    ran = CliRunner().invoke(main, [*arguments, "--method", "adaptive", "--target", "ill"], catch_exceptions=False)
    headings, _, row, _, sentence = ran.output.splitlines()[-5:]
    cells = dict(zip(headings.split(" | "), row.split(" | "), strict=True))
    assert len(cells["columns alone"].split(" / ")) == 3
    assert cells["2-way"].startswith("**.")
    assert "real rows" in sentence


def test_finished_runs_are_not_run_again_unless_forgotten(source: Source, tmp_path: Path) -> None:
    results, told = tmp_path / "results" / "runs.jsonl", list[str]()
    wanted = dict.fromkeys(with_baselines([USUAL]), 2)
    first = run_settings(source, wanted, results, workers=1, tell=told.append)
    assert len(told) == 4
    with results.open("a") as file:
        file.write('{"torn": ')
    assert run_settings(source, wanted, results, workers=1, tell=told.append) == first
    assert len(told) == 4
    forget_runs(results, ["adapt"])
    assert {key[1].method for key in read_runs(results)} == {COLUMNS}


def test_the_page_takes_new_tables_and_keeps_the_rest() -> None:
    end = "<!-- end of figures -->\n"
    text = f"a\n<!-- figures: adult delta -->\nold\n{end}b\n<!-- figures: x -->\n{end}"
    filled = page.fill_page(text, {"adult delta": ["| new |"]})
    assert filled.startswith(
        "a\n<!-- figures: adult delta -->\n\n| new |\n\n<!-- end of figures -->\nb\n<!-- figures: x"
    )
    assert page.fill_page(filled, {"adult delta": ["| new |"]}) == filled


def test_every_section_has_a_place_on_the_page() -> None:
    places = [found[2] for found in page.SECTION.finditer(page.PAGE.read_text(encoding="utf-8"))]
    assert places == [section.name for table in ("adult", "nltcs") for section in page.sections_of(table)]


def test_the_page_measures_known_methods() -> None:
    methods = {one.method for table in page.TARGETS for section in page.sections_of(table) for one in section.settings}
    assert methods <= {*METHODS, *CENTRAL}


def test_the_pages_command_fills_it(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("study.yaml", "nltcs.csv"):
        (tmp_path / "nltcs").mkdir(exist_ok=True)
        (tmp_path / "nltcs" / name).write_text((source.table if name.endswith("csv") else source.study).read_text())
    written, results = tmp_path / "page.md", tmp_path / "runs.jsonl"
    written.write_text("<!-- figures: nltcs parties -->\n<!-- end of figures -->\n")
    monkeypatch.setattr(page, "sections_of", lambda table: [page.Section(f"{table} parties", [USUAL])])
    append_run(results, ("nltcs", USUAL, 0), {"seconds": 1.0, "tvd1": 0.9, "tvd2": 0.9, "tvd3": 0.9})
    arguments = ["--data", str(tmp_path), "--table", "nltcs", "--page", str(written), "--results", str(results)]
    ran = CliRunner().invoke(page.main, [*arguments, "--again", "adaptive"], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "| adaptive | K 3, t 1 | 4 | ." in written.read_text()
    assert len(read_runs(results)) == 2 * page.OFTEN
