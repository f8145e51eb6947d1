"""`make bench-quick` from end to end, twice: the second time there is nothing left to measure."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reproduction.__main__ import main
from bench.reproduction.page import FOLDER, PAGE, make_page
from bench.reproduction.summary import FIGURES, read_figures
from tests.support.figures import ADULT_FIGURES


@pytest.mark.slow
def test_quick_mode_measures_draws_and_writes(tmp_path: Path) -> None:
    arguments = ["--quick", "--out", str(tmp_path), "--results", str(tmp_path / "points.jsonl")]
    first = CliRunner().invoke(main, arguments)
    assert first.exit_code == 0, first.output
    assert "not the papers' data" in first.output
    figures = read_figures(tmp_path / FOLDER)
    shown = {name for name in FIGURES if figures.rows[name]}
    assert FIGURES.keys() - shown <= ADULT_FIGURES
    assert all((tmp_path / FOLDER / f"{name}.png").exists() for name in shown)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert page == make_page(figures)
    assert "These are not the papers' data" in page
    kept = (tmp_path / "points.jsonl").read_bytes()
    second = CliRunner().invoke(main, arguments)
    assert " of " not in second.output
    assert (tmp_path / "points.jsonl").read_bytes() == kept
    assert (tmp_path / PAGE).read_text(encoding="utf-8") == page
