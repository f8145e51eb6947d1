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
from bench.reproduction.claims.verdicts import (
    Judgement,
    Series,
    Tally,
    compare,
    is_near,
    tally_falling,
    tally_rising,
    tally_stable,
)
from bench.reproduction.experiments.plans import EXACT_NETWORK, EXACT_TABLES, FEW, MOST_INFORMATION, PRIVBAYES
from bench.reproduction.lines import NO_POINT, TITLES, divide_lines, name_metric, show_ends, sum_tallies
from bench.reproduction.summary import Figures

TABLES = ("adult", "nltcs")
F, R, I = "privbayes, F", "privbayes, R", "privbayes, I"  # noqa: E741  (the paper's names of its scores)
BINARY, GRAY, VANILLA, HIERARCHICAL = (f"privbayes, {name}" for name in ("binary", "gray", "vanilla", "hierarchical"))
DISTANCES = ("tvd",)
PLAIN, DENSE = ("Laplace", "Fourier", "Uniform"), ("Contingency", "MWEM")
ERM, SINGLE_ERM = "PrivateERM", "PrivateERM (single)"
TUNED = tuple(f"{PRIVBAYES}, ε = {epsilon}" for epsilon in FEW)
COUNTED, LEARNED, INFORMATION = ("tvd",), ("wrong ",), ("information",)

better_scores = needs(PRIVBAYES, judge_methods("scores", (F, R), (I,), INFORMATION, ("nltcs",), tally=tally_larger))
better_score_on_adult = needs(
    PRIVBAYES, judge_methods("scores", (R,), (I,), INFORMATION, ("adult",), tally=tally_larger)
)
f_at_small_epsilon = needs(
    PRIVBAYES,
    judge_methods("scores", (F,), (R,), INFORMATION, ("nltcs",), tally=tally_larger, places=lambda x: x < 0.4),
)
f_like_r = needs(
    PRIVBAYES,
    judge_methods("scores", (F,), (R,), INFORMATION, ("nltcs",), tally=tally_equal, places=lambda x: x >= 0.4),
)


def _tally_flat(line: Series) -> Tally:
    return tally_stable({x: estimate for x, estimate in line.items() if x >= 0.4})


exact_flattens = needs(PRIVBAYES, judge_line("scores", (MOST_INFORMATION,), INFORMATION, ("nltcs",), _tally_flat))
more_with_epsilon = needs(PRIVBAYES, judge_line("scores", (F, R, I), INFORMATION, TABLES, tally_rising))


def _gap_shrinks(figures: Figures) -> Judgement:
    """Figure 4: the information of the best network over that of a private one, at both ends of epsilon."""
    scores = {"nltcs": (F, R, I), "adult": (R, I)}
    judged = [
        _judge_quotients(figures, "scores", {table: own}, (MOST_INFORMATION,), *INFORMATION)
        for table, names in scores.items()
        for own in names
    ]
    return _join(judged, "times the information")


gap_to_best_shrinks = needs(PRIVBAYES, _gap_shrinks)
slower_score = needs(PRIVBAYES, judge_methods("seconds", (R, I), (F,), ("seconds",), ("nltcs",)))
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
    return _join(
        [_judge_quotients(figures, "encodings", {"adult": HIERARCHICAL}, (BINARY, GRAY))], "times the distance"
    )


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
networks_are_the_error = needs(PRIVBAYES, judge_methods("trained", (EXACT_NETWORK,), (EXACT_TABLES,), LEARNED, TABLES))
closer_on_nltcs = needs(PRIVBAYES, judge_methods("rivals", (PRIVBAYES,), (*PLAIN, *DENSE), DISTANCES, ("nltcs",)))
closer_on_adult = needs(PRIVBAYES, judge_methods("rivals", (PRIVBAYES,), PLAIN, DISTANCES, ("adult",)))


def _lead_at_small_epsilon(figures: Figures) -> Judgement:
    """Figures 12 and 14: the rivals' distances over PrivBayes's, at both ends of epsilon."""
    ours = dict.fromkeys(TABLES, PRIVBAYES)
    return _join([_judge_quotients(figures, "rivals", ours, ("Laplace", "Fourier"))], "times the distance")


def _judge_quotients(
    figures: Figures, figure: str, ours: dict[str, str], others: tuple[str, ...], prefix: str = "tvd"
) -> tuple[Tally, list[str]]:
    """Whether the others' numbers over ours fall from one end of a line to the other."""
    told, total = [], Tally()
    for table, own in ours.items():
        for other in others:
            for metric in figures.metrics(figure, table, prefix):
                above, below = (figures.series(figure, table, method, metric) for method in (other, own))
                line = divide_lines(above, below)
                total += tally_falling(line)
                if len(line) > 1:
                    named = other if len(others) > 1 or own == PRIVBAYES else f"{other} over {own}"
                    told.append(f"{TITLES[table]}, {named}, {name_metric(metric)}: {show_ends(line)}")
    return total, told


def _join(judged: list[tuple[Tally, list[str]]], unit: str) -> Judgement:
    told = [text for _, texts in judged for text in texts]
    total = sum_tallies(tally for tally, _ in judged)
    return Judgement(total.verdict, f"{unit}: {'. '.join(told)}" if told else NO_POINT)


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


def _tally_first_step(line: Series) -> Tally:
    return tally_rising({x: estimate for x, estimate in line.items() if x <= 0.1})


def _tally_last_step(line: Series) -> Tally:
    return tally_rising({x: estimate for x, estimate in line.items() if x >= 0.8})


worse_at_first = needs(
    PRIVBAYES, judge_line("trained", (HIERARCHICAL,), ("wrong salary",), ("adult",), _tally_first_step)
)
erm_worse_at_last = judge_line("trained", (SINGLE_ERM,), LEARNED, ("adult",), _tally_last_step)
