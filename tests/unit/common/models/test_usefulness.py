"""Sizes of tables follow the formulas of methods.md, exactly, and from public numbers only."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.methods.dp_ccbn import DpCcbn
from synod.common.methods.dp_subn import DpSubn
from synod.common.methods.independent import Independent
from synod.common.models.usefulness import LARGEST_TABLE, is_useful, largest_table
from synod.common.privacy.cost import Cost
from synod.common.study.study import Study
from tests.support.studies import NAMES, categorical, make_study

ONE = Cost.pure(Fraction(1))


def degree(d: int, *, rows: int, epsilon: Fraction, theta: Decimal, shares: Fraction, nested: bool) -> int:
    """The k of a table of 2^(k+1) cells, which is what binary features have; 0 if there is none."""
    cells = largest_table((2,) * d, rows=rows, cost=Cost.pure(epsilon), theta=theta, shares=shares, nested=nested)
    assert cells == 0 or cells == 1 << cells.bit_length() - 1
    return max(0, cells.bit_length() - 2)


def formula(k: int, d: int, n: int, epsilon: float, root: float) -> float:
    """methods.md: n eps / ((d-k) 2^(k+2) root)."""
    return n * epsilon / ((d - k) * math.pow(2, k + 2) * root)


CASES = [
    (16, 21_574, Fraction(1, 20), Decimal(6)),
    (16, 21_574, Fraction(1, 5), Decimal(6)),
    (52, 45_222, Fraction(1, 5), Decimal(2)),
    (52, 45_222, Fraction(8, 5), Decimal(6)),
    (3, 10**9, Fraction(1), Decimal(6)),
    (2, 10**6, Fraction(1), Decimal(6)),
    (16, 1, Fraction(1, 5), Decimal(2)),
]


@pytest.mark.parametrize(("d", "n", "epsilon", "theta"), CASES)
@pytest.mark.parametrize(("parties", "collusion"), [(1, 0), (3, 0), (3, 2), (10, 4)])
def test_degrees_are_those_of_the_formulas(
    d: int, n: int, epsilon: Fraction, theta: Decimal, parties: int, collusion: int
) -> None:
    for shares in (Fraction(parties), Fraction(parties, parties - collusion)):
        root = math.sqrt(shares)
        useful = [k for k in range(1, d) if formula(k, d, n, float(epsilon), root) >= theta]
        frontier = [k for k in range(1, d) if n * float(epsilon) / (d * 2 ** (k + 2) * root) >= theta]
        chosen = [
            degree(d, rows=n, epsilon=epsilon, theta=theta, shares=shares, nested=nested) for nested in (True, False)
        ]
        assert chosen == [max(useful, default=0), max(frontier, default=0)]


def test_the_degrees_of_the_papers_tables_are_several() -> None:
    """So that the comparison above is not one of zeros."""
    found = {
        degree(d, rows=n, epsilon=epsilon, theta=theta, shares=Fraction(3), nested=True)
        for d, n, epsilon, theta in CASES
    }
    assert len(found) >= 4


def test_a_ratio_of_exactly_theta_is_useful() -> None:
    rows = 6 * 4 * 2**4 * 3
    epsilon, theta, shares = Fraction(1), Decimal(6), Fraction(9)
    assert degree(6, rows=rows, epsilon=epsilon, theta=theta, shares=shares, nested=True) == 2
    assert degree(6, rows=rows - 1, epsilon=epsilon, theta=theta, shares=shares, nested=True) == 1


@given(st.integers(3, 60), st.integers(0, 10**7), st.fractions(Fraction(1, 1000), 10), st.decimals("0.1", 20, places=3))
def test_the_cell_limit_agrees_with_the_degree_of_binary_features(
    d: int, rows: int, epsilon: Fraction, theta: Decimal
) -> None:
    shares = Fraction(3, 2)
    mixed = (2,) * (d - 1) + (3,)
    cells = largest_table(mixed, rows=rows, cost=Cost.pure(epsilon), theta=theta, shares=shares, nested=False)
    expected = max(0, min(d - 1, cells.bit_length() - 2))
    assert degree(d, rows=rows, epsilon=epsilon, theta=theta, shares=shares, nested=False) == expected


def test_the_cell_limit_of_one_party_is_that_of_privbayes() -> None:
    """Section 5.2: m <= n epsilon / (2 d theta)."""
    cost, theta, shares = Cost.pure(Fraction(1, 2)), Decimal(4), Fraction(1)
    cells = largest_table((4,) * 15, rows=40_000, cost=cost, theta=theta, shares=shares, nested=False)
    assert cells == 166
    for size, useful in ((166, True), (167, False)):
        assert is_useful(size, rows=40_000, cost=cost, tables=15, theta=theta, shares=shares) is useful


@pytest.mark.parametrize(("sizes", "least"), [((13, 13, 13), 169), ((12, 13, 14), 156), ((2, 84, 90), 168)])
def test_a_limit_below_every_pair_of_features_is_none(sizes: tuple[int, ...], least: int) -> None:
    public: dict[str, Any] = {"cost": ONE, "theta": Decimal(4), "shares": Fraction(1), "nested": True}
    enough = 4 * 2 * len(sizes) * least
    assert largest_table(sizes, rows=enough, **public) == least
    assert largest_table(sizes, rows=enough - 1, **public) == 0


@pytest.mark.parametrize("sizes", [(2,) * 60, (2,) * 59 + (3,)])
def test_no_table_is_beyond_the_limit_however_many_rows_there_are(sizes: tuple[int, ...]) -> None:
    public: dict[str, Any] = {"cost": ONE, "theta": Decimal(4), "shares": Fraction(1)}
    for nested in (True, False):
        assert largest_table(sizes, rows=10**15, **public, nested=nested) == LARGEST_TABLE


@pytest.mark.parametrize("size", [2, 3])
def test_a_single_feature_has_no_parents(size: int) -> None:
    public: dict[str, Any] = {"cost": ONE, "theta": Decimal(4), "shares": Fraction(1), "nested": True}
    assert largest_table((size,), rows=10**9, **public) == 0


@pytest.mark.parametrize("tables", [1, 7])
def test_at_rho_the_scale_is_that_of_the_laplace_law_with_the_same_variance(tables: int) -> None:
    """Laplace noise of scale b has the variance 2 b^2; m tables have the squared sensitivity 2m, so sigma^2 = m/rho."""
    cost, theta, shares, cells = Cost.concentrated(Fraction(1, 50)), Decimal(3), Fraction(3, 2), 8
    sigma = math.sqrt(tables * 50)
    least = 3 * cells * sigma / math.sqrt(2) * math.sqrt(1.5)
    for rows, useful in ((math.ceil(least), True), (math.ceil(least) - 1, False)):
        assert is_useful(cells, rows=rows, cost=cost, tables=tables, theta=theta, shares=shares) is useful


def test_at_rho_a_ratio_of_exactly_theta_is_useful() -> None:
    """Here m / (2 rho) is 9, so that the least number of rows is an integer: 6 * 4 * 3 * 2."""
    public: dict[str, Any] = {"tables": 2, "theta": Decimal(6), "shares": Fraction(4)}
    cost = Cost.concentrated(Fraction(1, 9))
    assert is_useful(4, rows=144, cost=cost, **public)
    assert not is_useful(4, rows=143, cost=cost, **public)


# Of a study

ROWS = (4_000, 8_000, 16_000)


def network_study(method: dict[str, Any], **changes: Any) -> Study:
    schema = [categorical(f"a{i}", 2) for i in range(12)]
    return make_study(**{"method": method, "rows": ROWS, "schema": schema, "epsilon": "0.5", **changes})


def subn(method: dict[str, Any], **changes: Any) -> DpSubn:
    settled = network_study(method, **changes).method
    assert isinstance(settled, DpSubn)
    return settled


@pytest.mark.parametrize("collusion", [0, 1, 2])
@pytest.mark.parametrize(
    ("method", "part"),
    [
        ({"name": "dp-subn", "split": ["0.25", "0.25", "0.25", "0.25"]}, Fraction(1, 4)),
        ({"name": "dp-subn", "split": ["0.1", "0.1", "0.1", "0.7"], "theta": 3}, Fraction(7, 10)),
        ({"name": "dp-ccbn", "split": ["0.2", "0.8"]}, Fraction(4, 5)),
    ],
)
def test_tables_of_the_network_have_the_last_share_of_epsilon(
    method: dict[str, Any], part: Fraction, collusion: int
) -> None:
    """That n eps4 / ((d-k) 2^(k+2) sqrt(K/(K-t))) >= theta."""
    settled = network_study(method, collusion=collusion).method
    assert isinstance(settled, DpSubn | DpCcbn)
    root = math.sqrt(Fraction(3, 3 - collusion))
    theta = method.get("theta", 6)
    fitting = [k for k in range(1, 12) if formula(k, 12, sum(ROWS), 0.5 * float(part), root) >= theta]
    assert fitting
    assert settled.parameter_cells == 2 ** (fitting[-1] + 1)


@pytest.mark.parametrize("collusion", [0, 2])
@pytest.mark.parametrize("update", ["sequential", "joint"])
def test_tables_of_the_frontier_have_the_third_share_and_the_noise_of_their_answers(
    update: str, collusion: int
) -> None:
    """That n eps3 / (d 2^(k'+2) root) >= theta', where root is sqrt(K) if each party answers on its own."""
    method = {"name": "dp-subn", "split": ["0.1", "0.1", "0.79", "0.01"], "theta_frontier": "1.5", "update": update}
    settled = subn(method, collusion=collusion)
    root = math.sqrt(3 if update == "sequential" else Fraction(3, 3 - collusion))
    fitting = [k for k in range(1, 12) if sum(ROWS) * 0.5 * 0.79 / (12 * 2 ** (k + 2) * root) >= 1.5]
    assert fitting
    assert settled.frontier_cells == 2 ** (fitting[-1] + 1)


def test_the_frontier_is_no_smaller_than_the_network() -> None:
    split = ["0.1", "0.1", "0.01", "0.79"]
    settled = subn({"name": "dp-subn", "split": split})
    assert settled.frontier_cells == settled.parameter_cells
    assert isinstance(settled.parameter_cells, int)
    assert settled.parameter_cells > 0
    written = subn({"name": "dp-subn", "split": split, "parameter_cells": 16, "frontier_cells": 4})
    assert (written.parameter_cells, written.frontier_cells) == (16, 16)


def test_tables_of_a_partys_own_network_follow_from_its_own_rows() -> None:
    counts = (100, *ROWS)
    found = []
    for rows in counts:
        fitting = [k for k in range(1, 12) if formula(k, 12, rows, 0.5 * 0.8, 1) >= 2]
        found.append(2 ** (fitting[-1] + 1) if fitting else 0)
    method = {"name": "independent", "beta": "0.2", "theta": 2}
    settled = network_study(method, names=("hamlet", *NAMES), rows=counts).method
    assert isinstance(settled, Independent)
    assert settled.table_cells == tuple(found)
    assert found[0] == 0
    assert len(set(found)) == 4


@pytest.mark.parametrize(
    ("method", "key", "part", "theta", "shares"),
    [
        ("dp-subn", "parameter_cells", 0.6, 6, 1.5),
        ("dp-subn", "frontier_cells", 0.15, 2, 3),
        ("dp-ccbn", "parameter_cells", 0.5, 6, 1.5),
        ("independent", "table_cells", 0.7, 4, 1),
    ],
)
def test_tables_of_a_study_with_delta_follow_from_its_rho(
    method: str, key: str, part: float, theta: int, shares: float
) -> None:
    """Twelve tables at rho: sigma^2 = 12 / rho for a full share of noise."""
    schema = [categorical(f"a{i}", 3) for i in range(12)]
    study = network_study({"name": method, "encoding": "vanilla"}, schema=schema, delta="1e-9")
    assert study.rho is not None
    scale = math.sqrt(12 / (2 * float(study.rho) * part) * shares)
    rows = ROWS if method == "independent" else (sum(ROWS),)
    expected = [math.floor(count / (theta * scale)) for count in rows]
    found = getattr(study.method, key)
    assert (list(found) if isinstance(found, tuple) else [found]) == expected
    assert min(expected) >= 9
