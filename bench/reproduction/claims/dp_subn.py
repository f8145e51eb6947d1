"""The claims of the DP-SUBN paper. It has Adult alone; where NLTCS was measured too, it is told beside."""

from math import comb

from bench.reproduction.claims.comparing import judge_methods, needs, tally_larger
from bench.reproduction.claims.verdicts import (
    SHARE_TO_BE_EQUAL,
    Judgement,
    Series,
    Tally,
    Verdict,
    show,
    tally_falling,
    tally_rising,
    tally_smaller,
    tally_stable,
)
from bench.reproduction.experiments.plans import DISTDIFFGEN, EXACT_CHOICE
from bench.reproduction.lines import (
    NO_POINT,
    divide_lines,
    judge_lines,
    judge_trend,
    name_metric,
    show_ends,
    sum_tallies,
)
from bench.reproduction.messages import PAPER_BYTES_PER_CELL, count_candidates
from bench.reproduction.points import USUAL_PARTIES
from bench.reproduction.summary import Figures

TABLES = ("adult",)
DISTANCES = ("tvd2", "tvd3")
VARIANTS = ("dp-subn, joint", "dp-subn, paper's split")
QUALITIES = (*DISTANCES, "wrong ")
SEVERAL_ORDERS, ONE_ORDER = 100, 10
WIDTH_8, BEST_WIDTH = "overlapping, width 8", "overlapping, best width"
ALL_BITS = 52.0
BITS = int(ALL_BITS)
PAPER_WIDTH = 8
LEAST_VIEWS = -(-comb(BITS, 2) // comb(PAPER_WIDTH, 2))
"""n_v of section VI-F: the pairs of all attributes over those of a view."""
NOTHING = Judgement(Verdict.UNKNOWN, NO_POINT)


def beats_independent(figures: Figures) -> Judgement:
    """Figure 4 (a, b)."""
    return _subn_beats(figures, "epsilon", ("independent",), DISTANCES, x=0.8)


def beats_candidates(figures: Figures) -> Judgement:
    """Figure 4 (a, b)."""
    return _subn_beats(figures, "epsilon", ("dp-ccbn",), DISTANCES, x=0.2)


def classifies_better(figures: Figures) -> Judgement:
    """Figure 4 (c, d)."""
    return _subn_beats(figures, "epsilon", ("independent",), ("wrong ",), x=0.8)


def classifies_better_too(figures: Figures) -> Judgement:
    """Figure 4 (c, d)."""
    return _subn_beats(figures, "epsilon", ("dp-ccbn",), ("wrong ",), x=0.2)


def beats_at_every_k(figures: Figures) -> Judgement:
    """Figure 5 (a, b)."""
    return _subn_beats(figures, "parties", ("independent", "dp-ccbn"), DISTANCES, x=10)


def classifies_better_at_every_k(figures: Figures) -> Judgement:
    """Figure 5 (c, d)."""
    return _subn_beats(figures, "parties", ("independent", "dp-ccbn"), ("wrong ",), x=10)


def improves_with_parties(figures: Figures) -> Judgement:
    """Figure 5."""
    return judge_trend(figures, "parties", ("dp-subn",), QUALITIES, TABLES, tally_falling)


def candidates_stay(figures: Figures) -> Judgement:
    """Figure 5."""
    return judge_trend(figures, "parties", ("dp-ccbn",), QUALITIES, TABLES, tally_stable)


def independent_declines(figures: Figures) -> Judgement:
    """Figure 5."""
    return judge_trend(figures, "parties", ("independent",), QUALITIES, TABLES, tally_rising)


def lead_grows(figures: Figures) -> Judgement:
    """Figure 5: Independent's distance over DP-SUBN's, at the smallest and the largest K."""
    lines = [_quotient(figures, "parties", ("independent", "dp-subn"), metric) for metric in DISTANCES]
    if not all(lines):
        return NOTHING
    tally = sum((tally_rising(line) for line in lines), Tally())
    told = ", ".join(f"{way} {show_ends(line)}" for way, line in zip(("2-way", "3-way"), lines, strict=True))
    return Judgement(tally.verdict, f"Independent's distance over DP-SUBN's: {told}")


def fewer_views(figures: Figures) -> Judgement:
    """Section VI-C, on binary features: NOCD against greedy overlapping views of up to 8 features."""
    nocd, chosen, wide = (figures.series("covers", "", cover, "views") for cover in ("NOCD", "chosen", WIDTH_8))
    tally = tally_smaller(nocd, wide)
    if ALL_BITS not in nocd:
        return NOTHING
    counts = [f"{line[ALL_BITS].mean:.0f}" for line in (nocd, wide, chosen)]
    told = "at 52 features NOCD has {} views, overlapping ones of width 8 are {}, Synod's cover has {}".format(*counts)
    return Judgement(tally.verdict, f"{tally}; {told}")


def nocd_is_closer(figures: Figures) -> Judgement:
    """Figure 7."""
    covers = ("NOCD", WIDTH_8, BEST_WIDTH, "chosen")
    nocd, wide, best, chosen = (figures.series("views", TABLES[0], cover, "tvd2") for cover in covers)
    if not nocd:
        return NOTHING
    tally = tally_smaller(nocd, wide)
    names = ("NOCD", "width 8", "the best width", "Synod's cover")
    shown = ", ".join(
        f"{name} {line[0.8].mean:.3f}" for name, line in zip(names, (nocd, wide, best, chosen), strict=True)
    )
    own = tally_smaller(chosen, best)
    return Judgement(tally.verdict, f"{tally}; at ε = 0.8: {shown}. Synod's cover against the best width: {own}")


def views_get_closer(figures: Figures) -> Judgement:
    """Figure 7."""
    return judge_trend(figures, "views", ("NOCD", WIDTH_8), ("tvd2",), TABLES, tally_falling)


def sends_less(figures: Figures) -> Judgement:
    """Figure 8: bytes of DP-CCBN over those of DP-SUBN, counted in the paper's way and in Synod's.

    The figure does not say its epsilon: it is judged at that of figure 5 and at a larger one.
    """
    told, quotients = [], []
    for name, metric in (("as the paper counts", "paper_bytes"), ("in Synod's encoding", "bytes")):
        by_parties = _quotient(figures, "messages", ("dp-ccbn", "dp-subn"), metric)
        by_epsilon = _quotient(figures, "messages-epsilon", ("dp-ccbn", "dp-subn"), metric)
        if by_parties and 0.8 in by_epsilon:
            least, larger = min(estimate.mean for estimate in by_parties.values()), by_epsilon[0.8].mean
            quotients += [least, larger]
            told.append(f"{name} {least:,.1f} times as much or more at ε = 0.2, {larger:,.0f} times at ε = 0.8")
    if not quotients:
        return NOTHING
    return Judgement(judge_orders(quotients), f"DP-CCBN sends {'; '.join(told)} (the paper does not say its ε)")


def judge_orders(quotients: list[float]) -> Verdict:
    """Two orders of magnitude everywhere hold, one somewhere is a part."""
    if min(quotients) >= SEVERAL_ORDERS:
        return Verdict.HOLDS
    return Verdict.IN_PART if max(quotients) >= ONE_ORDER else Verdict.FAILS


def gap_grows(figures: Figures) -> Judgement:
    """Figure 8, at the smallest and the largest K: the quotient has to grow; a growing difference alone is a part."""
    line = _quotient(figures, "messages", ("dp-ccbn", "dp-subn"), "paper_bytes")
    if not line:
        return NOTHING
    theirs, ours = (figures.series("messages", TABLES[0], method, "paper_bytes") for method in ("dp-ccbn", "dp-subn"))
    first, last = (theirs[x].mean - ours[x].mean for x in (min(line), max(line)))
    told = f"DP-CCBN's bytes over DP-SUBN's: {show_ends(line)}; the difference: {first:,.0f} and {last:,.0f} bytes"
    if tally_rising(line).won:
        return Judgement(Verdict.HOLDS, told)
    return Judgement(Verdict.IN_PART if last > first else Verdict.FAILS, told)


# Two parties, rounds and formulas


def _beats_distdiffgen(figures: Figures) -> Judgement:
    """Figure 6; DistDiffGen with a choice of nodes without noise is told beside."""
    judged, exact = (
        judge_methods("two-parties", ("dp-subn",), (rival,), ("wrong ",), TABLES)(figures)
        for rival in (DISTDIFFGEN, EXACT_CHOICE)
    )
    beside = f". Beside, not private: {exact.measurement}" if exact.verdict is not Verdict.UNKNOWN else ""
    return Judgement(judged.verdict, judged.measurement + beside)


beats_distdiffgen = needs(DISTDIFFGEN, _beats_distdiffgen)


def _sends_less_than_distdiffgen(figures: Figures) -> Judgement:
    """Figure 8, with Synod's DistDiffGen: its two sums are encrypted, and nodes are chosen from what they release."""
    judged = judge_methods("two-parties", ("dp-subn",), (DISTDIFFGEN,), ("bytes",), TABLES)(figures)
    if judged.verdict is Verdict.UNKNOWN:
        return judged
    why = "the original's choice by secure computation of two parties, which sends more, is not reproduced"
    return Judgement(judged.verdict, f"{judged.measurement} ({why})")


sends_less_than_distdiffgen = needs(DISTDIFFGEN, _sends_less_than_distdiffgen)


def _more_so_on_education(figures: Figures) -> Judgement:
    """Figure 6: DistDiffGen's misclassification over DP-SUBN's, of education against that of salary."""
    quotients = {}
    for label in ("education", "salary"):
        lines = (
            figures.series("two-parties", TABLES[0], method, f"wrong {label}") for method in (DISTDIFFGEN, "dp-subn")
        )
        quotients[label] = divide_lines(*lines)
    tally = tally_larger(quotients["education"], quotients["salary"])
    told = "; ".join(f"{label}: {show_ends(line)}" for label, line in quotients.items() if len(line) > 1)
    return Judgement(tally.verdict, f"DistDiffGen's over DP-SUBN's, {told}" if told else NO_POINT)


more_so_on_education = needs(DISTDIFFGEN, _more_so_on_education)


def priview_is_not_closer(figures: Figures) -> Judgement:
    """Figure 7 with all of PriView's steps: the best known covers, views that agree, and the same cut for both."""
    lines = [
        (figures.series("priview", TABLES[0], f"NOCD, consistent{cut}", metric),
         figures.series("priview", TABLES[0], f"PriView, pairs{cut}", metric), f"{name_metric(metric)}{cut}")
        for metric in DISTANCES
        for cut in ("", ", ripple")
    ]  # fmt: skip
    tallies = {name: tally_smaller(ours, theirs) for ours, theirs, name in lines}
    judged = sum_tallies(tally for name, tally in tallies.items() if name.startswith(name_metric("tvd2")))
    shown = {
        name: f"; at {max(ours):g}: {show(ours[max(ours)])} against {show(theirs[max(ours)])}"
        for ours, theirs, name in lines
        if ours and max(ours) in theirs
    }
    told = [f"{name}: {tally}{shown.get(name, '')}" for name, tally in tallies.items() if tally.points]
    return Judgement(judged.verdict, f"{'. '.join(told)} (3-way marginals do not decide)" if told else NO_POINT)


def formula_of_candidates(figures: Figures) -> Judgement:
    """Section VI-F: the paper's size of DP-CCBN's structure learning, against the tables that its algorithm asks for.

    Of d attributes and degree k the formula has d C(d, k+1) tables of 2^(k+1) cells, while iteration i weighs (d - i)
    C(i, k) of them: together C(d+1, k+2). The degree is that whose count is the one that was counted.
    """
    counted = figures.series("messages-epsilon", TABLES[0], "dp-ccbn", "paper_bytes")
    told, near = [], []
    for x, estimate in counted.items():
        degree = find_degree(estimate.mean)
        if degree:
            structure = estimate.mean - parameter_bytes(degree)
            formula = USUAL_PARTIES * PAPER_BYTES_PER_CELL * BITS * comb(BITS, degree + 1) * 2 ** (degree + 1)
            near.append(formula / structure)
            told.append(f"{formula / structure:.2f} times the counted size at ε = {x:g} (degree {degree})")
    if not told:
        return NOTHING
    is_right = all(abs(quotient - 1) <= SHARE_TO_BE_EQUAL for quotient in near)
    return Judgement(Verdict.HOLDS if is_right else Verdict.FAILS, f"the formula is {', '.join(told)}")


def find_degree(size: float) -> int:
    """The degree at which DP-CCBN on all bits of Adult sends so many bytes, as the paper counts; 0 if none does."""
    return next((k for k in range(1, 12) if abs(candidate_bytes(k) / size - 1) < 1e-3), 0)


def candidate_bytes(degree: int) -> int:
    """The bytes of all tables that DP-CCBN asks for, as the paper counts."""
    tables = sum(count_candidates(BITS, degree, placed) * 2 ** (min(placed, degree) + 1) for placed in range(1, BITS))
    return int(USUAL_PARTIES * PAPER_BYTES_PER_CELL * tables) + parameter_bytes(degree)


def parameter_bytes(degree: int) -> int:
    """The bytes of the last phase: d - k tables, as the formula has it and as it is asked."""
    return USUAL_PARTIES * PAPER_BYTES_PER_CELL * (BITS - degree) << (degree + 1)


def formula_of_rounds(figures: Figures) -> Judgement:
    """Section VI-F: a round for each cell, at least 2 n_v for views alone; a run of Synod asks whole queries."""
    lines = {
        epsilon: figures.series("rounds", TABLES[0], f"dp-subn, ε = {epsilon}", "rounds") for epsilon in ("0.2", "0.8")
    }
    told = [f"{show_ends(line)} parties (ε = {epsilon})" for epsilon, line in lines.items() if len(line) > 1]
    if not told:
        return NOTHING
    least = LEAST_VIEWS * 2 ** (PAPER_WIDTH + 1)
    most = max(estimate.mean for line in lines.values() for estimate in line.values())
    text = f"the formula has {least:,} rounds for views of {PAPER_WIDTH} attributes alone; Synod's runs have "
    return Judgement(Verdict.HOLDS if most >= least else Verdict.FAILS, text + ", ".join(told))


def formula_of_messages(figures: Figures) -> Judgement:
    """Section VI-F: the paper's size of all messages of DP-SUBN, against the tables that a run asks for."""
    told, near = [], []
    for epsilon in ("0.2", "0.8"):
        formula, counted = (
            figures.series("rounds", TABLES[0], f"dp-subn, ε = {epsilon}", metric)
            for metric in ("formula", "paper_bytes")
        )
        line = divide_lines(formula, counted)
        near += [abs(estimate.mean - 1) <= SHARE_TO_BE_EQUAL for estimate in line.values()]
        told += [f"{show_ends(line)} parties (ε = {epsilon})"] if len(line) > 1 else []
    if not told:
        return NOTHING
    tally = Tally(sum(near), 0, len(near) - sum(near))
    why = "a view of v bits has 2^v cells, where the formula has twice as many"
    return Judgement(tally.verdict, f"the formula over the counted size: {', '.join(told)}; {why}")


def frontier_shrinks(figures: Figures) -> Judgement:
    """Section VII-D: the cells of the last party's search frontier against those of the first one's. A frontier of the
    same size does not shrink.
    """
    told, total = [], Tally()
    for epsilon in ("0.2", "0.8"):
        first, last = (
            figures.series("rounds", TABLES[0], f"dp-subn, ε = {epsilon}", f"{which} frontier")
            for which in ("first", "last")
        )
        smaller = tally_smaller(last, first)
        total += Tally(smaller.won, 0, smaller.tied + smaller.lost)
        line = divide_lines(last, first)
        told += [f"{show_ends(line)} parties (ε = {epsilon})"] if len(line) > 1 else []
    return Judgement(total.verdict, f"the last frontier over the first: {', '.join(told)}" if told else NO_POINT)


def _subn_beats(
    figures: Figures, figure: str, losers: tuple[str, ...], prefixes: tuple[str, ...], *, x: float
) -> Judgement:
    return judge_lines(figures, figure, "dp-subn", losers, prefixes, TABLES, x=x, beside=VARIANTS)


def _quotient(figures: Figures, figure: str, methods: tuple[str, str], metric: str) -> Series:
    above, below = (figures.series(figure, TABLES[0], method, metric) for method in methods)
    return divide_lines(above, below)
