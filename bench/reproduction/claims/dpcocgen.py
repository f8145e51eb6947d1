"""The claims of the DPCocGen paper, on Adult's five attributes of it. Larger areas under ROC are better."""

from bench.reproduction.claims.comparing import judge_line, judge_methods, needs, tally_equal, tally_larger
from bench.reproduction.claims.verdicts import Judgement, Tally, Verdict, show, tally_falling, tally_smaller
from bench.reproduction.experiments.plans import DPCOCGEN, GRANULARITIES, HISTOGRAM, PRIVBAYES
from bench.reproduction.lines import NO_POINT
from bench.reproduction.summary import Figures

TABLES = ("adult",)
FINEST, COARSEST = "dpcocgen, modl", f"dpcocgen, {GRANULARITIES[0]} parts"
BOTH = (DPCOCGEN, FINEST)
"""Figures 3 to 5 have the finest level, which is MODL's own; Synod takes that of least expected error."""
AREAS = {"sex": ("area sex",), "relationship": ("area relationship",)}


def _closer_joint(figures: Figures) -> Judgement:
    """Figure 2: all granularities at all epsilons, but for the coarsest one from 0.5 on."""
    methods = (DPCOCGEN, FINEST, *(f"dpcocgen, {parts} parts" for parts in GRANULARITIES))
    told, total = [], Tally()
    for method in methods:
        left, right = (figures.series("joint", TABLES[0], name, "hellinger") for name in (method, HISTOGRAM))
        tally = tally_smaller({x: own for x, own in left.items() if method != COARSEST or x < 0.5}, right)
        total += tally
        told += [f"{method}: {tally}"] if tally.points else []
    return Judgement(total.verdict, ". ".join(told) or NO_POINT)


def _best_varies(figures: Figures) -> Judgement:
    """Figure 2: the coarsest and the finest granularity against each other, at both ends of epsilon."""
    coarse, fine = (figures.series("joint", TABLES[0], name, "hellinger") for name in (COARSEST, FINEST))
    shared = sorted(coarse.keys() & fine.keys())
    if len(shared) < 2:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    first, last = shared[0], shared[-1]
    tally = tally_smaller({first: coarse[first]}, fine) + tally_smaller({last: fine[last]}, coarse)
    ends = [f"{show(coarse[x])} against {show(fine[x])} at {x:g}" for x in (first, last)]
    return Judgement(tally.verdict, f"144 cells against MODL's own: {', '.join(ends)}")


closer_joint = needs(DPCOCGEN, _closer_joint)
varies = needs(DPCOCGEN, _best_varies)
finest_is_closer = needs(DPCOCGEN, judge_methods("joint", (FINEST,), (HISTOGRAM,), ("hellinger",), TABLES))
coarse_fails_late = needs(
    DPCOCGEN,
    judge_methods(
        "joint",
        (COARSEST,),
        (HISTOGRAM,),
        ("hellinger",),
        TABLES,
        tally=tally_larger,
        places=lambda x: x == 0.5,
    ),
)
error_falls = needs(DPCOCGEN, judge_line("joint", (*BOTH, HISTOGRAM, PRIVBAYES), ("relative",), TABLES, tally_falling))
smaller_error = needs(DPCOCGEN, judge_methods("joint", (*BOTH, PRIVBAYES), (HISTOGRAM,), ("relative",), TABLES))
errors_alike = needs(DPCOCGEN, judge_methods("joint", BOTH, (PRIVBAYES,), ("relative",), TABLES, tally=tally_equal))
better_sex = needs(
    DPCOCGEN, judge_methods("joint", BOTH, (HISTOGRAM, PRIVBAYES), AREAS["sex"], TABLES, tally=tally_larger)
)
better_relationship = needs(
    DPCOCGEN,
    judge_methods("joint", BOTH, (HISTOGRAM, PRIVBAYES), AREAS["relationship"], TABLES, tally=tally_larger),
)
near_real = needs(
    DPCOCGEN,
    judge_methods("joint", BOTH, ("no privacy",), ("area ",), TABLES, tally=tally_equal),
)
