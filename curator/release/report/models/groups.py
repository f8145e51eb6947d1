"""What a network's section says where tables have different noise: sensitive columns, weights of values, and what each
value is promised.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from synod.common.protocol.plan import plan_study
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of
from synod.common.study.schema import write_decimal
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.network.groups import Groups, part_by_value, split_model
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import name_codes, percent, plural

MOST_VALUES = 400
DIRECTIONS = {
    "rare": "A rare value has more weight than a frequent one, as the paper has it: rare values have the least noise "
    "and are protected least.",
    "frequent": "A frequent value has more weight than a rare one: rare values have the most noise and are protected "
    "most.",
    "listed": "The weights are those that the study lists.",
}
NOT_PERSONS = (
    "These are bounds for values, not for persons: which one holds for a row depends on the value that is to stay "
    "secret, so nobody can be told beforehand what they lose. What everybody can be told is the study's whole budget. "
    "A sensitive column that another is drawn from is counted in that one's table too, with that table's noise."
)
OF_ROWS = "What a row with a value loses at most"
OF_PERSONS = "What a person loses at most, all of whose rows have a value"
EVEN = "All tables have the same noise: there is one group of columns only, and no weights."


def describe_groups(study: Study, publication: Publication, parts: Sequence[Decimal], direction: str) -> Html:
    """Sensitive columns, how the budget was shared, and, for each value that has a weight, the most that is lost."""
    _, groups = split_model(study, publication.model)
    has_weights = any(groups.query.weights)
    if not groups.query.shares and not has_weights:
        return tag("p", EVEN)
    shown = [tag("p", *_name_sensitive(study, groups)), tag("p", _tell_shares(study, groups, parts))]
    if has_weights:
        words = f"In tables of the other columns a count has noise by the weight of its value. {DIRECTIONS[direction]}"
        shown += [tag("p", words), _bound_table(study, groups)]
    return join([*shown, tag("p", tag("strong", "What this protects, and what not. "), NOT_PERSONS)])


def _name_sensitive(study: Study, groups: Groups) -> list[str]:
    features, attributes = features_of(study), study.attributes
    names = [outside(attributes[features[feature].attribute].name) for feature in groups.sensitive]
    if not names:
        return ["No column counts as sensitive."]
    return [f"{plural(len(names), 'column')} counted as sensitive: ", join(names, ", "), "."]


def _tell_shares(study: Study, groups: Groups, parts: Sequence[Decimal]) -> str:
    """What the tables of each group have of the budget; where they are all that is asked, it is all of it."""
    if not groups.query.shares:
        return "All tables have the same part of the budget."
    whole = plan_study(study).step("parameters").cost.part_of(study.budget)
    first, second = (float(whole * Fraction(part) / Fraction(sum(parts[-2:]))) for part in parts[-2:])
    return (
        f"Tables that tell a sensitive column together have {first:.3g} of the budget, all others {second:.3g}. More "
        "of it is less noise."
    )


def _bound_table(study: Study, groups: Groups) -> Html:
    """A row for each value with a weight: the bound is what all of the plan costs a party, less what the value's own
    table does not.
    """
    plan, features, codings = plan_study(study), features_of(study), codings_of(study)
    whole = max(plan.cost_of(name).part_of(study.budget) for name in study.party_names)
    tables = plan.step("parameters").cost.part_of(study.budget)
    rows: list[Html] = []
    for place, weights in enumerate(groups.query.weights):
        if weights is not None:
            coding = codings[features[weights.entry].attribute]
            known = zip(name_codes(coding), weights.values, part_by_value(groups.query, place), strict=True)
            for value, weight, part in known:
                column, label = outside(coding.attribute.name), outside(value)
                cells = (label, str(weight), _write_bound(study, whole - tables * (1 - part)))
                rows.append(tag("tr", tag("th", column, scope="row"), *(tag("td", cell) for cell in cells)))
    more = [tag("p", f"{plural(len(rows) - MOST_VALUES, 'more value')}: see ", tag("code", "model.json"), ".")]
    heads = ("column", "value", "weight", f"{'epsilon' if study.delta is None else 'rho'}, at most")
    title = OF_ROWS if study.max_rows_per_unit == 1 else OF_PERSONS
    table = fold_table(title, heads, rows[:MOST_VALUES])
    return join([table, *more * (len(rows) > MOST_VALUES)])


def _write_bound(study: Study, part: Fraction) -> str:
    """Rounded up: epsilon to four digits after the point, rho as a part of the study's."""
    if study.delta is not None:
        return f"{percent(math.ceil(1000 * part) / 1000)} of rho"
    return write_decimal(Decimal(math.ceil(10_000 * part * Fraction(study.epsilon))) / 10_000)
