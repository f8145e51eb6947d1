"""Rehearsals and advice: invented rows in, the same figures out, and words that follow from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study, known_methods, parse_study
from synod.deploy.cli.advice import advice_document
from synod.deploy.study import advice as advising
from synod.deploy.study.advice import (
    Advice,
    Verdict,
    Way,
    advise_on,
    assume_roster,
    judge_column,
    judge_pair,
    near_column,
    near_pair,
)
from synod.deploy.study.forecast import forecast_duration
from synod.deploy.study.plot import draw_forecast
from synod.deploy.study.rehearsal import COARSE_BINS, Rehearsal, invent_rows, rehearse, shorten_roster
from synod.deploy.study.rehearsals import read_rehearsal, rehearse_all, write_rehearsal
from synod.deploy.study.wording import column_verdicts, near_lines, pair_verdicts
from tests.support.studies import categorical, integer, make_study, study_document

SCHEMA = [categorical("sex", ("F", "M")), integer("age", 18, 97), categorical("ward", ("a", "b", "c"))]


def written(rows: int = 2_000, epsilon: str = "1", **changes: Any) -> Study:
    """A study as a coordinator writes it, with parties of so many rows each."""
    data = {"method": {"name": "adaptive"}, "schema": SCHEMA, "delta": "1e-9", "epsilon": epsilon, **changes}
    document = {key: value for key, value in study_document(**data).items() if key not in ("roster", "rows")}
    return assume_roster(parse_study(document, "x"), [rows] * 3)


def figures(kept: float, misplaced: float = 0.01, distance: float = 0.1) -> Rehearsal:
    columns = np.full(2, misplaced)
    return Rehearsal(("a", "b"), columns, columns, {(0, 1): kept}, distance, distance / (1 - kept), 1.0)


def test_invented_rows_are_of_the_schema_and_related_alike() -> None:
    study = make_study(schema=[integer(f"n{i}", 0, 99) for i in range(3)], method={"name": "histogram"})
    many = shorten_roster(assume_roster(study, [10_000] * 3).resolve())
    columns = invent_rows(many, rng=np.random.default_rng(1))
    assert {len(column) for column in columns} == {30_000}
    ranks = [np.argsort(np.argsort(column)).astype(float) for column in columns]
    assert np.corrcoef(ranks)[0, 2] == pytest.approx(0.48, abs=0.05), "30,000 rows: a deviation of 0.005"


def test_a_rehearsal_is_the_same_each_time_and_survives_its_process() -> None:
    study = written().resolve()
    first, again = rehearse(study, seed=0), rehearse(study, seed=0)
    assert first.pairs == again.pairs
    read = read_rehearsal(json.loads(json.dumps(write_rehearsal(first))))
    assert (read.pairs, read.names, read.kept) == (first.pairs, first.names, first.kept)
    assert read.columns.tolist() == first.columns.tolist()


def test_noise_decides_the_words() -> None:
    """Fixed seeds: with much epsilon everything is usable, with next to none nothing is kept."""
    much, little = (rehearse(written(epsilon=epsilon).resolve(), seed=0) for epsilon in ("20", "0.02"))
    assert set(pair_verdicts(much).values()) == {Verdict.USABLE}
    assert set(pair_verdicts(little).values()) == {Verdict.DROWNED}
    assert column_verdicts(much)["sex"] is Verdict.USABLE
    assert column_verdicts(little)["age"] is Verdict.DROWNED


def test_two_rows_a_person_are_told_to_drown_what_one_row_keeps() -> None:
    """1,800 rows at epsilon 1: the pair that an earlier release lost."""
    kept = [rehearse(written(600, max_rows_per_unit=m).resolve(), seed=0).kept or 0.0 for m in (1, 2)]
    assert judge_pair(kept[0]) is Verdict.USABLE
    assert judge_pair(kept[1]) is not Verdict.USABLE


@pytest.mark.parametrize(("kept", "verdict"), [(0.5, "usable"), (0.49, "coarse"), (0.14, "drowned in noise")])
def test_words_for_pairs(kept: float, verdict: str) -> None:
    assert judge_pair(kept).value == verdict


@pytest.mark.parametrize(
    ("fine", "coarse", "verdict"),
    [(0.05, 0.05, "usable"), (0.3, 0.2, "coarse"), (0.3, 0.21, "drowned in noise")],
)
def test_words_for_columns(fine: float, coarse: float, verdict: str) -> None:
    assert judge_column(fine, coarse).value == verdict


@pytest.mark.parametrize(
    ("own", "methods", "changes", "sentence"),
    [
        (figures(0.7), {}, {}, "Run it as it is"),
        (figures(0.7), {"other": figures(0.9, distance=0.05)}, {}, "Try `other`"),
        (figures(0.7), {"other": figures(0.72, distance=0.09)}, {}, "Run it as it is"),
        (figures(0.1), {}, {"twice the rows": figures(0.6)}, "Give it twice the rows"),
        (figures(0.1), {}, {"twice the rows": figures(0.12)}, "Do not run it for relations"),
        (figures(0.3), {}, {}, "the strongest relations"),
        (None, {}, {}, "was not rehearsed"),
    ],
)
def test_one_recommendation(own: Rehearsal | None, methods: Any, changes: Any, sentence: str) -> None:
    ways = [tuple(Way(name, found) for name, found in group.items()) for group in (methods, changes)]
    assert sentence in Advice(Way("as it is", own), *ways).recommendation


def test_methods_and_changes_are_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every method that can publish the schema is rehearsed, and every other has a reason."""
    asked: dict[str, Study] = {}

    def note(studies: dict[str, Study], seconds: int, **_: Any) -> dict[str, Rehearsal | None]:
        assert seconds > 0
        asked.update(studies)
        return {name: figures(0.7) for name in studies}

    monkeypatch.setattr(advising, "rehearse_all", note)
    study = written()
    found = advise_on(study, compare=True)
    assert {way.name for way in found.methods} | {"adaptive"} == set(known_methods())
    assert all(way.rehearsal or way.refusal for way in found.methods)
    assert [way.name for way in found.changes] == ["twice the epsilon", "twice the rows", "a quarter of the bins"]
    assert asked["twice the epsilon"].epsilon == 2 * study.epsilon
    assert asked["twice the rows"].total_rows == 2 * study.total_rows
    assert asked["a quarter of the bins"].attributes[1].bins == 20  # type: ignore[union-attr]
    document = advice_document(study.resolve(), found)
    assert json.loads(json.dumps(document))["recommendation"].startswith("Run it as it is")
    assert document["duration"]["fit"] == 1.0
    assert len(advise_on(study, compare=False).methods) == 0
    draw_forecast(study.resolve(), found, tmp_path / "forecast.png")
    assert (tmp_path / "forecast.png").read_bytes()[:4] == b"\x89PNG"


def test_a_rehearsal_that_takes_too_long_is_given_up() -> None:
    study = written(20_000).resolve()
    assert rehearse_all({"short": study}, 1) == {"short": None}, "one second is less than it takes to start"


def test_the_curators_fit_is_in_the_time() -> None:
    study = written().resolve()
    short, long = (forecast_duration(study, fit) for fit in (1.0, 100.0))
    assert long.seconds - short.seconds == pytest.approx(99)
    assert short.seconds > short.fit + short.encryption


def test_very_many_rows_are_rehearsed_with_a_million() -> None:
    study = shorten_roster(written(5_000_000).resolve())
    assert study.total_rows <= 1_000_000
    assert COARSE_BINS == 8


def test_rows_that_are_no_counts_are_refused() -> None:
    with pytest.raises(SynodError, match="positive whole numbers"):
        assume_roster(written(), [0, 5])


@pytest.mark.parametrize(
    ("kept", "near"),
    [
        (0.7, []), (0.59, ["coarse"]), (0.41, ["usable"]), (0.3, []), (0.24, ["drowned in noise"]), (0.06, ["coarse"]),
        (-0.5, []),
    ],
)  # fmt: skip
def test_a_relation_near_the_border_of_two_words_may_come_out_as_the_other(kept: float, near: list[str]) -> None:
    assert [verdict.value for verdict in near_pair(kept)] == near


@pytest.mark.parametrize(
    ("misplaced", "near"),
    [(0.02, []), (0.04, ["coarse"]), (0.07, ["usable"]), (0.1, []), (0.15, ["drowned in noise"]), (0.25, ["coarse"])],
)
def test_a_column_near_the_border_of_two_words_may_come_out_as_the_other(misplaced: float, near: list[str]) -> None:
    assert [verdict.value for verdict in near_column(misplaced)] == near


def test_the_forecast_says_what_is_near_a_border() -> None:
    none = np.array([0.01, 0.01])
    clear = Rehearsal(("a", "b"), none, none, {(0, 1): 0.8}, 0.02, 0.1, 1.0)
    assert near_lines(clear) == []
    near = Rehearsal(("a", "b"), none, none + 0.03, {(0, 1): 0.55}, 0.045, 0.1, 1.0)
    columns, pairs = near_lines(near)
    assert columns.endswith("have 4.0% of the rows in another of eight bins, and may as well come out coarse.")
    assert pairs == "Near a border: relations on average have 55% kept, and may as well come out coarse."
