"""Tables over levels of features: margins by loops, agreement near least squares, rows with the exact law."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from scipy import stats

from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes
from synod.curator.network.consistency import NoisyTable, reconcile, shared_sets
from synod.curator.network.graph import Network, Pair
from synod.curator.network.levels import PLAIN, Levels
from synod.curator.network.sampling import sample_network
from synod.curator.network.tables import Floats, count_cells, marginalize

# Base features 0 to 3; 4 and 5 are levels of 0, 6 is one of 2.
LEVELS = Levels(
    bases=(0, 1, 2, 3, 0, 0, 2),
    groups=((), (), (), (), (0, 0, 1, 1, 2, 0), (0, 0, 1, 1, 1, 0), (0, 1, 1)),
)
SIZES = (6, 2, 3, 2, 3, 2, 2)
ROWS = 150_000
BASES = (0, 1, 2, 3)


def code_of(feature: int, row: tuple[int, ...]) -> int:
    code = row[LEVELS.base(feature)]
    return LEVELS.groups[feature][code] if LEVELS.groups[feature] else code


def count_slowly(joint: Floats, family: tuple[int, ...]) -> Floats:
    """Cell by cell of the joint table."""
    table: Floats = np.zeros([SIZES[feature] for feature in family])
    for row, value in zip(product(*(range(SIZES[base]) for base in BASES)), joint, strict=True):
        table[tuple(code_of(feature, row) for feature in family)] += value
    flat: Floats = table.reshape(-1)
    return flat


def random_joint(seed: int, rows: float = 1000.0) -> Floats:
    joint: Floats = np.random.default_rng(seed).exponential(size=count_cells(BASES, SIZES))
    return joint / float(joint.sum()) * rows


@pytest.mark.parametrize(
    ("family", "subset"),
    [((0, 1), (4,)), ((0, 1), (5, 1)), ((2, 0, 3), (3, 4, 6)), ((4, 1), (1, 5)), ((4, 6), (6, 5)), ((3, 5), (5, 3))],
)
def test_margins_of_levels_are_those_of_a_loop(family: tuple[int, ...], subset: tuple[int, ...]) -> None:
    joint = random_joint(1)
    found = marginalize(count_slowly(joint, family), family, SIZES, subset, LEVELS)
    assert found == pytest.approx(count_slowly(joint, subset))


def test_what_covers_what() -> None:
    assert LEVELS.covers((0, 1), (5,))
    assert LEVELS.covers((4, 1), (5, 1))
    assert not LEVELS.covers((5, 1), (4,))
    assert not LEVELS.covers((0, 1), (6,))
    assert LEVELS.meet((0, 1, 6), (4, 2)) == {4, 6}
    assert LEVELS.meet((5, 3), (4, 1)) == {5}
    assert LEVELS.order((3, 6, 4)) == (4, 6, 3)
    assert PLAIN.covers((3, 1), (1,))
    assert not PLAIN.covers((1,), (3,))


def test_only_families_that_no_other_tells_are_asked() -> None:
    pairs = (Pair(0, ()), Pair(1, (5,)), Pair(2, (4, 1)), Pair(3, (6, 0)))
    network = Network(pairs, LEVELS)
    assert network.asked_families() == ((2, 4, 1), (3, 6, 0))
    assert network.asked_sets() == ((4, 1, 2), (0, 6, 3))
    assert network.edges == {(0, 1), (0, 2), (1, 2), (2, 3), (0, 3)}
    # A longer family tells shorter ones, wherever they come.
    finer = Network((Pair(1, ()), Pair(0, (1,)), Pair(2, (5,)), Pair(3, (0, 1))), LEVELS)
    assert finer.asked_families() == ((2, 5), (3, 0, 1))
    turned = Network((Pair(2, ()), Pair(0, (6,)), Pair(1, ()), Pair(3, ())), LEVELS)
    assert turned.asked_families() == ((2,), (0, 6), (1,), (3,))


def test_a_later_family_never_tells_an_earlier_one_of_its_length() -> None:
    """So those that are asked tell each other nothing, for any network over levels."""
    rng = np.random.default_rng(6)
    chains = {base: [f for f in range(7) if LEVELS.base(f) == base] for base in BASES}
    for _ in range(300):
        order = rng.permutation(4).tolist()
        pairs = []
        for place, feature in enumerate(order):
            parents = [base for base in order[:place] if rng.random() < 0.6]
            pairs.append(Pair(feature, tuple(int(rng.choice(chains[base])) for base in parents)))
        network = Network(tuple(pairs), LEVELS)
        asked = network.asked_families()
        assert not any(LEVELS.covers(a, b) for a in asked for b in asked if a != b)
        assert all(any(LEVELS.covers(a, pair.family) for a in asked) for pair in pairs)


def test_a_network_knows_levels_of_what_it_has_placed() -> None:
    with pytest.raises(SynodError, match="does not come before it"):
        Network((Pair(1, (5,)), Pair(0, ())), LEVELS)
    with pytest.raises(SynodError, match="listed twice"):
        Network((Pair(0, ()), Pair(1, (0, 5))), LEVELS)


FAMILIES = [(0, 1), (2, 4, 1), (3, 5, 6), (1, 3)]


def test_shared_sets_go_from_coarse_to_fine() -> None:
    found = shared_sets(FAMILIES, LEVELS)
    assert found == [{5}, {1}, {3}, {5, 6}, {1, 4}]
    for place, shared in enumerate(found):
        assert not any(LEVELS.covers(sorted(shared), sorted(later)) for later in found[place + 1 :])


def largest_gap(families: list[tuple[int, ...]], tables: list[Floats]) -> float:
    gaps = []
    for i, (f, a) in enumerate(zip(families, tables, strict=True)):
        for g, b in list(zip(families, tables, strict=True))[:i]:
            shared = LEVELS.order(LEVELS.meet(f, g))
            if shared:
                one, other = (marginalize(t, own, SIZES, shared, LEVELS) for t, own in ((a, f), (b, g)))
                gaps.append(float(np.abs(one - other).max()))
    return max(gaps)


def test_tables_on_different_levels_come_to_agree() -> None:
    rng = np.random.default_rng(3)
    joint = random_joint(2)
    exact = [count_slowly(joint, family) for family in FAMILIES]
    noisy = [
        NoisyTable(family, table + rng.normal(0, 6, len(table)), 36.0)
        for family, table in zip(FAMILIES, exact, strict=True)
    ]
    before = largest_gap(FAMILIES, [table.counts for table in noisy])
    few, many = (reconcile(noisy, SIZES, total=1000.0, passes=count, levels=LEVELS) for count in (5, 60))
    assert largest_gap(FAMILIES, few) < 0.2 * before
    assert largest_gap(FAMILIES, many) < 0.01
    for table in few:
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1000.0)


def test_tables_that_agree_stay_as_they_are() -> None:
    joint = random_joint(4)
    tables = [NoisyTable(family, count_slowly(joint, family), 2.0 + i) for i, family in enumerate(FAMILIES)]
    for before, after in zip(tables, reconcile(tables, SIZES, total=1000.0, levels=LEVELS), strict=True):
        assert after == pytest.approx(before.counts, abs=1e-8)


def test_agreement_brings_levels_nearer_to_the_truth() -> None:
    """A coarse table of little noise teaches the fine one, and the other way round."""
    rng = np.random.default_rng(5)
    alone, together = [], []
    families = [(0, 1), (4, 1)]
    for seed in range(200):
        joint = random_joint(seed, 5000.0)
        exact = [count_slowly(joint, family) for family in families]
        noisy = [
            NoisyTable(family, table + rng.normal(0, 10, len(table)), 100.0)
            for family, table in zip(families, exact, strict=True)
        ]
        fitted = reconcile(noisy, SIZES, total=5000.0, levels=LEVELS)
        separate = [reconcile([one], SIZES, total=5000.0)[0] for one in noisy]
        together.append([np.square(a - b).mean() for a, b in zip(fitted, exact, strict=True)])
        alone.append([np.square(a - b).mean() for a, b in zip(separate, exact, strict=True)])
    better = np.mean(together, axis=0) / np.mean(alone, axis=0)
    assert better[0] < 0.9
    assert better[1] < 0.75


NETWORK = Network((Pair(2, ()), Pair(0, (6,)), Pair(3, (5, 2)), Pair(1, (4, 6, 3))), LEVELS)


def law_of(network: Network, tables: list[Floats]) -> dict[tuple[int, ...], float]:
    """By the definition: each feature given the groups that its parents' codes lie in."""
    law = {}
    for row in product(*(range(SIZES[base]) for base in BASES)):
        chance = 1.0
        for pair, table in zip(network.pairs, tables, strict=True):
            cube = table.reshape([SIZES[feature] for feature in pair.family])
            given = [float(cube[(x, *(code_of(parent, row) for parent in pair.parents))]) for x in range(len(cube))]
            weights = given if sum(given) else [float(part.sum()) for part in cube]
            chance *= weights[row[pair.feature]] / sum(weights)
        law[row] = chance
    return law


def chi_square_p(columns: Sequence[Codes], law: dict[tuple[int, ...], float]) -> float:
    """The p-value of the rows; 0 if one of them is impossible."""
    seen = Counter(zip(*(column.tolist() for column in columns), strict=True))
    if any(chance == 0 and seen[row] for row, chance in law.items()):
        return 0.0
    groups = [[row] for row in law if law[row] * ROWS >= 10] + [[row for row in law if 0 < law[row] * ROWS < 10]]
    counts = [sum(seen[row] for row in rows) for rows in groups if rows]
    expected = [sum(law[row] for row in rows) * ROWS for rows in groups if rows]
    return float(stats.chisquare(counts, expected).pvalue)


def test_rows_have_the_law_of_a_network_over_levels() -> None:
    rng = np.random.default_rng(4)
    tables = [rng.exponential(size=count_cells(pair.family, SIZES)) for pair in NETWORK.pairs]
    tables = [np.where(rng.random(len(table)) < 0.2, 0.0, table) for table in tables]
    columns = sample_network(NETWORK, tables, SIZES, ROWS, rng=np.random.default_rng(5))
    assert len(columns) == 4
    assert chi_square_p(columns, law_of(NETWORK, tables)) > 1e-3
    flatter = [table + 0.1 for table in tables]
    assert chi_square_p(columns, law_of(NETWORK, flatter)) < 1e-9
