"""Every claim is judged by its figures: it holds where it is true, fails where it is false, and is open without any."""

from collections.abc import Iterable

import pytest

from bench.reproduction.claims.catalog import PAPERS, Claim
from bench.reproduction.claims.comparing import judge_line, judge_methods, needs, tally_equal, tally_near_best
from bench.reproduction.claims.dp_subn import (
    candidate_bytes,
    find_degree,
    formula_of_candidates,
    frontier_shrinks,
    judge_orders,
    priview_is_not_closer,
)
from bench.reproduction.claims.verdicts import Judgement, Series, Tally, Verdict
from bench.reproduction.experiments.plans import LATER_METHODS
from bench.reproduction.messages import forecast_candidates, formula_of_updates
from bench.reproduction.summary import Estimate, Figures, Row
from bench.reproduction.tables import make_rows, study_for
from synod.common.study.study import known_methods
from tests.support.figures import RUN, make_nothing, make_world

ALL = [claim for claims in PAPERS.values() for claim in claims]
PROOFS = ("differentially private", "colludes")
MEASURED = [
    claim
    for claim in ALL
    if claim.judge(make_world(is_true=True)).verdict is Verdict.HOLDS and not any(p in claim.text for p in PROOFS)
]
NOT_RUN = ("PrivGene", "ACS and BR2000")
NEVER_TRUE = ("DP-CCBN's structure takes",)


def name_of(claim: Claim) -> str:
    return f"{claim.where}: {claim.text}"


def test_all_claims_but_those_of_proofs_and_of_what_is_not_run_are_measured() -> None:
    others = [claim.text for claim in ALL if claim not in MEASURED]
    expected = (*PROOFS, *NOT_RUN, *NEVER_TRUE)
    assert len(others) == len(expected) + 4  # five proofs of privacy
    assert all(any(part in text for part in expected) for text in others), others


def test_no_claim_is_listed_twice() -> None:
    names = [(paper, name_of(claim)) for paper, claims in PAPERS.items() for claim in claims]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("claim", MEASURED, ids=name_of)
def test_a_false_claim_is_listed_as_failing(claim: Claim) -> None:
    assert claim.judge(make_world(is_true=False)).verdict is Verdict.FAILS


@pytest.mark.parametrize("claim", MEASURED, ids=name_of)
def test_without_figures_a_claim_is_not_measured(claim: Claim) -> None:
    assert claim.judge(make_nothing()).verdict is Verdict.UNKNOWN


def test_orders_of_magnitude() -> None:
    assert judge_orders([100, 5_000]) is Verdict.HOLDS
    assert judge_orders([99, 5_000]) is Verdict.IN_PART
    assert judge_orders([1, 10]) is Verdict.IN_PART
    assert judge_orders([1, 9]) is Verdict.FAILS


def test_methods_that_are_not_here_say_so() -> None:
    """What a claim needs is named where it is missing, and no claim of a method that is here says so."""
    later = {str(method.keys["name"]) for method in LATER_METHODS.values()}
    missing = later - set(known_methods())
    told = {claim.judge(make_nothing()).measurement for claim in ALL}
    named = {text.split("`")[1] for text in told if "not in this version" in text}
    assert named == missing - {"histogram"}  # which is never alone in a claim


def test_a_reason_gives_way_to_a_measurement() -> None:
    judged = needs("no-such-method", lambda _: Judgement(Verdict.FAILS, "measured"))(make_nothing())
    assert judged.measurement == "measured"
    reason = needs("no-such-method", lambda _: Judgement(Verdict.UNKNOWN, "nothing"))(make_nothing())
    assert reason.measurement == "`no-such-method` is not in this version"


# The ways to judge


def line_of(numbers: dict[float, float], error: float = 0.0) -> Series:
    return {x: Estimate(mean, error, 5) for x, mean in numbers.items()}


def test_equal_lines_are_near_and_not_clearly_different() -> None:
    left = line_of({1: 1.0, 2: 1.0, 3: 1.0}, error=0.01)
    right = line_of({1: 1.01, 2: 1.5, 3: 1.05}, error=0.01)
    assert tally_equal(left, right) == Tally(1, 0, 2)
    assert tally_equal(left, line_of({1: 1.3}, error=0.4)) == Tally(0, 1, 0)


def test_near_the_best_is_within_a_tenth_of_the_smallest() -> None:
    line = line_of({1: 1.0, 2: 1.05, 3: 1.5, 4: 3.0})
    assert tally_near_best(line, lambda x: x < 4) == Tally(2, 0, 1)
    assert tally_near_best({}, lambda _: True) == Tally()


def figures_of(numbers: Iterable[tuple[str, float, float]]) -> Figures:
    rows = tuple(Row("nltcs", method, x, "tvd3", Estimate(mean, 0.0, 3)) for method, x, mean in numbers)
    return Figures({**make_nothing().rows, "rivals": rows}, RUN)


def test_only_the_asked_places_of_an_axis_count() -> None:
    figures = figures_of([("a", 0.1, 1.0), ("b", 0.1, 2.0), ("a", 0.8, 2.0), ("b", 0.8, 1.0)])
    small = judge_methods("rivals", ("a",), ("b",), ("tvd",), ("nltcs",), places=lambda x: x < 0.5)(figures)
    assert small.verdict is Verdict.HOLDS
    assert small.measurement == (
        "NLTCS, a against b: yes at 1 of 1 points, undecided at 0, the opposite at 0; at 0.1: 3-way 1.000 ± 0.000 "
        "against 2.000 ± 0.000"
    )
    assert judge_methods("rivals", ("a",), ("b",), ("tvd",), ("nltcs",))(figures).verdict is Verdict.FAILS


def test_a_judge_can_be_asked_twice() -> None:
    figures = figures_of([("a", 0.1, 1.0), ("b", 0.1, 2.0)])
    for judge in (
        judge_methods("rivals", iter(("a",)), iter(("b",)), iter(("tvd",)), iter(("nltcs",))),
        judge_line("rivals", iter(("a",)), iter(("tvd",)), iter(("nltcs",)), lambda line: Tally(len(line), 0, 0)),
    ):
        assert judge(figures) == judge(figures)
        assert judge(figures).verdict is Verdict.HOLDS


def test_priview_is_compared_with_the_same_cut() -> None:
    """A cut that helps both decides nothing between them."""
    levels = {"NOCD, consistent": 0.2, "NOCD, consistent, ripple": 0.1}
    levels |= {"PriView, pairs": 0.25, "PriView, pairs, ripple": 0.15}
    rows = tuple(Row("adult", name, 0.8, "tvd2", Estimate(mean, 0.0, 3)) for name, mean in levels.items())
    judged = priview_is_not_closer(Figures({**make_nothing().rows, "priview": rows}, RUN))
    assert judged.verdict is Verdict.HOLDS


def test_a_frontier_of_the_same_size_does_not_shrink() -> None:
    rows = tuple(
        Row("adult", "dp-subn, ε = 0.2", x, f"{which} frontier", Estimate(100.0, 0.0, 3))
        for x in (2.0, 10.0)
        for which in ("first", "last")
    )
    judged = frontier_shrinks(Figures({**make_nothing().rows, "rounds": rows}, RUN))
    assert judged.verdict is Verdict.FAILS


# The formula of messages


@pytest.mark.parametrize("epsilon", ["0.2", "0.8", "1.6"])
def test_the_degree_is_found_from_the_counted_bytes(epsilon: str) -> None:
    study = study_for(make_rows("adult", 45_222), {"name": "dp-ccbn", "encoding": "binary"}, 3, epsilon)
    forecast = forecast_candidates(study)
    assert find_degree(forecast["paper_bytes"]) == forecast["degree"] > 0
    assert candidate_bytes(int(forecast["degree"])) == forecast["paper_bytes"]


def test_the_formula_of_updates_is_that_of_the_paper() -> None:
    """Four bits, views of two: six pairs; degrees 1 of the network and 2 of the frontier. Each cell of a table, of
    2^(k+1), takes two ciphertexts, each of a view, of 2^v, four.
    """
    keys = {"name": "dp-subn", "encoding": "binary", "parameter_cells": 4, "frontier_cells": 8, "max_view_cells": 4}
    rows = make_rows("nltcs", 1_000)
    few = rows.of_attributes([attribute.name for attribute in rows.study.attributes[:4]])
    tables = 3 * 2**4 + 6 * 2**4 + 3 * 2**3
    assert formula_of_updates(study_for(few, keys, 3, "1")) == 3 * tables * 1_024 / 8


def test_the_formula_of_candidates_counts_too_much() -> None:
    """It has d C(d, k+1) tables where C(d+1, k+2) are asked, but for the first ones, which have fewer parents."""
    rows = (Row("adult", "dp-ccbn", 0.8, "paper_bytes", Estimate(candidate_bytes(3), 0.0, 1)),)
    judged = formula_of_candidates(Figures({**make_nothing().rows, "messages-epsilon": rows}, RUN))
    assert judged.verdict is Verdict.FAILS
    quotient = float(judged.measurement.split("is ")[1].split()[0])
    assert quotient == pytest.approx(5 * 52 / 53, rel=0.01)
