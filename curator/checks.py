"""The checks between a submission and a release, numbered as in the protocol. Pure.

A failed check before acceptance refuses the submission and changes nothing; a failed check after decryption aborts
the study. Nothing is retried by itself, or one bad party could drain everyone's budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.identity import require_signature
from synod.common.crypto.paillier import PublicKey, check_ciphertexts
from synod.common.protocol.queries.agreements import Agreements
from synod.common.protocol.queries.base import ClearQuery, SumQuery, SumTerms, bound_noise
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals, Tables
from synod.common.protocol.queries.moments import moment_design
from synod.common.protocol.queries.parsing import AnyQuery, answerers_of, query_digest
from synod.common.protocol.steps import Step
from synod.common.protocol.submission import AnsweredStep, Submission, account_statement, digest_of
from synod.common.protocol.transcript import Transcript
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.features import sizes_of
from synod.common.study.study import Study

SOMEBODY = "some party's answer is not sound"


@dataclass(frozen=True, slots=True)
class AskedRound:
    """A round, with what every answer to it is bound to: T and Q, which are as long to hash as the roster is."""

    study: Study
    transcript: Transcript
    step: Step
    query: AnyQuery
    transcript_hash: bytes
    query_hash: bytes

    @classmethod
    def bind(cls, study: Study, transcript: Transcript, step: Step, query: AnyQuery) -> Self:
        """Hashes both, once for all parties."""
        return cls(study, transcript, step, query, transcript.digest(study), query_digest(query, step, study))

    def identity_of(self, party: str) -> bytes:
        """The key with which a party of the roster has enrolled."""
        return self.transcript.enrolments[self.study.index_of(party)].identity


def check_header(party: str, submission: Submission, asked: AskedRound) -> None:
    """Checks 1 to 3 on a submission's header, before any of its bytes are taken."""
    study, step, query, public = asked.study, asked.step, asked.query, asked.transcript.key
    # 1. sender on the roster and signature valid
    if party not in answerers_of(query, step, study):
        raise check_failed(f"{party} has no part in round {step.label}.")
    statement = submission.statement(party)
    require_signature(asked.identity_of(party), "answer", statement, submission.signature, signer=party)
    # 2. T, round, Q and key id match
    bound = (submission.transcript, submission.label, submission.query, submission.key_id.hex())
    if bound != (asked.transcript_hash, step.label, asked.query_hash, public.key_id):
        raise check_failed(f"the answer of {party} is bound to another transcript, round, query or key.")
    # 3. vector length
    if submission.length not in answer_bytes(party, query, step, study, public):
        raise check_failed(f"the answer of {party} to round {step.label} has the wrong length.")


def answer_bytes(party: str, query: AnyQuery, step: Step, study: Study, public: PublicKey) -> range:
    """How long a sound answer may be."""
    if isinstance(query, SumQuery):
        exact = query.terms(step, study).layout(study.key_bits).ciphertexts * public.ciphertext_bytes
        return range(exact, exact + 1)
    assert isinstance(query, ClearQuery)
    return query.answer_bytes(study, party)


def check_payload(party: str, submission: Submission, payload: bytes, asked: AskedRound) -> None:
    """The payload is what the header says, and check 4, or what takes its place where the answer is in the clear."""
    study, step, query = asked.study, asked.step, asked.query
    if len(payload) != submission.length or digest_of(payload) != submission.digest:
        raise check_failed(f"the answer of {party} is not the one that its header describes.")
    # 4. each ciphertext in range and coprime to n
    if isinstance(query, SumQuery):
        check_ciphertexts(asked.transcript.key, payload, query.terms(step, study).layout(study.key_bits).ciphertexts)
        return
    try:
        query.read_answer(payload, study, party)
    except SynodError as error:
        raise check_failed(f"{_blame(party, step)}: {error.sentence}") from None


def check_account(
    party: str, submission: Submission, steps: list[AnsweredStep], identity: bytes, curator: bytes
) -> None:
    """The countersignature covers this curator, and exactly the steps that this party answered."""
    statement = account_statement(party, curator, submission.transcript, steps)
    require_signature(identity, "account", statement, submission.account_signature, signer=party)


def check_moments(study: Study, terms: SumTerms, moments: NDArray[np.int64], rows: int) -> None:
    """Check 6 for moments: they agree with the public row count and with each other.

    `rows` are those of the parties present. Every moment lies in its range, and the counts of every one-hot block and
    of every pair of blocks add up to the row count, all within what the noise can do: the sum of m noise terms exceeds
    m times the packing's bound with probability below 2**-64, so a false alarm is rarer than 2**-40.
    """
    design = moment_design(study)
    if moments.min() < terms.low - terms.noise_bound or moments.max() > terms.high + terms.noise_bound:
        raise check_failed(f"a released moment is out of range: {SOMEBODY}.")
    gram = np.zeros((design.width, design.width), dtype=np.int64)
    gram[design.asked()] = moments
    places = [place for _, place in design.block_slices()]
    total = 4 * design.unit**2 * rows
    blocks = [np.diag(gram)[place] for place in places]
    blocks += [gram[a, b] for i, a in enumerate(places) for b in places[i + 1 :]]
    for counts in blocks:
        _check_total(int(counts.sum()), total, counts.size * terms.noise_bound, SOMEBODY)


def check_marginals(study: Study, terms: SumTerms, query: SumMarginals, tables: Sequence[NDArray[np.int64]]) -> None:
    """Check 6 for marginals: every count lies in its range, every total agrees with the public row count, and
    overlapping marginals with each other, entry by entry; the bound is that of `check_moments`.
    """
    rows = query.present_rows(study)
    _check_tables(study, query, tables, rows=rows, bound=terms.noise_bound, blame=SOMEBODY)


def check_local_marginals(
    party: str, step: Step, study: Study, query: LocalMarginals, tables: Sequence[NDArray[np.int64]]
) -> None:
    """Check 6 for one party's own marginals: that of `check_marginals`, with the party's public row count and its own
    noise. Whose answer it is, is known, and the refusal says so.
    """
    rows, bound = study.roster[study.index_of(party)].rows, bound_noise(query.runs(step, study))
    _check_tables(study, query, tables, rows=rows, bound=bound, blame=_blame(party, step))


def _check_tables(
    study: Study, query: Tables, tables: Sequence[NDArray[np.int64]], *, rows: int, bound: int, blame: str
) -> None:
    """Ranges come first: a party's own answer may hold any 64-bit integers, and those can add up to anything."""
    sizes = query.entry_sizes(study)
    if any(table.min() < -bound or table.max() > rows + bound for table in tables):
        raise check_failed(f"a released count is out of range: {blame}.")
    seen: dict[int, tuple[NDArray[np.int64], int]] = {}
    for features, table in zip(query.sets, tables, strict=True):
        _check_total(int(table.sum()), rows, table.size * bound, blame)
        cube = table.reshape([sizes[feature] for feature in features])
        for axis, feature in enumerate(features):
            margin = cube.sum(axis=tuple(i for i in range(len(features)) if i != axis))
            terms_in_cell = table.size // sizes[feature]
            first, first_terms = seen.setdefault(feature, (margin, terms_in_cell))
            if np.abs(margin - first).max() > (terms_in_cell + first_terms) * bound:
                raise check_failed(f"released marginals disagree with each other: {blame}.")


def check_agreements(study: Study, terms: SumTerms, answer: Agreements, rows: int) -> None:
    """Check 6 for agreements: every number lies in its range, and every three features are possible together: in each
    row one of their pairs agrees, or all three do, so of n rows ab + ac + bc >= n and ab + ac - bc <= n agree. No
    number's noise exceeds the packing's bound, but with probability 2^-64.
    """
    bound = terms.noise_bound
    for numbers, most in ((answer.ones, terms.high), (answer.pairs.ravel(), rows)):
        if ((numbers < -bound) | (numbers > most + bound)).any():
            raise check_failed(f"a released agreement is out of range: {SOMEBODY}.")
    features = len(sizes_of(study))
    first, second = np.triu_indices(features, 1)
    square = np.full((features, features), rows, dtype=np.int64)
    for pairs in answer.pairs:
        square[first, second] = square[second, first] = pairs
        for one in square:
            both = one[:, None] + one
            if (both + square).min() < rows - 3 * bound or (both - square).max() > rows + 3 * bound:
                raise check_failed(f"released agreements contradict each other: {SOMEBODY}.")


def _check_total(total: int, expected: int, bound: int, blame: str) -> None:
    if abs(total - expected) > bound:
        raise check_failed(f"released counts do not add up to the row count: {blame}.")


def _blame(party: str, step: Step) -> str:
    return f"the answer of {party} to round {step.label} is not sound"
