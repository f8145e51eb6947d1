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
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from synod.common.crypto.canonical import LARGEST_INTEGER
from synod.common.study.edges import check_edges, log_edges, whole_log_edges

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


def bare_null(value: Any) -> Any:
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


def _follow_edges(data: Any) -> Any:
    """What edges say of min, max and bins, where these are not written."""
    edges = data.get("edges") if isinstance(data, dict) else None
    if not isinstance(edges, list | tuple) or len(edges) < 2:
        if edges is not None and edges != ():
            raise ValueError("edges are a list of two numbers or more")
        return data
    return {"min": edges[0], "max": edges[-1], "bins": len(edges) - 1, **data}


def _asks_for_log(data: dict[str, Any]) -> bool:
    """Whether edges shall be computed."""
    if "transform" not in data:
        return False
    if data["transform"] != "log":
        raise RuleError("transform can be `log` only", "Write `log`, or the `edges` of your own bins.")
    if data.get("edges"):
        raise RuleError("has both edges and a transform", "Keep one of them.")
    return True


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


class NamedAttribute(Strict):
    """What all attributes have."""

    name: Name
    nullable: bool = False

    @model_validator(mode="after")
    def _null_needs_nullable(self) -> "NamedAttribute":
        if getattr(self, "out_of_domain", None) == "null" and not self.nullable:
            raise ValueError("out_of_domain: null needs nullable: true")
        return self


class CategoricalAttribute(NamedAttribute):
    """A finite set of texts; a taxonomy groups them, and its leaves are the categories."""

    type: Literal["categorical"]
    categories: Categories = ()
    taxonomy: Annotated[Any, BeforeValidator(_read_taxonomy)] = None
    out_of_domain: Annotated[Literal["refuse", "null"], BeforeValidator(bare_null)] = "refuse"

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


class _Number(NamedAttribute):
    """A number whose bins have one width, or `edges`; a study without edges does not mention them."""

    @model_serializer(mode="wrap")
    def _leave_out_edges(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {key: value for key, value in written.items() if key != "edges" or value}


class IntegerAttribute(_Number):
    """Whole numbers between two public bounds, both included.

    `spikes` are values that many rows may have exactly, such as 0 or a bound: each is counted by itself and comes back
    as it is, for methods that count bins. `edges` are where bins begin, and the upper bound.
    """

    type: Literal["integer"]
    min: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    max: Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
    bins: Annotated[int, Field(ge=1, le=LARGEST_DOMAIN)] = DEFAULT_BINS
    spikes: Annotated[tuple[int, ...], BeforeValidator(_read_tuple)] = ()
    edges: Annotated[tuple[int, ...], BeforeValidator(_read_tuple)] = ()
    out_of_domain: Annotated[Literal["refuse", "clip", "null"], BeforeValidator(bare_null)] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _default_bins(cls, data: Any) -> Any:
        data = _follow_edges(data)
        if not isinstance(data, dict):
            return data
        low, high = data.get("min"), data.get("max")
        if "bins" not in data and isinstance(low, int) and isinstance(high, int):
            data = {**data, "bins": max(1, min(DEFAULT_BINS, high - low + 1))}
        if not _asks_for_log(data):
            return data
        bins, rest = data.get("bins"), {key: value for key, value in data.items() if key != "transform"}
        if isinstance(low, int) and isinstance(high, int) and isinstance(bins, int) and low < high:
            if not 1 <= bins <= min(high - low + 1, LARGEST_DOMAIN):
                raise ValueError("has more bins than values")
            rest["edges"] = tuple(whole_log_edges(low, high, bins))
        return rest

    @model_validator(mode="after")
    def _check_bounds(self) -> "IntegerAttribute":
        if self.min > self.max:
            raise ValueError("min is above max")
        if self.bins > self.max - self.min + 1:
            raise ValueError("has more bins than values")
        _check_spikes(self.spikes, self.min, self.max)
        if self.edges:
            check_edges(self.edges, self.min, self.max, self.bins)
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return True


class RealAttribute(_Number):
    """Real numbers between two public bounds, both included; `spikes` and `edges` as for integers."""

    type: Literal["real"]
    min: ExactDecimal
    max: ExactDecimal
    bins: Annotated[int, Field(ge=1, le=LARGEST_DOMAIN)] = DEFAULT_BINS
    spikes: Annotated[tuple[ExactDecimal, ...], BeforeValidator(_read_tuple)] = ()
    edges: Annotated[tuple[ExactDecimal, ...], BeforeValidator(_read_tuple)] = ()
    out_of_domain: Annotated[Literal["refuse", "clip", "null"], BeforeValidator(bare_null)] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _write_edges(cls, data: Any) -> Any:
        data = _follow_edges(data)
        if not isinstance(data, dict) or not _asks_for_log(data):
            return data
        rest = {key: value for key, value in data.items() if key != "transform"}
        bins = rest.setdefault("bins", DEFAULT_BINS)
        if "min" in data and "max" in data and isinstance(bins, int) and 1 <= bins <= LARGEST_DOMAIN:
            low, high = _read_decimal(data["min"]), _read_decimal(data["max"])
            if low <= 0 and high - low <= 1:
                raise RuleError(
                    "a logarithm needs a range above 0, or one that is wider than 1", "Give min above 0, or `edges`."
                )
            if low < high:
                rest["edges"] = tuple(log_edges(low, high, bins))
        return rest

    @model_validator(mode="after")
    def _check_bounds(self) -> "RealAttribute":
        if float(self.min) >= float(self.max):
            raise ValueError("min must be below max, by more than a double can resolve")
        _check_spikes([float(spike) for spike in self.spikes], float(self.min), float(self.max))
        if self.edges:
            check_edges(self.edges, self.min, self.max, self.bins)
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return True


PlainAttribute = CategoricalAttribute | IntegerAttribute | RealAttribute
