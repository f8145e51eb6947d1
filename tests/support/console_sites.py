"""A site whose operators sit at consoles: real daemons and consoles, and one real browser for all of them."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_core_python.base import AXE_SCRIPT
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.browser import CONTRAST, Browser, Device
from tests.support.console_processes import Console, console
from tests.support.daemons import Site, until


@dataclass
class Seats:
    """Who sits where: a console for the coordinator, and one for each party that is asked."""

    site: Site
    browser: Browser
    consoles: dict[str, Console] = field(default_factory=dict)

    def open(self, seat: str, path: str = "/") -> None:
        """A person goes to a page of their console."""
        self.browser.driver.get(self.consoles[seat].base + path)

    def enter(self, seat: str) -> None:
        """A person opens the link that the console printed."""
        self.browser.driver.get(self.consoles[seat].link)
        until(f"{seat} has entered", lambda: "/enter" not in self.browser.driver.current_url)

    def find(self, selector: str) -> WebElement:
        """One element of the page."""
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, text: str) -> None:
        """A person clicks a button or a link of these words."""
        path = f"//main//button[normalize-space()='{text}'] | //main//a[normalize-space()='{text}']"
        element = self.browser.driver.find_element(By.XPATH, path)
        self.browser.ask("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def type(self, field_id: str, text: str) -> None:
        """A person types into a field."""
        element = self.browser.driver.find_element(By.ID, field_id)
        element.clear()
        element.send_keys(text)

    def tick(self, name: str) -> None:
        """A person ticks a box."""
        element = self.find(f"input[name={name}]")
        self.browser.ask("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    @property
    def words(self) -> str:
        """What the page says."""
        # In one step: a live page may be loading itself anew.
        return " ".join(str(self.browser.ask("return (document.querySelector('main') || {}).innerText || ''")).split())

    def await_words(self, text: str, *, reload: bool = False, seconds: float = 60.0) -> None:
        """Waits until the page says something; with `reload` a person loads it again now and then."""
        end = time.monotonic() + seconds
        while text not in self.words:
            assert time.monotonic() < end, f"in vain for {text!r}: {self.words}"
            time.sleep(0.2)
            if reload:
                self.browser.driver.refresh()


@contextmanager
def seated(site: Site, browser: Browser, *asked: str) -> Iterator[Seats]:
    """Consoles for the coordinator and for each asked party; everybody has entered."""
    seats = Seats(site, browser)
    with ExitStack() as stack:
        curator = ("--config", site.paths.operator_config, "--curator-config", site.paths.curator_config)
        seats.consoles["curator"] = stack.enter_context(console("curator", "console", *curator))
        for name in asked:
            seats.consoles[name] = stack.enter_context(console("party", "console", "--config", site.config(name)))
        for seat in seats.consoles:
            seats.enter(seat)
        yield seats


def find_barriers(browser: Browser) -> list[str]:
    """What axe-core finds on the page that keeps somebody out, in one line each."""
    browser.ask(AXE_SCRIPT)
    found: Any = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {iframes: false})"
        ".then((r) => done(r.violations), (e) => done([{id: String(e), nodes: []}]));"
    )
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]


def check_page(browser: Browser, device: Device, name: str, *, shoot: bool) -> list[str]:
    """What is wrong with the page that is shown: too wide, too faint, too small, complaints, barriers."""
    wrong = browser.complaints()
    browser.ask("document.querySelectorAll('details').forEach((fold) => fold.open = true)")
    if shoot:
        browser.shoot(f"console-{name}-{device}", whole=True)
    width, room = browser.ask("return [document.documentElement.scrollWidth, innerWidth]")
    if width > room:
        wrong.append(f"{width} wide on {room}")
    ratio, words = browser.ask(CONTRAST)
    if ratio < 4.5:
        wrong.append(f"contrast {ratio:.2f}: {words}")
    return [f"{name} on {device}: {one}" for one in [*wrong, *find_barriers(browser)]]
