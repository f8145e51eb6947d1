"""The pooled moments of a study's schema: means, cross moments and counts in one encrypted sum."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from synod.common.crypto.canonical import Json
from synod.common.models.moments import MomentDesign, design_moments
from synod.common.privacy.laws import Sensitivity
from synod.common.protocol.queries.base import SumQuery, check_packing, present_bytes, sum_law
from synod.common.protocol.queries.noise_runs import Counts, NoiseRun
from synod.common.protocol.queries.reading import read_wholes
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

    present: tuple[int, ...] = ()
    kind: ClassVar[QueryKind] = QueryKind.SUM_MOMENTS

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value, **self.present_json()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form, which has nothing but its kind and who takes part."""
        return cls(read_wholes(data.get("present", ())))

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_moments=pb.SumMoments(present=self.present))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(tuple(message.sum_moments.present))

    def check(self, study: Study) -> None:
        """Moments are of quantized numbers, which not every method has."""
        if study.method.number_levels is None:
            raise invalid("the query is of another method than the study's.")
        self.check_present(study)

    def size(self, study: Study) -> Limit:
        """How many moments there are."""
        return Limit(numbers=moment_design(study).length)

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """There is nothing in it but who takes part."""
        del step
        return 16 + present_bytes(study)

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """The sums with their noise must fit their slots."""
        check_packing(cls(), step, study)

    def runs(self, step: Step, study: Study) -> tuple[NoiseRun, ...]:
        """One law, for the sensitivity in the integer units of the design."""
        design = moment_design(study)
        sensitivity = Sensitivity(design.sensitivity, design.squared_sensitivity)
        law = sum_law(step, study, sensitivity, parties=len(self.places(study)))
        return (NoiseRun(design.length, law),)

    def bounds(self, study: Study) -> tuple[int, int]:
        """Between which integers each exact moment of the rows of those present lies."""
        return moment_design(study).bounds(self.present_rows(study))

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
