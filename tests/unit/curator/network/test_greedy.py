"""Networks that the curator grows from released pairs: a literal twin, shortlists, ties, and levels."""

from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest

from synod.common.models.candidates import ParentSets, count_options
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.curator.methods.base import Released
from synod.curator.network import greedy
from synod.curator.network.dependence import PairMargins, find_pairs
from synod.curator.network.entropy import fit_largest_entropy
from synod.curator.network.graph import Network
from synod.curator.network.greedy import Scores, grow_network, most_options, shortlist_by_information
from synod.curator.network.tables import mutual_information
from tests.support.studies import binary, categorical, integer, make_study

ROWS = 9000
SCHEMA = [integer("age", 0, 7), categorical("w", 3), binary("sex"), binary("old"), categorical("v", 4)]
EVERYTHING = 10**6


def study_of(schema: list[dict[str, Any]] = SCHEMA) -> Study:
    method = {"name": "privbayes", "structure": "pooled", "parameter_cells": 24}
    return make_study(schema=schema, rows=(ROWS // 3,) * 3, epsilon="5", method=method)


def pairs_of(study: Study, seed: int = 1, deviation: float = 20) -> PairMargins:
    """Pairs of rows in which each column leans on the one before it."""
    rng, sizes = np.random.default_rng(seed), base_sizes(study)
    drawn = [rng.integers(0, sizes[0], ROWS)]
    for size in sizes[1:]:
        leaning, alone = drawn[-1] * size // (drawn[-1].max() + 1), rng.integers(0, size, ROWS)
        drawn.append(np.where(rng.random(ROWS) < 0.6, leaning, alone))
    tables = []
    for x, y in combinations(range(len(sizes)), 2):
        counts = np.zeros((sizes[x], sizes[y]))
        np.add.at(counts, (drawn[x], drawn[y]), 1)
        noisy = counts.reshape(-1) + rng.normal(0, deviation, counts.size)
        tables.append(Released((x, y), noisy, ROWS, deviation**2))
    return find_pairs(study, tables)


def full_lists(study: Study) -> tuple[tuple[int, tuple[int, ...]], ...]:
    count = base_count(study)
    return tuple((x, tuple(i for i in range(count) if i != x)) for x in range(count))


def information(pairs: PairMargins, family: tuple[int, ...]) -> float:
    """Of one family by itself."""
    if len(family) == 1:
        return 0.0
    places = combinations(range(len(family)), 2)
    margins = {(i, j): pairs.margin(family[i], family[j])[..., None] for i, j in places}
    table = fit_largest_entropy(margins, [pairs.sizes[feature] for feature in family])
    return round(float(mutual_information(table.reshape(-1), pairs.sizes[family[0]])), 6)


def grow_slowly(study: Study, pairs: PairMargins, first: int, cells: int) -> list[tuple[int, ...]]:
    """The families before levels are made coarser, each option fitted by itself at every step."""
    sizes, chains = sizes_of(study), chains_of(study)
    families: list[tuple[int, ...]] = [(first,)]
    while len(families) < base_count(study):
        placed = [family[0] for family in families]
        options = [
            (x, *parents)
            for x in range(base_count(study))
            if x not in placed
            for parents in ParentSets(placed, sizes, chains).within(cells // sizes[x])
        ]
        families.append(min(options, key=lambda one: (-information(pairs, one), prod(sizes[i] for i in one), one)))
    return families


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_literal_twin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of()
    pairs = pairs_of(study, seed)
    monkeypatch.setattr(greedy, "_coarsen", lambda family, *_: family)
    monkeypatch.setattr(greedy, "SCORE_DIGITS", 6)
    network = grow_network(study, pairs, 2, full_lists(study), 24, None)
    assert [pair.family for pair in network.pairs] == grow_slowly(study, pairs, 2, 24)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of()
    pairs, chains = pairs_of(study), chains_of(study)
    families = [(4, *parents) for parents in ParentSets([0, 1, 2, 3], sizes_of(study), chains).within(30)]
    together = Scores(pairs).find(families)
    monkeypatch.setattr(greedy, "BATCH_CELLS", 1)
    assert Scores(pairs).find(families) == pytest.approx(together, abs=1e-4)
    assert Scores(pairs).find([(4,)]) == [0.0]


def families_of(network: Network) -> dict[int, tuple[int, ...]]:
    return {pair.feature: pair.parents for pair in network.pairs}


def test_a_level_is_no_finer_than_what_it_tells() -> None:
    """Whether somebody is in the upper half of the ages decides; the finer ages add nothing."""
    study = study_of([integer("age", 0, 7), binary("old")])
    counts = np.array([[1, 0]] * 4 + [[0, 1]] * 4, dtype=np.float64).reshape(-1) * ROWS / 8
    pairs = find_pairs(study, [Released((0, 1), counts, ROWS, 1e-6)])
    network = grow_network(study, pairs, 0, full_lists(study), 24, None)
    assert families_of(network)[1] == (chains_of(study)[0][-1],)


def test_pairs_without_information_get_the_coarsest_parents_and_ties_go_to_the_lowest() -> None:
    study = study_of([integer("a", 0, 7), integer("b", 0, 7), integer("c", 0, 7)])
    tables = [Released(pair, np.full(64, ROWS / 64), ROWS, 1.0) for pair in combinations(range(3), 2)]
    network = grow_network(study, find_pairs(study, tables), 1, full_lists(study), 40, None)
    assert network.features == (1, 0, 2)
    assert families_of(network)[0] == (chains_of(study)[1][-1],)


def test_shortlists_have_the_features_of_most_information_and_few_enough_options() -> None:
    study = study_of([integer(f"x{i}", 0, 7) for i in range(7)])
    pairs, sizes, chains = pairs_of(study), sizes_of(study), chains_of(study)
    full = shortlist_by_information(study, pairs, 60, EVERYTHING, None)
    assert full == full_lists(study)
    short = shortlist_by_information(study, pairs, 60, 100, None)
    (length,) = {len(parents) for _, parents in short}
    assert 1 <= length < 6
    assert count_options(short, sizes, chains, 60, most=EVERYTHING) <= 100
    for x, parents in short:
        worst = min(pairs.information(x, i) for i in parents)
        assert all(pairs.information(x, i) <= worst for i in range(7) if i not in (x, *parents))
    network = grow_network(study, pairs, 3, short, 60, 1)
    assert network.degree == 1
    assert all(levels_within(study, dict(short)[pair.feature], pair.parents) for pair in network.pairs)


def levels_within(study: Study, allowed: tuple[int, ...], parents: tuple[int, ...]) -> bool:
    return all(any(parent in chains_of(study)[base] for base in allowed) for parent in parents)


def test_no_choice_fits_more_cells_than_its_limit() -> None:
    assert most_options(100, 500) == 500
    assert most_options(65_536, 2_000_000) * 65_536 <= greedy.DRAW_CELLS
