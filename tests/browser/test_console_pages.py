"""Consoles in a real browser, by clicks and typing alone: from a study's file to a release that verifies."""

import csv
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.v1 import study_pb2 as pb
from tests.support.browser import DEVICES, SHOTS, Browser, missing, open_browser
from tests.support.console_sites import Seats, check_page, seated
from tests.support.daemons import make_site, run_synod, until
from tests.support.parties import file_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(missing()), reason=f"there is no {missing()} on this machine"),
]
ASKED = ("north", "harbour")
# Both widths and both colour schemes; all four pairs of them where somebody wants the pictures.
SHOWN = DEVICES if os.environ.get("SYNOD_SHOTS") == "all" else [DEVICES[0], DEVICES[3]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def seats(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seats]:
    """Daemons, and three people at consoles; `valley` approves by its policy."""
    site = make_site(tmp_path_factory.mktemp("consoles"))
    try:
        for name in ASKED:
            site.change(site.config(name), approve="ask", max_epsilon_total="2")
        site.change(site.config("valley"), max_epsilon_total="9", max_epsilon_per_study="9")
        site.start_curator()
        site.start_parties()
        with seated(site, browser, *ASKED) as seats:
            yield seats
    finally:
        site.stop_all()


def submit(seats: Seats, file: Path) -> None:
    """The coordinator hands a study in."""
    seats.open("curator", "/submit")
    seats.find("#file").send_keys(str(file))
    seats.click("Check it")
    seats.await_words("It is valid.")
    seats.click("Submit")
    seats.await_words("The study is with the curator, and waits for the parties.")


def read_waiting(seats: Seats, party: str, name: str) -> str:
    """An operator finds the study in the inbox and opens it; returns its hash as the page shows it."""
    seats.open(party)
    seats.await_words(name, reload=True)
    seats.click(name)
    seats.await_words("What leaves the house")
    assert seats.find("h1").text == name
    return seats.find("main .key").text.strip()


def approve(seats: Seats, party: str, name: str) -> None:
    typed = read_waiting(seats, party, name)[:8]
    seats.type("typed", typed)
    seats.click("Approve")
    seats.await_words("Approved: what the study costs is reserved")


def shoot_all(seats: Seats, pages: dict[str, tuple[str, str]]) -> None:
    """Every page on every device: it fits, can be read, and keeps nobody out."""
    seats.browser.complaints()
    wrong = []
    for name, (seat, path) in pages.items():
        for device in SHOWN:
            seats.browser.look_with(device)
            seats.open(seat, path)
            wrong += check_page(seats.browser, device, name, shoot=True)
    seats.browser.look_with(DEVICES[0])
    assert wrong == []


def test_a_study_goes_from_a_file_to_a_release(seats: Seats, browser: Browser, tmp_path: Path) -> None:
    site, study = seats.site, seats.site.study
    file, whole = site.write_study(study), study.digest().hex()
    submit(seats, file)
    seats.await_words("waiting for its approval")
    shoot_all(
        seats,
        {
            "curator-studies": ("curator", "/"),
            "curator-submit": ("curator", "/submit"),
            "curator-draft": ("curator", f"/drafts/{whole}"),
            "curator-waits": ("curator", f"/studies/{study.name}"),
            "curator-kits": ("curator", "/kits"),
        },
    )
    assert read_waiting(seats, "north", study.name) == whole
    seats.type("typed", "00000000")
    seats.click("Approve")
    seats.await_words("Nothing was reserved.")
    assert [entry["kind"] for entry in site.ledger_entries("north")] == ["opened"]
    shoot_all(
        seats,
        {
            "party-inbox": ("north", "/"),
            "party-study": ("north", f"/studies/{whole}"),
            "party-doctor": ("north", "/doctor"),
        },
    )

    seats.open("curator", f"/studies/{study.name}")
    browser.ask("window.unloaded = 'never'")
    watching = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    approve(seats, "north", study.name)
    browser.driver.close()
    browser.driver.switch_to.window(watching)
    seats.await_words("north done for now")
    assert browser.ask("return window.unloaded") == "never", "it came by itself"
    browser.driver.switch_to.new_window("tab")
    approve(seats, "harbour", study.name)
    browser.driver.close()
    browser.driver.switch_to.window(watching)
    seats.await_words("See the release", seconds=120)
    assert len(browser.driver.find_elements("css selector", ".rounds .over")) == site.status().rounds

    seats.click("See the release")
    seats.await_words("checks hold")
    frame = seats.find("iframe")
    assert frame.get_attribute("sandbox") == ""
    browser.driver.switch_to.frame(frame)
    assert browser.driver.find_element("css selector", "h1").text == study.name
    browser.driver.switch_to.default_content()
    browser.ask("arguments[0].scrollIntoView()", frame)
    browser.driver.save_screenshot(str(SHOTS / "console-curator-report-laptop-light.png"))
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    seats.click("All files")
    archive = tmp_path / f"{study.name}.zip"
    until("the release is downloaded", archive.exists)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "out")
    verified = run_synod("verify", tmp_path / "out" / study.name)
    assert verified.returncode == 0, verified.stderr
    with (tmp_path / "out" / study.name / "synthetic.csv").open() as rows:
        assert len(list(csv.DictReader(rows))) == study.rows
    site.await_closed()
    browser.complaints()
    shoot_all(
        seats,
        {
            "curator-published": ("curator", f"/studies/{study.name}"),
            "curator-release": ("curator", f"/studies/{study.name}/release"),
            "party-ledger": ("north", "/ledger"),
            "party-ended": ("north", f"/studies/{whole}"),
        },
    )


def test_over_budget_and_a_table_that_does_not_fit(seats: Seats) -> None:
    site = seats.site
    greedy = site.another_study("greedy", epsilon="5")
    submit(seats, site.write_study(greedy))
    read_waiting(seats, "north", "greedy")
    seats.await_words("It cannot be approved here: the study asks for epsilon 5")
    seats.type("typed", greedy.digest().hex()[:8])
    seats.click("Approve")
    seats.await_words("Ask for less, or raise")
    before = [entry["kind"] for entry in site.ledger_entries("harbour")]
    table = file_of(site.settings("harbour"))
    kept = table.read_text()
    misfit = site.another_study("misfit", epsilon="0.5")
    submit(seats, site.write_study(misfit))
    read_waiting(seats, "harbour", "misfit")
    try:
        table.write_text(kept.replace("rehab", "Xanadu4711"))
        seats.type("typed", misfit.digest().hex()[:8])
        seats.click("Approve")
        seats.await_words("the table does not fit the study's schema.")
        assert "4711" not in seats.words
        seats.tick("values")
        seats.click("Look at the table")
        seats.await_words("Xanadu4711")
        wrong = check_page(seats.browser, DEVICES[0], "party-misfit", shoot=True)
    finally:
        table.write_text(kept)
    assert [one for one in wrong if "status of 400" not in one] == [], "that the form was refused is in its status"
    assert [entry["kind"] for entry in site.ledger_entries("harbour")] == before
    seats.open("curator", "/studies/misfit")
    seats.find("details summary").click()
    seats.find("input[value=valley]").click()
    seats.type("reason", "its server burned down")
    seats.tick("sure")
    seats.click("Declare it lost")
    seats.await_words("the parties of misfit are still enrolling, and nothing is spent.")
    assert list(site.status("misfit").losses) == [], "it goes on as it was"
    for name in ("greedy", "misfit"):
        seats.open("curator", f"/studies/{name}")
        seats.find("details:last-of-type summary").click()
        seats.type("typed", name)
        seats.click("Abort")
        seats.await_words("The study is aborted")
        assert site.status(name).state == pb.STUDY_STATE_ABORTED


def test_revoked_in_the_middle(seats: Seats) -> None:
    site = seats.site
    study = site.another_study("halfway", epsilon="0.5")
    submit(seats, site.write_study(study))
    approve(seats, "north", "halfway")
    seats.tick("sure")
    seats.click("Revoke")
    seats.await_words("Revoked: nothing more is answered")
    assert [entry["kind"] for entry in site.ledger_entries("north")][-1] == "revoked"
    seats.open("curator", "/studies/halfway")
    seats.await_words("aborted")
    assert site.status("halfway").state == pb.STUDY_STATE_ABORTED


def test_a_page_of_somebody_else_gets_nothing_out_of_a_console(seats: Seats, tmp_path: Path) -> None:
    """A page from elsewhere frames the inbox and sends a form, with the operator's own browser."""
    base = seats.consoles["north"].base
    (tmp_path / "evil.html").write_text(
        f'<iframe src="{base}/"></iframe><form action="{base}/leave" method="post"><button id="go">win</button></form>'
    )
    seats.browser.driver.get((tmp_path / "evil.html").as_uri())
    seats.browser.driver.switch_to.frame(0)
    assert "Inbox" not in seats.browser.driver.page_source
    seats.browser.driver.switch_to.default_content()
    seats.browser.driver.find_element("id", "go").click()
    seats.await_words("Another page sent this request")
    seats.open("north")
    assert "Inbox" in seats.words, "the operator is still in"
