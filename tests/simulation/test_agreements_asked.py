"""A toy method that asks for agreements: parties answer with all their checks, and the encrypted sum is the plain one.

Party k has 2^k rows, so that a party left out, counted twice or mixed up with another shows in every sum.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import Agreements, SumAgreements
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import Grouping, SumMarginals, Weights
from synod.common.protocol.queries.noise_runs import sample_runs
from synod.common.protocol.queries.parsing import check_feasible, query_digest
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import Code, SynodError
from synod.common.study import study as studies
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Method, Study, known_methods
from synod.curator.combine import combine
from synod.deploy.simulate import InProcessParties
from synod.party.answer import SUMMANDS, Round, answer_sum
from tests.support.keys import paillier_key
from tests.support.parties import PartyInMemory, make_transcript, open_parties, parties_in_memory, seal
from tests.support.studies import Table, categorical, draw_columns, make_study

NAMES = ("north", "harbour", "valley", "island")
ROWS = (64, 128, 256, 512)
SCHEMA = [
    categorical("sex", ("F", "M")),
    categorical("ward", ("a", "b", "c")),
    categorical("country", ("here",)),
    categorical("smoker", ("no", "yes"), nullable=True),
    categorical("insured", ("yes",), nullable=True),
]
"""Features of sizes 2, 3, 3 and 2: ten bits."""
OPPOSITE, SHARED = b"\x94\x40", b"\xd4\x40"
"""Opposite signs for the two values of the first and the last feature, and one sign for those of the first."""
LOOK = SumAgreements((OPPOSITE, SHARED), 2)
FIRST = SumMarginals(((0, 4), (3,), (4, 5)), (Grouping(1, (0, 1, 0)), Grouping(2, (0, 1, 1))), (3, 1, 2))
WEIGHTED = replace(FIRST, weights=(Weights(4, (64, 1)), None, Weights(4, (2, 3))))


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of the toy, which first asks for tables of groups and then for agreements."""
    monkeypatch.setattr(studies, "METHODS", dict(known_methods()))

    class Looking(Method):
        """Half of the budget for each of two sums."""

        name: Literal["looking"]
        version: Literal[1] = 1

        def check(self, study: Study) -> None:
            """Takes on any study."""

        def plan(self, study: Study) -> tuple[Step, ...]:
            """Tables, then agreements."""
            half = study.budget.share(Fraction(1, 2))
            return (
                Step("tables", "tables", QueryKind.SUM_MARGINALS, study.party_names, half, Limit(100, 5, 50)),
                Step("look", "looking", QueryKind.SUM_AGREEMENTS, study.party_names, half, Limit(14, 2, 2)),
            )

    return make_study(names=NAMES, rows=ROWS, schema=SCHEMA, method={"name": "looking"}, epsilon="3")


def plain_agreements(study: Study, table: Table) -> list[int]:
    """A loop over rows, with the signs as they are written above."""
    signs = [
        [[1, -1], [-1, 1, -1], [1, -1, -1], [-1, 1]],
        [[1, 1], [-1, 1, -1], [1, -1, -1], [-1, 1]],
    ]
    rows = list(zip(*(column.tolist() for column in space_of(study).encode(table)), strict=True))
    counts = [2 * sum(row[feature] == 1 for row in rows) for feature in (0, 3)]
    for split in signs:
        for a in range(4):
            counts += [sum(split[a][row[a]] == split[b][row[b]] for row in rows) for b in range(a + 1, 4)]
    return counts


def plain_noise(asked: Round, party: PartyInMemory) -> NDArray[np.int64]:
    runs = asked.query.terms(asked.step, asked.study).runs if isinstance(asked.query, SumQuery) else ()
    return sample_runs(runs, coins=Coins(party.secrets.derive("noise", asked.step.label, asked.query_hash.hex())))


def rounds_of(query: SumQuery[Any], step: Step, study: Study, members: Sequence[PartyInMemory]) -> list[Round]:
    transcript = make_transcript(study, members)
    digest = query_digest(query, step, study)
    return [
        Round(study, step, query, digest, transcript, transcript.digest(study), index) for index in range(len(members))
    ]


def test_the_signs_of_the_tests_are_those_of_the_question(study: Study) -> None:
    assert sizes_of(study) == (2, 3, 3, 2)
    LOOK.check(study)
    FIRST.check(study)
    check_feasible(study)
    for entry in study.roster:
        table = draw_columns(study, entry.name)
        assert SUMMANDS[LOOK.kind](LOOK, study, table).tolist() == plain_agreements(study, table)


def test_parties_answer_and_the_encrypted_sum_is_the_plain_sum(study: Study, tmp_path: Path) -> None:
    parties = open_parties(tmp_path, study)
    envelope = seal(make_transcript(study, parties))
    tables, look = (plan_study(study).step(label) for label in ("tables", "look"))
    answered = [party.answer(envelope, FIRST.to_proto(), "tables").payload for party in parties]
    first = combine(FIRST, tables, study, answered, key=paillier_key(), workers=1)
    asked = rounds_of(FIRST, tables, study, parties)
    expected = np.sum(
        [
            SUMMANDS[FIRST.kind](FIRST, study, party.table) + plain_noise(one, party)
            for one, party in zip(asked, parties, strict=True)
        ],
        axis=0,
    )
    assert np.concatenate(first).tolist() == expected.tolist()

    answered = [party.answer(envelope, LOOK.to_proto(), "look").payload for party in parties]
    second = combine(LOOK, look, study, answered, key=paillier_key(), workers=1)
    assert isinstance(second, Agreements)
    asked = rounds_of(LOOK, look, study, parties)
    expected = np.sum(
        [
            np.array(plain_agreements(study, party.table)) + plain_noise(one, party)
            for one, party in zip(asked, parties, strict=True)
        ],
        axis=0,
    )
    assert LOOK.join(second).tolist() == expected.tolist()
    assert [party.spent() for party in parties] == [study.budget] * 4


@pytest.mark.parametrize(
    "query",
    [
        SumAgreements((OPPOSITE,) * 3, 2),
        SumAgreements((b"\x94\x60",)),
        SumAgreements((OPPOSITE[:1],)),
        SumAgreements((OPPOSITE,), 65),
        FIRST,
    ],
)
def test_a_party_refuses_another_question_and_spends_nothing(
    study: Study, query: SumQuery[Any], tmp_path: Path
) -> None:
    (party, *_) = parties = open_parties(tmp_path, study)
    envelope = seal(make_transcript(study, parties))
    with pytest.raises(SynodError) as caught:
        party.answer(envelope, query.to_proto(), "look")
    assert caught.value.code in (Code.INVALID, Code.REFUSED)
    assert party.spent() == Cost()


COSTS = [Cost.pure(Fraction(1, 5)), Cost.pure(Fraction(1000)), Cost.concentrated(Fraction(1, 50))]


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize(
    "query",
    [LOOK, SumAgreements((OPPOSITE,)), FIRST, WEIGHTED],
    ids=["ones", "no ones", "tables", "tables with weights"],
)
def test_encrypted_sums_are_plain_sums_at_any_cost(study: Study, query: SumQuery[Any], cost: Cost) -> None:
    members = parties_in_memory(study, [draw_columns(study, entry.name) for entry in study.roster])
    step = Step("asked", "asking", query.kind, study.party_names, cost, query.size(study))
    rounds = rounds_of(query, step, study, members)
    answers = [
        answer_sum(query, asked, party.table, secrets=party.secrets, workers=1)
        for asked, party in zip(rounds, members, strict=True)
    ]
    combined = combine(query, step, study, answers, key=paillier_key(), workers=1)
    exact = np.sum([SUMMANDS[query.kind](query, study, party.table) for party in members], axis=0)
    noise = np.sum([plain_noise(asked, party) for asked, party in zip(rounds, members, strict=True)], axis=0)
    assert query.join(combined).tolist() == (exact + noise).tolist()
    assert np.abs(noise).max() <= query.terms(step, study).noise_bound


@pytest.mark.parametrize("asked", [FIRST, WEIGHTED], ids=["plain", "weighted"])
def test_a_party_answers_tables_with_weights_at_the_same_cost(
    study: Study, asked: SumMarginals, tmp_path: Path
) -> None:
    (party, *_) = parties = open_parties(tmp_path, study)
    party.answer(seal(make_transcript(study, parties)), asked.to_proto(), "tables")
    assert party.spent() == study.budget.share(Fraction(1, 2))


def test_parties_in_one_process_give_the_plain_sum(study: Study) -> None:
    tables = [draw_columns(study, entry.name) for entry in study.roster]
    exact = make_study(names=NAMES, rows=ROWS, schema=SCHEMA, method={"name": "looking"}, epsilon="1000")
    parties = InProcessParties(exact, tables, Coins(bytes(32)), np.random.default_rng(1))
    answer = asyncio.run(parties.ask("look", LOOK))
    assert LOOK.join(answer).tolist() == np.sum([plain_agreements(study, table) for table in tables], axis=0).tolist()
