"""Each kind of query, answered as a party answers it, under neighbouring tables.

An encrypted sum is seen twice: as it is released, in a study without colluders, and by a curator that knows t parties'
secrets, who takes off their parts. Between a party's noisy integers and both of these are packing, masks and Paillier,
which are exact: tests/audit compares them, integer by integer, so that runs can be many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.audit.neighbours import (
    COLUMNS,
    EVERY_ROW,
    OTHERS,
    VALUES,
    Ledgers,
    Row,
    Rows,
    binary_schema,
    cut_rows,
    identity_of,
    make_study,
    read_rows,
    replace_first,
    seed_bytes,
)
from bench.audit.seen import Floats, Seen
from synod.common.crypto.paillier import SecretKey, generate_key
from synod.common.models.gaussian import GaussianModel
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.queries.agreements import SumAgreements, pack_signs
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals, Weights
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import QueryKind, Step
from synod.common.protocol.transcript import Transcript
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study, known_methods
from synod.party.answer import SUMMANDS, Round, answer, noisy_values
from synod.party.count.tables import exact_counts
from synod.party.table.snapshot import Snapshot

PAIRS = ((0, 1), (0, 2), (1, 2))
SINGLES = ((0,), (1,), (2,))
SPLIT = pack_signs([np.array([-1, 1], dtype=np.int8)] * 3)
PURE = Cost.pure(Fraction(3, 2))


@dataclass(frozen=True, slots=True)
class Runs:
    """How many runs are for training, and how many are counted, under each table."""

    training: int
    counted: int


RUNS = Runs(300, 1500)
CHOICE_RUNS = Runs(300, 3000)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with a cost, and whose rows it is asked about: the first party's first row is to be replaced."""

    name: str
    query: AnyQuery
    cost: Cost
    rows: Rows = EVERY_ROW
    canary: Row | None = None
    columns: int = COLUMNS


def _choice(score: str, *codes: str) -> Asked:
    """Which of two features gets the one parent that there is; the last row replaces the first."""
    rows = tuple(tuple(VALUES[int(code)] for code in row) for row in codes)
    query = ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 4, score)  # type: ignore[arg-type]
    return Asked(f"score {score}", query, PURE, rows[:-1], rows[-1])


# Tables of eight rows whose replaced row moves the odds of a choice nearly as far as the score's sensitivity allows.
QUESTIONS: tuple[Asked, ...] = (
    Asked("one table", SumMarginals((PAIRS[0],)), PURE),
    Asked("six tables", SumMarginals((*SINGLES, *PAIRS)), Cost.concentrated(Fraction(3, 8))),
    Asked(
        "shares and weights",
        SumMarginals(((0,), (0, 1)), shares=(1, 15), weights=(None, Weights(1, (2, 1)))),
        PURE,
    ),
    Asked("pairs", SumAgreements((SPLIT,)), PURE),
    Asked("ones and pairs", SumAgreements((SPLIT,), 4), Cost.concentrated(Fraction(3, 8))),
    Asked("two columns", SumMoments(), PURE, columns=2),
    Asked("three columns", SumMoments(), Cost.concentrated(Fraction(3, 8))),
    Asked("one table", LocalMarginals((PAIRS[0],)), PURE),
    Asked("six tables", LocalMarginals((*SINGLES, *PAIRS)), Cost.concentrated(Fraction(3, 8))),
    _choice("F", "000", "001", "011", "101", "110", "010", "101", "101", "011"),
    _choice("R", "101", "000", "011", "001", "000", "001", "111", "000", "110"),
    _choice("I", "110", "100", "010", "011", "011", "100", "011", "100", "101"),
)


@dataclass(frozen=True)
class Audited:
    """A row of the audit: what is claimed, and one run under the table without (0) or with (1) the canary."""

    kind: str
    name: str
    claim: Cost
    observe: Callable[[int, int], Seen]
    runs: Runs
    has_noise: bool = True

    @property
    def title(self) -> str:
        """The row's name."""
        return f"{self.kind}: {self.name}"


@dataclass(frozen=True)
class Questioned:
    """A question to the parties of a study, whose tables are neighbours."""

    asked: Asked
    study: Study
    step: Step
    tables: tuple[tuple[Snapshot, ...], tuple[Snapshot, ...]]

    @property
    def honest(self) -> range:
        """The parties that answer and do not collude; the canary's is the first of them."""
        return range(len(self.step.answerers) - self.study.collusion)

    def round_of(self, index: int, transcript: Transcript) -> Round:
        """The question as one party sees it, after its checks."""
        query_hash = query_digest(self.asked.query, self.step, self.study)
        return Round(
            self.study, self.step, self.asked.query, query_hash, transcript, transcript.digest(self.study), index
        )

    def ledgers(self, side: int) -> Ledgers:
        """The parties' ledgers."""
        return Ledgers.of(self.study, self.tables[side])


@cache
def secret_key() -> SecretKey:
    """The curator's Paillier key."""
    return generate_key(2048, coins=Coins(seed_bytes("paillier")))


def state_heads(name: str) -> StatedHeads:
    """What a party states of its ledger; no answer depends on it."""
    return StatedHeads(Head(2, seed_bytes("head", name), seed_bytes("ledger", name)))


def make_transcript(questioned: Questioned, side: int, *run: object) -> Transcript:
    """What an honest curator tells everybody in one run."""
    ledgers, names = questioned.ledgers(side), questioned.study.party_names
    enrolments = tuple(
        ledgers.secrets(i, *run).enrolment(name, identity_of(name), state_heads(name)) for i, name in enumerate(names)
    )
    return Transcript(questioned.study.digest(), secret_key().public, identity_of("curator").public_key, enrolments)


def put_question(asked: Asked, parties: int, collusion: int) -> Questioned:
    """A question in a study of the first method that it is sound for; where no canary is given, that which moves the
    answer the most.
    """
    study = _study_for(asked, parties, collusion)
    answerers = study.party_names if asked.query.kind.is_sum else study.party_names[:1]
    step = Step("audited", "audited", asked.query.kind, answerers, asked.cost, asked.query.size(study))
    others = tuple(read_rows(study, cut_rows(OTHERS, asked.columns)) for _ in range(parties - 1))
    rows, canaries = cut_rows(asked.rows, asked.columns), [asked.canary] if asked.canary else EVERY_ROW
    snapshots = [(read_rows(study, rows), *others)]
    snapshots += [(read_rows(study, replace_first(rows, canary[: asked.columns])), *others) for canary in canaries]
    found = [Questioned(asked, study, step, (snapshots[0], other)) for other in snapshots[1:]]
    return max(found, key=_loss) if len(found) > 1 else found[0]


def _study_for(asked: Asked, parties: int, collusion: int) -> Study:
    for method in sorted(known_methods()):
        study = make_study(method, parties, collusion, len(asked.rows), schema=binary_schema(asked.columns))
        try:
            asked.query.check(study)
        except SynodError:
            continue
        return study
    raise AssertionError("no method has features that this question is sound for")


def exact_numbers(questioned: Questioned, side: int) -> NDArray[np.int64]:
    """The exact numbers of the honest parties' rows that the question asks for; of one party where it answers alone."""
    query, study, tables = questioned.asked.query, questioned.study, questioned.tables[side]
    if isinstance(query, SumQuery):
        parts = [SUMMANDS[query.kind](query, study, tables[i].columns) for i in questioned.honest]
        return np.asarray(np.sum(parts, axis=0))
    assert isinstance(query, LocalMarginals)
    return exact_counts(query, study, tables[0].columns)


def variances_of(questioned: Questioned) -> Floats:
    """The variance of the noise on each number, as it is claimed."""
    query: Any = questioned.asked.query
    return np.concatenate([run.variances() for run in query.runs(questioned.step, questioned.study)])


def log_ratio(cost: Cost, numbers: NDArray[Any], exact: Sequence[NDArray[Any]], variances: Floats) -> float:
    """How much likelier noisy numbers are with the canary: by the Gaussian law for rho, else by that of Laplace."""
    away = [np.abs(numbers - one).astype(float) for one in exact]
    if cost.rho:
        return float(((away[0] ** 2 - away[1] ** 2) / (2 * variances)).sum())
    return float(((away[0] - away[1]) / np.sqrt(variances / 2)).sum())


def _loss(questioned: Questioned) -> float:
    """What a replaced row costs, by the laws."""
    exact = [exact_numbers(questioned, side) for side in (0, 1)]
    return log_ratio(questioned.asked.cost, exact[1], exact, variances_of(questioned))


# What is seen of one run


def audit_numbers(questioned: Questioned, view: str) -> Audited:
    """Noisy numbers: of the honest parties together, or of one party on its own."""
    asked, study = questioned.asked, questioned.study
    exact = [exact_numbers(questioned, side) for side in (0, 1)]
    variances, change = variances_of(questioned), exact[1] - exact[0]
    rise, fall = int(np.argmax(change)), int(np.argmin(change))
    transcript = make_transcript(questioned, 0, "enrolment")
    rounds = [questioned.round_of(index, transcript) for index in range(len(study.roster))]
    ledgers = [questioned.ledgers(side) for side in (0, 1)]

    def numbers_of(side: int, run: int) -> NDArray[np.int64]:
        parts = [
            part_of(questioned, rounds[i], side, ledgers[side], asked.name, view, side, run) for i in questioned.honest
        ]
        return np.asarray(np.sum(parts, axis=0))

    def observe(side: int, run: int) -> Seen:
        numbers = numbers_of(side, run)
        scores = {
            "canary's number": float(numbers[rise]),
            "replaced row's number": -float(numbers[fall]),
            "difference": float(numbers[rise] - numbers[fall]),
        }
        return Seen(log_ratio(asked.cost, numbers, exact, variances), numbers=numbers.astype(float), scores=scores)

    return Audited(asked.query.kind.value, f"{asked.name}, {view}", asked.cost, observe, RUNS)


def part_of(questioned: Questioned, asked: Round, side: int, ledgers: Ledgers, *run: object) -> NDArray[np.int64]:
    """One party's noisy numbers in one run: what it encrypts, or what it sends in the clear."""
    query: Any = asked.query
    columns, secrets = questioned.tables[side][asked.index].columns, ledgers.secrets(asked.index, *run)
    if isinstance(query, SumQuery):
        terms = query.terms(asked.step, asked.study)
        return noisy_values(query, asked.study, columns, terms, coins=asked.coins("noise", secrets))
    payload = answer(asked, columns, secrets=secrets, workers=1)
    return np.concatenate(query.read_answer(payload, asked.study))


def audit_clear(questioned: Questioned) -> Audited:
    """An answer in the clear that is no list of counts: choices, or rows."""
    asked = questioned.asked
    transcript = make_transcript(questioned, 0, "enrolment")
    told, ledgers = questioned.round_of(0, transcript), [questioned.ledgers(side) for side in (0, 1)]
    query: Any = asked.query
    canary = tuple(int(column[0]) for column in questioned.tables[1][0].columns)

    def observe(side: int, run: int) -> Seen:
        columns = questioned.tables[side][0].columns
        secrets = ledgers[side].secrets(0, asked.name, side, run)
        payload = answer(told, columns, secrets=secrets, workers=1)
        answered = query.read_answer(payload, questioned.study, questioned.step.answerers[0])
        if asked.query.kind is QueryKind.CHOOSE_PARENTS:
            return Seen(choices=(("audited", tuple(answered)),))
        equal = np.all([column == code for column, code in zip(answered, canary, strict=True)], axis=0)
        return Seen(scores={"rows like the canary": float(np.count_nonzero(equal))})

    return Audited(asked.query.kind.value, asked.name, asked.cost, observe, CHOICE_RUNS, has_noise=asked.cost != FREE)


def _rows_question() -> Asked:
    """The free query: rows of a public model."""
    study = _study_for(Asked("", SumMoments(), FREE), 2, 0)
    width = moment_design(study).width - 1
    model = GaussianModel(np.full((width, 1), 0.5), 0.5, np.zeros(width), np.full(width, 0.2))
    return Asked("rows of a public model", Synthesize(model, share_rows(study)), FREE)


def audited_queries() -> list[Audited]:
    """Every kind of query."""
    found = []
    for asked in QUESTIONS:
        if asked.query.kind.is_sum:
            found.append(audit_numbers(put_question(asked, parties=2, collusion=0), "released"))
            found.append(audit_numbers(put_question(asked, parties=3, collusion=1), "to t colluders"))
        elif isinstance(asked.query, LocalMarginals):
            found.append(audit_numbers(put_question(asked, parties=2, collusion=0), "own noise"))
        else:
            found.append(audit_clear(put_question(asked, parties=2, collusion=0)))
    found.append(audit_clear(put_question(replace(_rows_question(), canary=EVERY_ROW[-1]), parties=2, collusion=0)))
    return found
