"""In how many rows two features agree, for every pair at once: the values of each feature are split in two by a sign.

One number a pair is the cheapest look at all pairs. It is linear, so parties need not be alike.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.laws import NoiseLaw, Sensitivity
from synod.common.protocol.queries.base import SumQuery, check_packing, present_bytes, sum_law
from synod.common.protocol.queries.marginals import OVERHEAD_BYTES
from synod.common.protocol.queries.noise_runs import Counts, NoiseRun
from synod.common.protocol.queries.reading import read_whole, read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import invalid
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

Signs = NDArray[np.int8]
MOST_SPLITS = 64
LARGEST_WEIGHT = 64


@dataclass(frozen=True)
class Agreements:
    """What comes back: how often each two-valued feature is 1, where that was asked, and, for each split, how many
    rows agree in each pair of features, in the order (0, 1), (0, 2), ....
    """

    ones: Counts
    pairs: Counts


@dataclass(frozen=True)
class SumAgreements(SumQuery[Agreements]):
    """All parties, encrypted and masked: in how many rows the signs of two features agree, for every pair of features
    and every split; and, with weight `ones` above 0, how often each feature with two values is 1, times that weight.

    A split is the signs of all values of all features, one bit each, packed: see `pack_signs`.

    Guarantee: replacing a row flips the signs of k of d features in a split. A pair's agreement changes, by 1, if the
    sign of exactly one of the two flips: k(d-k) <= floor(d^2/4) pairs, so r splits have L1 = L2^2 <= r floor(d^2/4).
    Of b two-valued features, k change their value; each changes its count of ones by the weight w. If every split gives
    the two values opposite signs, then these k flip in every split, and with j of the d-b others
    L1 <= k w + r (k+j)(d-k-j), L2^2 likewise with w^2 for w: the largest over k and j is taken. Where some split does
    not, the two parts are bounded apart: b w + r floor(d^2/4). Which of the two holds is read off the splits, here.
    """

    splits: tuple[bytes, ...]
    ones: int = 0
    present: tuple[int, ...] = ()
    kind: ClassVar[QueryKind] = QueryKind.SUM_AGREEMENTS

    def to_json(self) -> dict[str, Json]:
        """The canonical form, signs in hexadecimal."""
        splits: list[Json] = [split.hex() for split in self.splits]
        return {"kind": self.kind.value, "splits": splits, "ones": self.ones, **self.present_json()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        splits = tuple(bytes.fromhex(split) for split in data["splits"])
        return cls(splits, read_whole(data["ones"]), read_wholes(data.get("present", ())))

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_agreements=pb.SumAgreements(splits=self.splits, ones=self.ones, present=self.present))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        asked = message.sum_agreements
        return cls(tuple(asked.splits), asked.ones, tuple(asked.present))

    def check(self, study: Study) -> None:
        """1. There are two features or more; 2. there is a split, and no more than 64; 3. every split has a sign for
        each value, in the one way to write it; 4. ones have a sound weight and are of features that there are; 5. who
        takes part is sound.
        """
        sizes = sizes_of(study)
        # 1
        if len(sizes) < 2:
            raise invalid("the query asks whether features agree, and the study has fewer than two.")
        # 2
        if not 1 <= len(self.splits) <= MOST_SPLITS:
            raise invalid("the query's splits are too many, or there are none.")
        # 3
        if not all(_is_packed(split, sum(sizes)) for split in self.splits):
            raise invalid("the query's splits are not one sign for each value of each feature.")
        # 4
        if not 0 <= self.ones <= LARGEST_WEIGHT or (self.ones and 2 not in sizes):
            raise invalid("the query's counts of ones are not of features with two values.")
        # 5
        self.check_present(study)

    def size(self, study: Study) -> Limit:
        """A number for each pair and split, and for each two-valued feature."""
        pairs = comb(len(sizes_of(study)), 2)
        return Limit(numbers=len(self.splits) * pairs + self.two_valued(study), tables=len(self.splits), cells=2)

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """A bit for each value and split."""
        splits = step.limit.tables * (OVERHEAD_BYTES + sum(sizes_of(study)) // 8)
        return OVERHEAD_BYTES + splits + present_bytes(study)

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """As many splits as the step allows, and the heaviest ones, must be sound and have noise that can be drawn and
        packed. Splits that tell no two values apart have the largest sensitivity.
        """
        split = bytes(-(-sum(sizes_of(study)) // 8))
        weight = LARGEST_WEIGHT if 2 in sizes_of(study) else 0
        largest = cls((split,) * step.limit.tables, weight)
        largest.check(study)
        check_packing(largest, step, study)

    def two_valued(self, study: Study) -> int:
        """How many features' ones are counted."""
        return sizes_of(study).count(2) if self.ones else 0

    def sensitivity(self, study: Study) -> Sensitivity:
        """That of the whole vector, as proven above."""
        return _sensitivity(self, study)

    def runs(self, step: Step, study: Study) -> tuple[NoiseRun, ...]:
        """One law for all numbers."""
        return (NoiseRun(self.size(study).numbers, self._law(step, study)),)

    def _law(self, step: Step, study: Study) -> NoiseLaw:
        return sum_law(step, study, self.sensitivity(study), parties=len(self.places(study)))

    def variance(self, step: Step, study: Study) -> float:
        """The variance of the noise on each number; a count of ones is divided by its weight afterwards."""
        return self._law(step, study).variance

    def bounds(self, study: Study) -> tuple[int, int]:
        """A number is of rows, or of rows times the weight."""
        return 0, self.present_rows(study) * max(1, self.ones)

    def unit(self, study: Study) -> int:
        """A row that agrees counts for 1."""
        del study
        return 1

    def split(self, sums: Counts, study: Study) -> Agreements:
        """Ones, still times their weight, and a row of pairs for each split."""
        first = self.two_valued(study)
        return Agreements(sums[:first], sums[first:].reshape(len(self.splits), -1))

    def join(self, answer: Agreements) -> Counts:
        """Ones first, then split after split."""
        return np.concatenate([answer.ones, answer.pairs.ravel()])


@lru_cache(maxsize=64)
def _sensitivity(query: SumAgreements, study: Study) -> Sensitivity:
    sizes, splits = sizes_of(study), len(query.splits)
    features, two_valued = len(sizes), query.two_valued(study)
    if _tells_apart(query, sizes):
        flips = [(k, splits * _most_products(k, features, two_valued)) for k in range(two_valued + 1)]
        return Sensitivity(
            absolute=max(k * query.ones + products for k, products in flips),
            squared=max(k * query.ones**2 + products for k, products in flips),
        )
    products = splits * (features**2 // 4)
    return Sensitivity(two_valued * query.ones + products, two_valued * query.ones**2 + products)


def _most_products(flipped: int, features: int, two_valued: int) -> int:
    """The most pairs that change if so many two-valued features flip, and any number of the others."""
    return max((flipped + j) * (features - flipped - j) for j in range(features - two_valued + 1))


def _tells_apart(query: SumAgreements, sizes: tuple[int, ...]) -> bool:
    """Whether every split gives the two values of each counted feature opposite signs."""
    if not query.ones:
        return False
    signs = [unpack_signs(split, sizes) for split in query.splits]
    return all(one[i][0] != one[i][1] for one in signs for i, size in enumerate(sizes) if size == 2)


def pack_signs(signs: list[Signs]) -> bytes:
    """A split as it is asked: the signs (+1, -1) of all values of all features in order, a bit each, 1 for plus."""
    return np.packbits(np.concatenate(signs) > 0).tobytes()


def unpack_signs(split: bytes, sizes: tuple[int, ...]) -> list[Signs]:
    """The signs of each feature's values."""
    bits = np.unpackbits(np.frombuffer(split, dtype=np.uint8), count=sum(sizes)).astype(np.int8)
    return np.split(2 * bits - 1, np.cumsum(sizes)[:-1])


def _is_packed(split: bytes, values: int) -> bool:
    """Whether there is a bit for each value, and 0 in what is left of the last byte."""
    return len(split) == -(-values // 8) and split[-1] & ((1 << -values % 8) - 1) == 0
