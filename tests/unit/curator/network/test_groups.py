"""Groups of columns and weights of values: shares and weights by hand, and by brute force what a value is promised."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import LaplaceLaw
from synod.common.protocol.queries.marginals import LARGEST_SHARE, SumMarginals, Weights
from synod.common.protocol.queries.noise_runs import NoisePattern
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import Code, SynodError
from synod.curator.network.graph import Network, Pair
from synod.curator.network.groups import (
    Groups,
    ask_tables,
    find_sensitive,
    order_by_information,
    part_by_value,
    share_tables,
    split_model,
    weigh_values,
)
from synod.party.count.tables import exact_counts
from tests.support.studies import categorical, make_study

# Order, groups, weights


def test_the_order_is_by_falling_sums_and_ties_go_to_the_lower_index() -> None:
    information = np.array([[0, 0.1, 0.2, 0], [0.1, 0, 0.5, 0], [0.2, 0.5, 0, 0], [0, 0, 0, 0]])
    assert order_by_information(information) == [2, 1, 0, 3]
    assert order_by_information(information[::-1, ::-1]) == [1, 2, 3, 0]
    assert order_by_information(np.ones((3, 3))) == [0, 1, 2]


def test_sensitive_is_the_column_itself_and_what_tells_as_much_as_the_threshold() -> None:
    information = np.zeros((4, 4))
    information[1] = information[:, 1] = [0.1, 0, 0.0999, 0.7]
    assert find_sensitive(information, 1, Decimal("0.1")) == [0, 1, 3]
    assert find_sensitive(information, 1, Decimal(1)) == [1]


def test_weights_by_hand() -> None:
    """Shares of 1/2, 1/4 and 1/4 have 1, 2 and 2 bits; nothing has log2(2n) bits, and all of the rows none."""
    shares = np.array([0.5, 0.25, 0.25])
    assert weigh_values(shares, 100, "rare") == (32, 64, 64)
    assert weigh_values(shares, 100, "frequent") == (64, 32, 32)
    assert weigh_values(np.array([1.0, 0.0]), 128, "rare") == (1, 64)
    assert weigh_values(np.array([1.0, 0.0]), 128, "frequent") == (64, 1)
    assert weigh_values(np.array([0.5, 0.5, 0.0]), 128, "rare") == (8, 8, 64)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9).filter(lambda own: sum(own) > 0.01), st.integers(1, 10**9))
def test_weights_are_whole_within_a_querys_and_monotone(counts: list[float], rows: int) -> None:
    shares = np.array(counts) / sum(counts)
    rare, frequent = weigh_values(shares, rows, "rare"), weigh_values(shares, rows, "frequent")
    assert max(rare) == max(frequent) == 64
    assert min(rare + frequent) >= 1
    order = np.argsort(shares, kind="stable")
    assert list(np.array(rare)[order]) == sorted(rare, reverse=True)
    assert list(np.array(frequent)[order]) == sorted(frequent)


# Shares


def test_shares_are_those_of_the_groups_divided_by_their_tables() -> None:
    printed = (Decimal("0.15"), Decimal("0.45"))
    assert share_tables([True, False, False], printed) == (2, 3, 3)  # 0.15 to one, 0.225 to each of two
    assert share_tables([True, True, True, False], printed) == (1, 1, 1, 9)
    assert share_tables([True, False, False, False], printed) == ()
    assert share_tables([True, True], printed) == share_tables([False, False], printed) == ()


@given(
    st.lists(st.booleans(), min_size=1, max_size=1000),
    st.tuples(st.decimals("0.0001", "0.1", places=12), st.decimals("0.0001", "0.1", places=12)),
)
def test_shares_fit_into_a_query_and_are_nearly_exact(is_own: list[bool], shares: tuple[Decimal, Decimal]) -> None:
    found = share_tables(is_own, shares)
    assert all(1 <= own <= LARGEST_SHARE for own in found)
    if found:
        own, other = (next(f for f, one in zip(found, is_own, strict=True) if one is kind) for kind in (True, False))
        exact = Fraction(shares[0]) * is_own.count(False) / (Fraction(shares[1]) * is_own.count(True))
        assert abs(Fraction(own, other) / exact - 1) < Fraction(1, 2)


# The query

PAIRS = (Pair(0, ()), Pair(1, (0,)), Pair(2, (0, 1)), Pair(3, (0,)))
WEIGHTS = {1: (9, 1), 2: (1, 2, 3), 3: (4, 4)}
PARTS = (Decimal("0.1"), Decimal("0.3"))


def test_a_table_that_tells_a_sensitive_family_is_sensitive_and_has_no_weights() -> None:
    """The family of 2 holds those of 0 and 1."""
    query = ask_tables(Network(PAIRS), {1}, WEIGHTS, PARTS)
    assert query.sets == ((0, 1, 2), (0, 3))
    assert query.shares == (1, 3)
    assert query.weights == (), "equal weights are none"


def test_weights_are_those_of_the_child() -> None:
    query = ask_tables(Network(PAIRS), {3}, WEIGHTS, PARTS)
    assert query.shares == (3, 1)
    assert query.weights == (Weights(2, (1, 2, 3)), None)


def test_without_groups_and_weights_the_question_is_that_of_privbayes() -> None:
    network = Network(PAIRS)
    for sensitive in ((), (0, 1, 2, 3)):
        assert ask_tables(network, sensitive, {}, PARTS) == SumMarginals(network.asked_sets())


# What a value is promised

STUDY = make_study(
    schema=[categorical("x", 3), categorical("y", 3)], method={"name": "distdiffgen"}, epsilon="1", rows=(1, 1, 1)
)
Row = tuple[int, int]
ROWS: list[Row] = [(x, y) for x in range(3) for y in range(3)]
CASES = {
    "child first": SumMarginals(((0, 1), (1,)), (), (), (Weights(0, (64, 7, 1)), None)),
    "child last": SumMarginals(((0, 1), (0,)), (), (3, 1), (Weights(1, (1, 5, 5)), None)),
    "two weighted tables": SumMarginals(((0,), (1,)), (), (2, 5), (Weights(0, (2, 1, 4)), Weights(1, (9, 9, 2)))),
}


def rates_of(query: SumMarginals) -> list[Fraction]:
    """1 / scale of each cell at epsilon 1."""
    step = Step("asked", "asking", query.kind, STUDY.party_names, Cost.pure(Fraction(1)), query.size(STUDY))
    found: list[Fraction] = []
    for noise in query.table_noise(step, STUDY):
        runs = list(noise.runs) * noise.times if isinstance(noise, NoisePattern) else [noise]
        for run in runs:
            assert isinstance(run.law, LaplaceLaw)
            found += [1 / run.law.scale] * run.numbers
    return found


def count(query: SumMarginals, rows: Sequence[Row]) -> list[int]:
    columns = [np.array([row[place] for row in rows], dtype=np.uint8) for place in (0, 1)]
    counts: list[int] = exact_counts(query, STUDY, columns).tolist()
    return counts


@pytest.mark.parametrize("query", CASES.values(), ids=CASES.keys())
def test_no_row_with_a_value_loses_more_than_its_bound(query: SumMarginals) -> None:
    """Over all tables of three rows and all rows in the place of one: the exact log-ratio of all noisy counts, whose
    worst outcome is the change of a count divided by its scale. Some row with each value reaches the bound.
    """
    rates = rates_of(query)
    for place, weights in enumerate(query.weights):
        if weights is None:
            continue
        worst = [Fraction(0)] * 3
        for rows, other in product(combinations_with_replacement(ROWS, 3), ROWS):
            for left, row in enumerate(rows):
                after = count(query, (*rows[:left], other, *rows[left + 1 :]))
                changes = zip(count(query, rows), after, rates, strict=True)
                loss = sum((abs(a - b) * rate for a, b, rate in changes), Fraction(0))
                worst[row[weights.entry]] = max(worst[row[weights.entry]], loss)
        bounds = part_by_value(query, place)
        assert all(loss <= bound <= 1 for loss, bound in zip(worst, bounds, strict=True))
        assert len(set(bounds)) > 1
        if place == 0 and query.weights[1] is None:
            assert worst == list(bounds)


def test_the_bound_by_hand() -> None:
    """Two even tables: half of a half less for a row that has none of its own cell's noise budget."""
    query = SumMarginals(((0,), (1,)), (), (), (Weights(0, (64, 32, 1)), None))
    assert part_by_value(query, 0) == (Fraction(1), 1 - Fraction(1, 8), 1 - Fraction(63, 256))


# The published form


def test_groups_come_back_from_the_model() -> None:
    groups = Groups((0,), CASES["child first"])
    network, read = split_model(STUDY, {"network": 1, **groups.to_json()})
    assert (network, read) == ({"network": 1}, groups)


@pytest.mark.parametrize(
    "change",
    [
        {"sensitive": None},
        {"sensitive": [1, 0]},
        {"sensitive": [2]},
        {"sensitive": [True]},
        {"parameters": None},
        {"parameters": {"kind": "sum-marginals", "sets": [[7]]}},
        {"parameters": {"kind": "sum-marginals", "sets": [[0]], "more": 1}},
        {"parameters": {"kind": "local-marginals", "sets": [[0]]}},
    ],
)
def test_a_model_without_sound_groups_is_refused(change: dict[str, Any]) -> None:
    model = {"network": 1, **Groups((0,), CASES["child first"]).to_json()}
    forms: list[Any] = [{**model, **change}, {k: v for k, v in model.items() if k not in change}, []]
    for broken in forms:
        with pytest.raises(SynodError, match=r"model\.json does not say") as caught:
            split_model(STUDY, broken)
        assert caught.value.code is Code.CHECK_FAILED
