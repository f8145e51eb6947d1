"""Gauges: shares of the cap, in words that a person reads."""

import pytest

from synod.common.privacy.cost import Cost
from synod.party.inbox.gauges import draw_gauges
from synod.party.inbox.views import BudgetView, CostView


def cost(epsilon: str) -> CostView:
    return CostView(str(Cost.parse(f"epsilon:{epsilon}")), "")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("1000", "1,000 %"),
        ("12345", "12,345 %"),
        ("10", "10 %"),
        ("999/10", "100 %"),
        ("5/2", "2.5 %"),
        ("1/10", "0.1 %"),
        ("1/1000000", "less than 0.1 %"),
    ],
)
def test_a_share_in_words(asked: str, told: str) -> None:
    none = cost("0")
    (gauge,) = draw_gauges(BudgetView(none, none, cost("100"), none, None), cost(asked))
    assert gauge.told == f"epsilon: 0 % spent, {told} asked for by this study, of what this dataset may ever spend"


def test_a_gauge_ends_with_the_whole() -> None:
    none = cost("0")
    (gauge,) = draw_gauges(BudgetView(cost("60"), none, cost("100"), none, None), cost("1000"))
    assert [(part.kind, part.start, part.width) for part in gauge.parts] == [
        ("spent", "0.000", "60.000"),
        ("asked", "60.000", "40.000"),
    ]
