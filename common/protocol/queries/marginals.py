"""Counts of sets of features: pooled over all parties under encryption, or one party's own with its own noise.

An entry of a set is a feature of the study, or, from the number of features on, one of the query's own groupings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import prod, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import plan_slots
from synod.common.privacy.laws import TABLE, noise_for
from synod.common.protocol.queries.base import ClearQuery, Counts, NoiseRun, SumQuery, parse_exactly, sum_law
from synod.common.protocol.queries.reading import is_ascending, read_whole, read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid
from synod.common.study.features import bases_of, sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

Sets = tuple[tuple[int, ...], ...]
LARGEST_SHARE = 1 << 20
VARINT_BYTES = 10
INDEX_BYTES = 3  # a feature or a group is below 2^21
OVERHEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Grouping:
    """A coarser version of one feature: the group of each of its values. Groups are numbered by first occurrence."""

    feature: int
    groups: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many groups there are."""
        return max(self.groups) + 1

    def is_sound(self, sizes: Sequence[int]) -> bool:
        """Whether it groups all values of a feature, into two groups or more, in the one way to number them."""
        firsts = list(dict.fromkeys(self.groups))
        return (
            0 <= self.feature < len(sizes)
            and len(self.groups) == sizes[self.feature]
            and len(firsts) >= 2
            and firsts == list(range(len(firsts)))
        )


@dataclass(frozen=True)
class Tables:
    """Sets of features or groupings, each of which is counted in a table: what both kinds of marginals ask for.

    `shares` say how the step's budget is divided among the tables; without any, evenly.
    """

    sets: Sets
    groupings: tuple[Grouping, ...] = ()
    shares: tuple[int, ...] = ()
    kind: ClassVar[QueryKind]

    def to_json(self) -> dict[str, Json]:
        """The canonical form; what is empty is left out."""
        written: dict[str, Json] = {"kind": self.kind.value, "sets": [list(entries) for entries in self.sets]}
        if self.groupings:
            written["groupings"] = [[one.feature, list(one.groups)] for one in self.groupings]
        if self.shares:
            written["shares"] = list(self.shares)
        return written

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        sets = tuple(read_wholes(entries) for entries in data["sets"])
        groupings = (Grouping(read_whole(feature), read_wholes(one)) for feature, one in data.get("groupings", ()))
        return cls(sets, tuple(groupings), read_wholes(data.get("shares", ())))

    def check(self, study: Study) -> None:
        """1. Groupings are sound, each of another feature, and only where features are whole codes without levels;
        2. every set names features or groupings, in the order of their base features, each of these once and on one
        level; 3. there is a share for each table.
        """
        sizes = sizes_of(study)
        # 1
        grouped = [one.feature for one in self.groupings]
        if not all(one.is_sound(sizes) for one in self.groupings) or not is_ascending(grouped, len(sizes)):
            raise invalid("the query's groupings are not groupings of the study's features.")
        if self.groupings and study.method.feature_encoding != "vanilla":
            raise invalid("the query groups the values of features that are bits or levels.")
        # 2
        bases = [*bases_of(study), *grouped]
        for entries in self.sets:
            known = all(0 <= entry < len(bases) for entry in entries)
            if not entries or not known or any(bases[a] >= bases[b] for a, b in pairwise(entries)):
                raise invalid("the query's sets are not sets of the study's features.")
        if not self.sets:
            raise invalid("the query asks for no table.")
        # 3
        if self.shares and (
            len(self.shares) != len(self.sets) or not all(1 <= s <= LARGEST_SHARE for s in self.shares)
        ):
            raise invalid("the query's shares are not one for each table.")

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """A set has at most as many features as have two values each in a table of the largest size."""
        sizes = sizes_of(study)
        features = min(len(sizes), max(step.limit.cells, 2).bit_length())
        tables = step.limit.tables * (OVERHEAD_BYTES + INDEX_BYTES * (features + 1))
        return OVERHEAD_BYTES + tables + sum(OVERHEAD_BYTES + INDEX_BYTES * size for size in sizes)

    def entry_sizes(self, study: Study) -> tuple[int, ...]:
        """How many values each entry that a set may name has."""
        return (*sizes_of(study), *(one.size for one in self.groupings))

    def entry_features(self, study: Study) -> tuple[int, ...]:
        """Which feature each entry that a set may name is, or groups."""
        return (*range(len(sizes_of(study))), *(one.feature for one in self.groupings))

    def cells(self, study: Study) -> list[int]:
        """How many cells the table of each set has."""
        sizes = self.entry_sizes(study)
        return [prod(sizes[entry] for entry in entries) for entries in self.sets]

    def parts(self) -> list[Fraction]:
        """Which part of the step's budget each table has."""
        shares = self.shares or (1,) * len(self.sets)
        whole = sum(shares)
        return [Fraction(share, whole) for share in shares]

    def size(self, study: Study) -> Limit:
        """All cells, tables, and the cells of the largest table."""
        cells = self.cells(study)
        return Limit(numbers=sum(cells), tables=len(self.sets), cells=max(cells))

    def split_tables(self, counts: Counts, study: Study) -> list[Counts]:
        """One array for each table, in C order."""
        return np.split(counts, np.cumsum(self.cells(study))[:-1])


def cells_of(sets: Sequence[tuple[int, ...]], study: Study) -> list[int]:
    """How many cells the table of each set of features has."""
    return Tables(tuple(sets)).cells(study)


def _join_runs(runs: Sequence[NoiseRun]) -> tuple[NoiseRun, ...]:
    """The same with neighbours of equal law as one."""
    joined: list[NoiseRun] = []
    for run in runs:
        if joined and joined[-1].law == run.law:
            joined[-1] = NoiseRun(joined[-1].numbers + run.numbers, run.law)
        else:
            joined.append(run)
    return tuple(joined)


def _write_tables(tables: Tables) -> dict[str, Any]:
    return {
        "sets": [pb.FeatureSet(features=entries) for entries in tables.sets],
        "groupings": [pb.Grouping(feature=one.feature, groups=one.groups) for one in tables.groupings],
        "shares": tables.shares,
    }


def _read_tables(message: pb.SumMarginals | pb.LocalMarginals) -> tuple[Sets, tuple[Grouping, ...], tuple[int, ...]]:
    sets = tuple(tuple(one.features) for one in message.sets)
    groupings = tuple(Grouping(one.feature, tuple(one.groups)) for one in message.groupings)
    return sets, groupings, tuple(message.shares)


@dataclass(frozen=True)
class SumMarginals(Tables, SumQuery[list[Counts]]):
    """All parties, encrypted and masked: the pooled counts of sets of features plus one share of noise.

    Guarantee: the groups of a feature partition its values, so a row lies in one cell of each table, and replacing it
    changes two cells by 1: L1 and L2 squared are 2 for each table. Each table has noise for its part of the step's
    cost, and the parts add up to 1.
    """

    kind: ClassVar[QueryKind] = QueryKind.SUM_MARGINALS

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_marginals=pb.SumMarginals(**_write_tables(self)))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(*_read_tables(message.sum_marginals))

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """As many tables as the step allows, of even shares, must still have noise that can be drawn and packed."""
        law = sum_law(step, study, TABLE.times(step.limit.tables))
        numbers = step.limit.numbers
        plan_slots(numbers, 0, study.total_rows, law.bound(numbers), study.key_bits)

    def runs(self, step: Step, study: Study) -> tuple[NoiseRun, ...]:
        """A law for each table, or for many where they have the same."""
        laws = {part: sum_law(step, study, TABLE, part=part) for part in set(self.parts())}
        pairs = zip(self.cells(study), self.parts(), strict=True)
        return _join_runs([NoiseRun(cells, laws[part]) for cells, part in pairs])

    def variances(self, step: Step, study: Study) -> list[float]:
        """The variance of the noise on a cell of each table."""
        return [sum_law(step, study, TABLE, part=part).variance for part in self.parts()]

    def cell_to_noise(self, step: Step, study: Study) -> float:
        """How many rows an average cell has, in deviations of the noise on it."""
        terms = self.terms(step, study)
        return study.total_rows * len(self.sets) / (terms.length * sqrt(terms.variance))

    def bounds(self, study: Study) -> tuple[int, int]:
        """A count is of rows."""
        return 0, study.total_rows

    def unit(self, study: Study) -> int:
        """A row counts for 1."""
        del study
        return 1

    def split(self, sums: Counts, study: Study) -> list[Counts]:
        """One array for each table, in C order."""
        return self.split_tables(sums, study)

    def join(self, answer: list[Counts]) -> Counts:
        """Table after table."""
        return np.concatenate(answer)


@dataclass(frozen=True)
class LocalMarginals(Tables, ClearQuery[list[Counts]]):
    """One party, on its own: its counts of sets of features plus its own full noise."""

    kind: ClassVar[QueryKind] = QueryKind.LOCAL_MARGINALS

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(local_marginals=pb.LocalMarginals(**_write_tables(self)))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(*_read_tables(message.local_marginals))

    @classmethod
    def check_room(cls, step: Step, study: Study) -> None:
        """As many tables as the step allows must still have noise that can be drawn."""
        del study
        noise_for(step.cost, TABLE.times(step.limit.tables))

    def runs(self, step: Step, study: Study) -> tuple[NoiseRun, ...]:
        """The party's own noise.

        Guarantee: that of `SumMarginals`; the noise is all the party's own.
        """
        pairs = zip(self.cells(study), self.parts(), strict=True)
        return _join_runs([NoiseRun(cells, noise_for(step.cost, TABLE, part=part)) for cells, part in pairs])

    def variances(self, step: Step) -> list[float]:
        """The variance of the noise on a cell of each table."""
        return [noise_for(step.cost, TABLE, part=part).variance for part in self.parts()]

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """The law of the party's own noise."""
        runs: list[Json] = [run.to_json() for run in self.runs(step, study)]
        return {"label": step.label, "runs": runs, "protects_against": "anyone"}

    def write_answer(self, answer: list[Counts]) -> bytes:
        """A NoisyCounts, table after table."""
        counts = np.concatenate(answer)
        return pb.NoisyCounts(counts=counts.tolist()).SerializeToString(deterministic=True)

    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> list[Counts]:
        """Reads a NoisyCounts with one count for each cell."""
        del party
        counts = np.array(parse_exactly(pb.NoisyCounts, payload).counts, dtype=np.int64)
        if len(counts) != sum(self.cells(study)):
            raise check_failed("an answer does not have one count for each cell.")
        return self.split_tables(counts, study)

    def answer_bytes(self, study: Study, party: str) -> range:
        """A count takes 1 to 10 bytes."""
        del party
        cells = sum(self.cells(study))
        return range(cells, VARINT_BYTES * (cells + 2))
