"""The claims of the DP-SUBN paper. It has Adult alone; where NLTCS was measured too, it is told beside."""

from bench.reproduction.claims.verdicts import (
    Judgement,
    Series,
    Tally,
    Verdict,
    tally_falling,
    tally_rising,
    tally_smaller,
    tally_stable,
)
from bench.reproduction.lines import NO_POINT, divide_lines, judge_lines, judge_trend, show_ends
from bench.reproduction.summary import Figures

TABLES = ("adult",)
DISTANCES = ("tvd2", "tvd3")
VARIANTS = ("dp-subn, joint", "dp-subn, paper's split")
QUALITIES = (*DISTANCES, "wrong ")
SEVERAL_ORDERS, ONE_ORDER = 100, 10
WIDTH_8, BEST_WIDTH = "overlapping, width 8", "overlapping, best width"
ALL_BITS = 52.0
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


def _subn_beats(
    figures: Figures, figure: str, losers: tuple[str, ...], prefixes: tuple[str, ...], *, x: float
) -> Judgement:
    return judge_lines(figures, figure, "dp-subn", losers, prefixes, TABLES, x=x, beside=VARIANTS)


def _quotient(figures: Figures, figure: str, methods: tuple[str, str], metric: str) -> Series:
    above, below = (figures.series(figure, TABLES[0], method, metric) for method in methods)
    return divide_lines(above, below)
