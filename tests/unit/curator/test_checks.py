"""The checks on a submission, numbered as in the protocol: each fails on its own tampering and on nothing else."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.base import SumTerms, bound_noise
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, Sets, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import sample_runs
from synod.common.protocol.queries.parsing import AnyQuery, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import QueryKind, Step
from synod.common.protocol.submission import AnsweredStep, Submission, digest_of
from synod.common.protocol.transcript import Transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.curator.checks import (
    AskedRound,
    answer_bytes,
    check_account,
    check_agreements,
    check_header,
    check_local_marginals,
    check_marginals,
    check_moments,
    check_payload,
)
from synod.party.count.agreements import count_agreements
from synod.party.count.moments import sum_moments
from synod.party.count.tables import exact_counts
from tests.support.curators import stored_answer
from tests.support.keys import identity_of, paillier_key, seeded
from tests.support.parties import PartyUnderTest, make_transcript, open_parties, parties_in_memory, seal
from tests.support.studies import WIDE_SCHEMA, categorical, draw_columns, make_model, make_study

PUBLIC = paillier_key().public
CURATOR_KEY = identity_of("curator").public_key


class Scenario:
    """A study with one honest answer to each of its rounds, all of `north`."""

    def __init__(self, folder: Path) -> None:
        self.study = make_study(schema=WIDE_SCHEMA)
        self.parties: list[PartyUnderTest] = open_parties(folder, self.study)
        self.transcript: Transcript = make_transcript(self.study, self.parties)
        model = make_model(self.study)
        self.queries: dict[str, AnyQuery] = {"moments": SumMoments(), "rows": Synthesize(model, share_rows(self.study))}
        for label, query in self.queries.items():
            self.parties[0].answer(seal(self.transcript), query.to_proto(), label)
        assert len(self.answer("moments")[1]) >= 3 * PUBLIC.ciphertext_bytes

    def step(self, label: str) -> Step:
        return plan_study(self.study).step(label)

    def query_hash(self, label: str) -> bytes:
        return query_digest(self.queries[label], self.step(label), self.study)

    def answer(self, label: str) -> tuple[Submission, bytes]:
        return stored_answer(self.parties[0], label)

    def sign(self, submission: Submission, party: str = "north", signer: str = "north") -> Submission:
        """The header, signed again: what a party can do that lies on purpose."""
        return submission.signed_by(identity_of(signer), party, CURATOR_KEY, self.steps(submission.label))

    def steps(self, label: str) -> list[AnsweredStep]:
        labels = ["moments", "rows"][: ["moments", "rows"].index(label) + 1] if label in self.queries else []
        return [AnsweredStep(each, self.query_hash(each).hex(), self.step(each).cost) for each in labels]

    def asked(self, label: str) -> AskedRound:
        return AskedRound.bind(self.study, self.transcript, self.step(label), self.queries[label])

    def check_header(self, submission: Submission, party: str = "north", label: str = "moments") -> None:
        check_header(party, submission, self.asked(label))

    def check_payload(self, submission: Submission, payload: bytes, label: str = "moments") -> None:
        check_payload("north", submission, payload, self.asked(label))


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return Scenario(tmp_path_factory.mktemp("ledgers"))


def failed(check: Callable[[], object], sentence: str) -> None:
    with pytest.raises(SynodError, match=sentence) as caught:
        check()
    assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize("label", ["moments", "rows"])
def test_honest_answers_pass(scenario: Scenario, label: str) -> None:
    submission, payload = scenario.answer(label)
    scenario.check_header(submission, label=label)
    scenario.check_payload(submission, payload, label)
    check_account("north", submission, scenario.steps(label), identity_of("north").public_key, CURATOR_KEY)


# 1. sender and signature


def test_1_a_sender_that_has_no_part(scenario: Scenario) -> None:
    submission = scenario.sign(scenario.answer("moments")[0], "ghost", "ghost")
    failed(lambda: scenario.check_header(submission, "ghost"), "ghost has no part")


def test_1_an_answer_under_another_partys_name(scenario: Scenario) -> None:
    """Its signature names the sender, so no party can hand in what another one made."""
    submission = scenario.answer("moments")[0]
    failed(lambda: scenario.check_header(submission, "valley"), "signature of valley")
    failed(lambda: scenario.check_header(scenario.sign(submission, "valley", "north"), "valley"), "signature of valley")


@pytest.mark.parametrize("place", [0, 31, 32, 63])
def test_1_an_altered_signature(scenario: Scenario, place: int) -> None:
    submission = scenario.answer("moments")[0]
    flipped = bytes(b ^ (1 if i == place else 0) for i, b in enumerate(submission.signature))
    failed(lambda: scenario.check_header(replace(submission, signature=flipped)), "signature of north")


ALTERED: dict[str, dict[str, Any]] = {
    "transcript": {"transcript": bytes(32)},
    "label": {"label": "rows"},
    "query": {"query": bytes(32)},
    "key": {"key_id": bytes(32)},
    "length": {"length": 1},
    "digest": {"digest": bytes(32)},
    "study": {"study_hash": bytes(32)},
    "none": {"signature": b""},
}


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED.keys())
def test_1_a_header_altered_on_its_way(scenario: Scenario, change: dict[str, Any]) -> None:
    altered = replace(scenario.answer("moments")[0], **change)
    failed(lambda: scenario.check_header(altered), "signature of north")


# 2. T, round, Q and key


BOUND: dict[str, dict[str, Any]] = {
    "another T": {"transcript": bytes(32)},
    "another round": {"label": "rows"},
    "another Q": {"query": bytes(32)},
    "another key": {"key_id": bytes.fromhex(paillier_key(2).public.key_id)},
}


@pytest.mark.parametrize("change", BOUND.values(), ids=BOUND.keys())
def test_2_an_answer_bound_to_something_else(scenario: Scenario, change: dict[str, Any]) -> None:
    signed = scenario.sign(replace(scenario.answer("moments")[0], **change))
    failed(lambda: scenario.check_header(signed), "bound to another")


# 3. length


@pytest.mark.parametrize("difference", [-PUBLIC.ciphertext_bytes, -1, 1, PUBLIC.ciphertext_bytes])
def test_3_a_sum_of_the_wrong_length(scenario: Scenario, difference: int) -> None:
    submission = scenario.answer("moments")[0]
    signed = scenario.sign(replace(submission, length=submission.length + difference))
    failed(lambda: scenario.check_header(signed), "wrong length")


def test_3_rows_of_the_wrong_length(scenario: Scenario) -> None:
    """A message in the clear has codes of one length, and a few bytes around them."""
    submission, payload = scenario.answer("rows")
    allowed = answer_bytes("north", scenario.queries["rows"], scenario.step("rows"), scenario.study, PUBLIC)
    codes = share_rows(scenario.study)[0] * sum(coding.dtype.itemsize for coding in codings_of(scenario.study))
    assert allowed.start == codes < len(payload) < allowed.stop < codes + PUBLIC.ciphertext_bytes
    for length in (0, allowed.start - 1, allowed.stop, submission.length + PUBLIC.ciphertext_bytes):
        signed = scenario.sign(replace(submission, length=length))
        failed(lambda signed=signed: scenario.check_header(signed, label="rows"), "wrong length")  # type: ignore[misc]
    for length in (allowed.start, allowed.stop - 1):
        scenario.check_header(scenario.sign(replace(submission, length=length)), label="rows")


# 4. the bytes


def claim(scenario: Scenario, payload: bytes, label: str = "moments") -> Submission:
    """A header that fits these bytes."""
    submission = scenario.answer(label)[0]
    return scenario.sign(replace(submission, length=len(payload), digest=digest_of(payload)))


def test_4_bytes_that_are_not_the_headers(scenario: Scenario) -> None:
    submission, payload = scenario.answer("moments")
    flipped = bytes([payload[0] ^ 1]) + payload[1:]
    for altered in (flipped, payload[:-1], payload + b"\0", b""):
        failed(lambda altered=altered: scenario.check_payload(submission, altered), "its header describes")  # type: ignore[misc]


VALUES: dict[str, tuple[int, str]] = {
    "zero": (0, "out of range"),
    "n squared": (PUBLIC.n**2, "out of range"),
    "the greatest": (2 ** (8 * PUBLIC.ciphertext_bytes) - 1, "out of range"),
    "multiple of p": (paillier_key().p * 12345, "not coprime"),
    "multiple of q": (paillier_key().q, "not coprime"),
    "n": (PUBLIC.n, "not coprime"),
}


@pytest.mark.parametrize(("value", "sentence"), VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("place", ["first", "last"])
def test_4_a_ciphertext_that_is_none(scenario: Scenario, value: int, sentence: str, place: str) -> None:
    payload, size = scenario.answer("moments")[1], PUBLIC.ciphertext_bytes
    bad = value.to_bytes(size, "big")
    whole = bad + payload[size:] if place == "first" else payload[:-size] + bad
    failed(lambda: scenario.check_payload(claim(scenario, whole), whole), sentence)


def test_4_a_vector_of_another_length(scenario: Scenario) -> None:
    payload = scenario.answer("moments")[1][: -PUBLIC.ciphertext_bytes]
    failed(lambda: scenario.check_payload(claim(scenario, payload), payload), "length")


@pytest.mark.parametrize("index", range(5))
def test_4_a_code_outside_of_its_domain(scenario: Scenario, index: int) -> None:
    study, query = scenario.study, scenario.queries["rows"]
    rows = share_rows(study)[0]
    codings = codings_of(study)
    columns = [column.copy() for column in query.read_answer(scenario.answer("rows")[1], study, "north")]
    assert [len(column) for column in columns] == [rows] * 5
    columns[index][-1] = codings[index].size - 1
    sound = query.write_answer(columns)
    scenario.check_payload(claim(scenario, sound, "rows"), sound, "rows")
    columns[index][-1] = codings[index].size
    broken = query.write_answer(columns)
    failed(
        lambda: scenario.check_payload(claim(scenario, broken, "rows"), broken, "rows"), study.attributes[index].name
    )


@pytest.mark.parametrize("change", ["a byte less", "a byte more", "a column less", "a row less", "other bytes"])
def test_4_rows_that_are_not_the_partys_share(scenario: Scenario, change: str) -> None:
    query, payload = scenario.queries["rows"], scenario.answer("rows")[1]
    columns = query.read_answer(payload, scenario.study, "north")
    other = {
        "a byte less": payload[:-1],
        "a byte more": payload + b"\0",
        "a column less": query.write_answer(columns[:-1]),
        "a row less": query.write_answer([column[:-1] for column in columns]),
        "other bytes": b"\xff" * len(payload),
    }[change]
    failed(lambda: scenario.check_payload(claim(scenario, other, "rows"), other, "rows"), "an answer")


def test_4_no_rows_at_all_are_rows() -> None:
    study = make_study(output_rows=1)
    assert share_rows(study) == (0, 0, 1)
    query = Synthesize(make_model(study), share_rows(study))
    nothing = query.write_answer([np.zeros(0, dtype=coding.dtype) for coding in codings_of(study)])
    assert [len(column) for column in query.read_answer(nothing, study, "north")] == [0] * 4
    assert len(nothing) in query.answer_bytes(study, "north")
    failed(lambda: query.read_answer(b"", study, "north"), "one column for each attribute")
    failed(lambda: query.read_answer(nothing, study, "valley"), "has the wrong length")


# The countersignature


def test_the_countersignature_covers_every_step(scenario: Scenario) -> None:
    submission, key = scenario.answer("rows")[0], identity_of("north").public_key
    steps = scenario.steps("rows")
    check_account("north", submission, steps, key, CURATOR_KEY)
    cheaper = [replace(steps[0], cost=steps[1].cost), steps[1]]
    for other in (steps[:1], steps[::-1], cheaper, [replace(steps[0], query="00"), steps[1]], []):
        failed(lambda other=other: check_account("north", submission, other, key, CURATOR_KEY), "account")  # type: ignore[misc]
    failed(lambda: check_account("valley", submission, steps, key, CURATOR_KEY), "account")
    moved = replace(submission, transcript=bytes(32))
    failed(lambda: check_account("north", moved, steps, key, CURATOR_KEY), "account")
    failed(lambda: check_account("north", submission, steps, key, key), "account")


# 6. after decryption


def exact_moments(study: Study) -> NDArray[np.int64]:
    design = moment_design(study)
    total: NDArray[np.int64] = np.sum([sum_moments(design, draw_columns(study, e.name)) for e in study.roster], axis=0)
    return total


def terms_of(study: Study) -> SumTerms:
    return SumMoments().terms(plan_study(study).step("moments"), study)


@pytest.fixture(scope="module")
def large() -> Study:
    """Enough rows and epsilon that a gross lie stands out of the noise."""
    return make_study(rows=(4_000, 5_000, 6_000), epsilon="10")


def test_6_honest_noise_raises_no_alarm(large: Study) -> None:
    terms, exact = terms_of(large), exact_moments(large)
    check_moments(large, terms, exact, large.total_rows)
    for seed in range(300):
        coins = seeded(seed)
        released = exact.copy()
        for _ in large.roster:
            released += sample_runs(terms.runs, coins=coins)
        check_moments(large, terms, released, large.total_rows)


def block_counts(study: Study) -> list[int]:
    """Where in the vector the counts of the one-hot blocks stand."""
    design = moment_design(study)
    numbers = np.full((design.width, design.width), -1)
    numbers[design.asked()] = np.arange(design.length)
    return [int(numbers[i, i]) for _, place in design.block_slices() for i in range(place.start, place.stop)]


def test_6_a_party_that_claims_other_rows_is_found(large: Study) -> None:
    """One party counts its rows twice in a block, or not at all."""
    terms, unit = terms_of(large), moment_design(large).unit
    for sign in (1, -1):
        lie = exact_moments(large)
        lie[block_counts(large)[1]] += sign * 4 * unit**2 * 5_000
        failed(lambda lie=lie: check_moments(large, terms, lie, large.total_rows), "do not add up")  # type: ignore[misc]


def test_6_a_moment_out_of_range(large: Study) -> None:
    terms = terms_of(large)
    for value in (terms.high + terms.noise_bound + 1, terms.low - terms.noise_bound - 1):
        lie = exact_moments(large)
        lie[0] = value
        failed(lambda lie=lie: check_moments(large, terms, lie, large.total_rows), "out of range")  # type: ignore[misc]


def test_6_pairs_of_blocks_add_up_too() -> None:
    wards = [categorical(name, ("a", "b", "c")) for name in ("one", "two")]
    study = make_study(rows=(4_000, 5_000, 6_000), epsilon="10", schema=wards)
    terms, design = terms_of(study), moment_design(study)
    exact = exact_moments(study)
    check_moments(study, terms, exact, study.total_rows)
    numbers = np.full((design.width, design.width), -1)
    numbers[design.asked()] = np.arange(design.length)
    exact[numbers[1, 5]] += 4 * design.unit**2 * 5_000
    failed(lambda: check_moments(study, terms, exact, study.total_rows), "do not add up")


SETS: Sets = ((0, 1), (1, 2), (0, 2))
MARGINALS = SumMarginals(SETS)


def marginals_case() -> tuple[Study, SumTerms, list[NDArray[np.int64]]]:
    """Three tables that overlap, of three features with 2, 3 and 4 values, without noise."""
    method = {"name": "dp-subn", "encoding": "vanilla"}
    schema = [categorical(f"x{i}", size) for i, size in enumerate((2, 3, 4))]
    study = make_study(rows=(4_000, 5_000, 6_000), epsilon="10", schema=schema, method=method)
    terms = SumMarginals(SETS).terms(plan_study(study).step("correlations"), study)
    columns = [
        np.concatenate(parts) for parts in zip(*(draw_columns(study, e.name) for e in study.roster), strict=True)
    ]
    tables = [
        np.bincount(columns[x] * (2, 3, 4)[y] + columns[y], minlength=(2, 3, 4)[x] * (2, 3, 4)[y]) for x, y in SETS
    ]
    return study, terms, [table.astype(np.int64) for table in tables]


def test_6_marginals_with_honest_noise_raise_no_alarm() -> None:
    study, terms, tables = marginals_case()
    check_marginals(study, terms, MARGINALS, tables)
    for seed in range(100):
        coins = seeded(seed)
        noise = sum(sample_runs(terms.runs, coins=coins) for _ in study.roster)
        assert not isinstance(noise, int)
        released = SumMarginals(SETS).split(np.concatenate(tables) + noise, study)
        check_marginals(study, terms, MARGINALS, released)


@pytest.mark.parametrize("place", range(3))
def test_6_a_marginal_that_counts_other_rows_is_found(place: int) -> None:
    for sign in (1, -1):
        study, terms, tables = marginals_case()
        tables[place] += sign * terms.noise_bound
        check_marginals(study, terms, MARGINALS, tables)
        tables[place][-1] += sign
        failed(lambda t=(study, terms, MARGINALS, tables): check_marginals(*t), "do not add up")  # type: ignore[misc]


def test_6_a_count_that_no_rows_and_noise_give_is_found() -> None:
    study, terms, tables = marginals_case()
    for end in (-terms.noise_bound, study.total_rows + terms.noise_bound):
        lie = [table.copy() for table in tables]
        lie[2][3] = end + (1 if end > 0 else -1)
        failed(lambda t=lie: check_marginals(study, terms, MARGINALS, t), "count is out of range: some party's answer")  # type: ignore[misc]


# 6. one party's own answer


class OwnTables:
    """Overlapping tables of one party's rows, with groups and uneven shares, without noise."""

    def __init__(self) -> None:
        self.study, _, _ = marginals_case()
        self.query = LocalMarginals(((0, 1), (0, 3), (3,)), (Grouping(2, (0, 1, 0, 2)),), (1, 20, 5))
        self.query.check(self.study)
        party = next(step.answerers for step in plan_study(self.study).steps if step.kind is QueryKind.LOCAL_MARGINALS)
        self.name, self.step = party[0], plan_study(self.study).steps_of(party[0])[-1]
        self.rows = self.study.roster[self.study.index_of(self.name)].rows
        self.bound = bound_noise(self.query.runs(self.step, self.study))
        self.exact = exact_counts(self.query, self.study, draw_columns(self.study, self.name))

    def check(self, counts: NDArray[np.int64]) -> None:
        tables = self.query.split_tables(counts, self.study)
        check_local_marginals(self.name, self.step, self.study, self.query, tables)

    def fails(self, counts: NDArray[np.int64], what: str) -> None:
        failed(lambda: self.check(counts), f"{what}: the answer of {self.name} to round {self.step.label} is not sound")


def test_6_a_partys_own_tables_with_honest_noise_raise_no_alarm() -> None:
    own = OwnTables()
    assert own.rows < own.study.total_rows
    own.check(own.exact)
    for seed in range(50):
        noise = sample_runs(own.query.runs(own.step, own.study), coins=seeded(seed))
        assert np.abs(noise).max() <= own.bound
        own.check(own.exact + noise)


@pytest.mark.parametrize("place", [0, 6, 12])
def test_6_a_count_of_a_party_that_its_rows_cannot_give_is_found(place: int) -> None:
    own = OwnTables()
    for end, beyond in ((-own.bound, -1), (own.rows + own.bound, 1)):
        lie = own.exact.copy()
        lie[place] = end + beyond
        own.fails(lie, "a released count is out of range")


def test_6_any_64_bits_in_a_partys_answer_are_found() -> None:
    """Also where they add up, in 64 bits, to what they should."""
    own = OwnTables()
    for lie in (np.full(15, 2**63 - 1), np.full(15, -(2**63)), np.where(np.arange(15) % 2, 2**63 - 1, -(2**63))):
        own.fails(lie, "a released count is out of range")
    lie = own.exact.copy()
    lie[:2] += -(2**63)
    assert lie[:6].sum() == own.rows
    own.fails(lie, "a released count is out of range")


@pytest.mark.parametrize(("first", "last"), [(0, 6), (6, 12), (12, 15)])
def test_6_a_table_of_a_party_that_counts_other_rows_is_found(first: int, last: int) -> None:
    own = OwnTables()
    for sign in (1, -1):
        lie = own.exact.copy()
        lie[first:last] += sign * own.bound
        own.check(lie)
        lie[first + 1] += sign
        own.fails(lie, "released counts do not add up to the row count")


def test_6_tables_of_a_party_that_disagree_are_found() -> None:
    """Each has the party's rows, but one has the groups in other numbers than the other."""
    own = OwnTables()
    lie, gap = own.exact.copy(), 3 * own.bound
    lie[[12, 13]] += (gap, -gap)
    assert lie.min() >= -own.bound
    assert lie.max() <= own.rows + own.bound
    own.check(lie)
    lie[[12, 13]] += (1, -1)
    own.fails(lie, "released marginals disagree with each other")


def test_4_a_partys_own_answer_that_is_none_is_refused_by_name() -> None:
    own = OwnTables()
    payload = own.query.write_answer([own.exact[:-1]])
    submission = Submission(b"", b"", own.step.label, b"", b"", len(payload), digest_of(payload))
    parties = parties_in_memory(own.study, [draw_columns(own.study, name) for name in own.study.party_names])
    asked = AskedRound.bind(own.study, make_transcript(own.study, parties), own.step, own.query)
    sentence = f"the answer of {own.name} to round {own.step.label} is not sound: .* one count for each cell"
    failed(lambda: check_payload(own.name, submission, payload, asked), sentence)


def test_6_marginals_that_disagree_are_found() -> None:
    """The total is right, but the second table has the values of feature 1 in other numbers than the first."""
    study, terms, tables = marginals_case()
    gap = (2 + 4) * terms.noise_bound
    tables[1][0] += gap + 1
    tables[1][8] -= gap + 1
    failed(lambda: check_marginals(study, terms, MARGINALS, tables), "disagree with each other")
    tables[1][0] -= 1
    tables[1][8] += 1
    check_marginals(study, terms, MARGINALS, tables)


def test_6_grouped_marginals_with_uneven_shares_raise_no_alarm() -> None:
    """The bound is that of the noisiest table."""
    study, _, _ = marginals_case()
    query = SumMarginals(((0, 1), (0, 3), (3,)), (Grouping(2, (0, 1, 0, 2)),), (1, 20, 5))
    query.check(study)
    terms = query.terms(plan_study(study).step("correlations"), study)
    exact = np.sum([exact_counts(query, study, draw_columns(study, e.name)) for e in study.roster], axis=0)
    for seed in range(50):
        coins = seeded(seed)
        noise = np.sum([sample_runs(terms.runs, coins=coins) for _ in study.roster], axis=0)
        check_marginals(study, terms, query, query.split(exact + noise, study))
    lie = exact.copy()
    lie[-1] += 3 * terms.noise_bound + 1
    failed(lambda: check_marginals(study, terms, query, query.split(lie, study)), "do not add up")
    lie[-2] -= 3 * terms.noise_bound + 1
    failed(lambda: check_marginals(study, terms, query, query.split(lie, study)), "disagree with each other")
    lie[-1] -= 1
    lie[-2] += 1
    check_marginals(study, terms, query, query.split(lie, study))


class Agreed:
    """Pairs of five features, two of them with two values, under two splits, without noise."""

    def __init__(self, weight: int = 3, epsilon: str = "10") -> None:
        schema = [categorical(f"x{i}", size) for i, size in enumerate((2, 3, 4, 2, 3))]
        method = {"name": "dp-subn", "encoding": "vanilla"}
        self.study = make_study(rows=(4_000, 5_000, 6_000), epsilon=epsilon, schema=schema, method=method)
        self.query = SumAgreements((b"\xa5\x4c", b"\x11\x34"), weight)
        self.query.check(self.study)
        limit = self.query.size(self.study)
        names, cost = self.study.party_names, self.study.budget
        step = Step("look", "looking", QueryKind.SUM_AGREEMENTS, names, cost, limit)
        self.terms = self.query.terms(step, self.study)
        self.bound = self.terms.noise_bound
        tables = [draw_columns(self.study, entry.name) for entry in self.study.roster]
        self.exact = np.sum([count_agreements(self.query, self.study, table) for table in tables], axis=0)

    def check(self, sums: NDArray[np.int64]) -> None:
        check_agreements(self.study, self.terms, self.query.split(sums, self.study), self.study.total_rows)


@pytest.mark.parametrize("weight", [0, 3])
@pytest.mark.parametrize("epsilon", ["10", "0.05"])
def test_6_agreements_with_honest_noise_raise_no_alarm(weight: int, epsilon: str) -> None:
    case = Agreed(weight, epsilon)
    case.check(case.exact)
    for seed in range(100):
        coins = seeded(seed)
        noise = np.sum([sample_runs(case.terms.runs, coins=coins) for _ in case.study.roster], axis=0)
        case.check(case.exact + noise)


def test_6_no_noise_within_the_bound_raises_an_alarm() -> None:
    """Every row alike, so that pairs are at the ends of their ranges; and noise at the ends of its own."""
    case = Agreed()
    for code in range(2):
        table = [np.full(15_000, code % coding.size, dtype=coding.dtype) for coding in codings_of(case.study)]
        exact = count_agreements(case.query, case.study, table)
        rng = np.random.default_rng(code)
        for _ in range(200):
            case.check(exact + case.bound * rng.choice([-1, 1], len(exact)))
        for sign in (-1, 1):
            case.check(exact + sign * case.bound)


@pytest.mark.parametrize("place", [0, 1, 2, 5, 11, 12, 21])
def test_6_an_agreement_out_of_range_is_found(place: int) -> None:
    """A count of ones may be as large as the rows times its weight, a pair's number no larger than the rows."""
    case = Agreed()
    most = 3 * 15_000 if place < 2 else 15_000
    for value in (-case.bound - 1, most + case.bound + 1):
        lie = case.exact.copy()
        lie[place] = value
        failed(lambda lie=lie: case.check(lie), "out of range")  # type: ignore[misc]


@pytest.mark.parametrize("split", range(2))
@pytest.mark.parametrize("three", list(combinations(range(5), 3)))
def test_6_three_features_that_contradict_each_other_are_found(three: tuple[int, ...], split: int) -> None:
    """Each number is possible; but no pair of the three agrees in any row, or two of them do and the third does not."""
    case = Agreed()
    places = list(combinations(range(5), 2))
    pairs = [2 + 10 * split + places.index(pair) for pair in combinations(three, 2)]
    for numbers in ((0, 0, 0), (15_000, 15_000, 0), (15_000, 0, 15_000), (0, 15_000, 15_000)):
        lie = np.full(len(case.exact), 7_500)
        lie[pairs] = numbers
        failed(lambda lie=lie: case.check(lie), "contradict each other")  # type: ignore[misc]


def test_6_contradictions_are_found_from_three_bounds_on() -> None:
    case = Agreed()
    agreed = np.full(len(case.exact), 7_500)
    low, high = agreed.copy(), agreed.copy()
    low[[2, 3, 6]] = 5_000 - case.bound
    high[[2, 3, 6]] = [12_000 + case.bound, 12_000 + case.bound, 9_000 - case.bound]
    for sums, change in ((low, -1), (high, 1)):
        sums[[4, 5, 7, 8, 9, 10, 11]] = 9_000
        case.check(sums)
        sums[2] += change
        failed(lambda sums=sums: case.check(sums), "contradict each other")  # type: ignore[misc]
