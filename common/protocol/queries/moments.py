"""The pooled moments of a study's schema: means, cross moments and counts in one encrypted sum."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import plan_slots
from synod.common.models.moments import MomentDesign, design_moments
from synod.common.privacy.laws import Sensitivity
from synod.common.protocol.queries.base import Counts, NoiseRun, SumQuery, sum_law
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb


@lru_cache(maxsize=64)
def moment_design(study: Study) -> MomentDesign:
    """The columns of the study's moments."""
    return design_moments(codings_of(study))


@dataclass(frozen=True)
class SumMoments(SumQuery[Counts]):
    """All parties, encrypted and masked: the pooled moments of the whole schema plus one share of noise.

    Guarantee: the sensitivities are those of `MomentDesign`, with their proofs.
    """

    kind: ClassVar[QueryKind] = QueryKind.SUM_MOMENTS

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form, which has nothing but its kind."""
        del data
        return cls()

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_moments=pb.SumMoments())

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        del message
        return cls()

    def check(self, study: Study) -> None:
        """Moments are of quantized numbers, which not every method has."""
        if study.method.number_levels is None:
            raise invalid("the query is of another method than the study's.")

    def size(self, study: Study) -> Limit:
        """How many moments there are."""
        return Limit(numbers=moment_design(study).length)

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """There is nothing in it."""
        del step, study
        return 16

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """The sums with their noise must fit their slots."""
        terms = cls().terms(step, study)
        plan_slots(terms.length, terms.low, terms.high, terms.noise_bound, study.key_bits)

    def runs(self, step: Step, study: Study) -> tuple[NoiseRun, ...]:
        """One law, for the sensitivity in the integer units of the design."""
        design = moment_design(study)
        law = sum_law(step, study, Sensitivity(design.sensitivity, design.squared_sensitivity))
        return (NoiseRun(design.length, law),)

    def bounds(self, study: Study) -> tuple[int, int]:
        """Between which integers each exact moment of the roster's rows lies."""
        return moment_design(study).bounds(study.total_rows)

    def unit(self, study: Study) -> int:
        """A product of two values in [-1/2, 1/2] is in units of 1 / (4 L^2)."""
        return 4 * moment_design(study).unit ** 2

    def split(self, sums: Counts, study: Study) -> Counts:
        """The moments, in the design's order."""
        del study
        return sums

    def join(self, answer: Counts) -> Counts:
        """The moments, in the design's order."""
        return answer
