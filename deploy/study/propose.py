"""What `synod study draft` proposes for a column: its type, domain, bins and transform; or to leave it out; or nothing.

These are proposals out of real rows, for a person to replace by public knowledge. None of it decides codes or privacy.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from synod.common.study.attributes import FIRST_DAY
from synod.common.study.schema import write_decimal
from synod.deploy.study.profile import Counted, Profile, T
from synod.party.table.text import FALSE, TRUE

MOST_CATEGORIES = 60
MOST_LISTED = 40  # of many categories, those that are offered as an alternative
FEW_ROWS = 20  # below, rows say nothing of what is usual
FEW_VALUES = 20
FENCE, FENCE_OF_LOGS = 10, 3
MOST_OUTLIERS = 0.01
MOST_JUNK = 0.05
LONG_TAIL = 8
SPIKE = 0.1
ID_NAME = re.compile(r"(^|[^a-z])(id|no|nr|nummer|number|key|uuid|guid|mrn|ssn|code)$|(?<=[a-z])Id$|ID$")
SENTINEL = re.compile(r"-?9{2,}|-1|-9")
SPELLINGS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
ROWS = "read from rows"


@dataclass(slots=True)
class Proposal:
    """An attribute as it is drafted: its keys in order, a note beside some of them, and remarks above.

    `left_out` says why a column should not be published. `undecided` says what only a person can decide; `instead` are
    keys that would settle it.
    """

    name: str
    keys: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    left_out: str = ""
    undecided: str = ""
    instead: dict[str, Any] = field(default_factory=dict)

    def from_rows(self, **keys: Any) -> "Proposal":
        """Adds keys that were read from rows, which need a public justification."""
        self.keys |= keys
        self.notes |= dict.fromkeys(keys, ROWS)
        return self


def propose(profile: Profile, *, is_order_open: bool) -> Proposal:
    """A proposal for one column."""
    proposal = _propose(profile, is_order_open=is_order_open)
    if profile.missing and not proposal.left_out:
        proposal.keys.setdefault("nullable", True)
    return proposal


def _propose(profile: Profile, *, is_order_open: bool) -> Proposal:
    texts, rows = profile.texts(), profile.rows
    if rows == 0:
        return Proposal(profile.name, left_out="it has no values")
    spelled = {text.strip().lower() for text in texts}
    if any(spelled <= spelling for spelling in SPELLINGS):
        return Proposal(profile.name, {"name": profile.name, "type": "boolean"})
    days, no_days = profile.days()
    if days and _is_little(no_days, rows):
        return _note_junk(_propose_dates(profile.name, days), no_days, "dates")
    if is_order_open and all(re.fullmatch(r"\s*[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{4}.*", text) for text in texts):
        keys = {"name": profile.name, "type": "date", "min": None, "max": None}
        return Proposal(
            profile.name, keys, undecided="dates may have the day or the month first. Write them as 2026-01-31, or set "
            "`date_order` in the party's `format`, and give the bounds",
        )  # fmt: skip
    numbers, no_numbers = profile.numbers()
    if numbers and _is_little(no_numbers, rows) and not any(re.match(r"\s*0[0-9]", text) for text in texts):
        return _note_junk(_propose_numbers(profile, numbers), no_numbers, "numbers")
    return _propose_texts(profile, texts)


def _is_little(rest: Mapping[str, int], rows: int) -> bool:
    """Whether what cannot be read is so little that it is a flaw of the table."""
    return sum(rest.values()) <= (MOST_JUNK * rows if rows >= FEW_ROWS else 0)


def _note_junk(proposal: Proposal, rest: Mapping[str, int], what: str) -> Proposal:
    if rest and not proposal.left_out:
        proposal.remarks.append(
            f"{sum(rest.values())} rows hold no {what}. Correct them, or add their texts to `nulls` in `format`"
        )
    return proposal


# Texts


def _propose_texts(profile: Profile, texts: Mapping[str, int]) -> Proposal:
    name, rows = profile.name, profile.rows
    average = sum(len(text) * count for text, count in texts.items()) / rows
    has_words = sum(count for text, count in texts.items() if " " in text.strip()) > rows / 2
    if rows >= FEW_ROWS and (profile.is_full or len(texts) > rows / 2):
        why = "free text" if has_words and average > 12 else "an identifier, or free text"
        return Proposal(name, left_out=f"it looks like {why}: most rows have a value of their own")
    if rows >= FEW_ROWS and average > 25 and has_words and len(texts) > MOST_CATEGORIES:
        return Proposal(name, left_out="it looks like free text")
    keys: dict[str, Any] = {"name": name, "type": "categorical"}
    if len(texts) <= MOST_CATEGORIES:
        return Proposal(name, keys).from_rows(categories=sorted(texts))
    frequent = sorted(sorted(texts, key=lambda text: (-texts[text], text))[:MOST_LISTED])
    covered = sum(texts[text] for text in frequent) / rows
    return Proposal(
        name,
        {**keys, "categories": []},
        undecided=f"{len(texts)} different values. List the public ones, group them by a `taxonomy`, remove the "
        f"column, or take the lines below: the {MOST_LISTED} most frequent, {covered:.0%} of the rows, and all others "
        "missing",
        instead={"categories": frequent, "nullable": True, "out_of_domain": "null"},
    )


# Numbers and dates


def _propose_numbers(profile: Profile, numbers: Counted[Decimal]) -> Proposal:
    name, rows = profile.name, profile.rows
    is_whole = all(number == number.to_integral_value() for number, _ in numbers)
    distinct = len({number for number, _ in numbers})
    low, high = numbers[0][0], numbers[-1][0]
    if is_whole and rows >= FEW_ROWS and distinct > 0.9 * rows and not profile.is_full:
        runs = high - low + 1 <= 2 * rows
        if runs or ID_NAME.search(name) or ID_NAME.search(name.lower()):
            return Proposal(name, left_out="it looks like an identifier: almost every row has a number of its own")
    proposal = Proposal(name, {"name": name, "type": "integer" if is_whole else "real"})
    if rows < FEW_ROWS or (is_whole and high - low <= FEW_VALUES):
        return proposal.from_rows(min=_written(low), max=_written(high))
    kept, outside = _fence(numbers)
    is_skewed = _has_long_tail(kept)
    if outside:
        _settle_outliers(proposal, outside)
    low, high = _round_outwards(kept[0][0], kept[-1][0], is_skewed=is_skewed)
    proposal.from_rows(min=_written(low), max=_written(high))
    if is_skewed:
        proposal.keys["transform"] = "log"
        proposal.notes["transform"] = "the few largest numbers are far above the rest: bins grow by one factor"
    spikes = [number for number, count in kept if count > SPIKE * rows and number not in (0, low, high)]
    if spikes and distinct > 2 * FEW_VALUES:
        usual = {low, high, *([Decimal(0)] if low < 0 < high else []), *spikes[:4]}
        proposal.from_rows(spikes=[_written(spike) for spike in sorted(usual)])
    return proposal


def _settle_outliers(proposal: Proposal, outside: Sequence[tuple[Decimal, int]]) -> None:
    """One far value again and again stands for `unknown`; several are taken as the bound."""
    count, values = sum(count for _, count in outside), {number for number, _ in outside}
    if all(SENTINEL.fullmatch(write_decimal(number)) for number in values):
        proposal.keys |= {"nullable": True, "out_of_domain": "null"}
        told = ", ".join(write_decimal(number) for number in sorted(values))
        proposal.remarks.append(
            f"{count} rows have {told}, which looks like a code for a missing value, and becomes one"
        )
    else:
        proposal.keys["out_of_domain"] = "clip"
        proposal.remarks.append(
            f'{count} rows lie far outside of these bounds, and are taken as the bound; `out_of_domain: "null"` would '
            "take them as missing"
        )


def _propose_dates(name: str, days: Counted[int]) -> Proposal:
    rows = sum(count for _, count in days)
    proposal = Proposal(name, {"name": name, "type": "date"})
    kept, outside = _fence(days) if rows >= FEW_ROWS else (days, [])
    if outside:
        count = sum(count for _, count in outside)
        proposal.keys |= {"nullable": True, "out_of_domain": "null"}
        proposal.remarks.append(f"{count} rows have a date far outside of these bounds, which becomes missing")
    first, last = (FIRST_DAY + timedelta(days=day) for day in (kept[0][0], kept[-1][0]))
    span = (last - first).days
    if span > 62:
        first, last = first.replace(month=1, day=1), last.replace(month=12, day=31)
    proposal.from_rows(min=first, max=last)
    proposal.keys["bins"] = "day" if span <= 62 else "month" if span <= 12 * 366 else "year"
    return proposal


def _fence(values: Sequence[tuple[T, int]]) -> tuple[list[tuple[T, int]], list[tuple[T, int]]]:
    """The bulk of the values, and the few that are ten times as far from its middle half as that is wide; three times,
    and in logarithms, where the largest hundredth is far away by itself.
    """
    scale, times = (_log, FENCE_OF_LOGS) if _has_long_tail(values) else (float, FENCE)
    lower, upper = (scale(_quantile(values, part)) for part in (0.25, 0.75))
    spread = (scale(_quantile(values, 0.95)) - scale(_quantile(values, 0.05))) / 4
    reach = times * max(upper - lower, spread)
    kept = [(value, count) for value, count in values if lower - reach <= scale(value) <= upper + reach]
    outside = [(value, count) for value, count in values if not lower - reach <= scale(value) <= upper + reach]
    total = sum(count for _, count in values)
    is_usual = reach == 0 or not kept or sum(count for _, count in outside) > MOST_OUTLIERS * total
    return (list(values), []) if is_usual else (kept, outside)


def _has_long_tail(values: Sequence[tuple[T, int]]) -> bool:
    """Whether numbers from 0 on have their largest hundredth far above their middle."""
    middle, high = float(_quantile(values, 0.5)), float(_quantile(values, 0.99))
    return values[0][0] >= 0 and isinstance(values[0][0], Decimal) and high > LONG_TAIL * max(middle, 1.0)


def _log(value: Decimal | int | float) -> float:
    return math.log1p(float(value))


def _quantile(values: Sequence[tuple[T, int]], part: float) -> T:
    """The value that this part of the rows does not exceed."""
    left = part * sum(count for _, count in values)
    for value, count in values:
        left -= count
        if left <= 0:
            return value
    return values[-1][0]


def _round_outwards(low: Decimal, high: Decimal, *, is_skewed: bool) -> tuple[Decimal, Decimal]:
    """Round bounds, a twentieth of the range further out at the most; of skewed numbers each by its own size."""
    if is_skewed:
        return (low if low == 0 else _step(low / 2, low, up=False)), _step(high / 20, high, up=True)
    room = (high - low) / 20
    bottom = _step(room, low, up=False)
    return (Decimal(0) if low >= 0 > bottom else bottom), _step(room, high, up=True)


def _step(room: Decimal, number: Decimal, *, up: bool) -> Decimal:
    """The next multiple of 1, 2 or 5 times a power of ten, as large as fits into the room."""
    if room <= 0:
        return number
    power = Decimal(1).scaleb(room.adjusted())
    step = next(power * factor for factor in (5, 2, 1) if power * factor <= room)
    return (number / step).to_integral_value("ROUND_CEILING" if up else "ROUND_FLOOR") * step


def _written(number: Decimal) -> int | Decimal:
    return int(number) if number == number.to_integral_value() else number


assert set().union(*SPELLINGS) <= {*TRUE, *FALSE}
