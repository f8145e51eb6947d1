"""The claims of the HPPrivBayes paper, on Adult without income, in our bins; its PrivBayes has degree 4 and whole codes
as well.

What the printed method reads without paying for it, Synod's pays for or takes as public (docs/privacy.md).
"""

from math import hypot

from bench.reproduction.claims.comparing import judge_line, judge_methods, needs, tally_equal, tally_larger
from bench.reproduction.claims.verdicts import Judgement, show, tally_falling
from bench.reproduction.experiments.plans import DEGREE_EPSILONS, HPPRIVBAYES, RATIOS, VANILLA
from bench.reproduction.lines import NO_POINT
from bench.reproduction.summary import Estimate, Figures

TABLES = ("adult",)
OURS, THEIRS = (f"{name}, ε = {DEGREE_EPSILONS[0]}" for name in (HPPRIVBAYES, VANILLA))
TARGET = ("wrong education",)
"""By both machines; the paper's is the one with a kernel."""
KERNEL = "wrong education, kernel"

alike_with_one_parent = needs(
    HPPRIVBAYES,
    judge_methods("degree", (OURS,), (THEIRS,), ("information",), TABLES, tally=tally_equal, places=lambda x: x == 1),
)
more_with_several = needs(
    HPPRIVBAYES,
    judge_methods("degree", (OURS,), (THEIRS,), ("information",), TABLES, tally=tally_larger, places=lambda x: x > 1),
)
learns_better = needs(HPPRIVBAYES, judge_methods("personal", (HPPRIVBAYES,), (VANILLA,), TARGET, TABLES))
alike_at_small_epsilon = needs(
    HPPRIVBAYES,
    judge_methods("personal", (HPPRIVBAYES,), (VANILLA,), TARGET, TABLES, tally=tally_equal, places=lambda x: x <= 0.4),
)
closer = needs(HPPRIVBAYES, judge_methods("personal", (HPPRIVBAYES,), (VANILLA,), ("tvd",), TABLES))

gets_closer = needs(HPPRIVBAYES, judge_line("personal", (HPPRIVBAYES, VANILLA), ("tvd",), TABLES, tally_falling))
learns_more = needs(HPPRIVBAYES, judge_line("personal", (HPPRIVBAYES, VANILLA), TARGET, TABLES, tally_falling))
below_real = needs(HPPRIVBAYES, judge_methods("personal", ("no privacy",), (HPPRIVBAYES, VANILLA), TARGET, TABLES))


def _spread_grows(figures: Figures) -> Judgement:
    """Figure 6: the largest less the smallest misclassification over epsilon, at the smallest and the largest ratio."""
    spreads = {}
    for ratio in RATIOS:
        line = figures.series("personal", TABLES[0], f"{HPPRIVBAYES}, r = {ratio}", KERNEL)
        if len(line) > 1:
            ordered = sorted(line.values(), key=lambda estimate: estimate.mean)
            least, most = ordered[0], ordered[-1]
            above, _, below = ratio.partition("/")
            gap = Estimate(most.mean - least.mean, hypot(most.error, least.error), min(most.runs, least.runs))
            spreads[int(above) / int(below)] = gap
    told = ", ".join(f"{show(spread)} at r = {x:.2f}" for x, spread in sorted(spreads.items()))
    return Judgement(tally_falling(spreads).verdict, told or NO_POINT)


spread_grows = needs(HPPRIVBAYES, _spread_grows)
