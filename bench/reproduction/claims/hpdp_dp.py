"""The claims of the HPDP-DP paper, judged on its model: linear, on bits, with its contribution rates.

The noise is Synod's (docs/privacy.md, 8). Accuracy is one minus misclassification. What the shipped `hpdp-dp` (copula
link, the schema's own columns) does is told beside.
"""

from bench.reproduction.claims.verdicts import (
    Judgement,
    Tally,
    Verdict,
    show,
    tally_falling,
    tally_not_larger,
    tally_stable,
)
from bench.reproduction.lines import NO_POINT, judge_lines, judge_trend
from bench.reproduction.messages import PAPER_BYTES_PER_CELL
from bench.reproduction.points import PAPER_CONTRIBUTIONS, PAPER_HPDP
from bench.reproduction.summary import Figures

BOTH = ("adult", "nltcs")
SHIPPED = ("hpdp-dp",)
FIRST_SHARE = 0.3
COMPONENTS = 7
ACCURACY = 0.8
AT = float(PAPER_CONTRIBUTIONS["nltcs"])
ADULT_BITS = 52
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


def sends_few_numbers(figures: Figures) -> Judgement:
    """Section 4.2.2, first stage: M p^2 numbers, against those that Synod's moments have on p bits."""
    line = figures.series("messages", "adult", PAPER_HPDP, "paper_bytes")
    shares = {x: estimate.mean / PAPER_BYTES_PER_CELL / (x * ADULT_BITS**2) for x, estimate in line.items()}
    if not shares:
        return Judgement(Verdict.UNKNOWN, NO_POINT)
    told = f"{min(shares.values()):.2f} to {max(shares.values()):.2f} of M p² at every M: a scatter matrix is symmetric"
    return Judgement(Verdict.HOLDS if max(shares.values()) <= 1 else Verdict.FAILS, told)
