"""The pages and the blocks in them: what is run by which test, and what is not run, with the reason.

A block's place is its page and the heading above it, with a number where a heading has several blocks. A test takes the
blocks that it runs by `runs`, and `test_every_block.py` sees to it that no block is left to nobody.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLATION = ROOT / "deploy"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *INSTALLATION.rglob("README.md")])
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
HEADING_OR_FENCE = re.compile(rf"^#+ (?P<heading>[^\n]+)$|{FENCE.pattern}", FENCE.flags)
SHELL = ("sh", "bash", "console")
RUNNABLE = (*SHELL, "python")

NO_INIT = "needs systemd as the first process, and makes users and folders of the machine itself"
TOO_LONG = "takes an hour and tables that are not in the repository; tests/unit/bench/test_utility.py runs its parts"
ON_SCREEN = "serves until it is stopped; tests/browser/test_console_pages.py and tests/integration run it"
NO_CLUSTER = "needs a Kubernetes cluster; tests/unit/deploy/test_kubernetes.py holds the manifests to their schemas"

# Places of blocks, or places and one line of them.
NOT_RUN: dict[str | tuple[str, str], str] = {
    ("README.md: Two commands", "make test"): "is the suite that this test is in",
    "docs/utility.md: These tables again": TOO_LONG,
    "docs/console.md: A party's console": ON_SCREEN,
    "docs/console.md: The curator operator's console": ON_SCREEN,
    "deploy/curator/README.md: Under systemd": NO_INIT,
    "deploy/party/README.md: Under systemd (1)": NO_INIT,
    "deploy/party/README.md: Under systemd (2)": NO_INIT,
    "deploy/party/README.md: Under systemd (3)": NO_INIT,
    "deploy/party/README.md: Under systemd (4)": NO_INIT,
    "deploy/kubernetes/README.md: A curator": NO_CLUSTER,
    "deploy/kubernetes/README.md: A party (1)": NO_CLUSTER,
    "deploy/kubernetes/README.md: A party (2)": NO_CLUSTER,
    "deploy/kubernetes/README.md: A party (3)": NO_CLUSTER,
    "deploy/kubernetes/README.md: A party (4)": NO_CLUSTER,
}

claimed: list[str] = []


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    place: str
    language: str
    lines: tuple[str, ...]

    @property
    def script(self) -> str:
        """What is run of it: all but the lines that `NOT_RUN` names."""
        return "".join(f"{line}\n" for line in self.lines if (self.place, line) not in NOT_RUN)


@dataclass(slots=True)
class Blocks:
    """The blocks that one test has to run, by heading."""

    blocks: dict[str, Block]
    left: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.left = set(self.blocks)

    def script(self, heading: str) -> str:
        """A block's text, to be run."""
        self.left.discard(heading)
        return self.blocks[heading].script

    def scripts(self) -> list[str]:
        """All of them, in the page's order."""
        return [self.script(heading) for heading in self.blocks]


def page_ids(path: Path) -> str:
    """A page's name in this repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def runnable_blocks() -> dict[str, Block]:
    """Every block of every page that somebody may paste into a shell or into Python, by its place."""
    return {block.place: block for page in PAGES for block in read_blocks(page_ids(page), page.read_text("utf-8"))}


def read_blocks(name: str, text: str) -> Iterator[Block]:
    """The runnable blocks of one page's text."""
    found = list(_find(text))
    several = Counter(heading for heading, _, _ in found)
    seen: Counter[str] = Counter()
    for heading, language, lines in found:
        seen[heading] += 1
        number = f" ({seen[heading]})" if several[heading] > 1 else ""
        yield Block(f"{name}: {heading}{number}", language, lines)


def _find(text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    heading = ""
    for match in HEADING_OR_FENCE.finditer(text):
        title, indent, language, body = match.groups()
        if title is not None:
            heading = title
        elif language in RUNNABLE:
            yield heading, language, tuple(line.removeprefix(indent) for line in body.splitlines())


def runs(page: str, *headings: str, argument: str = "blocks") -> pytest.MarkDecorator:
    """Gives a test the blocks under these headings as an argument; whoever takes them has to run them all."""
    places = {heading: f"{page}: {heading}" for heading in headings}
    claimed.extend(places.values())
    known = runnable_blocks()
    blocks = {heading: known[place] for heading, place in places.items() if place in known}
    return pytest.mark.parametrize(argument, [Blocks(blocks)], ids=[page])
