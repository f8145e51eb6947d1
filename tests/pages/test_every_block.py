"""No block of a page is left to nobody: a test runs it, or `NOT_RUN` says why none does."""

import importlib
from collections import Counter
from pathlib import Path

import pytest

from tests.support import pages
from tests.support.pages import NOT_RUN, ROOT, RUNNABLE, Block, read_blocks, runnable_blocks

RUNNERS = sorted(path.stem for path in Path(__file__).parent.glob("test_*_run.py"))
PAGE = """# Top
```sh
a  # no heading
```
## Steps
1. One:

   ```sh
   cat <<EOF
     indented
   EOF
   ```
2. Two:

   ```python
   b
   ```
```yaml
c: d
```
"""


@pytest.fixture(scope="module")
def claimed() -> set[str]:
    """The places that the runners take, known without running them."""
    for name in RUNNERS:
        importlib.import_module(f"tests.pages.{name}")
    return set(pages.claimed)


def exempt() -> set[str]:
    return {place for place in NOT_RUN if isinstance(place, str)}


def test_every_block_is_run_or_excused(claimed: set[str]) -> None:
    assert set(runnable_blocks()) - claimed - exempt() == set()


def test_nothing_is_claimed_or_excused_that_is_not_there(claimed: set[str]) -> None:
    assert (claimed | exempt()) - set(runnable_blocks()) == set()


def test_nothing_is_both_run_and_excused(claimed: set[str]) -> None:
    assert claimed & exempt() == set()


def test_every_excused_line_is_in_its_block_and_every_excuse_is_said(claimed: set[str]) -> None:
    lines = [place for place in NOT_RUN if isinstance(place, tuple)]
    assert [line for place, line in lines if line not in runnable_blocks()[place].lines] == []
    assert {place for place, _ in lines} <= claimed
    assert all(NOT_RUN.values())


def test_blocks_are_found_under_their_headings() -> None:
    assert list(read_blocks("page.md", PAGE)) == [
        Block("page.md: Top", "sh", ("a  # no heading",)),
        Block("page.md: Steps (1)", "sh", ("cat <<EOF", "  indented", "EOF")),
        Block("page.md: Steps (2)", "python", ("b",)),
    ]


def test_no_block_hides_from_the_search() -> None:
    """Every fence of a language that can be run is found, however it is indented."""
    fences = Counter(
        page.relative_to(ROOT).as_posix()
        for page in pages.PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(tuple(f"```{language}" for language in RUNNABLE))
    )
    assert Counter(place.split(": ")[0] for place in runnable_blocks()) == fences
    assert fences["docs/walk.md"] >= 8
