"""Fleets for tests: prepared anew for each test, and removed after it, however it ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.containers import Fleet, open_fleet


@pytest.fixture
def fleets(image: None, tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Makes fleets; all of their containers, networks and volumes are removed at the end."""
    with ExitStack() as stack:

        def make(parties: int, **changes: Any) -> Fleet:
            return stack.enter_context(open_fleet(tmp_path / "fleet", parties, **changes))

        yield make
