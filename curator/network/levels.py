"""Levels of features, as networks and their tables need them: what a table says about coarser features, too.

A table over a feature tells all that a table over a coarser level of it tells. Of two levels of one attribute the one
with the lower index is the finer. Public numbers only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.queries.marginals import Grouping
from synod.common.study.features import bases_of, features_of
from synod.common.study.study import Study

Features = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """The base feature of each feature, and the group of each of its codes, which is empty for a base feature itself.

    Without any, every feature is a base feature.
    """

    bases: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    def base(self, feature: int) -> int:
        """The base feature that a feature is, or is a coarser level of."""
        return self.bases[feature] if self.bases else feature

    def chain(self, base: int) -> Features:
        """The levels of a base feature, itself first and the coarsest last."""
        return tuple(i for i, own in enumerate(self.bases) if own == base) if self.bases else (base,)

    def order(self, features: Iterable[int]) -> Features:
        """Features in the order of their base features, as queries name them."""
        return tuple(sorted(features, key=self.base))

    def source(self, features: Sequence[int], wanted: int) -> int | None:
        """The one of `features` that tells `wanted`: the same attribute on the same or a finer level."""
        base = self.base(wanted)
        return next((one for one in features if one <= wanted and self.base(one) == base), None)

    def covers(self, features: Sequence[int], wanted: Iterable[int]) -> bool:
        """Whether a table of `features` tells the table of `wanted`."""
        return all(self.source(features, one) is not None for one in wanted)

    def meet(self, first: Iterable[int], second: Iterable[int]) -> frozenset[int]:
        """The finest features that tables of both tell: of each attribute that both have, the coarser level."""
        others = {self.base(one): one for one in second}
        shared = (max(one, others[self.base(one)]) for one in first if self.base(one) in others)
        return frozenset(shared)

    def coarsen(self, fine: int, coarse: int, size: int) -> NDArray[np.intp]:
        """For each of the `size` codes of a feature, its code on a coarser level of the same attribute."""
        if fine == coarse:
            return np.arange(size)
        groups = np.array(self.groups[coarse], dtype=np.intp)
        if not self.groups[fine]:
            return groups
        found = np.zeros(size, dtype=np.intp)
        found[np.array(self.groups[fine])] = groups
        return found


PLAIN = Levels()


@lru_cache(maxsize=64)
def levels_of(study: Study) -> Levels:
    """The levels of a study's features."""
    features = features_of(study)
    if not any(feature.level for feature in features):
        return PLAIN
    return Levels(bases_of(study), tuple(feature.groups for feature in features))


@lru_cache(maxsize=64)
def levels_with(study: Study, groupings: tuple[Grouping, ...]) -> Levels:
    """The same where queries have groupings, which are numbered after all features: each is a coarser level of the
    feature that it groups. Queries have them only where features have no levels of their own.
    """
    if not groupings:
        return levels_of(study)
    assert levels_of(study) == PLAIN
    count = len(features_of(study))
    bases = (*range(count), *(one.feature for one in groupings))
    return Levels(bases, (*((),) * count, *(one.groups for one in groupings)))
