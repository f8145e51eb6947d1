"""The claims of the DPCocGen paper, on Adult's five attributes of it. Larger areas under ROC are better."""

from bench.reproduction.claims.comparing import judge_line, judge_methods, needs, tally_equal, tally_larger
from bench.reproduction.claims.verdicts import tally_falling
from bench.reproduction.experiments.plans import DPCOCGEN, HISTOGRAM, PRIVBAYES

TABLES = ("adult",)
FINEST = "dpcocgen, modl"
AREAS = {"sex": ("area sex",), "relationship": ("area relationship",)}

closer_joint = needs(DPCOCGEN, judge_methods("joint", (DPCOCGEN, FINEST), (HISTOGRAM,), ("hellinger",), TABLES))
finest_is_closer = needs(DPCOCGEN, judge_methods("joint", (FINEST,), (HISTOGRAM,), ("hellinger",), TABLES))
coarse_fails_late = needs(
    DPCOCGEN,
    judge_methods(
        "joint",
        ("dpcocgen, 144 parts",),
        (HISTOGRAM,),
        ("hellinger",),
        TABLES,
        tally=tally_larger,
        places=lambda x: x == 0.5,
    ),
)
error_falls = needs(
    DPCOCGEN, judge_line("joint", (DPCOCGEN, HISTOGRAM, PRIVBAYES), ("relative",), TABLES, tally_falling)
)
smaller_error = needs(DPCOCGEN, judge_methods("joint", (DPCOCGEN, PRIVBAYES), (HISTOGRAM,), ("relative",), TABLES))
errors_alike = needs(
    DPCOCGEN, judge_methods("joint", (DPCOCGEN,), (PRIVBAYES,), ("relative",), TABLES, tally=tally_equal)
)
better_sex = needs(
    DPCOCGEN, judge_methods("joint", (DPCOCGEN,), (HISTOGRAM, PRIVBAYES), AREAS["sex"], TABLES, tally=tally_larger)
)
better_relationship = needs(
    DPCOCGEN,
    judge_methods("joint", (DPCOCGEN,), (HISTOGRAM, PRIVBAYES), AREAS["relationship"], TABLES, tally=tally_larger),
)
near_real = needs(
    DPCOCGEN,
    judge_methods("joint", (DPCOCGEN,), ("no privacy",), ("area ",), TABLES, tally=tally_equal),
)
