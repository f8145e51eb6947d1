"""DistDiffGen (Alhadidi, Mohammed, Fung, Debbabi 2012): every attribute generalized along its tree as far as a class
attribute calls for, and one noisy table of what is left. Both sums are encrypted; the original chooses by secure
computation of two parties, here the curator chooses from released tables.
"""

from bisect import bisect_left
from decimal import Decimal
from itertools import chain
from math import prod
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from synod.common.methods.networks import check_theta, list_to_tuple, sum_shares
from synod.common.models.trees import Tree, children_of, tree_of
from synod.common.models.usefulness import is_useful
from synod.common.privacy.cost import Cost
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import invalid, refused
from synod.common.study.attributes import plain
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.levels import number_groups
from synod.common.study.schema import CategoricalAttribute, Categories, ExactDecimal, Name, Strict
from synod.common.study.study import Method, Study, follow_rho

LARGEST_CUT = 1_000_000
LARGEST_EPSILON = 1_000
MOST_SPECIALIZATIONS = 1_000


class Target(Strict):
    """A class attribute whose categories are put together to a few classes."""

    attribute: Name
    classes: Annotated[tuple[Categories, ...], BeforeValidator(list_to_tuple)]


class DistDiffGen(Method):
    """`target` is the class attribute, the schema's last that varies where nothing is said; `specializations` how many
    nodes are split at most; `split` the budget's share for choosing them. `theta` bounds the leaves: an average one has
    at least theta times as many rows as its noise has scale.
    """

    name: Literal["distdiffgen"]
    version: Literal[1] = 1
    allows_losses: ClassVar[bool] = True
    target: Name | Target | None = None
    specializations: Annotated[int, Field(ge=1, le=MOST_SPECIALIZATIONS)] = 10
    split: ExactDecimal = Decimal("0.5")
    theta: ExactDecimal = Decimal(4)

    @model_validator(mode="after")
    def _check_keys(self) -> "DistDiffGen":
        if not 0 < self.split < 1:
            raise ValueError("split must be above 0 and below 1")
        check_theta(self.theta)
        return self

    @property
    def target_name(self) -> str:
        """The class attribute of a resolved study."""
        assert self.target is not None, "only a resolved study is planned"
        return self.target if isinstance(self.target, str) else self.target.attribute

    def resolve(self, study: Study) -> Self:
        """Writes out the class attribute; refused where there is none of that name, or its classes are not sound."""
        last = study.attributes[features_of(study)[-1].attribute].name
        settled = self if self.target is not None else self.model_copy(update={"target": last})
        settled.class_groups(study)
        return settled

    def target_feature(self, study: Study) -> int:
        """The feature that is the class attribute."""
        names = [study.attributes[feature.attribute].name for feature in features_of(study)]
        if self.target_name not in names:
            known = any(attribute.name == self.target_name for attribute in study.attributes)
            why = "has a single value" if known else "is not in the schema"
            raise invalid(f"the target {self.target_name} {why}.", "Name an attribute that varies.")
        return names.index(self.target_name)

    def class_groups(self, study: Study) -> tuple[int, ...]:
        """The class of each code of the class attribute, numbered by first occurrence; a missing value is a class."""
        feature = self.target_feature(study)
        if not isinstance(self.target, Target):
            return tuple(range(sizes_of(study)[feature]))
        attribute = plain(study.attributes[features_of(study)[feature].attribute])
        if not isinstance(attribute, CategoricalAttribute):
            raise invalid(
                f"the target {attribute.name} is a number, whose classes are its bins.",
                "Name it without classes, and give it as many bins as it shall have classes.",
            )
        listed = list(chain.from_iterable(self.target.classes))
        if (
            sorted(listed) != sorted(attribute.categories)
            or not all(self.target.classes)
            or len(self.target.classes) < 2
        ):
            raise invalid(
                f"the classes of {attribute.name} are not two or more lists that hold each of its categories once.",
                "Put every category into one list.",
            )
        owners = {category: place for place, own in enumerate(self.target.classes) for category in own}
        placed = [owners[category] for category in attribute.categories] + [len(owners)] * attribute.nullable
        return number_groups(placed)

    def costs(self, budget: Cost) -> tuple[Cost, Cost]:
        """Of the tables that nodes are chosen by, and of the leaves."""
        first = budget.share(self.split)
        return first, budget - first

    def most_leaves(self, study: Study, budget: Cost | None = None) -> int:
        """How many cells the table of the leaves may have: as many as are theta-useful, up to a million."""
        _, cost = self.costs(budget or study.budget)

        def is_too_large(cells: int) -> bool:
            rows, shares = study.total_rows, sum_shares(study)
            return not is_useful(cells, rows=rows, cost=cost, tables=1, theta=self.theta, shares=shares)

        return bisect_left(range(1, LARGEST_CUT + 1), x=True, key=is_too_large)

    def check(self, study: Study) -> None:
        """Refuses a study in which no node of any attribute can be split, and says which epsilon would allow it."""
        classes = max(self.class_groups(study)) + 1
        branches = [len(children_of(tree)) for tree in other_trees(study, self.target_feature(study)).values()]
        if not branches:
            return
        least = classes * min(branches)
        if least <= self.most_leaves(study):
            return
        enough = self._enough_epsilon(study, least)
        hint = f"Epsilon {enough} allows one; so do" if enough else "No epsilon allows one; try"
        raise refused(
            f"{study.name} has no room for any split: the least one makes {least:,} leaves with their classes, and "
            f"theta has room for {self.most_leaves(study):,}.",
            f"{hint} fewer classes, more rows or a smaller theta.",
        )

    def _enough_epsilon(self, study: Study, cells: int) -> Decimal | None:
        """The least epsilon of two digits at which so many leaves are of use; None where there is none."""
        digits = [Decimal(number).scaleb(power) for power in range(-9, 2) for number in range(10, 100)]
        larger = [epsilon for epsilon in (*digits, Decimal(LARGEST_EPSILON)) if epsilon > study.epsilon]
        place = bisect_left(larger, x=True, key=lambda e: self.most_leaves(study, _budget_at(study, e)) >= cells)
        return larger[place].normalize() if place < len(larger) else None

    def plan(self, study: Study) -> tuple[Step, ...]:
        """The table of every other attribute with the class, then the leaves; the class alone, with all of the budget,
        where no other attribute varies.
        """
        parties, kind, sizes = study.party_names, QueryKind.SUM_MARGINALS, sizes_of(study)
        target, classes = self.target_feature(study), max(self.class_groups(study)) + 1
        others = [size for feature, size in enumerate(sizes) if feature != target]
        first, second = self.costs(study.budget)
        cells = max(classes, min(self.most_leaves(study), classes * prod(others)))
        leaves = Step("leaves", "leaves", kind, parties, second if others else study.budget, Limit(cells, 1, cells))
        if not others:
            return (leaves,)
        limit = Limit(numbers=classes * sum(others), tables=len(others), cells=classes * max(others))
        return Step("classes", "classes", kind, parties, first, limit), leaves


def other_trees(study: Study, target: int) -> dict[int, Tree]:
    """The tree of every feature but the class attribute."""
    codings, features = codings_of(study), features_of(study)
    return {f: tree_of(codings[feature.attribute]) for f, feature in enumerate(features) if f != target}


def _budget_at(study: Study, epsilon: Decimal) -> Cost:
    """The budget that the study would have with another epsilon."""
    if study.delta is None:
        return Cost.pure(epsilon)
    rho, _ = follow_rho(epsilon, study.delta, study.name)
    return Cost.concentrated(rho)
