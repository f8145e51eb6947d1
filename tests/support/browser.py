"""A real browser, without a network: Debian's chromium, driven through its own protocol."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "screenshots"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip

# The least contrast of all text on the page, with the text that has it; colours as the browser computed them. Text on
# a picture or a gradient, or that something shines through, has a contrast of 0: it cannot be told from colours alone.
CONTRAST = """
const paint = (color) => { const c = color.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c; };
const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const style = getComputedStyle(e), c = paint(style.backgroundColor);
    if (style.backgroundImage !== 'none' || (c[3] > 0 && c[3] < 1)) return null;
    if (c[3] > 0) return c;
  }
  return [255, 255, 255, 1];
};
const solid = (element) => {
  for (let e = element; e; e = e.parentElement) if (getComputedStyle(e).opacity !== '1') return false;
  return true;
};
let least = [99, ''];
for (const element of document.body.querySelectorAll('*')) {
  const own = [...element.childNodes].filter((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own.length || !element.getClientRects().length || ['title', 'desc'].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const color = paint(element.closest('svg') ? style.fill : style.color), back = behind(element);
  const known = back && color[3] === 1 && solid(element);
  const [ink, paper] = known ? [light(color), light(back)] : [0, 0];
  const ratio = known ? (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) : 0;
  if (ratio < least[0]) least = [ratio, own[0].textContent.trim()];
}
return least;
"""


@dataclass(frozen=True)
class Device:
    """What the page is looked at with."""

    name: str
    width: int
    height: int
    scheme: str

    def __str__(self) -> str:
        return f"{self.name}-{self.scheme}"


DEVICES = [
    Device(name, width, height, scheme)
    for name, width, height in (("laptop", 1280, 800), ("phone", 360, 740))
    for scheme in ("light", "dark")
]


class Browser:
    """A browser that shows one page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def show(self, page: Path | str, device: Device) -> None:
        self.look_with(device)
        self.complaints()
        self.driver.get(page if isinstance(page, str) else page.as_uri())

    def look_with(self, device: Device) -> None:
        metrics = {
            "width": device.width,
            "height": device.height,
            "deviceScaleFactor": 1,
            "mobile": device.name == "phone",
        }
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": device.scheme}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def command(self, name: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, arguments)

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console got since the last call: errors, and violations of the page's policy."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def shoot(self, name: str, *, whole: bool) -> Path:
        width, height = self.ask(
            "return [innerWidth, arguments[0] ? document.documentElement.scrollHeight : innerHeight]", whole
        )
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        path.write_bytes(base64.b64decode(data))
        return path


def missing() -> str:
    """Which program is not there, if one is not."""
    return next((name for name in ("chromium", "chromedriver") if shutil.which(name) is None), "")


@contextmanager
def open_browser() -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
