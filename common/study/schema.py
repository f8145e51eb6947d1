"""The schema: each attribute with its public domain. Domains are public input, never read from data.

Outside text enters here, so these are pydantic models; they are frozen and serve as values inside, too.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from synod.common.crypto.canonical import LARGEST_INTEGER

LARGEST_DOMAIN = 65_000
DEFAULT_BINS = 16
MOST_SPIKES = 16
DEEPEST_TAXONOMY = 32
MOST_DIGITS = 60


class Strict(BaseModel):
    """Frozen, and without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def write_decimal(number: Decimal) -> str:
    """The one way to write an exact decimal: no exponent, no trailing zeros."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def write_delta(delta: Decimal) -> str:
    """A delta as people write it, such as 1e-9."""
    return str(delta.normalize()).lower()


class RuleError(ValueError):
    """A broken rule that says itself what to do about it; the hint is a sentence of its own."""

    def __init__(self, rule: str, hint: str) -> None:
        super().__init__(rule)
        self.hint = hint


def _read_decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError("must be a decimal number")
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise ValueError("must be a decimal number") from None
    if not number.is_finite() or abs(number.adjusted()) > 30 or len(number.as_tuple().digits) > MOST_DIGITS:
        raise ValueError(f"must be a decimal number of reasonable size and at most {MOST_DIGITS} digits")
    return number


ExactDecimal = Annotated[
    Decimal,
    BeforeValidator(_read_decimal),
    PlainSerializer(write_decimal, return_type=str, when_used="always"),
]


def _check_name(name: str) -> str:
    if not name or name != name.strip() or not name.isprintable() or not _is_unicode(name) or len(name) > 200:
        raise ValueError("a name is 1 to 200 printable characters without spaces around it")
    return name


Name = Annotated[str, AfterValidator(_check_name)]


def _read_categories(value: Any) -> Any:
    """Lists from YAML and JSON become tuples; a bare 0 or yes is not text, and is refused rather than guessed."""
    if not isinstance(value, list | tuple):
        raise ValueError("is a list of texts")
    return _read_tree(value, 0)


def _bare_null(value: Any) -> Any:
    """YAML reads an unquoted `null` as nothing; here it is a word."""
    return "null" if value is None else value


def _read_tree(value: Any, depth: int) -> Any:
    if depth > DEEPEST_TAXONOMY:
        raise ValueError(f"is nested more than {DEEPEST_TAXONOMY} deep")
    if isinstance(value, list | tuple):
        return tuple(_read_tree(item, depth + 1) for item in value)
    if not isinstance(value, str):
        shown = "a mapping" if isinstance(value, dict) else repr(value)
        raise RuleError(f"{shown} is not text", "Put it in quotes.")
    if not _is_unicode(value):
        raise ValueError("holds half of a character")
    return value


def _is_unicode(text: str) -> bool:
    """Whether the text can be written at all; JSON and YAML let a lone surrogate through."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _read_taxonomy(value: Any) -> Any:
    if value is not None and not isinstance(value, list | tuple):
        raise ValueError("a taxonomy is a list of texts and lists")
    return None if value is None else _read_categories(value)


def _read_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check_spikes(spikes: Sequence[float], low: float, high: float) -> None:
    if len(spikes) > MOST_SPIKES:
        raise ValueError(f"has more than {MOST_SPIKES} spikes")
    if any(a >= b for a, b in pairwise(spikes)) or not all(low <= spike <= high for spike in spikes):
        raise ValueError("spikes are values between min and max, each once and in ascending order")


Categories = Annotated[tuple[str, ...], BeforeValidator(_read_categories)]


def _leaves(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    else:
        for branch in tree:
            yield from _leaves(branch)


class _Attribute(Strict):
    name: Name
    nullable: bool = False

    @model_validator(mode="after")
    def _null_needs_nullable(self) -> "_Attribute":
        if getattr(self, "out_of_domain", None) == "null" and not self.nullable:
            raise ValueError("out_of_domain: null needs nullable: true")
        return self


class CategoricalAttribute(_Attribute):
    """A finite set of texts; a taxonomy groups them, and its leaves are the categories."""

    type: Literal["categorical"]
    categories: Categories = ()
    taxonomy: Annotated[Any, BeforeValidator(_read_taxonomy)] = None
    out_of_domain: Annotated[Literal["refuse", "null"], BeforeValidator(_bare_null)] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _leaves_are_categories(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("taxonomy") is not None:
            leaves = tuple(_leaves(_read_taxonomy(data["taxonomy"])))
            if "categories" in data and _read_categories(data["categories"]) != leaves:
                raise RuleError("its categories are not the taxonomy's leaves", "Give categories or a taxonomy.")
            return {**data, "categories": leaves}
        return data

    @model_validator(mode="after")
    def _check_categories(self) -> "CategoricalAttribute":
        if not self.categories:
            raise ValueError("has no categories")
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("a category appears twice")
        if not all(self.categories):
            raise RuleError("an empty text is how CSV writes a missing value", "Use `nullable: true` for it.")
        if len(self.categories) > LARGEST_DOMAIN:
            raise ValueError(f"has more than {LARGEST_DOMAIN} categories")
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return False


class IntegerAttribute(_Attribute):
    """Whole numbers between two public bounds, both included.

    `spikes` are values that many rows may have exactly, such as 0 or a bound: each is counted by itself and comes back
    as it is, for methods that count bins.
    """

    type: Literal["integer"]
    min: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    max: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    bins: Annotated[int, Field(ge=1, le=LARGEST_DOMAIN)] = DEFAULT_BINS
    spikes: Annotated[tuple[int, ...], BeforeValidator(_read_tuple)] = ()
    out_of_domain: Annotated[Literal["refuse", "clip", "null"], BeforeValidator(_bare_null)] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _default_bins(cls, data: Any) -> Any:
        if isinstance(data, dict) and "bins" not in data:
            low, high = data.get("min"), data.get("max")
            if isinstance(low, int) and isinstance(high, int):
                return {**data, "bins": max(1, min(DEFAULT_BINS, high - low + 1))}
        return data

    @model_validator(mode="after")
    def _check_bounds(self) -> "IntegerAttribute":
        if self.min > self.max:
            raise ValueError("min is above max")
        if self.bins > self.max - self.min + 1:
            raise ValueError("has more bins than values")
        _check_spikes(self.spikes, self.min, self.max)
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return True


class RealAttribute(_Attribute):
    """Real numbers between two public bounds, both included; `spikes` as for integers."""

    type: Literal["real"]
    min: ExactDecimal
    max: ExactDecimal
    bins: Annotated[int, Field(ge=1, le=LARGEST_DOMAIN)] = DEFAULT_BINS
    spikes: Annotated[tuple[ExactDecimal, ...], BeforeValidator(_read_tuple)] = ()
    out_of_domain: Annotated[Literal["refuse", "clip", "null"], BeforeValidator(_bare_null)] = "refuse"

    @model_validator(mode="after")
    def _check_bounds(self) -> "RealAttribute":
        if float(self.min) >= float(self.max):
            raise ValueError("min must be below max, by more than a double can resolve")
        _check_spikes([float(spike) for spike in self.spikes], float(self.min), float(self.max))
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return True


Attribute = Annotated[CategoricalAttribute | IntegerAttribute | RealAttribute, Field(discriminator="type")]


def varies(attribute: Attribute, *, binned: bool = False) -> bool:
    """Whether the public domain leaves anything open; `binned`, for methods that see a number's bin only."""
    if isinstance(attribute, CategoricalAttribute):
        return attribute.nullable or len(attribute.categories) > 1
    one_code = binned and attribute.bins == 1 and not attribute.spikes
    return attribute.nullable or (attribute.min != attribute.max and not one_code)
