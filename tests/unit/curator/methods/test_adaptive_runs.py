"""Adaptive over in-process parties: any small schema is published within its plan and in its domains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import unpack_signs
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study
from synod.curator.inference.measurements import SignedSums
from synod.curator.methods import adaptive
from synod.curator.methods.base import Publication
from synod.curator.structure.grouped import GroupedFeatures, orders_of, similarity_orders_of
from synod.curator.structure.groups import OneWay, estimate_shares, group_values
from synod.curator.structure.known import Known
from synod.curator.structure.model import read_tree
from synod.curator.structure.selection import Room, choose_pairs, score_pairs
from synod.curator.structure.splits import choose_signs
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.recipes import check_run
from tests.support.studies import Attribute, binary, categorical, draw_columns, integer, make_study, real

SCHEMAS: dict[str, list[Attribute]] = {
    "mixed": [
        categorical("ward", 5, nullable=True),
        binary("sex"),
        integer("age", -3, 90, nullable=True),
        real("pay", "-1.5", "2.5", bins=9),
        integer("year", 2020, 2020),
        categorical("one", 1),
        categorical("perhaps", 1, nullable=True),
    ],
    "two values": [binary(f"x{i}") for i in range(5)],
    "two values, one missing": [binary("a"), categorical("b", 1, nullable=True), integer("c", 3, 3, nullable=True)],
    "one": [categorical("a", 5)],
    "one of two values": [binary("a")],
    "two": [categorical("a", 3), integer("b", 0, 300)],
    "two of two values": [binary("a"), binary("b")],
    "large": [categorical("a", 300), categorical("b", 70), binary("c")],
}
BUDGETS: list[dict[str, Any]] = [{"epsilon": "0.1"}, {"epsilon": "60"}, {"epsilon": "0.5", "delta": "1e-9"}]


def study_of(schema: list[Attribute], rows: tuple[int, ...] = (70, 90, 110), **keys: Any) -> Study:
    written: dict[str, Any] = {key: keys.pop(key) for key in ("rounds", "splits") if key in keys}
    method = {"name": "adaptive", **written}
    names = tuple(f"p{i}" for i in range(len(rows)))
    collusion = min(1, len(rows) - 1)
    return make_study(schema=schema, method=method, names=names, rows=rows, collusion=collusion, **keys)


def check(study: Study) -> Publication:
    """The planned steps in order, each query within its limits, and rows in the schema's domains."""
    check_feasible(study)
    publication = check_run(study)
    tree, weights = read_tree(publication.model)
    assert len(tree.sizes) == len(sizes_of(study))
    assert all(own.min() >= 0 for own in weights)
    constants = [not any(f.attribute == place for f in features_of(study)) for place in range(len(study.attributes))]
    assert all(not column.any() for column, own in zip(publication.columns, constants, strict=True) if own)
    return publication


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure, little", "pure, much", "rho"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_shapes(schema: list[Attribute], budget: dict[str, Any]) -> None:
    check(study_of(schema, **budget))
    if len(schema) > 1:
        check(study_of(schema, rounds=5, **budget))


@pytest.mark.parametrize("rounds", [1, 3, 5])
@pytest.mark.parametrize("schema", ["mixed", "two values"])
def test_rounds(schema: str, rounds: int) -> None:
    check(study_of(SCHEMAS[schema], rounds=rounds, epsilon="2", delta="1e-9"))


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        *(("mixed", rows) for rows in ((1, 1, 1), (90,), (1,), (2, 1))),
        *(("mixed", rows) for rows in ((1, 80, 60), (20,) * 7)),
        *(("two values", rows) for rows in ((1, 1, 1), (1, 80, 60), (90,), (1,), (2, 1), (20,) * 7)),
    ],
)
def test_few_rows_and_any_number_of_parties(schema: str, rows: tuple[int, ...]) -> None:
    for rounds in ("auto", 5):
        check(study_of(SCHEMAS[schema], rows=rows, rounds=rounds, epsilon="1"))
        check(study_of(SCHEMAS[schema], rows=rows, rounds=rounds, epsilon="1", delta="1e-9"))


@st.composite
def attributes(draw: st.DrawFn, place: int) -> Attribute:
    name, nullable = f"x{place}", draw(st.booleans())
    kind, low = draw(st.sampled_from(["categorical", "binary", "integer", "real"])), draw(st.integers(-5, 5))
    if kind == "binary":
        return binary(name)
    if kind == "categorical":
        return categorical(name, draw(st.integers(1, 9)), nullable=nullable)
    if kind == "real":
        low = draw(st.integers(-5, 5))
        return real(
            name, str(low), str(low + draw(st.integers(1, 9))), bins=draw(st.integers(1, 20)), nullable=nullable
        )
    low = draw(st.integers(-5, 5))
    return integer(name, low, low + draw(st.integers(0, 100)), nullable=nullable)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    schema = [draw(attributes(place)) for place in range(draw(st.integers(1, 5)))]
    schema += [categorical("varies", draw(st.integers(2, 4))), binary("varies too")]
    rows = tuple(draw(st.lists(st.integers(1, 60), min_size=1, max_size=4)))
    budget = {"epsilon": draw(st.sampled_from(["0.01", "1", "100"])), "delta": draw(st.sampled_from([None, "1e-9"]))}
    rounds, output_rows = draw(st.sampled_from(["auto", 1, 3, 5])), draw(st.none() | st.integers(1, 99))
    return study_of(schema, rows, rounds=rounds, output_rows=output_rows, **budget)


@settings(max_examples=40, deadline=None)
@given(studies())
def test_any_small_study_is_published_within_its_plan(study: Study) -> None:
    check(study)


def linked(study: Study, seed: int = 1) -> list[tuple[Codes, ...]]:
    """The second column copies the first, up to one row in ten."""
    tables: list[tuple[Codes, ...]] = []
    for entry in study.roster:
        first, second, *others = draw_columns(study, entry.name, seed)
        keep = np.random.default_rng(seed).random(entry.rows) < 0.9
        copied: Codes = np.where(keep, first, second).astype(np.uint8)
        tables.append((first, copied, *others))
    return tables


def publish(study: Study, tables: Any, coins: int = 1, seed: int = 1) -> Publication:
    return publish_in_process(study, tables, coins=seeded(coins), rng=np.random.default_rng(seed))


def test_the_same_coins_and_seed_give_the_same_publication() -> None:
    study = study_of([categorical("a", 4), categorical("b", 4), integer("c", 0, 99)], epsilon="5", delta="1e-9")
    tables = linked(study)
    one, again = publish(study, tables), publish(study, tables)
    assert canonical_bytes(one.model) == canonical_bytes(again.model)
    assert all(np.array_equal(a, b) for a, b in zip(one.columns, again.columns, strict=True))
    for other in (publish(study, tables, coins=2), publish(study, tables, seed=2)):
        assert not all(np.array_equal(a, b) for a, b in zip(one.columns, other.columns, strict=True))


@pytest.mark.parametrize("size", [2, 4])
def test_with_much_budget_the_rows_look_like_the_data(size: int) -> None:
    study = study_of([categorical(name, size) for name in "abc"], rows=(900, 800, 700), epsilon="20", delta="1e-9")
    tables = linked(study)
    publication = publish(study, tables)
    data = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
    shares = [
        np.bincount(columns[0].astype(int) * size + columns[1], minlength=size**2) / len(columns[0])
        for columns in (data, publication.columns)
    ]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.1  # independent columns would be 0.4 away
    assert len(plan_study(study).steps) == (1 if size == 2 else 5)
    assert all(c.dtype == coding.dtype for c, coding in zip(publication.columns, codings_of(study), strict=True))


# What any choice of groups, signs and pairs must hold

counts = st.lists(st.floats(-300, 3_000), min_size=2, max_size=30)


@given(counts, st.floats(0.5, 200), st.booleans(), st.floats(0, 2_000), st.randoms())
def test_groups_partition_the_values(
    noisy: list[float], deviation: float, ordered: bool, least: float, random: Any
) -> None:
    order = random.sample(range(len(noisy)), len(noisy) - random.randint(0, 1)) if ordered else None
    one_way = OneWay(np.array(noisy), deviation, None if order is None else tuple(order))
    groups = group_values(one_way, least=least)
    assert len(groups) == len(noisy)
    assert list(dict.fromkeys(groups)) == list(range(max(groups) + 1))
    shares = estimate_shares(one_way, 1_000)
    assert shares.min() >= 0
    assert abs(shares.sum() - 1) < 1e-9


def test_two_values_or_more_stay_two_groups_or_more() -> None:
    """A grouping of one group is none: parties refuse to count it, after the one-way tables were paid for."""
    assert max(group_values(OneWay(np.array([3.0, -8.0, 4.0]), 50.0, (0, 1, 2)), least=10.0)) > 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.booleans(), st.integers(0, 4), st.integers(0, 99))
def test_signs_are_plus_and_minus_one_and_both_occur(
    weights: list[float], ordered: bool, split: int, seed: int
) -> None:
    shares = (np.array(weights) + 1e-9) / (np.array(weights) + 1e-9).sum()
    order = list(np.random.default_rng(seed).permutation(len(shares))) if ordered else None
    signs = choose_signs(shares, order, split, rng=np.random.default_rng(seed))
    assert signs.shape == shares.shape
    assert set(signs.tolist()) <= {-1.0, 1.0}
    assert len(shares) < 2 or set(signs.tolist()) == {-1.0, 1.0}


TREE = [["a", "b"], [["c", "d"], "e"]]


def test_a_single_split_goes_by_numbers_and_taxonomies_and_several_by_numbers_only() -> None:
    schema = [{"name": "kind", "type": "categorical", "taxonomy": TREE}, categorical("flat", 5), integer("age", 0, 4)]
    study = study_of(schema)
    assert orders_of(study) == [None, None, tuple(range(5))]
    assert similarity_orders_of(study) == [tuple(range(5)), None, tuple(range(5))]


def splits_of(splits: int, seed: int, stage: int = 1, shares: Sequence[float] = (0.2,) * 5) -> list[list[float]]:
    """The signs of a taxonomy's leaves."""
    schema = [{"name": "kind", "type": "categorical", "taxonomy": TREE}, binary("b")]
    study = study_of(schema, rounds=5, splits=splits)
    known = Known(GroupedFeatures(((0, 1, 2, 3, 4), (0, 1)), (np.array(shares), np.full(2, 0.5))), 270)
    noted = adaptive._choose_splits(study, known, stage, seed)
    return [unpack_signs(bytes.fromhex(str(split)), sizes_of(study))[0].tolist() for split in noted]


def test_a_single_split_goes_along_the_taxonomy_and_several_splits_do_not() -> None:
    assert all(splits_of(1, seed) == [[1, 1, -1, -1, -1]] for seed in range(9))
    assert len({tuple(splits_of(3, seed)[0]) for seed in range(9)}) > 1


def test_a_leaf_that_would_pass_the_half_is_left_out() -> None:
    assert splits_of(1, 0, shares=(0.3, 0.5, 0.1, 0.06, 0.04)) == [[1, -1, 1, 1, 1]]


def test_a_single_split_is_another_in_the_second_stage() -> None:
    assert splits_of(1, 0, stage=2) != splits_of(1, 0, stage=1)


def score(values: list[float], variance: float) -> float:
    signs = np.array([[1.0, -1.0]] * len(values))
    one = SignedSums((0, 1), signs, signs, np.array(values), variance)
    return score_pairs([one], {(0, 1): np.full((2, 2), 0.25)}, 1_000)[0, 1]


def test_a_residual_has_to_stand_out_further_under_a_single_split() -> None:
    assert score([19.5], 100.0) == 0 < score([19.7], 100.0)
    assert score([9.9] * 3, 100.0) == 0 < score([10.1] * 3, 100.0)
    assert score([200.0], 100.0) == pytest.approx(4.5 * 200, rel=0.01)


@given(
    st.lists(st.integers(2, 9), min_size=2, max_size=6),
    st.integers(1, 20),
    st.integers(4, 300),
    st.integers(4, 80),
    st.integers(40, 2_000),
    st.booleans(),
    st.integers(0, 99),
)
def test_chosen_pairs_keep_to_their_room(
    sizes: list[int], tables: int, numbers: int, cells: int, model_cells: int, forest: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))]
    room = Room(tuple(sizes), 500, model_cells, tables, numbers, cells, lambda part: 2 / part**0.5, 2 / 3, forest)
    expected = {(a, b): np.full((sizes[a], sizes[b]), 1 / (sizes[a] * sizes[b])) for a, b in pairs}
    scores = {pair: float(rng.exponential(400)) for pair in pairs}
    chosen = choose_pairs(scores, 10.0, expected, [], room)
    assert len(set(chosen)) == len(chosen) <= tables
    assert set(chosen) <= set(pairs)
    assert sum(room.cells(pair) for pair in chosen) <= numbers
    assert all(room.cells(pair) <= cells for pair in chosen)
    if forest:
        assert len(chosen) < len(sizes)
