"""Range queries against a twin that asks each row."""

import numpy as np
import pytest
from hypothesis import given, settings

from synod.deploy.evaluate.queries import Interval, Query, answer_query, draw_queries, measure_queries
from synod.deploy.evaluate.tables import Table
from tests.support.comparisons import draw_table, pairs_of_tables, table_of


def answer_slowly(table: Table, query: Query) -> float:
    hits = 0
    for row in range(table.rows):
        values = [int(table.columns[one.attribute][row]) for one in query]
        hits += all(one.low <= value <= one.high for one, value in zip(query, values, strict=True))
    return hits / table.rows


@settings(max_examples=40, deadline=None)
@given(pairs_of_tables())
def test_errors_are_means_over_the_queries(tables: tuple[Table, Table]) -> None:
    queries = draw_queries(tables[0], 30, rng=np.random.default_rng(5))
    found = measure_queries(*tables, 30, rng=np.random.default_rng(5))
    answers = [[answer_slowly(table, query) for query in queries] for table in tables]
    errors = [abs(right - left) for left, right in zip(*answers, strict=True)]
    relative = [error / max(left, 0.001) for error, left in zip(errors, answers[0], strict=True)]
    assert found.queries == 30
    assert found.absolute == pytest.approx(sum(errors) / 30)
    assert found.relative == pytest.approx(sum(relative) / 30)


def test_queries_are_sound_and_of_all_kinds() -> None:
    table = draw_table([2, 3, 9, 4, 5, 6], 5, 1, nullable=[1])
    queries = draw_queries(table, 2000, rng=np.random.default_rng(2))
    assert {len(query) for query in queries} == {1, 2, 3, 4}
    intervals = [interval for query in queries for interval in query]
    assert all(0 <= one.low <= one.high < table.values[one.attribute] for one in intervals)
    assert all(len({one.attribute for one in query}) == len(query) for query in queries)
    for attribute, values in enumerate(table.values):
        seen = {(one.low, one.high) for one in intervals if one.attribute == attribute}
        assert len(seen) == values * (values + 1) / 2


def test_a_missing_value_lies_in_no_interval() -> None:
    table = table_of([[0, 1, 2, 2]], [3], nullable=[0])
    assert answer_query(table, (Interval(0, 0, 1),)) == 0.5
    queries = draw_queries(table, 200, rng=np.random.default_rng(0))
    assert max(answer_query(table, query) for query in queries) == 0.5


def test_the_sanity_bound_holds_rare_answers_down() -> None:
    real, synthetic = table_of([[0] * 10], [2]), table_of([[1] * 10], [2])
    found = measure_queries(real, synthetic, 500, rng=np.random.default_rng(0))
    assert found.sanity_bound == 0.001
    assert 200 < found.relative < 300  # a quarter asks for the empty half: an error of 1 / 0.001


def test_the_same_seed_asks_the_same() -> None:
    tables = draw_table([5, 5], 40, 1), draw_table([5, 5], 40, 2)
    first, again, other = (measure_queries(*tables, 20, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert measure_queries(tables[0], tables[0], 20, rng=np.random.default_rng(1)).relative == 0
