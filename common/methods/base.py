"""The methods that a study may name, each with its own documented keys and defaults."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from synod.common.study.schema import ExactDecimal, Strict

METHODS = ("hpdp-dp", "dp-subn", "dp-ccbn", "independent")
LATER_METHODS = ("privbayes", "hpprivbayes", "dpcocgen", "histogram")
Encoding = Literal["auto", "binary", "gray", "vanilla"]
Score = Literal["auto", "F", "R", "I"]
PAPER_SPLIT = (Decimal("0.25"),) * 4
BEST_SPLITS = {  # measured by bench/utility.py on NLTCS, K = 3, t = 0
    "sequential": (Decimal("0.2"), Decimal("0.05"), Decimal("0.15"), Decimal("0.6")),
    "joint": (Decimal("0.3"), Decimal("0.02"), Decimal("0.3"), Decimal("0.38")),
}


def _list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Parts = Annotated[tuple[ExactDecimal, ...], BeforeValidator(_list_to_tuple)]


class HpdpDp(Strict):
    """HPDP-DP: noisy pooled moments, principal components, rows drawn from the model."""

    name: Literal["hpdp-dp"]
    contribution: ExactDecimal = Decimal("0.9")
    levels: Literal[256, 512, 1024] = 256
    link: Literal["copula", "linear"] = "copula"

    @model_validator(mode="after")
    def _check_contribution(self) -> "HpdpDp":
        if not 0 < self.contribution <= 1:
            raise ValueError("contribution must be above 0 and at most 1")
        return self


class _Network(Strict):
    """What all methods that learn a Bayesian network share."""

    score: Score = "auto"
    encoding: Encoding = "auto"
    max_candidates: Annotated[int, Field(ge=100, le=10_000_000)] = 500_000

    @model_validator(mode="after")
    def _check_score(self) -> "_Network":
        if self.score == "F" and self.encoding == "vanilla":
            raise ValueError("the score F is of binary features; it needs the encoding binary or gray")
        return self

    @property
    def resolved_encoding(self) -> str:
        """`auto` is binary, the papers' encoding."""
        return "binary" if self.encoding == "auto" else self.encoding


class DpSubn(_Network):
    """DP-SUBN: noisy correlations, a network begun by the parties in turn, updated inside a search frontier.

    `split` are the shares of epsilon for correlations, initialization, update and parameters.
    """

    name: Literal["dp-subn"]
    split: Literal["best", "paper"] | Parts = "best"
    theta: ExactDecimal = Decimal(6)
    theta_frontier: ExactDecimal = Decimal(2)
    update: Literal["sequential", "joint"] = "sequential"
    max_view_cells: Annotated[int, Field(ge=4, le=1_000_000)] = 4096

    @model_validator(mode="after")
    def _check_split(self) -> "DpSubn":
        _check_parts(self.parts, 4)
        _check_theta(self.theta)
        _check_theta(self.theta_frontier)
        return self

    @property
    def parts(self) -> tuple[Decimal, ...]:
        """The four shares of epsilon."""
        if isinstance(self.split, tuple):
            return self.split
        return PAPER_SPLIT if self.split == "paper" else BEST_SPLITS[self.update]


class DpCcbn(_Network):
    """DP-CCBN: every candidate table of every iteration through an encrypted sum; a baseline."""

    name: Literal["dp-ccbn"]
    split: Parts = (Decimal("0.5"), Decimal("0.5"))
    theta: ExactDecimal = Decimal(6)

    @model_validator(mode="after")
    def _check_split(self) -> "DpCcbn":
        _check_parts(self.split, 2)
        _check_theta(self.theta)
        return self


class Independent(_Network):
    """Independent: PrivBayes at each party, on its own rows; the union of the samples. A baseline."""

    name: Literal["independent"]
    beta: ExactDecimal = Decimal("0.3")
    theta: ExactDecimal = Decimal(4)

    @model_validator(mode="after")
    def _check_beta(self) -> "Independent":
        if not 0 < self.beta < 1:
            raise ValueError("beta must be above 0 and below 1")
        _check_theta(self.theta)
        return self


def _check_parts(parts: tuple[Decimal, ...], count: int) -> None:
    if len(parts) != count or any(part <= 0 for part in parts) or sum(parts) > 1:
        raise ValueError(f"split must be {count} positive shares that add up to at most 1")


def _check_theta(theta: Decimal) -> None:
    if theta <= 0:
        raise ValueError("theta must be above 0")


def _known_method(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    name = value.get("name")
    if name in LATER_METHODS:
        raise ValueError(f"the method {name} is not in this version; see `synod study check --help`")
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}")
    return value


Method = Annotated[
    Annotated[HpdpDp | DpSubn | DpCcbn | Independent, Field(discriminator="name")], BeforeValidator(_known_method)
]
NetworkMethod = DpSubn | DpCcbn | Independent
