"""Parents drawn privately: candidates are scored on exact counts, which leave only through a private choice. Pure."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.parents import Choice, ChooseParents
from synod.common.protocol.steps import Step
from synod.common.study.encoding import CodeColumn
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.party.count.choice import permute_and_flip
from synod.party.count.columns import feature_columns
from synod.party.count.families import Candidate, FamilyCounter
from synod.party.count.marginals import Counts, count_marginals
from synod.party.count.scores import score_sensitivity, score_tables

BLOCK_CELLS = 2**22
BATCH_CELLS = 2**18


def choose_parents(
    query: ChooseParents, step: Step, study: Study, columns: Sequence[CodeColumn], *, coins: Coins
) -> list[Choice]:
    """`count` draws of a feature with its parents.

    Guarantee: neighbours differ in the replaced rows of one unit, m at most, and row counts are public. Each draw is
    permute-and-flip on integer scores, which m rows, replaced one after the other, move by at most m times what one row
    does; candidates depend on the query and on earlier draws only. The draws share epsilon, the step's cost, evenly, so
    by sequential composition all are epsilon-DP. Where the query is ordered, candidates depend on the query alone; a
    draw with one option then reads no row and costs nothing, and only the others share epsilon.
    """
    scorer = _Scorer(query, study, columns)
    epsilon = query.epsilon_each(step, study)
    placed, candidates, listed = set(query.placed), dict(query.candidates), query.options(study)
    chosen: list[Choice] = []
    for place in range(query.count):
        takes = [query.open[place]] if query.ordered else list(candidates)
        options = listed.of([(feature, candidates[feature]) for feature in takes], placed)
        feature, parents = options[0]
        if not query.ordered or len(options) > 1:
            scores = scorer.score(options)
            drawn = permute_and_flip(scores, epsilon=epsilon, sensitivity=scorer.sensitivity, coins=coins)
            feature, parents = options[drawn]
        chosen.append((feature, parents))
        placed.add(feature)
        del candidates[feature]
    return chosen


class _Scorer:
    """Scores of attribute-parent pairs over one table; each is computed once."""

    def __init__(self, query: ChooseParents, study: Study, columns: Sequence[CodeColumn]) -> None:
        self._kind = query.score
        self._sizes = sizes_of(study)
        self._columns = feature_columns(study, columns)
        self._rows = len(columns[0])
        self._known: dict[Candidate, int] = {}
        self._counter = FamilyCounter(self._columns, self._sizes)
        binary = all(self._sizes[feature] == 2 for feature in query.open)
        self.sensitivity = study.max_rows_per_unit * score_sensitivity(self._kind, self._rows, binary)

    def score(self, options: Sequence[Candidate]) -> NDArray[np.int64]:
        """The scores of these pairs, in order; a pair without parents has the score of independence."""
        missing = [option for option in options if option not in self._known]
        packed = [option for option in missing if self._is_binary(option)]
        self._score_packed(packed)
        self._score_others([option for option in missing if not self._is_binary(option)])
        return np.array([self._known[option] for option in options], dtype=np.int64)

    def _is_binary(self, option: Candidate) -> bool:
        feature, parents = option
        return self._sizes[feature] == 2 and all(self._sizes[parent] == 2 for parent in parents)

    def _score_packed(self, options: Sequence[Candidate]) -> None:
        """Binary features: whole blocks of tables of one size, out of packed bits."""
        by_count: dict[int, list[Candidate]] = {}
        for feature, parents in options:
            by_count.setdefault(len(parents), []).append((feature, parents))
        for count, group in by_count.items():
            step = max(1, BLOCK_CELLS >> (count + 1))
            for start in range(0, len(group), step):
                block = group[start : start + step]
                sets = [(feature, *parents) for feature, parents in block]
                self._score_block(block, count_marginals(self._columns, self._sizes, sets))

    def _score_others(self, options: Sequence[Candidate]) -> None:
        """Other features: table after table, scored in batches of one shape."""
        waiting: dict[tuple[int, ...], list[tuple[Candidate, Counts]]] = {}
        held = 0
        for option, table in self._counter.count(options):
            batch = waiting.setdefault(table.shape, [])
            batch.append((option, table))
            held += table.size
            if len(batch) * table.size >= BATCH_CELLS:
                held -= len(batch) * table.size
                self._score_block(*zip(*waiting.pop(table.shape), strict=True))
            if held >= BLOCK_CELLS:
                self._score_blocks(waiting)
                waiting, held = {}, 0
        self._score_blocks(waiting)

    def _score_blocks(self, waiting: Mapping[tuple[int, ...], list[tuple[Candidate, Counts]]]) -> None:
        for batch in waiting.values():
            self._score_block(*zip(*batch, strict=True))

    def _score_block(self, block: Sequence[Candidate], tables: Sequence[Counts]) -> None:
        """Scores and forgets the tables of as many pairs as bounded memory holds."""
        feature, parents = block[0]
        shape = (len(block), self._sizes[feature], prod(self._sizes[parent] for parent in parents))
        scores = score_tables(self._kind, np.stack(tables).reshape(shape))
        self._known.update(zip(block, scores.tolist(), strict=True))
