"""Sampled rows against the exact law of small networks, enumerated row by row from the definition."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from time import perf_counter

import numpy as np
import pytest
from scipy import stats

from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes
from synod.curator.network.graph import Network, Pair
from synod.curator.network.sampling import CHUNK_ROWS, Word, make_word, sample_network
from synod.curator.network.tables import Floats, count_cells

ROWS = 150_000
LEAST_P = 1e-3
REJECTED_P = 1e-9

Row = tuple[int, ...]


def random_tables(network: Network, sizes: Sequence[int], seed: int) -> list[Floats]:
    """Positive and zero cells mixed, so that some configurations have no mass."""
    rng = np.random.default_rng(seed)
    tables = [rng.exponential(size=count_cells(pair.family, sizes)) for pair in network.pairs]
    return [np.where(rng.random(len(table)) < 0.3, 0.0, table) for table in tables]


def fits(word: Word, drawn: dict[int, int], sizes: Sequence[int]) -> bool:
    codes = product(*(range(sizes[feature]) for feature in word.features))
    return any(
        valid and all(drawn.get(feature, digit) == digit for feature, digit in zip(word.features, code, strict=True))
        for code, valid in zip(codes, word.valid.tolist(), strict=True)
    )


def chances_of(
    pair: Pair, table: Floats, drawn: dict[int, int], sizes: Sequence[int], words: Sequence[Word]
) -> list[float]:
    """The law of the next feature: joint, else margin, else equal weights, on the values that fit."""
    cube = table.reshape([sizes[feature] for feature in pair.family])
    size = sizes[pair.feature]
    possible = [all(fits(word, drawn | {pair.feature: x}, sizes) for word in words) for x in range(size)]
    choices = [
        [float(cube[(x, *(drawn[parent] for parent in pair.parents))]) for x in range(size)],
        [float(cube[x].sum()) for x in range(size)],
        [1.0] * size,
    ]
    kept = [[weight * ok for weight, ok in zip(weights, possible, strict=True)] for weights in choices]
    weights = next(weights for weights in kept if sum(weights) > 0)
    return [weight / sum(weights) for weight in weights]


def exact_law(
    network: Network, tables: Sequence[Floats], sizes: Sequence[int], words: Sequence[Word] = ()
) -> dict[Row, float]:
    law: dict[Row, float] = {}
    for row in product(*(range(size) for size in sizes)):
        chance, drawn = 1.0, dict[int, int]()
        for pair, table in zip(network.pairs, tables, strict=True):
            if chance > 0:
                chance *= chances_of(pair, table, drawn, sizes, words)[row[pair.feature]]
            drawn[pair.feature] = row[pair.feature]
        law[row] = chance
    return law


def chi_square_p(columns: Sequence[Codes], sizes: Sequence[int], law: dict[Row, float]) -> float:
    """The p-value of the rows; 0 if one of them is impossible."""
    codes = np.ravel_multi_index([column.astype(np.intp) for column in columns], list(sizes))
    counts = np.bincount(codes, minlength=math.prod(sizes))
    chances = np.array(list(law.values()))
    if counts[chances == 0].any():
        return 0.0
    expected = chances * counts.sum()
    rare = expected < 10
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    used = expected > 0
    return float(stats.chisquare(counts[used], expected[used]).pvalue)


CHAIN = Network((Pair(2, ()), Pair(0, (2,)), Pair(3, (0, 2)), Pair(1, (3, 0))))
LOOSE = Network((Pair(0, ()), Pair(1, ()), Pair(2, ()), Pair(3, ())))
FAN = Network((Pair(3, ()), Pair(2, (3,)), Pair(1, (3,)), Pair(0, (1, 2, 3))))
SIZES = [(2, 2, 2, 2), (3, 2, 5, 2), (1, 4, 2, 7)]


@pytest.mark.parametrize("network", [CHAIN, LOOSE, FAN])
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_have_the_networks_law(network: Network, sizes: tuple[int, ...]) -> None:
    tables = random_tables(network, sizes, seed=1)
    columns = sample_network(network, tables, sizes, ROWS, rng=np.random.default_rng(5))
    assert chi_square_p(columns, sizes, exact_law(network, tables, sizes)) > LEAST_P
    flatter = [table + 0.1 for table in tables]
    assert chi_square_p(columns, sizes, exact_law(network, flatter, sizes)) < REJECTED_P


@pytest.mark.parametrize("network", [CHAIN, LOOSE, FAN])
@pytest.mark.parametrize("features", [(0, 1, 2), (3, 1, 0), (1, 2)])
def test_words_are_valid_and_have_the_restricted_law(network: Network, features: tuple[int, ...]) -> None:
    sizes = (2, 3, 2, 2)
    cells = count_cells(features, sizes)
    word = Word(features, np.arange(cells) % 5 < 3)
    tables = random_tables(network, sizes, seed=2)
    columns = sample_network(network, tables, sizes, ROWS, rng=np.random.default_rng(6), words=[word])
    codes = np.ravel_multi_index([columns[f].astype(np.intp) for f in features], [sizes[f] for f in features])
    assert word.valid[codes].all()
    assert chi_square_p(columns, sizes, exact_law(network, tables, sizes, [word])) > LEAST_P
    assert chi_square_p(columns, sizes, exact_law(network, tables, sizes)) < REJECTED_P


def test_two_words_of_bits_hold_at_once() -> None:
    sizes = (2,) * 6
    network = Network((Pair(5, ()), Pair(0, (5,)), Pair(3, (0,)), Pair(1, (3, 5)), Pair(4, (1, 3)), Pair(2, (0, 4))))
    words = [
        make_word((0, 1, 2), [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0)], sizes),
        make_word((3, 4, 5), [(0, 0, 0), (1, 1, 0), (1, 0, 1)], sizes),
    ]
    tables = random_tables(network, sizes, seed=3)
    with np.errstate(all="raise"):
        columns = sample_network(network, tables, sizes, ROWS, rng=np.random.default_rng(7), words=words)
    assert chi_square_p(columns, sizes, exact_law(network, tables, sizes, words)) > LEAST_P
    assert set(zip(*(columns[f].tolist() for f in (3, 4, 5)), strict=True)) <= {(0, 0, 0), (1, 1, 0), (1, 0, 1)}


def test_a_word_whose_codes_all_exist_changes_nothing() -> None:
    sizes = (2, 3, 2, 2)
    tables = random_tables(CHAIN, sizes, seed=4)
    word = Word((0, 1), np.ones(6, dtype=bool))
    plain = sample_network(CHAIN, tables, sizes, 1000, rng=np.random.default_rng(8))
    kept = sample_network(CHAIN, tables, sizes, 1000, rng=np.random.default_rng(8), words=[word])
    assert all(np.array_equal(a, b) for a, b in zip(plain, kept, strict=True))


def test_a_configuration_without_mass_falls_back_to_the_margin() -> None:
    network = Network((Pair(0, ()), Pair(1, (0,))))
    tables = [np.array([0.0, 1.0]), np.array([1.0, 0.0, 3.0, 0.0])]
    columns = sample_network(network, tables, (2, 2), ROWS, rng=np.random.default_rng(9))
    assert columns[0].min() == 1
    assert stats.binomtest(int(columns[1].sum()), ROWS, 0.75).pvalue > LEAST_P
    empty = sample_network(network, [tables[0], np.zeros(4)], (2, 2), ROWS, rng=np.random.default_rng(9))
    assert stats.binomtest(int(empty[1].sum()), ROWS, 0.5).pvalue > LEAST_P


def test_no_uniform_reaches_an_impossible_value() -> None:
    """Tenths, whose sum rounds to less than one, a uniform just below one, and impossible values on both sides."""

    class Highest(np.random.Generator):
        def random(self, size: object = None, *_: object) -> Floats:  # type: ignore[override]
            return np.full(size, 1 - 2.0**-53)  # type: ignore[call-overload, no-any-return]

    weights = np.array([0.0, *[1.0] * 10, 0.0, 0.0])
    rng = Highest(np.random.PCG64(0))
    assert sample_network(Network((Pair(0, ()),)), [weights], (13,), 3, rng=rng)[0].tolist() == [10, 10, 10]


@pytest.mark.parametrize("rows", [0, 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_columns_are_narrow_complete_and_repeatable(rows: int) -> None:
    sizes = (2, 300, 1)
    network = Network((Pair(1, ()), Pair(0, (1,)), Pair(2, (0,))))
    tables = [np.ones(300), np.eye(2)[:, np.arange(300) % 2].reshape(-1), np.ones(2)]
    first, second = (sample_network(network, tables, sizes, rows, rng=np.random.default_rng(1)) for _ in range(2))
    assert [column.dtype for column in first] == [np.uint8, np.uint16, np.uint8]
    assert all(len(column) == rows for column in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert np.array_equal(first[0], first[1] % 2)


def test_bad_input_is_refused() -> None:
    one = Network((Pair(0, ()),))
    rng = np.random.default_rng(0)
    with pytest.raises(SynodError, match="does not place exactly"):
        sample_network(one, [np.ones(2)], (2, 2), 5, rng=rng)
    with pytest.raises(SynodError, match="no valid code"):
        sample_network(one, [np.ones(2)], (2,), 5, rng=rng, words=[Word((0,), np.zeros(2, dtype=bool))])
    with pytest.raises(SynodError, match="two attributes"):
        sample_network(one, [np.ones(2)], (2,), 5, rng=rng, words=[Word((0,), np.ones(2, dtype=bool))] * 2)


@pytest.mark.slow
def test_a_million_rows_of_52_bits(record_property: Callable[[str, object], None]) -> None:
    """The time is reported, not asserted."""
    rng = np.random.default_rng(1)
    network = Network(tuple(Pair(i, tuple(rng.choice(i, min(i, 4), replace=False).tolist())) for i in range(52)))
    tables = random_tables(network, (2,) * 52, seed=1)
    words = [Word(tuple(range(start, start + 6)), np.arange(64) < 41) for start in range(0, 48, 6)]
    begin = perf_counter()
    columns = sample_network(network, tables, (2,) * 52, 1_000_000, rng=rng, words=words)
    record_property("seconds", perf_counter() - begin)
    for word in words:
        codes = np.ravel_multi_index([columns[feature] for feature in word.features], (2,) * 6)
        assert codes.max() < 41
