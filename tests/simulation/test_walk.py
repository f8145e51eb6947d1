"""The walk of docs/development.md: a real run calls the functions that the page lists, in the order of the page."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from synod.common.runtime.settings import PartySettings
from synod.curator.records import State
from tests.support.pages import ROOT
from tests.support.simulation import World, make_site, settings_of

ITEM = re.compile(r"^(\d+)\. `([\w/]+\.py): ([\w.]+)` ", re.MULTILINE)
MOST = 15


def read_walk() -> list[tuple[str, str]]:
    """The file and the qualified name of each function of the walk."""
    page = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    items = ITEM.findall(page)
    assert [int(number) for number, _, _ in items] == list(range(1, len(items) + 1))
    assert len(re.findall(r"^\d+\. ", page, re.MULTILINE)) == len(items), "an item names no function"
    return [(file, name) for _, file, name in items]


class LocalWorld(World):
    """Parties that answer queries of their own, as DP-SUBN needs."""

    def settings(self, index: int, copy: int = 0) -> PartySettings:
        return settings_of(self.folder, index, approve=self.approvals, allow_local_queries=True)


@contextmanager
def calls_recorded(found: dict[tuple[str, str], None]) -> Iterator[None]:
    """Notes every function of the repository that begins, in the order of first calls, on all threads."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(ROOT):
                found.setdefault((path.relative_to(ROOT).as_posix().removeprefix("synod/"), frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """All functions that a study with DP-SUBN calls, in the order of their first calls."""
    site = make_site(tmp_path_factory.mktemp("site"), method={"name": "dp-subn"})
    found: dict[tuple[str, str], None] = {}
    with LocalWorld(site, tmp_path_factory.mktemp("world")) as world, calls_recorded(found):
        world.finish()
        assert world.curator.state() is State.PUBLISHED
    return list(found)


def test_the_walk_is_short_enough_and_names_functions_once() -> None:
    walk = read_walk()
    assert 10 <= len(walk) <= MOST
    assert len(set(walk)) == len(walk)
    assert walk[0][0].startswith("party/table/")
    assert walk[-1] == ("curator/release/files.py", "write_release")


def test_a_run_takes_the_walk(called: list[tuple[str, str]]) -> None:
    assert [step for step in read_walk() if step not in called] == []
    assert [step for step in called if step in read_walk()] == read_walk()
