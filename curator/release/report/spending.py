"""The section on the budget: what epsilon, and delta where there is one, promise, and where it went."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from string import ascii_uppercase
from typing import Any

from synod.common.privacy.cost import Cost
from synod.common.protocol.manifest import noise_law
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.promise import explain_several_rows, write_delta
from synod.common.study.schema import write_decimal
from synod.common.study.study import Study
from synod.curator.release.report.budget import Phase, list_phases, share_of_budget
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.wording import percent, plural, whole

WEAK_EPSILON = 5
NARROWEST_LETTER = 0.06
BY_TABLE = ", by table"
NUMBERS = {
    "r": "r",
    "scale": "scale",
    "sensitivity": "sensitivity",
    "square": "square",
    "squared_sensitivity": "squared sensitivity",
    "epsilon_each": "epsilon of each draw",
}


def show_budget(study: Study, queries: Mapping[str, AnyQuery]) -> Html:
    """The budget, what it promises, and where it went."""
    phases = list_phases(study, queries)
    promise = (tag("p", _promise(study)), tag("p", _against(study)))
    return join([*promise, _show_phases(study, phases), _show_spending(study, phases), _show_laws(study, queries)])


def _promise(study: Study) -> str:
    epsilon = write_decimal(study.epsilon)
    bound = (
        f"at most by a factor of {bound_factor(study.epsilon)}"
        if study.epsilon <= WEAK_EPSILON
        else f"by a factor of up to exp({epsilon}), which is so large that it promises little"
    )
    told, beyond = f"The study's epsilon is {epsilon}.", ""
    if study.delta is not None:
        told = f"The study's (epsilon, delta) is ({epsilon}, {write_delta(study.delta)})."
        beyond = f", and by {write_delta(study.delta)} beside that, which is delta"
    most = study.max_rows_per_unit
    taken, one = "row of any party and replace it by any other row", "row"
    if most > 1:
        taken, one = f"person with up to {most} rows at a party, and replace these rows by any others", "person"
    return (
        f"{told} Take any one {taken}: the chance "
        f"of every possible release changes {bound}{beyond}. That bounds what anybody can learn about one {one}, "
        f"even somebody who knows all the others. {explain_several_rows(study)}"
    )


def bound_factor(epsilon: Decimal) -> str:
    """exp(epsilon), rounded up: three digits of what it is above 1, so that it is never said to be nothing."""
    above = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(math.expm1(epsilon))
    return f"{(1 + above).normalize():f}"


def name_adversary(study: Study) -> str:
    """Against whom the promise holds, in a few words; `show_budget` says the same in full."""
    if len(study.roster) == 1:
        return "against everybody else"
    if not _has_sums(study):
        return "against the curator with all other parties"
    if study.collusion:
        return f"also against the curator with {study.collusion} of them"
    return "against the curator and the public"


def _has_sums(study: Study) -> bool:
    """Whether some noise is made of all parties' shares, so that those who work together can take theirs out."""
    return any(step.kind.is_sum for step in plan_study(study).steps)


def _against(study: Study) -> str:
    if len(study.roster) == 1:
        return "There is one party, which adds all of the noise itself; the promise holds towards everybody else."
    if not _has_sums(study):
        return (
            "The promise holds towards everybody: the public, and the curator together with all of the other parties. "
            "Every answer has all of its noise from the party that gave it."
        )
    if study.collusion:
        return (
            "The promise also holds towards the curator, and towards the curator together with up to "
            f"{study.collusion} of the {plural(len(study.roster), 'party')}."
        )
    return (
        "The promise holds towards the curator and the public. It does not hold towards another party of the study, "
        "which can take its own share of the noise out of the sums."
    )


def _show_phases(study: Study, phases: Sequence[Phase]) -> Html:
    rows = []
    for place, phase in enumerate(phases):
        costs = " or ".join(dict.fromkeys(_name_cost(phase.cost_of(entry.name), study) for entry in study.roster))
        name = tag("th", tag("span", _letter(place), class_="letter"), f" {phase.name}", scope="row")
        rows.append(tag("tr", name, tag("td", phase.asked), tag("td", whole(phase.rounds)), tag("td", costs)))
    return fold_table("Phases", ("phase", "what was asked", "rounds", "cost for each party"), rows)


def _letter(place: int) -> str:
    """A to Z, then AA to ZZ, and so on."""
    return ascii_uppercase[place % 26] * (1 + place // 26)


def _show_spending(study: Study, phases: Sequence[Phase]) -> Html:
    rows = [_spending_row(study, phases, entry.name) for entry in study.roster]
    whole_budget = write_decimal(study.epsilon) if study.delta is None else "the study's rho"
    heads = ("party", "spent", f"as a part of {whole_budget}")
    return fold_table("What each party spent", heads, rows)


def _spending_row(study: Study, phases: Sequence[Phase], party: str) -> Html:
    pieces, spent, kind = [], 0.0, "epsilon" if study.delta is None else "rho"
    for place, phase in enumerate(phases):
        share = share_of_budget(phase.cost_of(party), study)
        if share:
            letter = tag("b", _letter(place)) if share > NARROWEST_LETTER else Html()
            title = f"{phase.name}: {_name_cost(phase.cost_of(party), study)}"
            pieces.append(tag("span", letter, class_=f"p{place % 4}", style=f"width:{100 * share:.2f}%", title=title))
            spent += share
    drawing = tag("div", *pieces, class_="spent", role="img", aria_label=f"{party} spent {percent(spent)} of {kind}")
    total = _name_cost(Cost.total(phase.cost_of(party) for phase in phases), study)
    return tag("tr", tag("th", party, scope="row"), tag("td", total), tag("td", drawing))


def _name_cost(cost: Cost, study: Study) -> str:
    """Pure epsilon as a number; rho, which nobody thinks in, as a part of the study's."""
    return cost.describe() if study.delta is None else f"{percent(share_of_budget(cost, study))} of rho"


def _show_laws(study: Study, queries: Mapping[str, AnyQuery]) -> Html:
    laws: list[Any] = noise_law(study, queries)
    rows = [
        tag("tr", tag("th", law["label"], scope="row"), *(tag("td", text) for text in texts))
        for law in laws
        for texts in _describe_law(study, law)
    ]
    share = (
        "NB is the negative binomial law; NB(r, a) \u2212 NB(r, a) is one party's share."
        if study.delta is None
        else "A party's share, or all of its own noise, is a discrete Gaussian; square is the parameter of one."
    )
    ranges = "; where a round's tables differ, manifest.json has each" if any(BY_TABLE in row for row in rows) else ""
    words = f"{share} Numbers are exact fractions{ranges}."
    table = fold_table("Round by round", ("round", "law", "its numbers", "protects against"), rows)
    return tag("details", tag("summary", "The law of the noise"), tag("p", words), table)


def _describe_law(study: Study, law: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Each law of a round once, however many tables have it with numbers of their own.

    A party alone makes all of the noise, so there is no other party that could take a share of it out.
    """
    against = "everybody else" if len(study.roster) == 1 else law["protects_against"]
    found: dict[str, list[Mapping[str, str]]] = {}
    for run in _flatten(law.get("runs", [law])):
        found.setdefault(run["law"], []).append(run)
    return [(name, _name_numbers(runs), against) for name, runs in found.items()]


def _flatten(runs: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Runs, and those of patterns, in which runs follow each other many times."""
    for run in runs:
        yield from run.get("runs", [run])


def _name_numbers(runs: Sequence[Mapping[str, str]]) -> str:
    """The numbers of a law; where tables differ, from the least to the greatest."""
    found = {words: {run[key] for run in runs if key in run} for key, words in NUMBERS.items()}
    return "; ".join(f"{words} {_name_range(numbers)}" for words, numbers in found.items() if numbers)


def _name_range(numbers: Collection[str]) -> str:
    ordered = sorted(numbers, key=Fraction)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}{BY_TABLE}"
