"""Weights of a table's cells: forms, checks, the noise of each cell, and what a replaced row costs by brute force."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import GaussianLaw, LaplaceLaw, NoiseLaw
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, Sets, SumMarginals, Tables, Weights
from synod.common.protocol.queries.noise_runs import NoisePattern, NoiseRun
from synod.common.protocol.queries.parsing import parse_query, query_digest, read_query
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import SynodError
from synod.common.study.study import Study
from synod.curator.release.report.spending import _describe_law
from synod.party.count.tables import exact_counts
from synod.v1 import query_pb2 as pb
from tests.support.keys import seeded
from tests.support.queries import NETWORK, SIZES, refusal, step_of
from tests.support.studies import categorical, make_study

USED = (Grouping(1, (0, 1, 0)), Grouping(2, (0, 1, 1, 2)))
WEIGHTED = SumMarginals(
    ((0, 4), (1, 5), (2,), (0, 4, 3)),
    USED,
    (),
    (Weights(4, (3, 1)), None, Weights(2, (1, 5, 5, 2)), Weights(4, (2, 7))),
)
"""Features of sizes 2, 3, 4 and 2; the entries 4 and 5 have two and three groups."""


def as_local(query: SumMarginals) -> LocalMarginals:
    return LocalMarginals(query.sets, query.groupings, query.shares, query.weights)


@st.composite
def weighted_tables(draw: st.DrawFn) -> SumMarginals:
    """Any sets of features, each as it is or grouped, with any shares or none, and weights in some tables or none."""
    sizes = (*SIZES, 2, 3)
    places = {1: 4, 2: 5}
    sets = [
        tuple(places[f] if f in places and draw(st.booleans()) else f for f in sorted(features))
        for features in draw(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=4))
    ]
    shares = draw(st.one_of(st.just([]), st.lists(st.integers(1, 9), min_size=len(sets), max_size=len(sets))))
    weights: list[Weights | None] = []
    for entries in sets:
        entry = draw(st.sampled_from(entries))
        own = draw(st.lists(st.integers(1, 64), min_size=sizes[entry], max_size=sizes[entry]))
        weights.append(draw(st.sampled_from([None, Weights(entry, tuple(own))])))
    return SumMarginals(tuple(sets), USED, tuple(shares), tuple(weights) if any(weights) else ())


# Forms and checks


@given(weighted_tables())
def test_any_weights_come_back_from_both_forms(query: SumMarginals) -> None:
    for asked in (query, as_local(query)):
        assert read_query(asked.to_json(), NETWORK) == asked
        assert parse_query(pb.Query.FromString(asked.to_proto().SerializeToString()), NETWORK) == asked
        step = replace(step_of(asked, NETWORK), limit=asked.size(NETWORK))
        assert asked.to_proto().ByteSize() <= type(asked).message_bytes(step, NETWORK)


def test_the_canonical_form() -> None:
    assert WEIGHTED.to_json()["weights"] == [[4, [3, 1]], None, [2, [1, 5, 5, 2]], [4, [2, 7]]]
    assert "weights" not in replace(WEIGHTED, weights=()).to_json()


NOT_ONE_EACH = "the query's weights are not one for each table."
NOT_VALUES = "the query's weights are not those of all values of an entry of their table."
BROKEN: dict[str, tuple[Sets, tuple[Weights | None, ...], str]] = {
    "too few": (((0,), (1,)), (Weights(0, (1, 2)),), NOT_ONE_EACH),
    "too many": (((0,),), (Weights(0, (1, 2)), Weights(0, (1, 2))), NOT_ONE_EACH),
    "one too many that has none": (((0,),), (Weights(0, (1, 2)), None), NOT_ONE_EACH),
    "no table has any": (((0,), (1,)), (None, None), NOT_ONE_EACH),
    "of an entry of another table": (((0,), (1,)), (Weights(1, (1, 2, 3)), None), NOT_VALUES),
    "of a feature that is grouped there": (((4,),), (Weights(1, (1, 2, 3)),), NOT_VALUES),
    "of an entry that there is not": (((0,),), (Weights(6, (1, 2)),), NOT_VALUES),
    "of an entry beyond any": (((0,),), (Weights(2**32 - 1, (1, 2)),), NOT_VALUES),
    "too few values": (((1,),), (Weights(1, (1, 2)),), NOT_VALUES),
    "too many values": (((1,),), (Weights(1, (1, 2, 3, 4)),), NOT_VALUES),
    "values and not groups": (((4,),), (Weights(4, (1, 2, 3)),), NOT_VALUES),
    "a weight of nothing": (((0,),), (Weights(0, (0, 1)),), NOT_VALUES),
    "too large a weight": (((0,),), (Weights(0, (1, 65)),), NOT_VALUES),
}


@pytest.mark.parametrize(("sets", "weights", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_check_4_broken_once(sets: Sets, weights: tuple[Weights | None, ...], sentence: str) -> None:
    for kind in (SumMarginals, LocalMarginals):
        query = kind(sets, USED, (), weights)
        assert refusal(partial(query.check, NETWORK)) == sentence
        assert refusal(partial(read_query, query.to_json(), NETWORK)) == sentence
        assert refusal(partial(parse_query, query.to_proto(), NETWORK)) == sentence


def test_an_entry_without_weights_is_refused() -> None:
    """On the wire a table without weights is an empty message, and in no other spelling."""
    message = SumMarginals(((0,), (1,)), (), (), (None, Weights(1, (1, 2, 3)))).to_proto()
    assert parse_query(message, NETWORK)
    message.sum_marginals.weights[0].entry = 1
    assert refusal(partial(parse_query, message, NETWORK))


def test_without_weights_the_question_is_what_it_was() -> None:
    """Q as it was before there were weights: masks of older and newer daemons cancel."""
    grouped = SumMarginals(((0, 4), (1, 5), (2,), (4, 5)), USED, (1, 2, 3, 4))
    before = {
        SumMarginals(((0, 1, 3), (2,))): "405a74bfeaa7fd91ec7aa2b8a2a1273d708d6d5605dea258ddda7973a18323ff",
        grouped: "2f3c3bb3a17d8a87ac827809627997dbe84040395dc69208224ee00ad936d4ef",
        LocalMarginals(
            ((0, 1, 3), (2,)), (), (2, 1)
        ): "d5336eff274c00011485ad127742c639c83c10b5fb21e47d151017458cd2fc59",
    }
    for query, digest in before.items():
        assert query_digest(query, step_of(query, NETWORK), NETWORK).hex() == digest


def test_weights_change_the_hash() -> None:
    step = step_of(WEIGHTED, NETWORK)
    asked = [
        WEIGHTED,
        replace(WEIGHTED, weights=()),
        replace(WEIGHTED, weights=(None, *WEIGHTED.weights[1:])),
        replace(WEIGHTED, weights=(Weights(4, (1, 3)), *WEIGHTED.weights[1:])),
        replace(WEIGHTED, weights=(Weights(0, (3, 1)), *WEIGHTED.weights[1:])),
        replace(WEIGHTED, weights=(Weights(4, (6, 2)), *WEIGHTED.weights[1:])),
    ]
    assert len({query_digest(query, step, NETWORK) for query in asked}) == len(asked)


# The noise of each cell


def laws_of(query: SumMarginals | LocalMarginals, step: Step, study: Study = NETWORK) -> list[NoiseLaw]:
    """The law of each integer, in order, by loops."""
    found: list[NoiseLaw] = []
    for noise in query.runs(step, study):
        runs = list(noise.runs) * noise.times if isinstance(noise, NoisePattern) else [noise]
        found += [run.law for run in runs for _ in range(run.numbers)]
    return found


def parts_of(query: Tables, study: Study = NETWORK) -> list[Fraction]:
    """The slow twin: which part of the step's cost each cell's noise is made for, cell after cell in C order."""
    sizes, found = query.entry_sizes(study), []
    shares = query.shares or (1,) * len(query.sets)
    for place, entries in enumerate(query.sets):
        own = query.weights[place] if query.weights else None
        for cell in product(*(range(sizes[entry]) for entry in entries)):
            ratio = Fraction(1)
            if own is not None:
                ratio = Fraction(own.values[cell[entries.index(own.entry)]], max(own.values))
            found.append(Fraction(shares[place], sum(shares)) * ratio)
    return found


@settings(deadline=None)
@given(weighted_tables(), st.fractions(Fraction(1, 100), 10))
def test_a_cell_has_the_noise_of_its_weight(query: SumMarginals, budget: Fraction) -> None:
    """Scale 2 w_max / (w epsilon_s), or a square of w_max / (w rho_s) in the shares that protect."""
    for asked in (query, as_local(query)):
        parts, step = parts_of(asked), replace(step_of(asked, NETWORK), cost=Cost.pure(budget))
        scales = [law.scale for law in laws_of(asked, step) if isinstance(law, LaplaceLaw)]
        assert scales == [2 / (budget * part) for part in parts]
        for law, part in zip(laws_of(asked, replace(step, cost=Cost.concentrated(budget))), parts, strict=True):
            assert isinstance(law, GaussianLaw)
            whole = law.square * (law.parties - law.threshold)
            assert whole > 1 / (budget * part)
            assert law.square == 8 or whole < 1 / (budget * part) * (1 + Fraction(1, 1000)) + Fraction(1, 500)


@settings(max_examples=40, deadline=None)
@given(weighted_tables())
def test_variances_are_those_of_the_laws(query: SumMarginals) -> None:
    for asked in (query, as_local(query)):
        step = step_of(asked, NETWORK)
        expected = np.array([law.variance for law in laws_of(asked, step)])
        assert np.concatenate(asked.cell_variances(step, NETWORK)).tolist() == expected.tolist()
        assert [len(own) for own in asked.cell_variances(step, NETWORK)] == asked.cells(NETWORK)
        means = [float(own.mean()) for own in np.split(expected, np.cumsum(asked.cells(NETWORK))[:-1])]
        assert asked.variances(step, NETWORK) == pytest.approx(means)
    terms = query.terms(step_of(query, NETWORK), NETWORK)
    laws = laws_of(query, step_of(query, NETWORK))
    assert terms.length == len(laws)
    assert terms.variance == pytest.approx(np.mean([law.variance for law in laws]))
    assert terms.noise_bound == max(law.bound(len(laws)) for law in set(laws))


@given(weighted_tables(), st.integers(1, 64))
def test_equal_weights_are_no_weights(query: SumMarginals, weight: int) -> None:
    sizes = query.entry_sizes(NETWORK)
    even = tuple(Weights(entries[-1], (weight,) * sizes[entries[-1]]) for entries in query.sets)
    step = step_of(query, NETWORK)
    assert replace(query, weights=even).runs(step, NETWORK) == replace(query, weights=()).runs(step, NETWORK)


def test_the_manifest_states_every_run() -> None:
    step = step_of(WEIGHTED, NETWORK)
    law: Any = WEIGHTED.law(step, NETWORK)
    scale = 8 / step.cost.epsilon
    first, second, third, fourth = law["runs"]
    assert (first["times"], [(run["numbers"], run["scale"]) for run in first["runs"]]) == (
        2,
        [(1, str(scale)), (1, str(3 * scale))],
    )
    assert (second["numbers"], second["scale"]) == (9, str(scale))
    assert [(run["numbers"], run["scale"]) for run in third["runs"]] == [
        (1, str(5 * scale)),
        (2, str(scale)),
        (1, str(scale * 5 / 2)),
    ]
    assert (fourth["times"], [(run["numbers"], run["scale"]) for run in fourth["runs"]]) == (
        2,
        [(2, str(scale * 7 / 2)), (2, str(scale))],
    )
    ((_, numbers, _),) = _describe_law(NETWORK, law)
    assert f"scale {scale} to {5 * scale}, by table" in numbers, "so does the report, from the least to the greatest"


# Drawing


@settings(max_examples=30, deadline=None)
@given(weighted_tables(), st.integers(0, 99))
def test_draws_of_a_law_are_made_at_once_and_put_where_they_belong(query: SumMarginals, seed: int) -> None:
    """The slow twin puts them there one by one."""
    for noise in query.table_noise(step_of(query, NETWORK), NETWORK):
        if not isinstance(noise, NoisePattern):
            continue
        order = [run.law for run in list(noise.runs) * noise.times for _ in range(run.numbers)]
        coins = seeded(seed)
        left = {law: list(law.sample(order.count(law), coins=coins)) for law in dict.fromkeys(order)}
        assert noise.sample(coins=seeded(seed)).tolist() == [left[law].pop(0) for law in order]


def test_a_large_table_takes_one_draw_for_each_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one for each of its 200,000 runs."""
    drawn: list[int] = []
    sample = LaplaceLaw.sample

    def counting(law: LaplaceLaw, count: int, *, coins: Coins) -> Any:
        drawn.append(count)
        return sample(law, count, coins=coins)

    monkeypatch.setattr(LaplaceLaw, "sample", counting)
    laws = [LaplaceLaw(2, Fraction(scale), 1, 0) for scale in (3, 5, 3, 9)]
    pattern = NoisePattern(50_000, tuple(NoiseRun(1, law) for law in laws))
    noise = pattern.sample(coins=seeded(1)).reshape(-1, 4)
    assert sorted(drawn) == [50_000, 50_000, 100_000]
    for column, law in enumerate(laws):
        assert noise[:, column].var() / law.variance == pytest.approx(1, abs=0.1)


# What a replaced row costs

ATTRIBUTES = make_study(
    schema=[categorical("x", 3), categorical("y", 3)], method={"name": "distdiffgen"}, epsilon="1", rows=(1, 1, 1)
)
Row = tuple[int, int]
ROWS: list[Row] = [(x, y) for x in range(3) for y in range(3)]
CASES: dict[str, tuple[SumMarginals, Fraction]] = {
    "none": (SumMarginals(((0, 1), (1,))), Fraction(1)),
    "one table": (SumMarginals(((0, 1), (1,)), (), (), (Weights(0, (1, 2, 4)), None)), Fraction(1)),
    "both tables": (
        SumMarginals(((0, 1), (1,)), (), (), (Weights(1, (64, 1, 3)), Weights(1, (1, 5, 5)))),
        Fraction(67, 256) + Fraction(6, 20),  # y changes from 0 to 2
    ),
    "one largest weight": (
        SumMarginals(((0,), (1,)), (), (), (Weights(0, (7, 2, 1)), Weights(1, (1, 1, 2)))),
        Fraction(9, 28) + Fraction(3, 8),
    ),
    "shares too": (
        SumMarginals(((0, 1), (0,)), (), (3, 1), (Weights(0, (1, 1, 9)), Weights(0, (2, 3, 5)))),
        Fraction(3, 4),  # y changes where x is 2
    ),
    "groups": (
        SumMarginals(
            ((2, 3), (0,)),
            (Grouping(0, (0, 1, 0)), Grouping(1, (0, 0, 1))),
            (),
            (Weights(3, (1, 6)), None),
        ),
        Fraction(1),
    ),
}
"""Queries with the most that a replaced row costs of an epsilon of 1, by hand."""


def count(query: Tables, rows: Sequence[Row]) -> list[int]:
    columns = [np.array([row[place] for row in rows], dtype=np.uint8) for place in (0, 1)]
    counts: list[int] = exact_counts(query, ATTRIBUTES, columns).tolist()
    return counts


def log_ratio(before: int, after: int, law: NoiseLaw) -> Fraction:
    """The most by which a noisy count's log-probability falls, over all outcomes: P(y | c) ~ exp(-|y - c| / scale)."""
    assert isinstance(law, LaplaceLaw)
    return max((abs(y - after) - abs(y - before)) / law.scale for y in range(-9, 10))


@pytest.mark.parametrize(("query", "by_hand"), CASES.values(), ids=CASES.keys())
def test_the_worst_neighbours_cost_what_the_two_largest_rates_say(query: SumMarginals, by_hand: Fraction) -> None:
    """Over all tables of three rows and all rows in the place of one of them: the exact worst log-ratio of all counts
    is the largest sum, over tables, of the rates of the two cells that some pair of rows lies in; at most epsilon.
    """
    query.check(ATTRIBUTES)
    epsilon = Fraction(ATTRIBUTES.epsilon)
    step = Step("asked", "asking", query.kind, ATTRIBUTES.party_names, Cost.pure(epsilon), query.size(ATTRIBUTES))
    laws = laws_of(query, step, ATTRIBUTES)
    counted: dict[tuple[Row, ...], list[int]] = {
        rows: count(query, rows) for rows in combinations_with_replacement(ROWS, 3)
    }
    worst = Fraction(0)
    for rows, before in counted.items():
        for place, other in product(range(3), ROWS):
            after = counted[tuple(sorted((*rows[:place], other, *rows[place + 1 :])))]
            worst = max(
                worst, sum((log_ratio(a, b, law) for a, b, law in zip(before, after, laws, strict=True)), Fraction(0))
            )
    rates = [Fraction(part) * epsilon / 2 for part in parts_of(query, ATTRIBUTES)]
    reached = Fraction(0)
    for u, v in product(ROWS, repeat=2):
        cells = [(place, a, b) for place, (a, b) in enumerate(zip(count(query, [u]), count(query, [v]), strict=True))]
        reached = max(reached, sum((rates[place] for place, a, b in cells if a != b), Fraction(0)))
    assert worst == reached <= epsilon
    assert worst == by_hand


RHO = Fraction(1, 50)


@cache
def divergence(square: Fraction, order: float) -> float:
    """The Renyi divergence of a discrete Gaussian of this parameter from itself moved by 1, summed over outcomes."""
    width = int(14 * float(square) ** 0.5) + 2 + int(order)
    outcomes = np.arange(-width, width + 1, dtype=np.float64)
    logs = -(outcomes**2) / (2 * float(square)), -((outcomes - 1) ** 2) / (2 * float(square))
    first, second = (log - np.log(np.exp(log).sum()) for log in logs)
    return float(np.log(np.exp(order * first + (1 - order) * second).sum()) / (order - 1))


@pytest.mark.parametrize("order", [1.1, 2.0, 8.0])
@pytest.mark.parametrize(("query", "by_hand"), CASES.values(), ids=CASES.keys())
def test_at_rho_the_worst_neighbours_diverge_by_as_much_as_weights_say(
    query: SumMarginals, by_hand: Fraction, order: float
) -> None:
    """Over all tables of three rows and all rows in the place of one of them: the divergence of all noisy counts of one
    party is at most order times rho, and reaches the part of it that the two cells' weights give by hand.
    """
    local = as_local(query)
    step = Step(
        "asked", "asking", local.kind, ATTRIBUTES.party_names[:1], Cost.concentrated(RHO), local.size(ATTRIBUTES)
    )
    laws = laws_of(local, step, ATTRIBUTES)
    counted: dict[tuple[Row, ...], list[int]] = {
        rows: count(local, rows) for rows in combinations_with_replacement(ROWS, 3)
    }
    worst = 0.0
    for rows, before in counted.items():
        for place, other in product(range(3), ROWS):
            after = counted[tuple(sorted((*rows[:place], other, *rows[place + 1 :])))]
            lost = 0.0
            for a, b, law in zip(before, after, laws, strict=True):
                assert isinstance(law, GaussianLaw)
                assert abs(a - b) <= 1
                lost += divergence(law.square, order) if a != b else 0.0
            worst = max(worst, lost)
    assert worst <= order * float(RHO)
    assert worst == pytest.approx(order * float(RHO * by_hand), rel=1e-3)


# Room


@settings(deadline=None)
@given(weighted_tables())
def test_whoever_says_the_least_part_has_room_for_the_query(query: SumMarginals) -> None:
    """What `check_room` accepts for the least part of a cell can be drawn and packed, and what it refuses cannot."""
    least = min(map(Fraction, parts_of(query, NETWORK)))
    for cost in (Cost.pure(Fraction(1, 10**exponent)) for exponent in (0, 6, 9, 11, 12, 13)):
        step = replace(step_of(query, NETWORK), cost=cost, limit=query.size(NETWORK))
        for asked in (query, as_local(query)):
            try:
                type(asked).check_room(step, NETWORK, least)
            except SynodError:
                with pytest.raises(SynodError):
                    asked.terms(step, NETWORK).layout(2048) if asked is query else asked.runs(step, NETWORK)
            else:
                assert asked.runs(step, NETWORK)
                if isinstance(asked, SumMarginals):
                    assert asked.terms(step, NETWORK).layout(2048).length


def test_even_tables_without_weights_are_not_enough_to_look_at() -> None:
    query = SumMarginals(((0,), (1,)), (), (), (Weights(0, (1, 64)), None))
    step = replace(step_of(query, NETWORK), cost=Cost.pure(Fraction(1, 10**11)), limit=query.size(NETWORK))
    SumMarginals.check_room(step, NETWORK)
    assert "too little" in refusal(partial(SumMarginals.check_room, step, NETWORK, Fraction(1, 128)))
    assert "too little" in refusal(partial(query.terms, step, NETWORK))


def test_what_a_question_binds_does_not_grow_with_the_cells() -> None:
    """A pattern is written once, whatever the number of cells that it is repeated over."""
    schema = [categorical(f"x{i}", 10) for i in range(6)]
    study = make_study(schema=schema, method={"name": "histogram"}, epsilon="1", rows=(9, 9, 9))
    sizes = []
    for entries in ((0, 1), (0, 1, 2, 3, 4, 5)):
        query = SumMarginals((entries,), (), (), (Weights(1, tuple(range(1, 11))),))
        step = replace(step_of(query, study), limit=query.size(study))
        (run,) = query.runs(step, study)
        assert isinstance(run, NoisePattern)
        assert (run.numbers, len(run.runs)) == (10 ** len(entries), 10)
        sizes.append(len(canonical_bytes(query.binding(step, study))))
    assert sizes[1] < sizes[0] + 100
