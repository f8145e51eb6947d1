"""What was released about some columns together: noisy counts of their values, and the deviation of the noise.

Read off the released answers alone, whatever the method. Tables that tell the same are averaged by their precision, and
those of single parties are added up where all parties have told; nothing is fitted and nothing is cut at zero.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.models.moments import MomentDesign, unfold
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements, unpack_signs
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of, space_of
from synod.common.study.study import Study
from synod.curator.methods.base import Released
from synod.curator.network.evidence import Evidence, average_tables
from synod.curator.network.tables import count_cells, marginalize
from synod.curator.release.report.margins import moment_deviation

Floats = NDArray[np.float64]
Groups = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Released counts of some attributes together, an axis for each: `groups` has the group of each code of each, in
    which it was counted, and `deviations` are those of the noise, in rows.
    """

    groups: tuple[Groups, ...]
    counts: Floats
    deviations: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedCounts:
    """The released answers of a study, by round."""

    study: Study
    queries: Mapping[str, AnyQuery]
    answers: Callable[[str], Any]

    def count(self, attributes: Sequence[int]) -> Counted | None:
        """What was released of these attributes together, in as fine groups as it was counted in; None where nothing
        was counted that tells it of all rows.
        """
        for label, query in self.queries.items():
            if isinstance(query, SumMoments):
                return self._from_moments(label, query, attributes)
        evidences = self._evidences()
        return (
            self._from_tables(evidences, attributes)
            or self._from_groups(evidences, attributes)
            or self._from_agreements(attributes)
        )

    def _read(self, label: str) -> Any:
        """An answer in proportion to all rows."""
        query, answer = self.queries[label], self.answers(label)
        return query.estimate(answer, self.study) if isinstance(query, SumQuery) else answer

    # Tables

    def _evidences(self) -> list[Evidence]:
        """All tables: those of queries without groupings together, and those of each other query."""
        plain, found = Evidence(self.study), list[Evidence]()
        for label, query in self.queries.items():
            if isinstance(query, SumMarginals):
                own = Evidence(self.study, groupings=query.groupings) if query.groupings else plain
                own.add_answer(label, query, self._read(label))
                found += [own] if query.groupings else []
            elif isinstance(query, LocalMarginals):
                plain.add_local(label, query.sets, self._read(label))
        return [plain, *found]

    def _from_tables(self, evidences: Sequence[Evidence], attributes: Sequence[int]) -> Counted | None:
        """Counts of single values."""
        own = [self._features(attribute) for attribute in attributes]
        wanted = tuple(feature for features in own for feature in features)
        if not wanted:
            return None
        found = [table for one in evidences if (table := one.counted(wanted)) is not None]
        if not found:
            return None
        table = average_tables(found, self.study.total_rows)
        sizes, codings = sizes_of(self.study), codings_of(self.study)
        codes = space_of(self.study).encode([np.arange(coding.size, dtype=coding.dtype) for coding in codings])
        cells = [
            np.ravel_multi_index([codes[i] for i in features], [sizes[i] for i in features])
            if features
            else np.zeros(1, dtype=np.intp)
            for features in own
        ]
        shape = [count_cells(features, sizes) for features in own]
        counts, variances = (values.reshape(shape)[np.ix_(*cells)] for values in (table.counts, table.variances))
        return Counted(tuple(tuple(range(len(one))) for one in cells), counts, np.sqrt(variances))

    def _from_groups(self, evidences: Sequence[Evidence], attributes: Sequence[int]) -> Counted | None:
        """Counts of groups of values: of the ways in which these attributes were counted, the one with most cells."""
        own = [self._features(attribute) for attribute in attributes]
        if any(len(features) != 1 for features in own):
            return None
        best: tuple[int, Evidence, tuple[int, ...]] | None = None
        for evidence in evidences:
            for table in evidence.tables:
                entries = tuple(_entry_of(evidence, table, feature) for (feature,) in own)
                known = tuple(entry for entry in entries if entry is not None)
                cells = count_cells(known, evidence.sizes)
                if len(known) == len(own) and table.rows == evidence.all_rows and (best is None or cells > best[0]):
                    best = cells, evidence, known
        return None if best is None else _add_up(best[1], best[2], [sizes_of(self.study)[one] for (one,) in own])

    def _features(self, attribute: int) -> tuple[int, ...]:
        """The features of an attribute but for its coarser levels; none where it has one value."""
        pairs = enumerate(features_of(self.study))
        return tuple(i for i, feature in pairs if feature.attribute == attribute and not feature.level)

    # Agreements

    def _from_agreements(self, attributes: Sequence[int]) -> Counted | None:
        """Counts of one or two attributes of two values, from how often each is 1 and in how many rows two agree."""
        features, sizes = [self._features(attribute) for attribute in attributes], sizes_of(self.study)
        wanted = [own[0] for own in features if len(own) == 1 and sizes[own[0]] == 2]
        if len(wanted) != len(attributes) or len(wanted) > 2:
            return None
        for label, query in self.queries.items():
            if isinstance(query, SumAgreements) and query.ones:
                return self._count_agreeing(label, query, wanted)
        return None

    def _count_agreeing(self, label: str, query: SumAgreements, wanted: Sequence[int]) -> Counted | None:
        rows, sizes, answer = self.study.total_rows, sizes_of(self.study), self._read(label)
        variance = query.variance(plan_study(self.study).step(label), self.study) * query.scale(self.study) ** 2
        two_valued = [feature for feature, size in enumerate(sizes) if size == 2]
        ones = [float(answer.ones[two_valued.index(feature)]) / query.ones for feature in wanted]
        of_ones, both = variance / query.ones**2, (0, 1)
        if len(wanted) == 1:
            return Counted((both,), np.array([rows - ones[0], ones[0]]), np.full(2, sqrt(of_ones)))
        first, second = sorted(wanted)
        signs = unpack_signs(query.splits[0], sizes)
        place = first * len(sizes) - first * (first + 1) // 2 + second - first - 1
        agreeing = float(answer.pairs[0][place])
        if signs[first][0] == signs[first][1] or signs[second][0] == signs[second][1]:
            return None
        if signs[first][0] != signs[second][0]:
            agreeing = rows - agreeing
        # of a ones, b ones and e rows that agree, (e + a + b - n) / 2 have both
        joint = (agreeing + ones[0] + ones[1] - rows) / 2
        counts = np.array([[rows - ones[0] - ones[1] + joint, ones[1] - joint], [ones[0] - joint, joint]])
        return Counted((both, both), counts, np.full((2, 2), sqrt(variance + 2 * of_ones) / 2))

    # Moments

    def _from_moments(self, label: str, query: SumMoments, attributes: Sequence[int]) -> Counted | None:
        """Counts of one or two attributes of categories, which are linear in the moments; of numbers there are none."""
        design, rows = moment_design(self.study), self.study.total_rows
        indicators = [_indicators(design, attribute) for attribute in attributes]
        known = [one for one in indicators if one is not None]
        if len(known) < len(indicators) or len(set(attributes)) < len(attributes) or len(known) > 2:
            return None
        gram = unfold(design, self._read(label), rows)
        constant = np.zeros((1, design.width))
        constant[0, 0] = 2.0
        left, right = known[0], known[1] if len(known) == 2 else constant
        counts = rows * left @ gram @ right.T
        weights = np.array([[_weight(design, one, other) for other in right] for one in left])
        deviations = rows * moment_deviation(self.study, query.present) * weights
        shape = [len(one) for one in known]
        return Counted(tuple(tuple(range(size)) for size in shape), counts.reshape(shape), deviations.reshape(shape))


def _entry_of(evidence: Evidence, table: Released, feature: int) -> int | None:
    """What a table has of a feature: itself or a coarser version of it."""
    return next((entry for entry in table.features if evidence.levels.base(entry) == feature), None)


def _add_up(evidence: Evidence, entries: tuple[int, ...], sizes: Sequence[int]) -> Counted:
    """The counts of these very entries, from all tables that have them."""
    found = []
    for table in evidence.tables:
        if set(entries) <= set(table.features) and table.rows == evidence.all_rows:
            args = (table.features, evidence.sizes, entries)
            margin = marginalize(table.counts, *args)
            found.append(Released(entries, margin, table.rows, marginalize(table.variances.copy(), *args)))
    total, shape = average_tables(found, evidence.all_rows), [evidence.sizes[entry] for entry in entries]
    coarse = evidence.levels.groups or ((),) * len(evidence.sizes)
    groups = tuple(coarse[entry] or tuple(range(size)) for entry, size in zip(entries, sizes, strict=True))
    return Counted(groups, total.counts.reshape(shape), np.sqrt(total.variances).reshape(shape))


def _indicators(design: MomentDesign, attribute: int) -> Floats | None:
    """For each code of an attribute, whether a row has it, as a combination of the design's columns; None of numbers.

    The constant's column is 1/2, a two-valued attribute's -1/2 or 1/2, a block has 1 in one place.
    """
    for place, column in enumerate(design.signed, 1):
        if column.attribute == attribute:
            if column.role != "binary":
                return None
            rows = np.zeros((2, design.width))
            rows[:, 0], rows[:, place] = 1.0, (-1.0, 1.0)
            return rows
    for block, span in design.block_slices():
        if block.attribute == attribute:
            return np.eye(design.width)[span]
    return None


def _weight(design: MomentDesign, left: Floats, right: Floats) -> float:
    """The norm of the coefficients of the asked moments in left' G right, each of which has noise of its own."""
    outer = np.outer(left, right)
    folded = np.triu(outer, 1) + np.tril(outer, -1).T
    np.fill_diagonal(folded, np.diag(outer))
    first = 1 + len(design.signed)
    blocks = np.arange(first, design.width)
    folded[blocks, blocks] += folded[0, blocks] / 2  # the constant times a block follows from the block's count
    folded[0, blocks] = 0.0
    return float(np.linalg.norm(folded[design.asked()]))
