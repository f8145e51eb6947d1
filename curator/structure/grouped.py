"""Grouped features: what tables of pairs are about, and how they and looks at all pairs are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.queries.agreements import SumAgreements, pack_signs
from synod.common.protocol.queries.marginals import Grouping, SumMarginals
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.curator.structure.parts import whole_parts

Floats = NDArray[np.float64]
Groups = tuple[int, ...]


def orders_of(study: Study) -> list[tuple[int, ...] | None]:
    """For each feature its values in the order of the numbers, where it has one; a missing value is not in it."""
    codings = [codings_of(study)[feature.attribute] for feature in features_of(study)]
    return [tuple(coding.in_order()) if coding.attribute.is_numeric else None for coding in codings]


def similarity_orders_of(study: Study) -> list[tuple[int, ...] | None]:
    """As `orders_of`, and for categories with a taxonomy the order of its leaves: similar ones are near each other."""
    attributes = [codings_of(study)[feature.attribute].attribute for feature in features_of(study)]
    leaves = [
        tuple(range(len(one.categories))) if isinstance(one, CategoricalAttribute) and one.taxonomy else None
        for one in attributes
    ]
    return [order or own for order, own in zip(orders_of(study), leaves, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class GroupedFeatures:
    """For each feature the group of each value, and each value's share of all rows."""

    groups: tuple[Groups, ...]
    shares: tuple[Floats, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each feature has."""
        return tuple(max(groups) + 1 for groups in self.groups)

    def add_up(self, feature: int, numbers: Floats) -> Floats:
        """Numbers of values as numbers of groups."""
        return np.bincount(self.groups[feature], numbers, self.sizes[feature]).astype(np.float64)

    def base(self, least: float) -> list[Floats]:
        """The share of each group, none below `least`."""
        raised = [np.maximum(self.add_up(f, shares), least) for f, shares in enumerate(self.shares)]
        return [shares / shares.sum() for shares in raised]

    def group_order(self, feature: int, order: Sequence[int] | None) -> list[int] | None:
        """The groups of a feature in the order of its values, where there is one."""
        return None if order is None else list(dict.fromkeys(self.groups[feature][value] for value in order))

    def ask_tables(self, sets: Sequence[tuple[int, ...]], parts: Sequence[float]) -> SumMarginals:
        """The tables of these sets of features, in groups, with these parts of the budget."""
        grouped = [f for f in sorted({f for one in sets for f in one}) if self.sizes[f] < len(self.groups[f])]
        entries = {feature: len(self.groups) + place for place, feature in enumerate(grouped)}
        shares = whole_parts(parts)
        return SumMarginals(
            tuple(tuple(entries.get(feature, feature) for feature in one) for one in sets),
            tuple(Grouping(feature, self.groups[feature]) for feature in grouped),
            shares if len(set(shares)) > 1 else (),
        )

    def ask_together(self) -> SumMarginals:
        """One table of all features that have more than one group."""
        return self.ask_tables([tuple(f for f, size in enumerate(self.sizes) if size > 1)], [1.0])

    def ask_agreements(self, splits: Sequence[Sequence[Floats]], ones: int = 0) -> SumAgreements:
        """The agreements under splits that give each group of each feature a sign."""
        return SumAgreements(tuple(self._pack(split) for split in splits), ones)

    def _pack(self, split: Sequence[Floats]) -> bytes:
        pairs = zip(split, self.groups, strict=True)
        return pack_signs([signs[np.asarray(groups)].astype(np.int8) for signs, groups in pairs])
