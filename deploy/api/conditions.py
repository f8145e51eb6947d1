"""Conditions on rows: what `given` may say of a column, which codes that leaves open, and which rows satisfy it.

The codes narrow a draw down; whether a row satisfies a condition is decided by its values, so a range may cut through
bins.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.attributes import FIRST_DAY, Attribute, TruthAttribute
from synod.common.study.encoding import Coding, codings_of, decode_numbers, encode_numbers
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, RealAttribute
from synod.common.study.study import Study

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Condition:
    """One of some `values`, None among them for a missing value; or a number of a closed `span`."""

    name: str
    values: tuple[Any, ...] = ()
    span: tuple[Any, Any] | None = None

    def select(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Which rows of a column of values satisfy it."""
        if self.span is not None:
            low, high = (None if end is None else self._scalar(end, column.type) for end in self.span)
            inside = pc.is_valid(column)
            for end, compare in ((low, pc.greater_equal), (high, pc.less_equal)):
                inside = inside if end is None else pc.and_(inside, pc.fill_null(compare(column, end), False))
            return inside
        known = [self._scalar(value, column.type) for value in self.values if value is not None]
        held = pc.is_in(column, value_set=pa.array([one.as_py() for one in known], column.type))
        return pc.or_(held, pc.is_null(column)) if None in self.values else pc.and_(held, pc.is_valid(column))

    def _scalar(self, value: Any, kind: pa.DataType) -> pa.Scalar:
        """A value in the column's type; a bound of whole numbers may be a fraction."""
        if self.span is not None and pa.types.is_integer(kind) and isinstance(value, float):
            kind = pa.float64()
        try:
            return pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError):
            raise invalid(
                f"a value in the condition on {self.name} is not one of its type.",
                "Write texts for categories and numbers for numbers.",
            ) from None

    def allow(self, coding: Coding) -> Mask | None:
        """Codes that may satisfy it, all others cannot; None where every code may."""
        attribute = coding.attribute
        allowed = np.zeros(coding.size, dtype=bool)
        if attribute.nullable and None in self.values:
            allowed[coding.null_code] = True
        if isinstance(attribute, CategoricalAttribute):
            for value in self.values:
                if value is not None:
                    allowed[_find_category(attribute, value)] = True
        elif isinstance(attribute, IntegerAttribute | RealAttribute):
            spans = [(value, value) for value in self.values if value is not None]
            for low, high in [*spans, *([self.span] if self.span is not None else [])]:
                allowed[: coding.value_codes] |= _within(self, coding, low, high)
        else:
            return None
        if not allowed.any():
            raise invalid(f"no value of {self.name} satisfies its condition.", "See the study's schema.")
        return allowed


def read_conditions(study: Study, given: Mapping[str, Any]) -> list[Condition]:
    """The conditions of a mapping of columns to a value, a list of values, or a tuple of two bounds."""
    known = {attribute.name: attribute for attribute in study.attributes}
    conditions = []
    for name, wanted in given.items():
        if name not in known:
            raise invalid(f"there is no column {name!r}.", f"The columns are {', '.join(known)}.")
        conditions.append(_read_condition(known[name], wanted))
    return conditions


def _read_condition(attribute: Attribute, wanted: Any) -> Condition:
    name = attribute.name
    if isinstance(wanted, tuple):
        if attribute.type in ("categorical", "boolean") or len(wanted) != 2:
            raise invalid(
                f"the condition on {name} is a tuple, which stands for the two bounds of a number or date.",
                "Write a list for one of several values.",
            )
        low, high = (_read_value(attribute, end) for end in wanted)
        return Condition(name, span=(low, high))
    if isinstance(wanted, list | set | frozenset | range | np.ndarray):
        if not len(wanted):
            raise invalid(f"the condition on {name} has no value.", "Leave it out, or list the values.")
        return Condition(name, tuple(_read_value(attribute, value) for value in wanted))
    return Condition(name, (_read_value(attribute, wanted),))


def _read_value(attribute: Attribute, value: Any) -> Any:
    """A value as a table has it. Booleans and dates may also be written as in a CSV file."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or attribute.type not in ("boolean", "date"):
        return value
    if attribute.type == "boolean":
        value = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise invalid(f"a value in the condition on {attribute.name} is no boolean.", "Write True or False.")
        return value
    with suppress(ValueError):
        value = date.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, date):
        raise invalid(f"a value in the condition on {attribute.name} is no date.", "Write 2026-01-31, or a date.")
    return value.date() if isinstance(value, datetime) else value


def allow_codes(study: Study, conditions: Sequence[Condition]) -> list[Mask | None]:
    """For each attribute the codes that its condition leaves open; None where it has none."""
    named = {condition.name: condition for condition in conditions}
    codings = codings_of(study)
    return [
        named[coding.attribute.name].allow(coding) if coding.attribute.name in named else None for coding in codings
    ]


def select_rows(table: pa.Table, conditions: Sequence[Condition]) -> pa.Table:
    """The rows that satisfy all conditions."""
    for condition in conditions:
        table = table.filter(condition.select(table.column(condition.name)))
    return table


def _find_category(attribute: CategoricalAttribute, value: Any) -> int:
    if isinstance(attribute, TruthAttribute):
        return attribute.categories.index("true" if value else "false")
    if value not in attribute.categories:
        raise invalid(
            f"a value in the condition on {attribute.name} is none of its categories.",
            f"They are {', '.join(attribute.categories[:20])}{', ...' * (len(attribute.categories) > 20)}.",
        )
    return attribute.categories.index(value)


def _number(value: Any) -> float:
    """A date is the days since 1970, as it is encoded."""
    return float((value - FIRST_DAY).days if isinstance(value, date) else value)


def _within(condition: Condition, coding: Coding, low: Any, high: Any) -> Mask:
    """The codes of values, some of which are in a range."""
    attribute = coding.attribute
    assert isinstance(attribute, IntegerAttribute | RealAttribute)
    least, most = float(attribute.min), float(attribute.max)
    try:
        first = least if low is None else max(least, _number(low))
        last = most if high is None else min(most, _number(high))
    except (TypeError, ValueError):
        raise _not_a_number(condition) from None
    if not first <= last:
        return np.zeros(coding.value_codes, dtype=bool)
    if coding.levels is not None or coding.is_constant:
        every = np.arange(coding.value_codes).astype(coding.dtype)
        numbers = decode_numbers(coding, every, coins=Coins(bytes(KEY_BYTES)))  # nothing is drawn for levels
        return np.asarray((numbers >= first) & (numbers <= last))
    ends = encode_numbers(Coding(attribute, None), np.array([first, last])).astype(np.int64)
    bins = np.arange(attribute.bins)
    spikes = np.array(coding.spikes)
    return np.concatenate([(bins >= ends[0]) & (bins <= ends[1]), (spikes >= first) & (spikes <= last)])


def _not_a_number(condition: Condition) -> SynodError:
    return invalid(f"a value in the condition on {condition.name} is not a number.", "Write numbers for numbers.")
