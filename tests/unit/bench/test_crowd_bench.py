"""The measurements of a crowded curator: both sides are what they are said to be. How fast is not tested."""

from pathlib import Path

import pytest

from bench import crowd
from bench.polling import make_study
from synod.common.crypto.identity import Identity
from synod.curator.callers.quotas import MOST_CALLS_OF_A_NAME
from synod.curator.store import Store
from synod.deploy.launch.processes import PROGRAM

POLLS, UPLOADS = 2 * MOST_CALLS_OF_A_NAME, 3


def test_ended_studies_are_ended_and_acknowledged(tmp_path: Path) -> None:
    study = make_study({name: Identity.generate() for name in ("north", "valley")})
    store = Store(tmp_path)
    crowd.add_ended(store, study, 7)
    assert len(store.studies()) == 7
    assert all(record.outcome is not None for record in store.studies())
    assert store.pending_studies("north", [study.roster[0].key], set(), most_ended=9) == []
    store.close()


def test_both_numbers_of_ended_studies_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MANY", 20)
    figures = crowd.measure_ended(turns=1)
    assert all(figure > 0 for figure in figures.values())


def test_the_verdict_names_what_others_feel() -> None:
    fine = dict.fromkeys(crowd.MOST, 1.0)
    assert crowd.find_exceeded(fine) == []
    for name, most in crowd.MOST.items():
        assert crowd.find_exceeded({**fine, name: most * 1.01}) == [name]
        assert crowd.find_exceeded({**fine, name: float("nan")}) == [name]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "still_open"), [(PROGRAM, MOST_CALLS_OF_A_NAME), (crowd.UNLIMITED, POLLS + 1)])
def test_the_twin_has_no_quota(
    program: tuple[str, ...], still_open: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the uploads, which are all for one round, one stays open in either."""
    monkeypatch.setattr(crowd, "VALUES", 20)
    figures = crowd.measure_crowd(tmp_path, POLLS, UPLOADS, program=program)
    assert figures["calls_still_open"] == still_open
    assert figures["answer_megabytes"] > 0


@pytest.mark.slow
def test_uploads_that_nobody_reads_take_no_room(tmp_path: Path) -> None:
    """They are refused, and what has arrived of them is not kept for long: else it adds up to 150 MB."""
    figures = crowd.measure_crowd(tmp_path, 1, crowd.UPLOADS, program=PROGRAM)
    assert figures["answer_megabytes"] > 1
    assert figures["memory_growth_megabytes"] + figures["memory_growth_megabytes_later"] < 60
