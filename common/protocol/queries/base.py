"""What every private query is: a value that knows what it asks, how large it is, what its noise must be, and how its
answer is written and read. Both sides use the same class; neither believes a number about a query that it was sent.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import SlotLayout, plan_slots
from synod.common.privacy.laws import NoiseLaw, Sensitivity, noise_for
from synod.common.protocol.queries.noise_runs import Counts, Noise
from synod.common.protocol.queries.reading import is_ascending
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid, refused
from synod.common.study.promise import name_unit
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

AnswerT = TypeVar("AnswerT")
MessageT = TypeVar("MessageT", bound=Message)
PLACE_BYTES = 2  # a place in the roster is below 2^14


class Query(ABC, Generic[AnswerT]):
    """A private query; `AnswerT` is what a recipe gets for it."""

    kind: ClassVar[QueryKind]

    @abstractmethod
    def to_json(self) -> dict[str, Json]:
        """The canonical form, which Q is a hash over and the manifest holds."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form; raises KeyError, TypeError or ValueError where it is none."""

    @abstractmethod
    def to_proto(self) -> pb.Query:
        """The message that parties are sent."""

    @classmethod
    @abstractmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message; raises ValueError where a value has no meaning."""

    @abstractmethod
    def check(self, study: Study) -> None:
        """Raises unless this is a sound query about the study."""

    @abstractmethod
    def size(self, study: Study) -> Limit:
        """How large the query is, in the terms of a step's limit."""

    def exceeds(self, limit: Limit, study: Study) -> bool:
        """Whether it is beyond what a limit says of something that is not counted for its own sake, since that could
        take long; looked at when all else is within the limit.
        """
        del limit, study
        return False

    @abstractmethod
    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """The law of the answer's randomness, in exact numbers and in words; None where nothing is spent."""

    @classmethod
    @abstractmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """How long the message of a step's largest query may be: what is longer is not even read."""

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """Raises if the largest query of a step would have too little room for its noise or its packing."""
        del step, study

    def binding(self, step: Step, study: Study) -> dict[str, Json]:
        """What else an answer depends on, for Q."""
        del step, study
        return {}

    @abstractmethod
    def write_answer(self, answer: AnswerT) -> bytes:
        """An answer as bytes: what a party sends in the clear, and what the curator's log keeps."""

    @abstractmethod
    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> AnswerT:
        """Reads and checks an answer of one party, or of the whole roster."""


class SharedQuery(Query[AnswerT]):
    """A query that all parties answer who are present: the whole roster, or what is left of it.

    `present` are their places in the roster, ascending, and nothing where all are: so a study that may lose nobody has
    one way to ask.
    """

    @property
    @abstractmethod
    def present(self) -> tuple[int, ...]:
        """The places of those who take part; empty where everybody does."""

    def asked_of(self, present: tuple[int, ...], study: Study) -> Self:
        """The same query, of these."""
        del study
        return replace(self, present=present)  # type: ignore[type-var]

    def places(self, study: Study) -> tuple[int, ...]:
        """S: the places in the roster of those who take part."""
        return self.present or tuple(range(len(study.roster)))

    def answerers(self, study: Study) -> tuple[str, ...]:
        """The names of those who take part, in the roster's order."""
        return tuple(study.roster[place].name for place in self.places(study))

    def present_rows(self, study: Study) -> int:
        """n_S: the public number of rows of those who take part."""
        return sum(study.roster[place].rows for place in self.places(study))

    def check_present(self, study: Study) -> None:
        """Places in the roster, each once and in order; fewer than all of them, and as many as must stay."""
        listed = self.present
        if listed and not (
            is_ascending(listed, len(study.roster)) and study.fewest_parties <= len(listed) < len(study.roster)
        ):
            raise invalid("the query is of other parties than the study may go on with.")

    def present_json(self) -> dict[str, Json]:
        """Who takes part, for the canonical form; nothing where everybody does."""
        return {"present": list(self.present)} if self.present else {}


def present_bytes(study: Study) -> int:
    """How many bytes of a message may say who takes part."""
    return PLACE_BYTES * (len(study.roster) + 1) if study.may_lose else 0


class ClearQuery(Query[AnswerT]):
    """A query whose answer travels in the clear, because it is private on its own or reads no row."""

    @abstractmethod
    def answer_bytes(self, study: Study, party: str) -> range:
        """How long a party's answer may be."""


@dataclass(frozen=True, slots=True)
class SumTerms:
    """What an encrypted sum is made of: the exact range of its integers, the noise on them, and how large it gets."""

    low: int
    high: int
    runs: tuple[Noise, ...]
    noise_bound: int

    @property
    def length(self) -> int:
        """How many integers there are."""
        return sum(run.numbers for run in self.runs)

    @property
    def variance(self) -> float:
        """The variance of the noise on an integer, on average."""
        return sum(run.numbers * run.variance for run in self.runs) / self.length

    def layout(self, key_bits: int) -> SlotLayout:
        """How the integers are packed into plaintexts."""
        return plan_slots(self.length, self.low, self.high, self.noise_bound, key_bits)


class SumQuery(SharedQuery[AnswerT]):
    """A query whose answer is the sum over all who are present, encrypted and masked, with a share of noise from each.

    Guarantee: neighbours differ in the replaced rows of one unit, at most the study's `max_rows_per_unit`, and row
    counts are public. The noise follows from the step's cost and from sensitivities to one row that the query's class
    proves, times these rows (`sum_law`); together the runs cost at most the step's cost.
    """

    @abstractmethod
    def runs(self, step: Step, study: Study) -> tuple[Noise, ...]:
        """The noise on the vector of sums, which has an integer for each that the runs count."""

    @abstractmethod
    def bounds(self, study: Study) -> tuple[int, int]:
        """Between which integers each exact sum lies."""

    @abstractmethod
    def unit(self, study: Study) -> int:
        """The integer that stands for one row."""

    @abstractmethod
    def split(self, sums: Counts, study: Study) -> AnswerT:
        """The released vector of sums as a recipe gets it."""

    @abstractmethod
    def join(self, answer: AnswerT) -> Counts:
        """The inverse of `split`."""

    def write_answer(self, answer: AnswerT) -> bytes:
        """The released sums for the curator's log, 8 bytes each, little-endian; no party sends such an answer."""
        return self.join(answer).astype("<i8").tobytes()

    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> AnswerT:
        """Reads released sums."""
        del party
        if len(payload) != 8 * self.size(study).numbers:
            raise check_failed("the stored sums are not as many as were asked for.")
        return self.split(np.frombuffer(payload, dtype="<i8").astype(np.int64), study)

    def scale(self, study: Study) -> float:
        """How many rows of the whole roster a row of those present stands for."""
        return study.total_rows / self.present_rows(study)

    def estimate(self, answer: AnswerT, study: Study) -> AnswerT:
        """The released sums in proportion to the whole roster's rows, so that sums of different parties compare."""
        if not self.present:
            return answer
        return self.split(np.rint(self.join(answer) * self.scale(study)).astype(np.int64), study)

    def terms(self, step: Step, study: Study) -> SumTerms:
        """Length, range, noise and packing, from the approved plan and the question itself."""
        return _sum_terms(self, step, study)

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """The laws of the released sums, and whom they protect against."""
        threshold = study.collusion
        parties = f"the {len(self.present)} parties present" if self.present else f"{len(study.roster)} parties"
        against = (
            f"anyone, and the curator together with up to {threshold} of {parties}"
            if threshold
            else "the curator and the public, but not a party, which can subtract its own share"
        )
        runs: list[Json] = [run.to_json() for run in self.terms(step, study).runs]
        return {"label": step.label, "runs": runs, **protection(study, against)}

    def binding(self, step: Step, study: Study) -> dict[str, Json]:
        """Noise and packing: a party that would add other noise, or pack otherwise, derives another Q."""
        terms = self.terms(step, study)
        layout = terms.layout(study.key_bits)
        packing: Json = [layout.length, layout.width, layout.slots, str(layout.low)]
        runs: list[Json] = [run.to_json() for run in terms.runs]
        return {"noise": runs, "packing": packing}


def protection(study: Study, against: str) -> dict[str, Json]:
    """Whom a law protects, and against whom, as the manifest states it."""
    return {"protects": f"any one {name_unit(study)}", "protects_against": against}


@lru_cache(maxsize=64)
def _sum_terms(query: SumQuery[Any], step: Step, study: Study) -> SumTerms:
    assert query.kind is step.kind
    low, high = query.bounds(study)
    runs = query.runs(step, study)
    assert sum(run.numbers for run in runs) == query.size(study).numbers
    return SumTerms(low, high, runs, bound_noise(runs))


def bound_noise(runs: Sequence[Noise]) -> int:
    """What the noise of none of these integers exceeds, all parties' shares together, but with probability 2^-64."""
    length = sum(run.numbers for run in runs)
    return max(law.bound(length) for law in _noisiest({law for run in runs for law in run.laws}))


def _noisiest(laws: Collection[NoiseLaw]) -> list[NoiseLaw]:
    """Of laws of one kind and for the same parties, those of the greatest variance, but for what a float may hide.

    What bounds their noise bounds that of the others. `gaussian_bound` grows with the square, and `noise_bound` with
    the scale: so does 2 L(1) - L(d) - L(2-d), because x / (e^x - 1) is convex.
    """
    most = max(law.variance for law in laws)
    return [law for law in laws if law.variance >= most * (1 - 1e-9)]


def sum_law(
    step: Step, study: Study, sensitivity: Sensitivity, *, part: Fraction = Fraction(1), parties: int | None = None
) -> NoiseLaw:
    """The noise of an encrypted sum, for all rows of a unit: one share from each of so many parties, all where no
    number is given; any that are but t fewer are enough.
    """
    rows, shares = study.max_rows_per_unit, len(study.roster) if parties is None else parties
    return noise_for(step.cost, sensitivity, rows_per_unit=rows, part=part, parties=shares, threshold=study.collusion)


def check_packing(query: SumQuery[Any], step: Step, study: Study) -> None:
    """Raises if a sum has no room for its noise: whoever is lost, the range is at most that of the whole roster, and
    the noise at most that of the fewest that may stay.
    """
    fewest = query.asked_of(tuple(range(study.fewest_parties)) if study.may_lose else (), study)
    terms, (low, high) = fewest.terms(step, study), query.bounds(study)
    plan_slots(terms.length, low, high, terms.noise_bound, study.key_bits)


def check_within(query: Query[Any], step: Step, study: Study) -> None:
    """Raises if a query is not of the step's kind, or larger than the step allows."""
    if query.kind is not step.kind:
        raise refused("the query is not of the kind that the plan calls for.")
    size, limit = query.size(study), step.limit
    asked = (size.numbers, size.tables, size.cells, size.candidates)
    allowed = (limit.numbers, limit.tables, limit.cells, limit.candidates)
    if any(one > most for one, most in zip(asked, allowed, strict=True)):
        raise refused("the query is larger than the approved plan allows.")
    if size.score != limit.score:
        raise refused("the query asks for another score than the approved plan.")
    if query.exceeds(limit, study):
        raise refused("the query has more options than the approved plan allows.")


def parse_exactly(kind: type[MessageT], payload: bytes) -> MessageT:
    """A message whose one encoding these bytes are: nothing unknown in it, nothing twice."""
    message = kind()
    try:
        message.ParseFromString(payload)
    except DecodeError:
        raise check_failed(f"an answer is not a {kind.__name__}.") from None
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != payload:
        raise check_failed(f"an answer is not a {kind.__name__} in its one written form.")
    return message
