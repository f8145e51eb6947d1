"""How the page writes numbers and names: the same way everywhere, with a fixed number of digits."""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from synod.common.study.attributes import DaysAttribute, TruthAttribute, first_real, first_whole, name_day
from synod.common.study.encoding import Coding, encode_numbers
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, RealAttribute, write_decimal
from synod.common.study.study import Study

MISSING = "missing"


def whole(number: float) -> str:
    """A count, with commas."""
    return f"{round(number):,}".replace("-", "\u2212")


def percent(share: float) -> str:
    """A share, to a tenth of a per cent."""
    return _signed(f"{100 * share:.1f}") + "\u00a0%"


def percent_about(share: float) -> str:
    """The size of an error as a share; never nothing."""
    return f"about {percent(share)}" if share >= 0.0005 else "less than 0.1\u00a0%"


def percent_and_band(share: float, band: float) -> str:
    """A share with its band; never a band of nothing."""
    return f"{_signed(f'{100 * share:.1f}')}\u00a0±\u00a0{max(0.1, math.ceil(1000 * band - 1e-6) / 10):.1f}\u00a0%"


def measured(number: float, span: float) -> str:
    """A number of an attribute whose range is `span` wide: to about a thousandth of it."""
    decimals = max(0, 2 - math.floor(math.log10(span)))
    return _signed(f"{number:,.{min(decimals, 12)}f}")


def rounded(number: float) -> str:
    """A number of people, from a tenth on, to two digits: more would pretend."""
    if number < 10:
        return f"{number:.2g}"
    digits = math.floor(math.log10(number)) - 1
    return f"{round(number / 10**digits) * 10**digits:,}"


def _signed(text: str) -> str:
    is_zero = not any(digit in text for digit in "123456789")
    return text.replace("-", "" if is_zero else "\u2212")


def listed(words: Sequence[str]) -> str:
    """Words one after the other, the last after an `and`."""
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    irregular = {"category": "categories", "party": "parties"}
    return f"{whole(count)} {noun if count == 1 else irregular.get(noun, noun + 's')}"


def name_parties(study: Study) -> str:
    """Those who publish: often several, but one may do so alone."""
    return "the party" if len(study.roster) == 1 else "the parties"


def describe_domain(coding: Coding) -> str:
    """What an attribute may be, in a few words."""
    attribute = coding.attribute
    end = ", may be missing" if attribute.nullable else ""
    if isinstance(attribute, TruthAttribute):
        return "true or false" + end
    if isinstance(attribute, CategoricalAttribute):
        return plural(len(attribute.categories), "category") + end
    if isinstance(attribute, DaysAttribute):
        return f"date, {name_day(attribute.min)} to {name_day(attribute.max)}{end}"
    kind = "whole number" if isinstance(attribute, IntegerAttribute) else "number"
    return f"{kind}, {_bound(attribute.min)} to {_bound(attribute.max)}{end}"


def _whole_bound(attribute: IntegerAttribute, number: int) -> str:
    return name_day(number) if isinstance(attribute, DaysAttribute) else _bound(number)


def name_codes(coding: Coding) -> list[str]:
    """What each code stands for: a category, a bin without its spikes, a spike, or a missing value. A number is taken
    in the schema's bins.
    """
    attribute = coding.attribute
    if isinstance(attribute, CategoricalAttribute):
        names = list(attribute.categories)
    elif coding.is_constant:
        assert isinstance(attribute, IntegerAttribute), "the bounds of a real number differ"
        names = [_whole_bound(attribute, attribute.min)]
    else:
        names = [name_bin(coding, place) for place in range(attribute.bins)]
        names += [f"exactly {_name_spike(spike)}" for spike in coding.spikes]
    return [*names, MISSING] if attribute.nullable else names


def name_bin(coding: Coding, place: int, last: int | None = None) -> str:
    """The numbers that a bin holds, or all bins from one to another, without the spikes in them."""
    attribute, last = coding.attribute, place if last is None else last
    spikes = [spike for spike, own in zip(coding.spikes, find_spikes(coding), strict=True) if place <= own <= last]
    if isinstance(attribute, IntegerAttribute):
        return _name_integers(attribute, place, last, spikes)
    assert isinstance(attribute, RealAttribute)
    return _name_reals(attribute, place, last, spikes)


def find_spikes(coding: Coding) -> list[int]:
    """The bin that each spike lies in."""
    bins: list[int] = encode_numbers(Coding(coding.attribute, None), np.array(coding.spikes)).tolist()
    return bins


def _name_integers(attribute: IntegerAttribute, place: int, last: int, spikes: Sequence[float]) -> str:
    """A spike at an end moves that end; a bin always holds something beside its spikes."""
    low, high = first_whole(attribute, place), first_whole(attribute, last + 1) - 1
    while low in spikes:
        low += 1
    while high in spikes:
        high -= 1
    ends = [_whole_bound(attribute, end) for end in (low, high)]
    name = ends[0] if low == high else " to ".join(ends)
    return name + _name_holes([spike for spike in spikes if low < spike < high])


def _name_reals(attribute: RealAttribute, place: int, last: int, spikes: Sequence[float]) -> str:
    """An end that is a spike is left out."""
    low, high = first_real(attribute, place), first_real(attribute, last + 1)
    above, below = ("above " * (float(low) in spikes), "below " * (float(high) in spikes))
    holes = [spike for spike in spikes if spike not in (float(low), float(high))]
    return f"{above}{_bound(low)} to {below}{_bound(high)}{_name_holes(holes)}"


def _name_holes(spikes: Sequence[float]) -> str:
    return f" without {listed([_name_spike(spike) for spike in spikes])}" if spikes else ""


def _name_spike(spike: float) -> str:
    return _bound(Decimal(str(spike)).normalize())


def name_runs(coding: Coding, codes: Sequence[int]) -> list[str]:
    """What some codes stand for; bins that lie side by side are one range."""
    names = name_codes(coding)
    if isinstance(coding.attribute, CategoricalAttribute):
        return [names[code] for code in codes]
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][-1] + 1 and code < coding.attribute.bins:
            runs[-1].append(code)
        else:
            runs.append([code])
    return [names[run[0]] if len(run) == 1 else name_bin(coding, run[0], run[-1]) for run in runs]


def _bound(number: object) -> str:
    if isinstance(number, int):
        return whole(number) if abs(number) >= 10_000 else _signed(str(number))
    text = write_decimal(number)  # type: ignore[arg-type]
    decimal = f"{float(text):,.6g}" if abs(float(text)) < 10**15 else text
    return _signed(decimal)
