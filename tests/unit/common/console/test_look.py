"""The consoles have the report's own look, and nothing of somebody else's."""

import re
from pathlib import Path

from synod.common import console
from synod.curator.release.report.style import STYLE

STATIC = Path(console.__file__).parent / "static"
SHEET = (STATIC / "console.css").read_text()


def colours(sheet: str) -> list[tuple[str, str]]:
    """The named colours of both schemes, in order."""
    return re.findall(r"--([a-z]+):(#[0-9a-f]{3,6})", sheet)


def test_the_colours_are_those_of_the_report() -> None:
    ours = [one for one in colours(SHEET) if one[0] not in ("good", "button")]
    report = colours(STYLE.partition("@media print")[0])
    assert len(report) >= 20
    assert ours == report


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in STATIC.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), path.name
