"""Who takes part in a sum: what is sound to ask, and that noise, range, shares and Q follow from it."""

from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import pytest

from synod.common.methods.hpdp_dp import HpdpDp
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries import base, marginals
from synod.common.protocol.queries.agreements import LARGEST_WEIGHT, SumAgreements
from synod.common.protocol.queries.base import SharedQuery, SumQuery, present_bytes
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parsing import check_feasible, parse_query, query_digest, read_query
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.party.answer import Round, answer
from tests.support.parties import make_transcript, parties_in_memory
from tests.support.queries import step_of
from tests.support.studies import draw_columns, make_model, make_study

NAMES = ("north", "harbour", "valley", "hill", "lake")
ROWS = (100, 200, 400, 800, 1600)
GAUSSIAN = make_study(names=NAMES, rows=ROWS, may_lose=2)
TABLES = make_study(names=NAMES, rows=ROWS, may_lose=2, method={"name": "adaptive"})
PURE = make_study(names=NAMES, rows=ROWS, may_lose=2, method={"name": "dp-subn"})
SPLIT = bytes(-(-sum(sizes_of(TABLES)) // 8))
ASKED: list[tuple[Study, SharedQuery[Any]]] = [
    (TABLES, SumMarginals(((0,), (1,)))),
    (TABLES, SumAgreements((SPLIT,))),
    (GAUSSIAN, SumMoments()),
    (GAUSSIAN, Synthesize(make_model(GAUSSIAN), share_rows(GAUSSIAN))),
]
SUMS = [(study, query) for study, query in ASKED if isinstance(query, SumQuery)]
KINDS = pytest.mark.parametrize(("study", "query"), ASKED, ids=[query.kind.value for _, query in ASKED])
LEFT = (0, 2, 4)


@KINDS
def test_a_query_of_some_comes_back_from_both_of_its_forms(study: Study, query: SharedQuery[Any]) -> None:
    asked = query.asked_of(LEFT, study)
    assert asked.to_json()["present"] == [0, 2, 4]
    assert read_query(asked.to_json(), study).to_json() == asked.to_json()
    assert parse_query(asked.to_proto(), study).to_json() == asked.to_json()
    assert asked.answerers(study) == ("north", "valley", "lake")
    assert asked.present_rows(study) == 100 + 400 + 1600


@KINDS
def test_a_query_of_everybody_does_not_say_so(study: Study, query: SharedQuery[Any]) -> None:
    assert "present" not in query.to_json()
    assert query.answerers(study) == NAMES
    assert query.present_rows(study) == study.total_rows
    with pytest.raises(SynodError):
        read_query({**query.to_json(), "present": []}, study)


@KINDS
@pytest.mark.parametrize(
    "present",
    [
        pytest.param((0, 1, 2, 3, 4), id="everybody"),
        pytest.param((0, 4), id="too few"),
        pytest.param((2,), id="one"),
        pytest.param((0, 4, 2), id="unsorted"),
        pytest.param((0, 2, 2, 4), id="twice"),
        pytest.param((0, 2, 5), id="unknown"),
        pytest.param((-1, 0, 2), id="below"),
    ],
)
def test_other_parties_than_may_stay_are_refused(
    study: Study, query: SharedQuery[Any], present: tuple[int, ...]
) -> None:
    rows = tuple(10 * (place in present) for place in range(5))
    forms = [{**query.to_json(), "present": list(present)}]
    if isinstance(query, Synthesize):
        forms += [{**forms[0], "rows": list(rows)}]
    for form in forms:
        with pytest.raises(SynodError) as caught:
            read_query(form, study)
        assert caught.value.code is Code.INVALID


def test_a_study_that_may_lose_nobody_is_asked_of_everybody() -> None:
    study = make_study(names=NAMES, rows=ROWS)
    with pytest.raises(SynodError, match="other parties than the study may go on with"):
        read_query(SumMoments((0, 1, 2, 3)).to_json(), study)


def test_one_partys_own_counts_are_of_nobody_else() -> None:
    form = {"kind": "local-marginals", "sets": [[0]], "present": [0, 1, 2]}
    with pytest.raises(SynodError, match="not one that this version answers"):
        read_query(form, PURE)


@pytest.mark.parametrize(("study", "query"), SUMS, ids=[query.kind.value for _, query in SUMS])
def test_range_and_noise_are_those_of_the_parties_present(study: Study, query: SumQuery[Any]) -> None:
    step, asked = step_of(query, study), query.asked_of(LEFT, study)
    whole, some = query.terms(step, study), asked.terms(step, study)
    rows = Fraction(asked.present_rows(study), study.total_rows)
    assert some.low == rows * whole.low
    assert some.high == rows * whole.high
    for law in {law for run in some.runs for law in run.laws}:
        assert (law.parties, law.threshold) == (3, 1)  # type: ignore[attr-defined]
    # 3 of 5, t = 1: |S| / (|S| - t) is 3/2 instead of 5/4
    assert some.variance / whole.variance == pytest.approx((3 / 2) / (5 / 4), rel=1e-3)
    assert query_digest(asked, step, study) != query_digest(query, step, study)
    stated = asked.law(step, study)
    assert stated is not None
    assert "up to 1 of the 3 parties present" in str(stated["protects_against"])


def test_any_share_but_the_colluders_is_the_whole_noise_of_pure_epsilon() -> None:
    step = plan_study(PURE).step("correlations")
    for present in ((), (0, 1, 2, 3), (1, 2, 4)):
        query = SumMarginals(((0,),), present=present)
        (run,) = query.runs(step, PURE)
        law = run.laws[0]
        assert law.shape == Fraction(1, len(query.places(PURE)) - 1)  # type: ignore[attr-defined]
        assert law.scale == 2 / step.cost.epsilon  # type: ignore[attr-defined]


def test_who_is_absent_draws_no_synthetic_rows_and_the_others_all() -> None:
    assert share_rows(GAUSSIAN) == ROWS
    shares = share_rows(GAUSSIAN, LEFT)
    assert sum(shares) == GAUSSIAN.rows
    assert [bool(share) for share in shares] == [True, False, True, False, True]
    assert shares[4] == pytest.approx(16 * shares[0], abs=16)


def test_a_message_may_be_as_long_as_a_list_of_all_but_one() -> None:
    study = make_study(names=[f"p{i}" for i in range(300)], rows=[10] * 300, may_lose=1)
    nobody = make_study(names=[f"p{i}" for i in range(300)], rows=[10] * 300)
    query = SumMoments(tuple(range(1, 300)))
    assert query.to_proto().ByteSize() <= SumMoments.message_bytes(plan_study(study).step("moments"), study)
    assert present_bytes(nobody) == 0


@pytest.mark.parametrize(
    ("parties", "collusion", "may_lose", "sound"),
    [(3, 1, 0, True), (3, 1, 1, True), (3, 1, 2, False), (4, 2, 1, True), (4, 2, 2, False), (2, 1, 1, False)],
)
def test_enough_parties_stay(parties: int, collusion: int, may_lose: int, *, sound: bool) -> None:
    def make() -> Study:
        return make_study(names=NAMES[:parties], rows=ROWS[:parties], collusion=collusion, may_lose=may_lose)

    if sound:
        assert make().fewest_parties == parties - may_lose
        return
    with pytest.raises(SynodError, match="two must stay, and more than collude"):
        make()


def test_never_one_party_alone() -> None:
    with pytest.raises(SynodError, match="may_lose must be at most 1"):
        make_study(collusion=0, may_lose=2)


def test_the_hash_says_how_many_may_be_lost_where_any_may() -> None:
    nobody, spelled_out = make_study(), make_study(may_lose=0)
    assert "may_lose" not in nobody.to_json()
    assert spelled_out.digest() == nobody.digest()
    assert make_study(may_lose=1).to_json()["may_lose"] == 1
    assert make_study(may_lose=1).digest() != nobody.digest()


@pytest.mark.parametrize(("study", "query"), SUMS, ids=[query.kind.value for _, query in SUMS])
def test_room_is_made_for_the_noise_of_the_fewest_and_the_rows_of_all(
    study: Study, query: SumQuery[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is lost is not known beforehand: fewer parties have more noise, more rows larger sums."""
    asked: list[tuple[int, ...]] = []
    for module in (base, marginals):
        monkeypatch.setattr(module, "plan_slots", lambda *numbers: asked.append(numbers))
    step = step_of(query, study)
    limit = replace(step.limit, tables=max(1, len(getattr(query, "sets", ()))), numbers=query.size(study).numbers)
    step = replace(step, limit=limit)
    type(query).check_room(step, study)
    ((length, low, high, bound, _),) = asked
    assert length >= query.size(study).numbers
    assert (low, high) in (query.bounds(study), (0, LARGEST_WEIGHT * study.total_rows))
    assert bound >= query.asked_of(LEFT, study).terms(step, study).noise_bound


# Q of studies that may lose nobody, as it was before any could: what parties have answered stays answered.
KEPT = {
    "moments": "79ca9a17fd1450d89b3bcb5188265328ebbe7e637b92ab9acf69015d0e8a4b02",
    "rows": "c87c4a77eb1dcf8bb26b712e56346971203a51ae7caa2a47f942fed11b464bc3",
    "ones": "92f5bdfef5bad558075c29a35389583f1614446785656adba8a212925355f506",
}


def test_q_of_a_study_that_may_lose_nobody_is_what_it_was() -> None:
    study, tables = make_study(), make_study(method={"name": "adaptive"})
    asked: list[tuple[Study, str, SharedQuery[Any]]] = [
        (study, "moments", SumMoments()),
        (study, "rows", Synthesize(make_model(study), share_rows(study))),
        (tables, "ones", SumMarginals(((0,), (1,)))),
    ]
    found = {label: query_digest(query, plan_study(own).step(label), own).hex() for own, label, query in asked}
    assert found == KEPT


def test_a_method_that_cannot_go_on_without_a_party_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HpdpDp, "allows_losses", False)
    with pytest.raises(SynodError, match="cannot go on without a lost party in this version"):
        check_feasible(make_study(method={"name": "hpdp-dp"}, may_lose=1))


# Answers of such a study, byte for byte, as they were before: its noise, masks and packing are untouched.
KEPT_ANSWERS = {
    "moments": "5002839aebda85870322146e9b75baf03cb6e16aaae14236c3cfa4cecb9457f3",
    "ones": "831bec9754cc855bf0ea1681b7422eadc87511d1a501c42682a78b35f2b79dde",
}


def test_answers_in_a_study_that_may_lose_nobody_are_the_bytes_that_they_were() -> None:
    study, tables = make_study(), make_study(method={"name": "adaptive"})
    asked: list[tuple[Study, str, SumQuery[Any]]] = [
        (study, "moments", SumMoments()),
        (tables, "ones", SumMarginals(((0,), (1,)))),
    ]
    found = {}
    for own, label, query in asked:
        members = parties_in_memory(own, [draw_columns(own, name) for name in own.party_names])
        transcript, step = make_transcript(own, members), plan_study(own).step(label)
        asked_of = Round(own, step, query, query_digest(query, step, own), transcript, transcript.digest(own), 1)
        found[label] = sha256(answer(asked_of, members[1].table, secrets=members[1].secrets, workers=1)).hexdigest()
    assert found == KEPT_ANSWERS
