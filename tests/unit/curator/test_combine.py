"""From the parties' answers to the roster's: the encrypted sum is the plain one, and what does not fit is found."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements, pack_signs
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import QUERIES, AnyQuery, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import QueryKind
from synod.common.protocol.transcript import Transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator.combine import CHECKED, COMBINED, combine
from synod.party import answer as answers
from synod.party.answer import Round, noisy_values
from tests.support.keys import paillier_key
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, seal
from tests.support.studies import Table, binary, make_model, make_study

BITS = [binary(f"x{i}") for i in range(6)]
VIEWS = SumMarginals(((0, 1, 2), (2, 3), (4, 5)))


class Asked:
    """A study with a transcript, and what its parties answer."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.study: Study = make_study(rows=(4000, 2000, 1000), epsilon="10", **changes)
        self.parties: list[PartyUnderTest] = open_parties(folder, self.study)
        self.transcript: Transcript = make_transcript(self.study, self.parties)

    def answers(self, label: str, query: AnyQuery) -> list[bytes]:
        """The answers of those whom the step asks."""
        answerers = plan_study(self.study).step(label).answerers
        envelope, message = seal(self.transcript), query.to_proto()
        return [p.answer(envelope, message, label).payload for p in self.parties if p.name in answerers]

    def combine(self, label: str, query: AnyQuery, payloads: Sequence[bytes]) -> Any:
        step = plan_study(self.study).step(label)
        return combine(query, step, self.study, payloads, key=paillier_key(), workers=1)

    def plain(self, label: str, query: SumQuery[Any]) -> NDArray[np.int64]:
        """The slow twin: everybody's noisy numbers, added in the clear."""
        step = plan_study(self.study).step(label)
        terms, digest = query.terms(step, self.study), query_digest(query, step, self.study)
        total = np.zeros(terms.length, dtype=np.int64)
        for index, party in enumerate(self.parties):
            whole = Round(self.study, step, query, digest, self.transcript, b"", index)
            coins = whole.coins("noise", party.secrets)
            total += noisy_values(query, self.study, party.table, terms, coins=coins)
        return total


def failure(asked: Asked, label: str, query: AnyQuery, payloads: Sequence[bytes]) -> str:
    with pytest.raises(SynodError) as caught:
        asked.combine(label, query, payloads)
    assert caught.value.code is Code.CHECK_FAILED
    return str(caught.value)


@pytest.fixture
def network(tmp_path: Path) -> Asked:
    return Asked(tmp_path, schema=BITS, method={"name": "dp-subn"})


@pytest.fixture
def moments(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.fixture
def agreements(tmp_path: Path) -> Asked:
    return Asked(tmp_path, schema=BITS, method={"name": "adaptive"}, delta="1e-6")


def test_every_kind_of_query_has_its_way() -> None:
    sums = {kind for kind, query in QUERIES.items() if issubclass(query, SumQuery)}
    assert sums == set(CHECKED) == {kind for kind in QueryKind if kind.is_sum}
    assert set(COMBINED) == set(QueryKind) - sums


def test_moments_are_the_plain_sum(moments: Asked) -> None:
    payloads = moments.answers("moments", SumMoments())
    expected = moments.plain("moments", SumMoments()).tolist()
    for order in permutations(payloads):
        assert moments.combine("moments", SumMoments(), order).tolist() == expected


def test_marginals_are_the_plain_sum_table_by_table(network: Asked) -> None:
    tables = network.combine("correlations", VIEWS, network.answers("correlations", VIEWS))
    assert [len(table) for table in tables] == [8, 4, 4]
    assert np.concatenate(tables).tolist() == network.plain("correlations", VIEWS).tolist()
    assert VIEWS.read_answer(VIEWS.write_answer(tables), network.study)[1].tolist() == tables[1].tolist()


def test_a_part_of_the_roster_gives_nothing(moments: Asked) -> None:
    """Without everybody the masks do not cancel, so the curator cannot open a smaller sum."""
    payloads = moments.answers("moments", SumMoments())
    for missing in range(3):
        rest = [payload for index, payload in enumerate(payloads) if index != missing]
        assert "masks did not cancel" in failure(moments, "moments", SumMoments(), rest)
    assert "masks did not cancel" in failure(moments, "moments", SumMoments(), [*payloads, payloads[0]])


def test_masks_of_another_transcript_do_not_cancel(moments: Asked, tmp_path: Path) -> None:
    payloads = moments.answers("moments", SumMoments())
    other = Asked(tmp_path / "others")
    other.transcript = replace(make_transcript(other.study, other.parties), key=paillier_key().public)
    assert other.transcript.digest(other.study) != moments.transcript.digest(moments.study)
    mixed = [*payloads[:2], other.answers("moments", SumMoments())[2]]
    assert "masks did not cancel" in failure(moments, "moments", SumMoments(), mixed)


@pytest.mark.parametrize(("method", "times"), [("moments", 2), ("network", 2), ("agreements", 3)])
def test_a_sum_that_counts_other_rows_is_found(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, method: str, times: int
) -> None:
    """Check 6: well packed, masked and signed, but one party counts each of its rows several times."""
    asked: Asked = request.getfixturevalue(method)
    questions: dict[str, tuple[str, AnyQuery]] = {
        "moments": ("moments", SumMoments()),
        "network": ("correlations", VIEWS),
        "agreements": ("agreements", SumAgreements((pack_signs([np.array([1, -1], dtype=np.int8)] * len(BITS)),))),
    }
    label, query = questions[method]

    def lie(query: SumQuery[Any], study: Study, columns: Table, *args: Any, **kwargs: Any) -> NDArray[np.int64]:
        values = noisy_values(query, study, columns, *args, **kwargs)
        return times * values if len(columns[0]) == 4000 else values

    monkeypatch.setattr(answers, "noisy_values", lie)
    assert "some party's answer is not sound" in failure(asked, label, query, asked.answers(label, query))


def test_one_partys_own_answer_is_read_as_it_is(tmp_path: Path) -> None:
    asked = Asked(tmp_path, schema=BITS, method={"name": "independent"})
    cells = plan_study(asked.study).step("choose-north").limit.cells
    choice = ChooseParents((0,), tuple((x, (0, 1)) if x > 1 else (x, (0,)) for x in range(1, 6)), 5, cells, "F")
    (payload,) = asked.answers("choose-north", choice)
    chosen = asked.combine("choose-north", choice, [payload])
    assert sorted(feature for feature, _ in chosen) == [1, 2, 3, 4, 5]
    assert choice.write_answer(chosen) == payload
    counts = LocalMarginals(((0,), (1, 2)))
    (payload,) = asked.answers("tables-north", counts)
    tables = asked.combine("tables-north", counts, [payload])
    assert [len(table) for table in tables] == [2, 4]
    assert counts.write_answer(tables) == payload
    for wrong in ([], [payload, payload]):
        with pytest.raises(ValueError, match=r"argument|unpack"):
            asked.combine("tables-north", counts, wrong)


def test_a_partys_own_answer_that_is_none_is_refused(tmp_path: Path) -> None:
    asked = Asked(tmp_path, schema=BITS, method={"name": "independent"})
    counts = LocalMarginals(((0,), (1, 2)))
    few = counts.write_answer([np.zeros(5, dtype=np.int64)])
    assert "one count for each cell" in failure(asked, "tables-north", counts, [few])


def test_rows_are_stacked_in_the_rosters_order(moments: Asked) -> None:
    query = Synthesize(make_model(moments.study), share_rows(moments.study))
    moments.answers("moments", SumMoments())
    payloads = moments.answers("rows", query)
    columns = moments.combine("rows", query, payloads)
    start = 0
    for payload, rows, party in zip(payloads, query.rows, ("north", "harbour", "valley"), strict=True):
        own = query.read_answer(payload, moments.study, party)
        for column, part in zip(columns, own, strict=True):
            assert column[start : start + rows].tolist() == part.tolist()
        start += rows
    assert {len(column) for column in columns} == {7000}
    assert "wrong length" in failure(moments, "rows", query, payloads[::-1])


def test_what_is_logged_is_read_back_the_same(moments: Asked) -> None:
    query = SumMoments()
    sums = moments.combine("moments", query, moments.answers("moments", query))
    assert len(sums) == moment_design(moments.study).length
    assert query.read_answer(query.write_answer(sums), moments.study).tolist() == sums.tolist()
