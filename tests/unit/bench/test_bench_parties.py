"""The benchmark of large rosters: what it calls linear, what it reads from a log, and that a study is published."""

import json
from pathlib import Path

import pytest

from bench.parties import Figures, compare, round_seconds, run_study


def made(parties: int, *, seconds: float, megabytes: float) -> Figures:
    return Figures(parties, 2, 10.0, seconds, seconds, 100 + megabytes, 100)


def test_what_grows_with_the_roster_has_ratios_of_one() -> None:
    runs = [made(parties, seconds=0.1 * parties, megabytes=0.5 * parties) for parties in (25, 50, 100, 200)]
    assert compare(runs) == pytest.approx({"ratio": 1, "round_ratio": 1, "memory_ratio": 1})


def test_what_grows_with_its_square_has_not() -> None:
    runs = [made(parties, seconds=parties**2, megabytes=parties**2) for parties in (25, 200)]
    assert compare(runs) == pytest.approx({"ratio": 8, "round_ratio": 8, "memory_ratio": 8})


def test_rounds_are_timed_by_the_curators_log(tmp_path: Path) -> None:
    events = [
        ("2026-01-01T10:00:00.000+00:00", "round open", "moments"),
        ("2026-01-01T10:00:01.500+00:00", "round closed", "moments"),
        ("2026-01-01T10:00:02.000+00:00", "round open", "rows"),
        ("2026-01-01T10:00:02.250+00:00", "round closed", "rows"),
    ]
    lines = [json.dumps({"time": time, "event": event, "round": label}) for time, event, label in events]
    (tmp_path / "curator.log").write_text("\n".join(lines) + "\n")
    assert round_seconds(tmp_path / "curator.log") == [1.5, 0.25]


@pytest.mark.slow
def test_a_small_roster_is_published(tmp_path: Path) -> None:
    run = run_study(tmp_path, 3)
    assert (run.parties, run.rounds) == (3, 2)
    assert run.cpu_seconds > 0
    assert run.peak_megabytes > run.idle_megabytes
