"""A release's method run again over the released answers: it asks the same queries, and ends with the same model, rows
and report.

A recipe is a function of study, answers and seed, so this proves that everything published follows from the answers,
and that no query was asked but the method's own. Floats may come out otherwise on another machine: what differs then is
said, and taken as stated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import Verdict
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SharedQuery, SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.study import CURATOR_NAME, Study
from synod.curator.checks import check_local_marginals
from synod.curator.combine import CHECKED
from synod.curator.methods.base import Parties, Publication, finish_at_once, publish
from synod.curator.release.files import MODEL_FILE, PARQUET_FILE, REPORT_FILE, first_rows
from synod.curator.release.report.page import write_report
from synod.curator.release.report.sections import Imprint
from synod.curator.release.versions import find_differences

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")
EXACTLY, NEARLY = "bit for bit", "up to rounding"
CLOSE = 1e-6
FINE = 10_000  # a list of larger numbers than this is in units that are a part of something


@dataclass(frozen=True, slots=True)
class Found:
    """What a check proved, and what it could not prove."""

    lines: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


def check_sums(folder: Path, verdict: Verdict) -> Found:
    """The released numbers agree with the public row counts and with each other, as far as their noise allows: check 6
    of a round, made again.
    """
    study, answers = verdict.study, ReleasedAnswers(folder / ANSWERS_FILE, verdict.study, verdict.queries)
    checked = 0
    for step in plan_study(study).steps:
        query = verdict.queries.get(step.label)
        try:
            if isinstance(query, SumQuery):
                sums = query.join(answers.read(step.label))
                CHECKED[query.kind](query, study, query.terms(step, study), sums)
            elif isinstance(query, LocalMarginals):
                check_local_marginals(step.answerers[0], step, study, query, answers.read(step.label))
            else:
                continue
        except SynodError as error:
            raise check_failed(f"the released answer to {step.label} cannot be true: {error.sentence}") from None
        checked += 1
    return Found(
        (f"the noisy counts of {checked} answers agree with the row counts and each other",) if checked else ()
    )


class OtherQueryError(Exception):
    """The recipe asks something else than the release states."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label


@dataclass(slots=True)
class ReplayedParties(Parties):
    """Implements `Parties` over released answers: each query must be the stated one, of those who were present."""

    study: Study
    queries: dict[str, AnyQuery]
    answers: ReleasedAnswers
    is_lenient: bool
    asked: list[str] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        stated = self.queries.get(label)
        if stated is None or type(stated) is not type(query):
            raise OtherQueryError(label)
        if isinstance(query, SharedQuery):
            query = query.asked_of(self.present(label), self.study)
        own, theirs = query.to_json(), stated.to_json()
        if canonical_bytes(own) != canonical_bytes(theirs):
            if not (self.is_lenient and is_close(own, theirs)):
                raise OtherQueryError(label)
            self.rounded.append(label)
        self.asked.append(label)
        answer: AnswerT = self.answers.read(label)
        return query.estimate(answer, self.study) if isinstance(query, SumQuery) else answer

    async def ask_one(self, label: str, query: Query[AnswerT]) -> AnswerT | None:
        """Implements `Parties.ask_one`: what has no query was skipped, because its party was lost."""
        if label not in self.queries:
            return None
        return await self.ask(label, query)

    def present(self, label: str) -> tuple[int, ...]:
        """Implements `Parties.present`, as stated."""
        stated = self.queries[label]
        return stated.present if isinstance(stated, SharedQuery) else ()

    def require_all_asked(self) -> None:
        """Raises unless the recipe has asked every stated query."""
        for label in self.queries:
            if label not in self.asked:
                raise OtherQueryError(label)

    async def compute(self, work: Callable[[], T]) -> T:
        """Implements `Parties.compute`."""
        return work()

    async def remember(self, label: str, compute: Callable[[], Json]) -> Json:  # noqa: ARG002
        """Implements `Parties.remember`: what the curator noted is computed anew."""
        return compute()


def rerun_recipe(folder: Path, verdict: Verdict, model: Json, check_rows: Callable[[Publication], str | None]) -> Found:
    """Runs the method again over the released answers, and says what came out as it was released.

    `model` is that of the release; `check_rows` compares the rows and says what that proved, or nothing where the rows
    do not come from the recipe.

    Guarantee: with the versions and the arithmetic that the release states, everything is compared bit for bit, and
    whatever differs is refused. With others, what comes out otherwise is said to be unproven, and so never passes in
    silence; what differs by no more than rounding could is said to be so.

    Raises:
        SynodError: something differs, and nothing that the release states explains it.
    """
    others = find_differences(verdict.versions)
    judge = _Judge(verdict.study, others)
    answers = ReleasedAnswers(folder / ANSWERS_FILE, verdict.study, verdict.queries)
    parties = ReplayedParties(verdict.study, verdict.queries, answers, bool(others))
    try:
        publication = finish_at_once(publish(verdict.study, parties, seed=verdict.seed))
        parties.require_all_asked()
    except OtherQueryError as other:
        judge.differs(f"the query of {other.label}", after=True)
        return judge.found()
    except (ArithmeticError, AssertionError, LookupError, SynodError, TypeError, ValueError):
        judge.differs(MODEL_FILE, after=True)
        return judge.found()
    judge.agrees(f"all {len(parties.asked)} queries", NEARLY if parties.rounded else EXACTLY)
    _check_model(judge, model, publication)
    _check_rows(judge, publication, check_rows)
    _check_report(judge, folder, verdict, publication, answers)
    return judge.found()


@dataclass(slots=True)
class _Judge:
    """Collects what was proven; what differs is refused, unless the release was computed with something else."""

    study: Study
    others: list[str]
    lines: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)

    def agrees(self, what: str, how: str) -> None:
        self.lines.append(f"computed again from the released answers, {how}: {what}")

    def differs(self, what: str, *, after: bool = False) -> None:
        """`after`: what comes after it could not be compared either."""
        if not self.others:
            raise check_failed(
                f"{what} is not what {self.study.method.name} gives for the released answers.",
                "Do not use the release; ask the curator's operator.",
            )
        self.unproven.append(
            f"that {what}{' and all that depends on it' * after} follows from the released answers: it comes out "
            f"otherwise here, and the release was computed otherwise ({', '.join(self.others)})"
        )

    def found(self) -> Found:
        return Found(tuple(self.lines), tuple(self.unproven))


def _check_model(judge: _Judge, model: Json, publication: Publication) -> None:
    if canonical_bytes(model) == canonical_bytes(publication.model):
        judge.agrees(MODEL_FILE, EXACTLY)
    elif judge.others and is_close(model, publication.model):
        judge.agrees(MODEL_FILE, NEARLY)
    else:
        judge.differs(MODEL_FILE)


def _check_rows(judge: _Judge, publication: Publication, check: Callable[[Publication], str | None]) -> None:
    try:
        drawn = check(publication)
    except SynodError as error:
        if not judge.others:
            raise
        judge.differs(f"the table of rows ({error.sentence.rstrip('.')})")
        return
    if drawn:
        judge.agrees(drawn, EXACTLY)


def _check_report(
    judge: _Judge, folder: Path, verdict: Verdict, publication: Publication, released: ReleasedAnswers
) -> None:
    imprint = Imprint(
        verdict.signers[CURATOR_NAME],
        verdict.transcript_hash.hex(),
        verdict.seed,
        str(verdict.versions["synod-dp"]),
        verdict.published,
    )
    answers = {label: released.read(label) for label in verdict.queries}
    rows = first_rows(pa.parquet.read_table(folder / PARQUET_FILE))
    page = write_report(
        verdict.study, publication, verdict.queries, imprint, verdict.losses, answers=answers, preview=rows
    )
    if (folder / REPORT_FILE).read_bytes() == page.encode():
        judge.agrees(REPORT_FILE, EXACTLY)
    else:
        judge.differs(REPORT_FILE)


def is_close(one: Json, other: Json, largest: int = 0) -> bool:
    """Whether two values are the same but for numbers that rounding may have moved: by a millionth of the largest
    number of their list, or by 1 where that is in fine units. Small numbers, which say which and how many, must be
    equal.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        largest = max((abs(own) for own in (*one, *other) if type(own) is int), default=0)
        return len(one) == len(other) and all(is_close(a, b, largest) for a, b in zip(one, other, strict=True))
    if type(one) is int and type(other) is int:
        largest = max(largest, abs(one), abs(other))
        return abs(one - other) <= max(largest * CLOSE, 1 if largest >= FINE else 0)
    return type(one) is type(other) and one == other
