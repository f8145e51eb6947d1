"""How much of a dataset's budget is spent, held, and asked for by a study, as shares of the cap. Pure.

Each kind of cost has a cap of its own, and so a gauge of its own.
"""

from dataclasses import dataclass
from fractions import Fraction

from synod.common.privacy.cost import FREE, Cost
from synod.party.inbox.views import BudgetView, CostView

WHOLE = Fraction(100)
SMALLEST_SHARE, WHOLE_FROM = 0.1, 10  # in percent: what is not told exactly, and from where without decimals


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a gauge: what it is (`spent`, `held` or `asked`), where it starts and how wide it is, in percent."""

    kind: str
    start: str
    width: str


@dataclass(frozen=True, slots=True)
class Gauge:
    """One kind of cost: its parts from left to right, never beyond the whole, and the same in words."""

    told: str
    parts: tuple[Part, ...]


def draw_gauges(budget: BudgetView, asked: CostView | None) -> tuple[Gauge, ...]:
    """A gauge for each kind of cost that has a cap or is used; with `asked`, what a study would take of it."""
    amounts = {
        "spent": Cost.parse(budget.spent.exact),
        "held": Cost.parse(budget.held.exact),
        "asked": Cost.parse(asked.exact) if asked else FREE,
    }
    cap = Cost.parse(budget.cap.exact)
    kinds = {
        "epsilon": (cap.epsilon, {name: cost.epsilon for name, cost in amounts.items()}),
        "rho": (cap.rho, {name: cost.rho for name, cost in amounts.items()}),
    }
    return tuple(_draw(kind, most, parts) for kind, (most, parts) in kinds.items() if most or any(parts.values()))


def _draw(kind: str, cap: Fraction, amounts: dict[str, Fraction]) -> Gauge:
    parts, start = [], Fraction(0)
    for name, amount in amounts.items():
        width = min(WHOLE - start, WHOLE * amount / cap) if cap else WHOLE - start if amount else Fraction(0)
        if width:
            parts.append(Part(name, _write(start), _write(width)))
        start += width
    words = {"spent": "spent", "held": "held for approved studies", "asked": "asked for by this study"}
    told = [f"{_percent(amount, cap)} {words[name]}" for name, amount in amounts.items() if amount or name == "spent"]
    return Gauge(f"{kind}: {', '.join(told)}, of what this dataset may ever spend", tuple(parts))


def _percent(amount: Fraction, cap: Fraction) -> str:
    if not cap:
        return "more than allowed" if amount else "0 %"
    share = float(WHOLE * amount / cap)
    if 0 < share < SMALLEST_SHARE:
        return f"less than {SMALLEST_SHARE} %"
    return f"{share:,.0f} %" if share >= WHOLE_FROM else f"{share:.2g} %"


def _write(number: Fraction) -> str:
    return f"{float(number):.3f}"
