"""Sites for tests: prepared anew for each test, and stopped after it, however it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.study.study import Study
from tests.support.daemons import MakeSite, Site, make_site


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[MakeSite]:
    """Makes sites, and stops all their processes at the end."""
    made: list[Site] = []

    def make(study: Study | None = None, tables: list[Path] | None = None) -> Site:
        made.append(make_site(tmp_path / str(len(made)), study, tables))
        return made[-1]

    try:
        yield make
    finally:
        for site in made:
            site.stop_all()


@pytest.fixture
def site(sites: MakeSite) -> Site:
    """A site of three parties with a small study; nothing runs yet."""
    return sites()
