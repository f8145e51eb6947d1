"""Queries that are larger than the study's public numbers allow are refused by the party itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.rounds import check_cells
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal
from tests.support.studies import binary, make_study

SCHEMA = [binary(f"x{i}") for i in range(6)]
VIEWS = SumMarginals((tuple(range(6)),))


def refusal(party: PartyUnderTest, envelope: bytes, query: AnyQuery, label: str) -> str:
    with pytest.raises(SynodError) as caught:
        party.check(envelope, query.to_proto(), label)
    assert caught.value.code is Code.REFUSED
    return str(caught.value)


def open_study(method: str, folder: Path) -> tuple[Study, PartyUnderTest, bytes]:
    """A study with parties, of whom the first is asked."""
    study = make_study(schema=SCHEMA, method={"name": method}, rows=(4000, 5000, 6000), epsilon="2")
    parties = open_parties(folder, study)
    return study, parties[0], seal(make_transcript(study, parties))


@pytest.mark.parametrize("method", ["dp-subn", "independent"])
def test_choices_hold_to_the_studys_numbers(method: str, tmp_path: Path) -> None:
    study, party, envelope = open_study(method, tmp_path)
    label = "choose-north" if method == "independent" else "initialize-north"
    if method == "dp-subn":
        party.answer(envelope, VIEWS.to_proto(), "correlations")
    limit = plan_study(study).step(label).limit
    assert limit.cells >= 4
    assert limit.numbers == limit.cells
    assert limit.tables == (5 if method == "independent" else 1)  # of five draws, by rows 1, 2 and 2
    candidates = tuple((x, (0,)) for x in range(1, 6))
    largest = ChooseParents((0,), candidates, limit.tables, limit.cells, "F")
    party.check(envelope, largest.to_proto(), label)
    assert "larger than the approved plan allows" in refusal(
        party, envelope, replace(largest, max_cells=limit.cells + 1), label
    )


def test_a_party_draws_no_more_often_than_planned(tmp_path: Path) -> None:
    study, party, envelope = open_study("dp-subn", tmp_path)
    party.answer(envelope, VIEWS.to_proto(), "correlations")
    draws, cells = (getattr(plan_study(study).step("initialize-north").limit, key) for key in ("tables", "cells"))
    query = ChooseParents((0,), tuple((x, (0,)) for x in range(1, 6)), draws + 1, cells, "F")
    assert "larger than the approved plan allows" in refusal(party, envelope, query, "initialize-north")


def test_a_sum_has_no_more_tables_and_numbers_than_planned(tmp_path: Path) -> None:
    study, party, envelope = open_study("dp-subn", tmp_path)
    limit = plan_study(study).step("correlations").limit
    assert limit.tables == 15
    party.check(envelope, SumMarginals(((0, 1),) * 15).to_proto(), "correlations")
    many = SumMarginals(((0,),) * 16)
    assert many.size(study).numbers <= limit.numbers
    assert "larger than the approved plan allows" in refusal(party, envelope, many, "correlations")
    wide = SumMarginals((tuple(range(6)),) * 2)
    assert wide.size(study).numbers > limit.numbers
    assert "larger than the approved plan allows" in refusal(party, envelope, wide, "correlations")


def test_the_policys_own_limit_holds_in_a_round() -> None:
    check_cells(100, 100)
    with pytest.raises(SynodError, match=r"asks for 101 numbers; `max_cells` is 100") as caught:
        check_cells(101, 100)
    assert caught.value.code is Code.REFUSED
