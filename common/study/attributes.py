"""Attributes of every type: those of the schema module, dates and booleans.

A date is counted by day, month or year of the calendar, and comes back as a date; a boolean is read from whatever
spelling a table has, and comes back in one. For codes both are what the schema has already: `plain` gives it.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from synod.common.study.schema import (
    LARGEST_DOMAIN,
    CategoricalAttribute,
    IntegerAttribute,
    NamedAttribute,
    PlainAttribute,
    RealAttribute,
    bare_null,
)


class DaysAttribute(IntegerAttribute):
    """A date as codes are made of it, whole days since 1970-01-01; never written in a study."""


class TruthAttribute(CategoricalAttribute):
    """A boolean as codes are made of it, two categories; never written in a study."""


def _read_date(value: Any) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value) if len(value) == 10 else _read_date(None)
        except ValueError:
            value = None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError("must be a date such as 2026-01-31")
    return value


IsoDate = Annotated[
    date, BeforeValidator(_read_date), PlainSerializer(date.isoformat, return_type=str, when_used="always")
]
FIRST_DAY = date(1970, 1, 1)


class DateAttribute(NamedAttribute):
    """Dates between two public bounds, both included, counted by day, month or year of the calendar."""

    type: Literal["date"]
    min: IsoDate
    max: IsoDate
    bins: Literal["day", "month", "year"] = "month"
    out_of_domain: Annotated[Literal["refuse", "clip", "null"], BeforeValidator(bare_null)] = "refuse"

    @model_validator(mode="after")
    def _check_bounds(self) -> "DateAttribute":
        if self.min > self.max:
            raise ValueError("min is after max")
        if self.bins == "day" and (self.max - self.min).days >= LARGEST_DOMAIN:
            raise ValueError(f"has more than {LARGEST_DOMAIN} bins")
        return self

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return True


class BooleanAttribute(NamedAttribute):
    """True or false, however a table spells it."""

    type: Literal["boolean"]
    out_of_domain: Annotated[Literal["refuse", "null"], BeforeValidator(bare_null)] = "refuse"

    @property
    def is_numeric(self) -> bool:
        """Whether values have an order and a distance."""
        return False


Attribute = Annotated[PlainAttribute | DateAttribute | BooleanAttribute, Field(discriminator="type")]


@lru_cache(maxsize=1024)
def _plain_twin(attribute: DateAttribute | BooleanAttribute) -> PlainAttribute:
    same = {"name": attribute.name, "nullable": attribute.nullable, "out_of_domain": attribute.out_of_domain}
    if isinstance(attribute, BooleanAttribute):
        return TruthAttribute.model_validate({**same, "type": "categorical", "categories": ("false", "true")})
    low, high = ((day - FIRST_DAY).days for day in (attribute.min, attribute.max))
    starts = [(day - FIRST_DAY).days for day in _calendar_starts(attribute)]
    bins = {"bins": high - low + 1} if attribute.bins == "day" else {"edges": (*starts, high)}
    if low == high:
        bins = {"bins": 1}
    return DaysAttribute.model_validate({**same, "type": "integer", "min": low, "max": high, **bins})


def _calendar_starts(attribute: DateAttribute) -> Iterator[date]:
    """The first day, and those on which a further month or year begins."""
    yield attribute.min
    for year in range(attribute.min.year, attribute.max.year + 1):
        for month in range(1, 13) if attribute.bins == "month" else (1,):
            if attribute.min < date(year, month, 1) <= attribute.max:
                yield date(year, month, 1)


def plain(attribute: Attribute) -> PlainAttribute:
    """The attribute as codes are made of it: a date is whole days, with edges, and a boolean two categories."""
    if isinstance(attribute, DateAttribute | BooleanAttribute):
        return _plain_twin(attribute)
    return attribute


def name_day(day: int) -> str:
    """A day, as days since the first of 1970, as a date."""
    return (FIRST_DAY + timedelta(day)).isoformat()


def first_whole(attribute: IntegerAttribute, place: int) -> int:
    """The first number of a bin; of the bin after the last, the one after the last number."""
    if attribute.edges:
        return attribute.max + 1 if place == attribute.bins else attribute.edges[place]
    return attribute.min - (-place * (attribute.max - attribute.min + 1) // attribute.bins)


def first_real(attribute: RealAttribute, place: int) -> Decimal:
    """Where a bin begins; of the bin after the last, where the last one ends."""
    if attribute.edges:
        return attribute.edges[place]
    return attribute.min + place * ((attribute.max - attribute.min) / attribute.bins)


def varies(attribute: Attribute, *, binned: bool = False) -> bool:
    """Whether the public domain leaves anything open; `binned`, for methods that see a number's bin only."""
    attribute = plain(attribute)
    if isinstance(attribute, CategoricalAttribute):
        return attribute.nullable or len(attribute.categories) > 1
    one_code = binned and attribute.bins == 1 and not attribute.spikes
    return attribute.nullable or (attribute.min != attribute.max and not one_code)
