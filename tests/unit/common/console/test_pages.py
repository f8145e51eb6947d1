"""What every page has in common."""

from synod.common.console.pages import STATUSES
from synod.common.runtime.errors import Code


def test_every_kind_of_trouble_has_a_status() -> None:
    assert set(STATUSES) == set(Code)
    assert all(400 <= status < 600 for status in STATUSES.values())
