"""What all methods that learn a Bayesian network share: their keys, and how large their tables and queries may be.

The limits here are a part of the plan, hence rules of a method's `version`: a study that was planned under one of them
is verified by it for ever. Another rule is another function, for another version.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, comb, prod
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field

from synod.common.models.candidates import Score, shortlist_length
from synod.common.models.usefulness import LARGEST_TABLE, largest_table
from synod.common.protocol.steps import Limit
from synod.common.runtime.errors import invalid
from synod.common.study.encoding import codings_of
from synod.common.study.features import FeatureSpace, base_count, base_sizes, chains_of, sizes_of
from synod.common.study.schema import ExactDecimal
from synod.common.study.study import FeatureEncoding, Method, Study

T = TypeVar("T")
Auto = Literal["auto"]
Cells = Annotated[int, Field(ge=0, le=1 << 16)]
FlatEncoding = Literal["vanilla", "binary", "gray"]  # of methods whose candidates are features as they are


def list_to_tuple(value: Any) -> Any:
    """Lists from YAML and JSON become tuples."""
    return tuple(value) if isinstance(value, list) else value


Parts = Annotated[tuple[ExactDecimal, ...], BeforeValidator(list_to_tuple)]


class NetworkMethod(Method):
    """The keys that every network method has."""

    score: Literal[Auto, Score] = "auto"
    encoding: Literal[Auto, FeatureEncoding] = "auto"
    max_candidates: Annotated[int, Field(ge=100, le=2_000_000)] = 500_000

    # What `auto` is where an attribute has more than two values; elsewhere every encoding has the same features.
    usual_encoding: ClassVar[FeatureEncoding] = "binary"

    @property
    def feature_encoding(self) -> FeatureEncoding:
        """The encoding as written; `auto` stands for the usual one."""
        return self.usual_encoding if self.encoding == "auto" else self.encoding

    def chosen_encoding(self, study: Study) -> FeatureEncoding:
        """What a resolved study writes: where every attribute has two values, `auto` is binary."""
        plain = all(coding.size <= 2 for coding in codings_of(study))
        return "binary" if plain and self.encoding == "auto" else self.feature_encoding

    @property
    def chosen_score(self) -> Score:
        """The score of a resolved study."""
        return resolved(self.score)

    def common_keys(self, study: Study) -> dict[str, object]:
        """The resolved values of the keys above: F is for binary features, R for others."""
        encoding = self.chosen_encoding(study)
        features = FeatureSpace(codings_of(study), encoding).features
        is_binary = all(feature.size == 2 for feature in features if not feature.level)
        if self.score == "F" and not is_binary:
            raise invalid("the score F is of binary features; it needs the encoding binary or gray.")
        best: Score = "F" if is_binary else "R"
        return {"encoding": encoding, "score": best if self.score == "auto" else self.score}

    def parents_limit(self, study: Study) -> int | None:
        """The most parents that a query names; None where cells alone decide."""
        del study
        return None

    def choice_limit(self, study: Study, cells: int, draws: int) -> Limit:
        """The largest query of a step that draws parents. Where attributes have levels, how many candidates are few
        enough is known only when the first feature is, so the options themselves are limited.
        """
        sizes = base_sizes(study)
        draws = len(sizes) - 1 if study.may_lose else draws  # those of a lost party go to others
        has_levels = len(sizes) < len(sizes_of(study))
        most = self.parents_limit(study)
        shortlist = len(sizes) - 1 if has_levels else shortlist_length(sizes, cells, self.max_candidates, most)
        options = self.max_candidates if has_levels else 0
        return Limit(
            cells, draws, cells, candidates=shortlist, parents=most or 0, options=options, score=self.chosen_score
        )


class DegreeMethod(NetworkMethod):
    """A network whose features have at most `degree` parents; null leaves that to the cells. With 0 none has any."""

    degree: Annotated[int, Field(ge=0, le=32)] | None = None

    def parents_limit(self, study: Study) -> int | None:
        """The most parents that a query names; None where cells alone decide."""
        return None if self.degree is None or self.degree >= most_parents(study) else self.degree


def resolved(value: T | Auto) -> T:
    """A key's value in a resolved study."""
    assert value != "auto", "only a resolved study is planned"
    return value


def check_cells(cells: int, study: Study) -> int:
    """The most cells of a table, as a study writes them; refused where a table has nobody to be a parent."""
    if cells and len(base_sizes(study)) < 2:
        raise invalid(
            f"{study.name} has a single feature, which has no parents, so its tables cannot be sized.",
            "Leave the number of cells out, or write 0.",
        )
    return cells


def most_parents(study: Study) -> int:
    """How many parents a feature can have at all: all others, and no more than the largest table has room for."""
    return min(base_count(study) - 1, LARGEST_TABLE.bit_length() - 2)


def sum_shares(study: Study) -> Fraction:
    """K/(K-t), times the square of a unit's rows: the variance of an encrypted sum's noise, in units of one full share
    for one row.
    """
    parties = len(study.roster)
    return own_shares(study, 1) * Fraction(parties, parties - study.collusion)


def own_shares(study: Study, answers: int) -> Fraction:
    """The same of so many parties' own noise, added up."""
    return Fraction(answers * study.max_rows_per_unit**2)


def share_draws(study: Study) -> tuple[int, ...]:
    """How many features each party adds to a network that the parties begin in turn, in proportion to its rows.

    Why: a party's score moves by s / n_k, so that a draw has the exponent epsilon n_k / (2 s c_k) for each unit of the
    score; with c_k in proportion to n_k that is the exponent of the same draw over all rows in one place.
    """
    return share_by_rows(base_count(study) - 1, [entry.rows for entry in study.roster])


def share_by_rows(draws: int, rows: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers of draws in proportion to rows, by largest remainder; of equals, the first get one more."""
    whole = sum(rows)
    shares = [draws * own // whole for own in rows]
    order = sorted(range(len(rows)), key=lambda i: (-(draws * rows[i] % whole), i))
    lucky = order[: draws - sum(shares)]
    return tuple(share + (i in lucky) for i, share in enumerate(shares))


def useful_sum_table(study: Study, share: Decimal | Fraction, theta: Decimal) -> int:
    """The most cells of a theta-useful table of a network, asked in one sum with this share of the budget; 0 if no
    table with a parent is.
    """
    return largest_table(
        base_sizes(study),
        rows=study.total_rows,
        cost=study.budget.share(share),
        theta=theta,
        shares=sum_shares(study),
        nested=True,
        coarsest=coarsest_sizes(study),
    )


def coarsest_sizes(study: Study) -> tuple[int, ...]:
    """The fewest values that each base feature has as a parent."""
    sizes = sizes_of(study)
    return tuple(sizes[chain[-1]] for chain in chains_of(study))


def tables_limit(study: Study, cells: int) -> Limit:
    """One table for each feature with its parents; a feature alone may have more cells than `cells`."""
    sizes = base_sizes(study)
    largest = max(cells, *sizes)
    numbers = sum(max(cells, size) for size in sizes) if cells else sum(sizes)
    return Limit(numbers=numbers, tables=len(sizes), cells=largest)


def views_limit(study: Study, max_cells: int, *, whole_pairs: bool = True, overlapping: bool = False) -> Limit:
    """Views that cover every pair of features.

    A view of l features has at most min(max_cells, the product of the l largest sizes) cells; a pair may have more
    where `whole_pairs` are asked. Every pair lies in one view, so a view covers l (l-1) / 2 pairs that no other covers;
    views that overlap are grown by features that each add a pair, so they cover at least l - 1 pairs that none before
    does. That is so many cells a pair, at most.
    """
    sizes = sorted(base_sizes(study), reverse=True)
    pairs = comb(len(sizes), 2)
    largest_pair = sizes[0] * sizes[1] if whole_pairs else min(max_cells, sizes[0] * sizes[1])
    largest = max(max_cells, largest_pair)
    per_pair = Fraction(largest_pair)
    for width in range(3, len(sizes) + 1):
        new = width - 1 if overlapping else comb(width, 2)
        per_pair = max(per_pair, Fraction(min(max_cells, prod(sizes[:width])), new))
        if prod(sizes[:width]) > max_cells:
            break
    return Limit(numbers=ceil(per_pair * pairs), tables=pairs, cells=largest)


def check_parts(parts: tuple[Decimal, ...], count: int) -> None:
    """Refuses shares that are not `count` positive ones within 1."""
    if len(parts) != count or any(part <= 0 for part in parts) or sum(map(Fraction, parts)) > 1:
        raise ValueError(f"split must be {count} positive shares that add up to at most 1")


def check_theta(theta: Decimal, key: str = "theta") -> None:
    """Refuses a theta that is not positive."""
    if theta <= 0:
        raise ValueError(f"{key} must be above 0")
