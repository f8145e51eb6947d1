"""What is known of a study's pairs at one point of its run: everything released, and the model fitted to it so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synod.curator.inference.descent import Fitted, fit
from synod.curator.inference.junction import build_tree
from synod.curator.inference.measurements import Measurement, SignedSums
from synod.curator.inference.pairs import pair_tables
from synod.curator.structure.grouped import GroupedFeatures
from synod.curator.structure.selection import Pair

Floats = NDArray[np.float64]
LEAST_MASS = 0.1  # of a group, in rows: none of them is impossible


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What was released so far, in groups, as a fit takes it; the pairs that were counted; and the latest model."""

    grouped: GroupedFeatures
    rows: int
    tables: tuple[Measurement, ...] = ()
    sums: tuple[SignedSums, ...] = ()
    model: Fitted | None = None

    @property
    def pairs(self) -> list[Pair]:
        """The pairs whose tables were counted."""
        return [(one.attributes[0], one.attributes[1]) for one in self.tables if len(one.attributes) == 2]

    def expected(self) -> Mapping[Pair, Floats]:
        """What the model, or without one independence, says of every pair."""
        if self.model is not None:
            return pair_tables(self.model.tree, self.model.tables)
        base = self.base()
        return {(a, b): np.outer(base[a], base[b]) for a, b in combinations(range(len(base)), 2)}

    def base(self) -> list[Floats]:
        """One-way shares, none of them nothing."""
        return self.grouped.base(LEAST_MASS / self.rows)

    def fitted(self, pairs: Sequence[Pair], iterations: int) -> "Known":
        """With a model of these pairs that is fitted to everything released."""
        tree = build_tree(self.grouped.sizes, pairs)
        evidence: list[Measurement | SignedSums] = [*self.tables, *self.sums]
        return replace(self, model=fit(tree, self.rows, evidence, self.base(), iterations=iterations, start=self.model))
