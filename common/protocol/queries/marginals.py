"""Counts of sets of features: pooled over all parties under encryption, or one party's own with its own noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import plan_slots
from synod.common.privacy.laws import NoiseLaw, noise_for
from synod.common.protocol.queries.base import ClearQuery, Counts, SumQuery, parse_exactly, sum_law
from synod.common.protocol.queries.reading import is_ascending, read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

Sets = tuple[tuple[int, ...], ...]
TABLE_SENSITIVITY = 2  # one replaced row leaves one cell and enters another
VARINT_BYTES = 10
INDEX_BYTES = 3  # a feature is below 2^21
OVERHEAD_BYTES = 16


def cells_of(sets: Sequence[tuple[int, ...]], study: Study) -> list[int]:
    """How many cells the table of each set has."""
    sizes = sizes_of(study)
    return [prod(sizes[feature] for feature in features) for features in sets]


@dataclass(frozen=True)
class Tables:
    """Sets of features, each of which is counted in a table: what both kinds of marginals ask for."""

    sets: Sets
    kind: ClassVar[QueryKind]

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value, "sets": [list(features) for features in self.sets]}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        return cls(tuple(read_wholes(features) for features in data["sets"]))

    def check(self, study: Study) -> None:
        """Every set names features of the study, each once and in order."""
        known = len(sizes_of(study))
        if not self.sets or not all(features and is_ascending(features, known) for features in self.sets):
            raise invalid("the query's sets are not sets of the study's features.")

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """A set has at most as many features as have two values each in a table of the largest size."""
        features = min(len(sizes_of(study)), max(step.limit.cells, 2).bit_length())
        return OVERHEAD_BYTES + step.limit.tables * (OVERHEAD_BYTES + INDEX_BYTES * features)

    def size(self, study: Study) -> Limit:
        """All cells, tables, and the cells of the largest table."""
        cells = cells_of(self.sets, study)
        return Limit(numbers=sum(cells), tables=len(self.sets), cells=max(cells))


def _write_sets(sets: Sets) -> list[pb.FeatureSet]:
    return [pb.FeatureSet(features=features) for features in sets]


def _read_sets(messages: Sequence[pb.FeatureSet]) -> Sets:
    return tuple(tuple(message.features) for message in messages)


def _split_tables(counts: Counts, sets: Sets, study: Study) -> list[Counts]:
    return np.split(counts, np.cumsum(cells_of(sets, study))[:-1])


@dataclass(frozen=True)
class SumMarginals(Tables, SumQuery[list[Counts]]):
    """All parties, encrypted and masked: the pooled counts of sets of features plus one share of noise.

    Guarantee: replacing a row moves one count from a cell to another in each of m tables: L1 sensitivity 2m.
    """

    kind: ClassVar[QueryKind] = QueryKind.SUM_MARGINALS

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_marginals=pb.SumMarginals(sets=_write_sets(self.sets)))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(_read_sets(message.sum_marginals.sets))

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """As many tables as the step allows must still have noise that can be drawn and packed."""
        law = sum_law(step, study, TABLE_SENSITIVITY * step.limit.tables)
        numbers = step.limit.numbers
        plan_slots(numbers, 0, study.total_rows, law.bound(numbers), study.key_bits)

    def sensitivity(self, study: Study) -> int:
        """2 for each table."""
        del study
        return TABLE_SENSITIVITY * len(self.sets)

    def bounds(self, study: Study) -> tuple[int, int]:
        """A count is of rows."""
        return 0, study.total_rows

    def unit(self, study: Study) -> int:
        """A row counts for 1."""
        del study
        return 1

    def split(self, sums: Counts, study: Study) -> list[Counts]:
        """One array for each table, in C order."""
        return _split_tables(sums, self.sets, study)

    def join(self, answer: list[Counts]) -> Counts:
        """Table after table."""
        return np.concatenate(answer)


@dataclass(frozen=True)
class LocalMarginals(Tables, ClearQuery[list[Counts]]):
    """One party, on its own: its counts of sets of features plus its own full noise."""

    kind: ClassVar[QueryKind] = QueryKind.LOCAL_MARGINALS

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(local_marginals=pb.LocalMarginals(sets=_write_sets(self.sets)))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(_read_sets(message.local_marginals.sets))

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """As many tables as the step allows must still have noise that can be drawn."""
        del study
        noise_for(step.cost, TABLE_SENSITIVITY * step.limit.tables)

    def noise(self, step: Step) -> NoiseLaw:
        """The party's own noise.

        Guarantee: L1 sensitivity 2 for each table, as for `SumMarginals`; the noise is all the party's own.
        """
        return noise_for(step.cost, TABLE_SENSITIVITY * len(self.sets))

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """The law of the party's own noise."""
        del study
        return {"label": step.label, **self.noise(step).to_json(), "protects_against": "anyone"}

    def write_answer(self, answer: list[Counts]) -> bytes:
        """A NoisyCounts, table after table."""
        counts = np.concatenate(answer)
        return pb.NoisyCounts(counts=counts.tolist()).SerializeToString(deterministic=True)

    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> list[Counts]:
        """Reads a NoisyCounts with one count for each cell."""
        del party
        counts = np.array(parse_exactly(pb.NoisyCounts, payload).counts, dtype=np.int64)
        if len(counts) != sum(cells_of(self.sets, study)):
            raise check_failed("an answer does not have one count for each cell.")
        return _split_tables(counts, self.sets, study)

    def answer_bytes(self, study: Study, party: str) -> range:
        """A count takes 1 to 10 bytes."""
        del party
        cells = sum(cells_of(self.sets, study))
        return range(cells, VARINT_BYTES * (cells + 2))
