"""The claims of the PrivBayes paper, on the two of its tables that are at hand; in one place, as the paper has it.

Its rivals run in memory (bench/rivals) with the sensitivities of a replaced row.
"""

from bench.reproduction.claims.comparing import (
    judge_line,
    judge_methods,
    needs,
    tally_equal,
    tally_larger,
    tally_near_best,
)
from bench.reproduction.claims.verdicts import Judgement, Series, Tally, compare, is_near, tally_falling, tally_stable
from bench.reproduction.experiments.plans import EXACT_NETWORK, EXACT_TABLES, FEW, PRIVBAYES
from bench.reproduction.lines import NO_POINT, TITLES, divide_lines, name_metric, show_ends
from bench.reproduction.summary import Figures

TABLES = ("adult", "nltcs")
F, R, I = "privbayes, F", "privbayes, R", "privbayes, I"  # noqa: E741  (the paper's names of its scores)
BINARY, GRAY, VANILLA, HIERARCHICAL = (f"privbayes, {name}" for name in ("binary", "gray", "vanilla", "hierarchical"))
DISTANCES = ("tvd",)
PLAIN, DENSE = ("Laplace", "Fourier", "Uniform"), ("Contingency", "MWEM")
ERM, SINGLE_ERM = "PrivateERM", "PrivateERM (single)"
TUNED = tuple(f"{PRIVBAYES}, ε = {epsilon}" for epsilon in FEW)
COUNTED, LEARNED = ("tvd",), ("wrong ",)

better_scores = needs(
    PRIVBAYES, judge_methods("scores", (F, R), (I,), ("information",), ("nltcs",), tally=tally_larger)
)
better_score_on_adult = needs(
    PRIVBAYES, judge_methods("scores", (R,), (I,), ("information",), ("adult",), tally=tally_larger)
)
f_at_small_epsilon = needs(
    PRIVBAYES,
    judge_methods("scores", (F,), (R,), ("information",), ("nltcs",), tally=tally_larger, places=lambda x: x < 0.4),
)
f_like_r = needs(
    PRIVBAYES,
    judge_methods("scores", (F,), (R,), ("information",), ("nltcs",), tally=tally_equal, places=lambda x: x >= 0.4),
)


def _tally_flat(line: Series) -> Tally:
    return tally_stable({x: estimate for x, estimate in line.items() if x >= 0.4})


exact_flattens = needs(PRIVBAYES, judge_line("scores", (EXACT_NETWORK,), ("information",), ("nltcs",), _tally_flat))
whole_codes = needs(
    PRIVBAYES,
    judge_methods(
        "encodings", (VANILLA, HIERARCHICAL), (BINARY, GRAY), DISTANCES, ("adult",), places=lambda x: x <= 0.2
    ),
)
whole_codes_alike = needs(
    PRIVBAYES, judge_methods("encodings", (VANILLA,), (HIERARCHICAL,), DISTANCES, ("adult",), tally=tally_equal)
)


def _lead_shrinks(figures: Figures) -> Judgement:
    """Figure 5: the distance of bits over that of whole codes, at both ends of epsilon."""
    return _judge_quotients(figures, "encodings", {"adult": HIERARCHICAL}, (BINARY, GRAY))


lead_of_whole_codes_shrinks = needs(PRIVBAYES, _lead_shrinks)
hierarchical_learns_best = needs(
    PRIVBAYES, judge_methods("trained", (HIERARCHICAL,), (BINARY, GRAY, VANILLA), LEARNED, ("adult",))
)
vanilla_learns_nothing = needs(
    PRIVBAYES,
    judge_methods(
        "trained",
        (VANILLA,),
        ("majority",),
        ("wrong education",),
        ("adult",),
        tally=tally_equal,
        places=lambda x: x <= 0.8,
    ),
)


def _tally_good_beta(line: Series) -> Tally:
    return tally_near_best(line, lambda x: 0.2 <= x <= 0.5)


def _tally_good_theta(line: Series) -> Tally:
    return tally_near_best(line, lambda x: 3 <= x <= 6)


def _tally_ends(line: Series) -> Tally:
    """Whether both ends of a line lie clearly above its smallest number; a point for each."""
    if len(line) < 3:
        return Tally()
    best = min(line.values(), key=lambda estimate: estimate.mean)
    ends = [line[min(line)], line[max(line)]]
    outcomes = [0 if end is best else compare(end, best) for end in ends]
    return Tally(outcomes.count(1), 0, outcomes.count(0))


good_betas = needs(PRIVBAYES, judge_line("beta", TUNED, (*COUNTED, *LEARNED), TABLES, _tally_good_beta))
bad_ends = needs(PRIVBAYES, judge_line("beta", TUNED, COUNTED, TABLES, _tally_ends))
good_thetas = needs(PRIVBAYES, judge_line("theta", TUNED, (*COUNTED, *LEARNED), TABLES, _tally_good_theta))
tables_are_the_error = needs(PRIVBAYES, judge_methods("sources", (EXACT_TABLES,), (EXACT_NETWORK,), DISTANCES, TABLES))
closer_on_nltcs = needs(PRIVBAYES, judge_methods("rivals", (PRIVBAYES,), (*PLAIN, *DENSE), DISTANCES, ("nltcs",)))
closer_on_adult = needs(PRIVBAYES, judge_methods("rivals", (PRIVBAYES,), PLAIN, DISTANCES, ("adult",)))


def _lead_at_small_epsilon(figures: Figures) -> Judgement:
    """Figures 12 and 14: the rivals' distances over PrivBayes's, at both ends of epsilon."""
    return _judge_quotients(figures, "rivals", dict.fromkeys(TABLES, PRIVBAYES), ("Laplace", "Fourier"))


def _judge_quotients(figures: Figures, figure: str, ours: dict[str, str], rivals: tuple[str, ...]) -> Judgement:
    told, total = [], Tally()
    for table, own in ours.items():
        for rival in rivals:
            for metric in figures.metrics(figure, table, "tvd"):
                above, below = (figures.series(figure, table, method, metric) for method in (rival, own))
                line = divide_lines(above, below)
                total += tally_falling(line)
                if len(line) > 1:
                    told.append(f"{TITLES[table]}, {rival}, {name_metric(metric)}: {show_ends(line)}")
    return Judgement(total.verdict, f"times the distance: {'. '.join(told)}" if told else NO_POINT)


def _lead_at_large_order(figures: Figures) -> Judgement:
    """Figures 12 and 14: the rivals' distances over PrivBayes's, of the larger sets against the smaller ones."""
    told, total = [], Tally()
    for table in TABLES:
        metrics = figures.metrics("rivals", table, "tvd")
        for rival in ("Laplace", "Fourier"):
            lines = [
                divide_lines(
                    figures.series("rivals", table, rival, metric), figures.series("rivals", table, PRIVBAYES, metric)
                )
                for metric in metrics
            ]
            if len(lines) > 1:
                own = Tally()
                for x in lines[0].keys() & lines[-1].keys():
                    outcome = compare(lines[-1][x], lines[0][x])
                    own += Tally(int(outcome > 0), int(outcome == 0), int(outcome < 0))
                total += own
                told += [f"{TITLES[table]}, {rival}: {own}"] if own.points else []
    return Judgement(total.verdict, ". ".join(told) or NO_POINT)


lead_at_small_epsilon = needs(PRIVBAYES, _lead_at_small_epsilon)
lead_at_large_order = needs(PRIVBAYES, _lead_at_large_order)


def _tally_near(left: Series, right: Series) -> Tally:
    """Whether two lines are within a tenth of each other: less would not be called a significant difference."""
    outcomes = [is_near(left[x], right[x]) for x in left.keys() & right.keys()]
    return Tally(sum(outcomes), 0, len(outcomes) - sum(outcomes))


mwem_like_uniform = judge_methods(
    "rivals", ("MWEM",), ("Uniform",), DISTANCES, ("nltcs",), tally=_tally_near, places=lambda x: x < 0.2
)
better_than_erm_on_nltcs = needs(PRIVBAYES, judge_methods("trained", (PRIVBAYES,), (ERM,), LEARNED, ("nltcs",)))
better_than_erm_on_adult = needs(PRIVBAYES, judge_methods("trained", (HIERARCHICAL,), (ERM,), LEARNED, ("adult",)))


def _tally_level(line: Series) -> Tally:
    """Whether all numbers of a line are about the same."""
    if len(line) < 2:
        return Tally()
    return tally_equal(dict.fromkeys(line, line[min(line)]), line)


majority_stays = judge_line("trained", ("Majority",), LEARNED, TABLES, _tally_level)
single_erm_learns_better = needs(PRIVBAYES, judge_methods("trained", (SINGLE_ERM,), (PRIVBAYES,), LEARNED, ("nltcs",)))
not_on_adult = needs(PRIVBAYES, judge_methods("trained", (HIERARCHICAL,), (SINGLE_ERM,), LEARNED, ("adult",)))
