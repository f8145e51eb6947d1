"""Ways to judge that several papers' claims share: lines of methods against each other, at some places of an axis."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Protocol

from bench.reproduction.claims.verdicts import (
    Judgement,
    Series,
    Tally,
    Verdict,
    compare,
    is_near,
    show,
    tally_smaller,
)
from bench.reproduction.lines import NO_POINT, TITLES, find_metrics, name_metric, pair_lines, sum_tallies
from bench.reproduction.summary import Figures
from synod.common.study.study import known_methods

Judge = Callable[[Figures], Judgement]
Places = Callable[[float], bool]


class CompareLines(Protocol):
    """At how many places a claim about two lines is true."""

    def __call__(self, left: Series, right: Series) -> Tally:
        """Counts the places that both have."""
        ...


def everywhere(_x: float) -> bool:
    """All places of an axis."""
    return True


def tally_larger(left: Series, right: Series) -> Tally:
    """Whether the left line lies above the right one."""
    return tally_smaller(right, left)


def tally_equal(left: Series, right: Series) -> Tally:
    """Whether both lines are about the same; a place is undecided where errors would hide a difference."""
    tally = Tally()
    for x in left.keys() & right.keys():
        is_clear, near = compare(left[x], right[x]) != 0, is_near(left[x], right[x])
        tally += Tally(int(near and not is_clear), int(not near and not is_clear), int(is_clear))
    return tally


def tally_near_best(line: Series, places: Places) -> Tally:
    """Whether the numbers of a line at these places are no larger than its smallest, nearly."""
    if not line:
        return Tally()
    best = min(line.values(), key=lambda estimate: estimate.mean)
    wanted = {x: estimate for x, estimate in line.items() if places(x)}
    outcomes = [(compare(estimate, best) > 0, is_near(estimate, best)) for estimate in wanted.values()]
    lost = sum(is_clear and not near for is_clear, near in outcomes)
    return Tally(sum(near for _, near in outcomes), sum(not c and not near for c, near in outcomes), lost)


def judge_methods(
    figure: str,
    winners: Iterable[str],
    losers: Iterable[str],
    prefixes: Iterable[str],
    tables: Iterable[str],
    *,
    tally: CompareLines = tally_smaller,
    places: Places = everywhere,
) -> Judge:
    """Whether each winner's line lies below (or as `tally` says) each loser's, at these places of the axis."""
    pairs, begun = list(product(tables, winners, losers)), tuple(prefixes)

    def judge(figures: Figures) -> Judgement:
        told, total = [], Tally()
        for table, winner, loser in pairs:
            lines = pair_lines(figures, figure, table, (winner, loser), begun)
            kept = {metric: (_at(places, left), _at(places, right)) for metric, (left, right) in lines.items()}
            own = sum_tallies(tally(left, right) for left, right in kept.values())
            total += own
            if own.points:
                told.append(f"{TITLES[table]}, {winner} against {loser}: {own}{_last(kept)}")
        return Judgement(total.verdict, ". ".join(told) or NO_POINT)

    return judge


def judge_line(
    figure: str,
    methods: Iterable[str],
    prefixes: Iterable[str],
    tables: Iterable[str],
    tally: Callable[[Series], Tally],
) -> Judge:
    """Whether something is true of each method's own line."""
    asked, begun = list(product(tables, methods)), tuple(prefixes)

    def judge(figures: Figures) -> Judgement:
        told, total = [], Tally()
        for table, method in asked:
            for metric in find_metrics(figures, figure, table, begun):
                line = figures.series(figure, table, method, metric)
                own = tally(line)
                total += own
                if own.points:
                    numbers = ", ".join(f"{estimate.mean:.3f} at {x:g}" for x, estimate in line.items())
                    told.append(f"{TITLES[table]}, {method}, {name_metric(metric)}: {numbers}")
        return Judgement(total.verdict, ". ".join(told) or NO_POINT)

    return judge


def needs(method: str, judge: Judge) -> Judge:
    """The same judgement; where nothing was measured because this version has no such method, that is the reason."""

    def explain(figures: Figures) -> Judgement:
        judged = judge(figures)
        if judged.verdict is Verdict.UNKNOWN and method not in known_methods():
            return Judgement(Verdict.UNKNOWN, f"`{method}` is not in this version")
        return judged

    return explain


def _at(places: Places, line: Series) -> Series:
    return {x: estimate for x, estimate in line.items() if places(x)}


def _last(lines: dict[str, tuple[Series, Series]]) -> str:
    """The numbers of both lines at the last place that all metrics have, as an example."""
    shared = [set(left) & set(right) for left, right in lines.values() if left and right]
    if not shared or not set.intersection(*shared):
        return ""
    x = max(set.intersection(*shared))
    shown = [
        f"{name_metric(metric)} {show(left[x])} against {show(right[x])}"
        for metric, (left, right) in lines.items()
        if x in left and x in right
    ]
    return f"; at {x:g}: {', '.join(shown)}"
