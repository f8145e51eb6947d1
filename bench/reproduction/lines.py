"""Lines of a figure against each other, or against their own beginning, and the words for it.

A claim is judged on the tables that its paper has; what another table shows is told beside and decides nothing.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import product, starmap
from math import hypot

from bench.reproduction.claims.verdicts import Judgement, Series, Tally, show, tally_smaller
from bench.reproduction.summary import Estimate, Figures

TITLES = {"adult": "Adult", "nltcs": "NLTCS"}
NO_POINT = "no point was measured"
NAMES = {"tvd2": "2-way", "tvd3": "3-way", "tvd4": "4-way"}


def sum_tallies(tallies: Iterable[Tally]) -> Tally:
    """All of them in one."""
    return reduce(Tally.__add__, tallies, Tally())


def name_metric(metric: str) -> str:
    """A metric in the words of the page."""
    return NAMES.get(metric, metric.removeprefix("wrong "))


def find_metrics(figures: Figures, figure: str, table: str, prefixes: Iterable[str]) -> list[str]:
    """The metrics of a table that begin so, in the order of the prefixes."""
    return [metric for prefix in prefixes for metric in figures.metrics(figure, table, prefix)]


def judge_lines(
    figures: Figures,
    figure: str,
    winner: str,
    losers: Iterable[str],
    prefixes: Iterable[str],
    tables: tuple[str, ...],
    *,
    x: float,
    beside: Iterable[str] = (),
) -> Judgement:
    """Whether one method's line lies below others', with the numbers at `x` of each table as an example; and how other
    methods in its place would have done.
    """
    told, judged = [], Tally()
    for (table, title), loser in product(TITLES.items(), losers):
        pairs = pair_lines(figures, figure, table, (winner, loser), prefixes)
        tally = sum_tallies(starmap(tally_smaller, pairs.values()))
        judged += tally if table in tables else Tally()
        if tally.points:
            told.append(f"{title}{_aside(table, tables)}, against {loser}: {tally}{_examples(pairs, x)}")
    for other in beside:
        pairs_of_other = (
            pair_lines(figures, figure, table, (other, loser), prefixes) for table, loser in product(tables, losers)
        )
        tally = sum_tallies(tally_smaller(*pair) for pairs in pairs_of_other for pair in pairs.values())
        told += [f"In its place {other}: {tally}"] if tally.points else []
    return Judgement(judged.verdict, ". ".join(told) or NO_POINT)


def pair_lines(
    figures: Figures, figure: str, table: str, methods: tuple[str, str], prefixes: Iterable[str]
) -> dict[str, tuple[Series, Series]]:
    """The lines of two methods for each metric of a table."""
    left, right = methods
    return {
        metric: (figures.series(figure, table, left, metric), figures.series(figure, table, right, metric))
        for metric in find_metrics(figures, figure, table, prefixes)
    }


def _examples(pairs: dict[str, tuple[Series, Series]], x: float) -> str:
    shared = {metric: pair for metric, pair in pairs.items() if all(x in line for line in pair)}
    shown = [
        f"{name_metric(metric)} {show(left[x])} against {show(right[x])}" for metric, (left, right) in shared.items()
    ]
    return f"; at {x:g}: {', '.join(shown)}" if shown else ""


def _aside(table: str, tables: tuple[str, ...]) -> str:
    return "" if table in tables else " (beside)"


def judge_trend(
    figures: Figures,
    figure: str,
    methods: Iterable[str],
    prefixes: Iterable[str],
    tables: tuple[str, ...],
    tally: Callable[[Series], Tally],
) -> Judgement:
    """Whether lines rise, fall or stay between their two ends."""
    told, judged = [], Tally()
    for (table, title), method in product(TITLES.items(), methods):
        lines = {
            metric: figures.series(figure, table, method, metric)
            for metric in find_metrics(figures, figure, table, prefixes)
        }
        judged += sum_tallies(map(tally, lines.values())) if table in tables else Tally()
        ends = [f"{name_metric(metric)} {show_ends(line)}" for metric, line in lines.items() if len(line) > 1]
        if ends:
            told.append(f"{title}{_aside(table, tables)}, {method}: {', '.join(ends)}")
    return Judgement(judged.verdict, ". ".join(told) or NO_POINT)


def show_ends(line: Series) -> str:
    """The first and the last number of a line."""
    first, last = line[min(line)], line[max(line)]
    return f"{show(first)} at {min(line):g} and {show(last)} at {max(line):g}"


def divide_lines(above: Series, below: Series) -> Series:
    """The quotient of two lines, with its standard error to first order."""
    return {x: _divide(above[x], below[x]) for x in above if x in below and below[x].mean > 0}


def _divide(above: Estimate, below: Estimate) -> Estimate:
    quotient = above.mean / below.mean
    relative = hypot(above.error / above.mean if above.mean else 0.0, below.error / below.mean)
    return Estimate(quotient, quotient * relative, min(above.runs, below.runs))
