"""The claims of the HPDP-DP paper, judged on its model: linear, on bits, with its contribution rates.

The noise is Synod's (docs/privacy.md, 8). Accuracy is one minus misclassification. What the shipped `hpdp-dp` (copula
link, the schema's own columns) does is told beside.
"""

from math import hypot

from bench.reproduction.claims.verdicts import (
    Judgement,
    Tally,
    Verdict,
    show,
    tally_falling,
    tally_not_larger,
    tally_stable,
)
from bench.reproduction.experiments.plans import GROWN, MEAN_COVARIANCE
from bench.reproduction.lines import NO_POINT, judge_lines, judge_trend, show_ends
from bench.reproduction.messages import PAPER_BYTES_PER_CELL
from bench.reproduction.points import PAPER_CONTRIBUTIONS, PAPER_HPDP, USUAL_PARTIES
from bench.reproduction.summary import Estimate, Figures

BOTH = ("adult", "nltcs")
SHIPPED = ("hpdp-dp",)
FIRST_SHARE = 0.3
COMPONENTS = 7
ACCURACY = 0.8
AT = float(PAPER_CONTRIBUTIONS["nltcs"])
ADULT_BITS = 52
FEW_ATTRIBUTES, ALL_ATTRIBUTES = GROWN
BETTER_TARGETS = ("wrong education", "wrong money", "wrong outside")


def first_component(figures: Figures) -> Judgement:
    """Section 5.1."""
    line = figures.series("components", "nltcs", PAPER_HPDP, "first")
    if AT not in line:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    holds = line[AT].mean > FIRST_SHARE
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, f"its share is {show(line[AT])} (ε = 0.5, K = 3)")


def seven_components(figures: Figures) -> Judgement:
    """Section 5.1."""
    line = figures.series("components", "nltcs", PAPER_HPDP, "components")
    if AT not in line:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    holds = line[AT].mean <= COMPONENTS
    told = f"80 % needs {line[AT].mean:.1f} components on average (ε = 0.5, K = 3)"
    return Judgement(Verdict.HOLDS if holds else Verdict.FAILS, told)


def accurate_enough(figures: Figures) -> Judgement:
    """Section 5.1."""
    targets = figures.metrics("components", "nltcs", "wrong ")
    wrong = {target: figures.series("components", "nltcs", PAPER_HPDP, target).get(AT) for target in targets}
    accuracies = {target: 1 - found.mean for target, found in wrong.items() if found}
    reached = [accuracy > ACCURACY for accuracy in accuracies.values()]
    told = ", ".join(f"{target.removeprefix('wrong ')} {accuracy:.3f}" for target, accuracy in accuracies.items())
    return Judgement(Tally(sum(reached), 0, len(reached) - sum(reached)).verdict, told or NO_POINT)


def more_components(figures: Figures) -> Judgement:
    """Section 5.1: misclassification at the largest contribution rate against the smallest."""
    return judge_trend(figures, "components", (PAPER_HPDP,), ("wrong ",), BOTH, tally_falling)


def more_kept(figures: Figures) -> Judgement:
    """Section 5.1, on Adult: with the paper's numbers of components in place of contribution rates."""
    return judge_trend(figures, "kept", (PAPER_HPDP,), ("wrong ",), ("adult",), tally_falling)


def beats_subn(figures: Figures) -> Judgement:
    """Section 5.2."""
    return judge_lines(figures, "epsilon", PAPER_HPDP, ("dp-subn",), BETTER_TARGETS, BOTH, x=0.8, beside=SHIPPED)


def not_worse_on_salary(figures: Figures) -> Judgement:
    """Section 5.2."""
    lines = (figures.series("epsilon", "adult", method, "wrong salary") for method in (PAPER_HPDP, "dp-subn"))
    tally = tally_not_larger(*lines)
    told = judge_lines(
        figures, "epsilon", PAPER_HPDP, ("dp-subn",), ("wrong salary",), ("adult",), x=0.8, beside=SHIPPED
    )
    return Judgement(tally.verdict, f"not larger: {tally}. Smaller: {told.measurement}" if tally.points else NO_POINT)


def improves_with_epsilon(figures: Figures) -> Judgement:
    """Section 5.2."""
    return judge_trend(figures, "epsilon", (PAPER_HPDP, "dp-subn"), ("wrong ",), BOTH, tally_falling)


def beats_subn_at_every_k(figures: Figures) -> Judgement:
    """Section 5.3, on Adult."""
    return judge_lines(figures, "parties", PAPER_HPDP, ("dp-subn",), ("wrong ",), ("adult",), x=10, beside=SHIPPED)


def improves_with_parties(figures: Figures) -> Judgement:
    """Section 5.3, on Adult."""
    return judge_trend(figures, "parties", (PAPER_HPDP, "dp-subn"), ("wrong ",), ("adult",), tally_falling)


def noise_is_central(figures: Figures) -> Judgement:
    """Sections 4 and 5.3: with one share of noise the distance does not depend on K."""
    return judge_trend(figures, "parties", (PAPER_HPDP,), ("tvd2", "tvd3"), BOTH, tally_stable)


def better_covariance(figures: Figures) -> Judgement:
    """Section 5.3: the paper's reason for the claim before, without noise."""
    return judge_trend(figures, "covariance", (MEAN_COVARIANCE,), ("millionths",), BOTH, tally_falling)


def sends_few_numbers(figures: Figures) -> Judgement:
    """Section 4.2.2, first stage: M p^2 numbers, against those that Synod's moments have on p bits."""
    line = figures.series("messages", "adult", PAPER_HPDP, "paper_bytes")
    shares = {x: estimate.mean / PAPER_BYTES_PER_CELL / (x * ADULT_BITS**2) for x, estimate in line.items()}
    if not shares:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    told = f"{min(shares.values()):.2f} to {max(shares.values()):.2f} of M p² at every M: a scatter matrix is symmetric"
    return Judgement(Verdict.HOLDS if max(shares.values()) <= 1 else Verdict.FAILS, told)


def sends_as_much(figures: Figures) -> Judgement:
    """Section 4.2.2, all stages: the numbers that were counted against the formula, at the most rows."""
    names = ("matrices", "models", "rows", "components")
    lines = {name: figures.series("growth", "adult", ALL_ATTRIBUTES, name) for name in names}
    if not all(lines.values()):
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    matrices, models, rows, components = (line[max(line)].mean for line in lines.values())
    formula = USUAL_PARTIES * ADULT_BITS * (ADULT_BITS + components**2) + rows
    share = (matrices + models + rows) / formula
    told = (
        f"{share:.3f} of the formula ({matrices:,.0f}, {models:,.0f} and {rows:,.0f} numbers at M = {USUAL_PARTIES}): "
        f"a model has p K numbers, not p K²"
    )
    return Judgement(Verdict.HOLDS if share <= 1 else Verdict.FAILS, told)


def grows_apart(figures: Figures) -> Judgement:
    """Section 4.2.2: in a sum of a term in p and one in n, what more attributes cost is the same for any n. The seconds
    of all attributes less those of a quarter of them, at the fewest rows and at the most; more at the most contradicts.
    """
    many, few = (figures.series("growth", "adult", name, "seconds") for name in (ALL_ATTRIBUTES, FEW_ATTRIBUTES))
    gaps = {
        x: Estimate(many[x].mean - few[x].mean, hypot(many[x].error, few[x].error), min(many[x].runs, few[x].runs))
        for x in many.keys() & few.keys()
    }
    if len(gaps) < 2:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    told = f"52 bits cost {show_ends(gaps)} rows more seconds than 13 (M = {USUAL_PARTIES}, without encryption)"
    return Judgement(tally_stable(gaps).verdict, f"{told}: a scatter matrix takes n p² steps, and rows n p numbers")
