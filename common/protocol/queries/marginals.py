"""Counts of sets of features: pooled over all parties under encryption, or one party's own with its own noise.

An entry of a set is a feature of the study, or, from the number of features on, one of the query's own groupings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from math import prod, sqrt
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.crypto.packing import plan_slots
from synod.common.privacy.laws import TABLE, NoiseLaw, noise_for
from synod.common.protocol.queries.base import (
    ClearQuery,
    SumQuery,
    parse_exactly,
    present_bytes,
    protection,
    sum_law,
)
from synod.common.protocol.queries.noise_runs import Counts, Floats, Noise, NoisePattern, NoiseRun
from synod.common.protocol.queries.reading import is_ascending, read_whole, read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid
from synod.common.study.features import base_count, bases_of, sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

Sets = tuple[tuple[int, ...], ...]
LARGEST_SHARE = 1 << 20
LARGEST_WEIGHT = 64
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


@dataclass(frozen=True, slots=True)
class Weights:
    """How much of its table's part a cell has, by its value of one entry: w / (the largest w) of it."""

    entry: int
    values: tuple[int, ...]

    def to_json(self) -> list[Json]:
        """The entry, and the weight of each of its values."""
        return [self.entry, list(self.values)]

    def is_sound(self, entries: tuple[int, ...], sizes: Sequence[int]) -> bool:
        """Whether these are weights of all values of one of these entries."""
        return (
            self.entry in entries
            and len(self.values) == sizes[self.entry]
            and all(1 <= weight <= LARGEST_WEIGHT for weight in self.values)
        )


@dataclass(frozen=True)
class Tables:
    """Sets of features or groupings, each of which is counted in a table: what both kinds of marginals ask for.

    `shares` say how the step's budget is divided among the tables; without any, evenly. `weights` say, for each table
    or for none, which of its cells have noise for less than the table's part.
    """

    sets: Sets
    groupings: tuple[Grouping, ...] = ()
    shares: tuple[int, ...] = ()
    weights: tuple[Weights | None, ...] = ()
    kind: ClassVar[QueryKind]

    def to_json(self) -> dict[str, Json]:
        """The canonical form; what is empty is left out."""
        written: dict[str, Json] = {"kind": self.kind.value, "sets": [list(entries) for entries in self.sets]}
        if self.groupings:
            written["groupings"] = [[one.feature, list(one.groups)] for one in self.groupings]
        if self.shares:
            written["shares"] = list(self.shares)
        if self.weights:
            written["weights"] = [None if one is None else one.to_json() for one in self.weights]
        return written

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        sets = tuple(read_wholes(entries) for entries in data["sets"])
        groupings = (Grouping(read_whole(feature), read_wholes(one)) for feature, one in data.get("groupings", ()))
        weights = (None if one is None else _read_weights(*one) for one in data.get("weights", ()))
        present: dict[str, Any] = {"present": read_wholes(data["present"])} if "present" in data else {}
        return cls(sets, tuple(groupings), read_wholes(data.get("shares", ())), tuple(weights), **present)

    def check(self, study: Study) -> None:
        """1. Groupings are sound, each of another feature, and only where features are whole codes without levels;
        2. every set names features or groupings, in the order of their base features, each of these once and on one
        level; 3. there is a share for each table, or none at all; 4. so are weights, which some table has, for each
        value of one of its entries.
        """
        sizes = sizes_of(study)
        # 1
        grouped = [one.feature for one in self.groupings]
        if not all(one.is_sound(sizes) for one in self.groupings) or not is_ascending(grouped, len(sizes)):
            raise invalid("the query's groupings are not groupings of the study's features.")
        has_levels = len(sizes) > base_count(study)
        if self.groupings and (has_levels or study.method.feature_encoding not in ("vanilla", "hierarchical")):
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
        # 4
        if self.weights and (len(self.weights) != len(self.sets) or not any(self.weights)):
            raise invalid("the query's weights are not one for each table.")
        known_sizes = self.entry_sizes(study)
        pairs = zip(self.sets, self.weights, strict=False)
        if not all(one is None or one.is_sound(entries, known_sizes) for entries, one in pairs):
            raise invalid("the query's weights are not those of all values of an entry of their table.")

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """A set has at most as many features as have two values each in a table of the largest size. A weight is a
        byte, and a table has no more of them than its largest feature has values.
        """
        sizes = sizes_of(study)
        features = min(len(sizes), max(step.limit.cells, 2).bit_length())
        tables = step.limit.tables * (2 * OVERHEAD_BYTES + INDEX_BYTES * (features + 2))
        tables += min(step.limit.numbers, step.limit.tables * max(sizes)) + present_bytes(study)
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

    def noise_law(self, step: Step, study: Study, part: Fraction) -> NoiseLaw:
        """The noise on a count that has this part of the step's cost."""
        raise NotImplementedError

    def table_noise(self, step: Step, study: Study) -> list[Noise]:
        """The noise on each table.

        Guarantee: let p be the table's part of the cost. A cell of weight w has noise for p w / w_max, made for counts
        of which two change by 1; so the change of one of them costs at most half of that. A replaced row changes two
        cells of the table at most, of weights w and w': (w + w') / (2 w_max) of p, at most p. That is for units of one
        row; for m rows the noise of every cell is m times as large, and the triangle inequality in the norm that
        weighs each cell by its noise gives the same bound (docs/privacy.md, section 1).
        """
        sizes, law = self.entry_sizes(study), cache(partial(self.noise_law, step, study))
        weights = self.weights or (None,) * len(self.sets)
        found: list[Noise] = []
        for entries, part, own in zip(self.sets, self.parts(), weights, strict=True):
            if own is None:
                found.append(NoiseRun(prod(sizes[entry] for entry in entries), law(part)))
                continue
            place, most = entries.index(own.entry), max(own.values)
            times, numbers = (prod(sizes[e] for e in side) for side in (entries[:place], entries[place + 1 :]))
            runs = _join_runs([NoiseRun(numbers, law(part * Fraction(weight, most))) for weight in own.values])
            found.append(NoisePattern(times, runs) if len(runs) > 1 else NoiseRun(times * runs[0].numbers, runs[0].law))
        return found

    def variances(self, step: Step, study: Study) -> list[float]:
        """The variance of the noise on a cell of each table; where cells differ, on average."""
        return [noise.variance for noise in self.table_noise(step, study)]

    def cell_variances(self, step: Step, study: Study) -> list[Floats]:
        """The variance of the noise on each cell of each table, in C order."""
        return [noise.variances() for noise in self.table_noise(step, study)]

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


NoiseT = TypeVar("NoiseT", NoiseRun, Noise)


def _join_runs(runs: Sequence[NoiseT]) -> tuple[NoiseT, ...]:
    """The same with neighbours of equal law as one."""
    joined: list[NoiseT] = []
    for run in runs:
        last = joined[-1] if joined else None
        if isinstance(run, NoiseRun) and isinstance(last, NoiseRun) and last.law == run.law:
            joined[-1] = NoiseRun(last.numbers + run.numbers, run.law)
        else:
            joined.append(run)
    return tuple(joined)


def _read_weights(entry: Any, values: Any) -> Weights:
    return Weights(read_whole(entry), read_wholes(values))


def _write_tables(tables: Tables) -> dict[str, Any]:
    return {
        "sets": [pb.FeatureSet(features=entries) for entries in tables.sets],
        "groupings": [pb.Grouping(feature=one.feature, groups=one.groups) for one in tables.groupings],
        "shares": tables.shares,
        "weights": [pb.Weights(entry=one.entry, weights=one.values) if one else pb.Weights() for one in tables.weights],
    }


def _read_tables(message: pb.SumMarginals | pb.LocalMarginals) -> dict[str, Any]:
    return {
        "sets": tuple(tuple(one.features) for one in message.sets),
        "groupings": tuple(Grouping(one.feature, tuple(one.groups)) for one in message.groupings),
        "shares": tuple(message.shares),
        "weights": tuple(Weights(one.entry, tuple(one.weights)) if one.weights else None for one in message.weights),
    }


@dataclass(frozen=True)
class SumMarginals(Tables, SumQuery[list[Counts]]):
    """All parties, encrypted and masked: the pooled counts of sets of features plus one share of noise.

    Guarantee: the groups of a feature partition its values, so a row lies in one cell of each table, and replacing it
    changes two cells by 1: L1 and L2 squared are 2 for each table. Each table has noise for its part of the step's
    cost (`table_noise`), and the parts add up to 1.
    """

    present: tuple[int, ...] = ()
    kind: ClassVar[QueryKind] = QueryKind.SUM_MARGINALS

    def to_json(self) -> dict[str, Json]:
        """The canonical form; what is empty is left out."""
        return {**super().to_json(), **self.present_json()}

    def to_proto(self) -> pb.Query:
        """The message."""
        return pb.Query(sum_marginals=pb.SumMarginals(**_write_tables(self), present=self.present))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        return cls(**_read_tables(message.sum_marginals), present=tuple(message.sum_marginals.present))

    def check(self, study: Study) -> None:
        """The tables are sound, and so is who takes part."""
        super().check(study)
        self.check_present(study)

    @classmethod
    def check_room(cls, step: Step, study: Study, part: Fraction | None = None) -> None:
        """The cells that have the least part of the step's cost must still have noise that can be drawn and packed:
        those of one of as many tables as the step allows, of even shares and without weights, asked of the fewest that
        may stay. A method that asks with shares or weights calls this with the least `part` of a cell of its step.
        """
        least = part or Fraction(1, step.limit.tables)
        law = sum_law(step, study, TABLE, part=least, parties=study.fewest_parties)
        numbers = step.limit.numbers
        plan_slots(numbers, 0, study.total_rows, law.bound(numbers), study.key_bits)

    def noise_law(self, step: Step, study: Study, part: Fraction) -> NoiseLaw:
        """One share of noise, divided over all parties present."""
        return sum_law(step, study, TABLE, part=part, parties=len(self.places(study)))

    def runs(self, step: Step, study: Study) -> tuple[Noise, ...]:
        """A law for each table, or for many where they have the same; a table with weights has several."""
        return _join_runs(self.table_noise(step, study))

    def cell_to_noise(self, step: Step, study: Study) -> float:
        """How many rows an average cell has, in deviations of the noise on it."""
        terms = self.terms(step, study)
        return self.present_rows(study) * len(self.sets) / (terms.length * sqrt(terms.variance))

    def bounds(self, study: Study) -> tuple[int, int]:
        """A count is of rows."""
        return 0, self.present_rows(study)

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


def _own_law(step: Step, study: Study, part: Fraction) -> NoiseLaw:
    return noise_for(step.cost, TABLE, rows_per_unit=study.max_rows_per_unit, part=part)


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
        return cls(**_read_tables(message.local_marginals))

    @classmethod
    def check_room(cls, step: Step, study: Study, part: Fraction | None = None) -> None:
        """The same, of noise that is drawn and not packed."""
        _own_law(step, study, part or Fraction(1, step.limit.tables))

    def noise_law(self, step: Step, study: Study, part: Fraction) -> NoiseLaw:
        """All of the noise, the party's own."""
        return _own_law(step, study, part)

    def runs(self, step: Step, study: Study) -> tuple[Noise, ...]:
        """The party's own noise.

        Guarantee: that of `SumMarginals`; the noise is all the party's own.
        """
        return _join_runs(self.table_noise(step, study))

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """The law of the party's own noise."""
        runs: list[Json] = [run.to_json() for run in self.runs(step, study)]
        return {"label": step.label, "runs": runs, **protection(study, "anyone")}

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
