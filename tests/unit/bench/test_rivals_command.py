"""`python -m bench.rivals` from end to end: figures with ratios, and a second run that has nothing left to do."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.reproduction.grid import full_grid
from bench.rivals.__main__ import choose_rivals, list_points, main
from bench.rivals.catalog import RIVALS

ASKED = ["--rival", "Laplace", "--rival", "Uniform", "--epsilon", "0.8", "--runs", "2", "--workers", "1"]


def test_points_are_those_of_the_reproduction() -> None:
    """A run of either finds what the other has measured."""
    points = list_points("nltcs", "a", ["Laplace", "Majority"], [3, 4], ["0.2"], 2, bits=False)
    whole = {point.key for point in full_grid(2, 0).points({"nltcs": "a", "adult": "b"})}
    assert {point.key for point in points} <= whole
    assert len(points) == 2 * (2 + 1)
    wide = list_points("adult", "b", choose_rivals([], bits=True), [3], ["0.2"], 1, bits=True)
    assert {point.key for point in wide} <= {
        point.key for point in full_grid(0, 1).points({"nltcs": "a", "adult": "b"})
    }


def test_all_rivals_of_marginals_are_the_default() -> None:
    assert choose_rivals([], bits=False) == list(RIVALS)


@pytest.mark.slow
def test_a_run_prints_ratios_and_goes_on_where_it_was(tmp_path: Path) -> None:
    arguments = [*ASKED, "--results", str(tmp_path / "points.jsonl")]
    first = CliRunner().invoke(main, arguments)
    assert first.exit_code == 0, first.output
    assert "not private across parties, in memory" in first.output
    assert "tvd3 at epsilon 0.8, Uniform" in first.output
    kept = (tmp_path / "points.jsonl").read_bytes()
    second = CliRunner().invoke(main, arguments)
    assert (tmp_path / "points.jsonl").read_bytes() == kept
    last = json.loads(second.output.splitlines()[-1])
    assert last == json.loads(first.output.splitlines()[-1])
    assert last["private"] is False
    ratios = {row["rival"]: row["ratio"] for row in last["figures"]}
    assert ratios["Uniform"] == 1
    assert 0 < ratios["Laplace"] < 1


def test_an_unknown_rival_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    ran = CliRunner().invoke(main, ["--rival", "Nobody", "--results", str(tmp_path / "points.jsonl")])
    assert ran.exit_code == 2
    assert "there is no rival 'Nobody' here" in ran.output
    assert "PriView, pairs, ripple" in " ".join(ran.output.split())
