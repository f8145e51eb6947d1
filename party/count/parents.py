"""Parents drawn privately: candidates are scored on exact counts, which leave only through a private choice. Pure."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.common.models.candidates import maximal_sets
from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.parents import Choice, ChooseParents
from synod.common.protocol.steps import Step
from synod.common.study.encoding import Codes
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study
from synod.party.count.choice import permute_and_flip
from synod.party.count.marginals import count_marginals
from synod.party.count.scores import score_sensitivity, score_tables

Candidate = tuple[int, tuple[int, ...]]
BLOCK_CELLS = 2**22


def choose_parents(
    query: ChooseParents, step: Step, study: Study, columns: Sequence[Codes], *, coins: Coins
) -> list[Choice]:
    """`count` draws of a feature with its parents.

    Guarantee: each draw is permute-and-flip at epsilon / count on integer scores of stated sensitivity; candidates
    depend on the query and on earlier draws only. By sequential composition all draws are epsilon-DP, epsilon being
    the step's cost.
    """
    scorer = _Scorer(query, study, columns)
    epsilon = query.epsilon_each(step)
    placed, candidates = set(query.placed), dict(query.candidates)
    chosen: list[Choice] = []
    for _ in range(query.count):
        options = _list_options(candidates, placed, sizes_of(study), query.max_cells)
        scores = scorer.score(options)
        feature, parents = options[
            permute_and_flip(scores, epsilon=epsilon, sensitivity=scorer.sensitivity, coins=coins)
        ]
        chosen.append((feature, parents))
        placed.add(feature)
        del candidates[feature]
    return chosen


def _list_options(
    candidates: dict[int, tuple[int, ...]], placed: set[int], sizes: Sequence[int], max_cells: int
) -> list[Candidate]:
    return [
        (feature, parents)
        for feature, shortlist in candidates.items()
        for parents in maximal_sets(feature, sorted(placed.intersection(shortlist)), sizes, max_cells)
    ]


class _Scorer:
    """Scores of attribute-parent pairs over one table; each is computed once."""

    def __init__(self, query: ChooseParents, study: Study, columns: Sequence[Codes]) -> None:
        self._kind = query.score
        self._sizes = sizes_of(study)
        self._columns = space_of(study).encode(columns)
        self._rows = len(columns[0])
        self._known: dict[Candidate, int] = {}
        binary = all(size == 2 for size in self._sizes)
        self.sensitivity = score_sensitivity(self._kind, self._rows, binary)

    def score(self, options: Sequence[Candidate]) -> NDArray[np.int64]:
        """The scores of these pairs, in order; a pair without parents has the score of independence."""
        missing = [option for option in options if option not in self._known]
        by_shape: dict[tuple[int, ...], list[Candidate]] = {}
        for feature, parents in missing:
            shape = (self._sizes[feature], *(self._sizes[parent] for parent in parents))
            by_shape.setdefault(shape, []).append((feature, parents))
        for shape, group in by_shape.items():
            step = max(1, BLOCK_CELLS // prod(shape))
            for start in range(0, len(group), step):
                self._score_block(shape, group[start : start + step])
        return np.array([self._known[option] for option in options], dtype=np.int64)

    def _score_block(self, shape: tuple[int, ...], block: Sequence[Candidate]) -> None:
        """Counts, scores and forgets the tables of as many pairs as bounded memory holds."""
        sets = [(feature, *parents) for feature, parents in block]
        tables = np.stack(count_marginals(self._columns, self._sizes, sets)).reshape(len(block), shape[0], -1)
        scores = score_tables(self._kind, tables)
        self._known.update(zip(block, (int(score) for score in scores), strict=True))
