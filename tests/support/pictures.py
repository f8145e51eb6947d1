"""The picture of a report in the README: `python -m tests.support.pictures` runs the demo and photographs its report.

It needs chromium and chromedriver, and writes docs/pictures/report.png: what a reader sees first, and below it, in
place of the sections between, the first columns one by one.
"""

import shutil
import tempfile
from pathlib import Path

from tests.support.browser import ROOT, Device, open_browser
from tests.support.daemons import run_synod

PICTURE = ROOT / "docs" / "pictures" / "report.png"
SCREEN = Device("laptop", 1100, 800, "light")
ONE_SECTION = (
    "document.querySelectorAll('nav, main > section:not(#columns), #columns > p').forEach((part) => part.remove());"
)


def main() -> None:
    """Makes the picture anew."""
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        ending = run_synod("demo", "--out", release, seconds=600)
        assert ending.returncode == 0, ending.stderr
        with open_browser() as browser:
            browser.show(release / "report.html", SCREEN)
            browser.ask(ONE_SECTION)
            shutil.copyfile(browser.shoot("readme", whole=False), PICTURE)


if __name__ == "__main__":
    main()
