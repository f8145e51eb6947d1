"""The consoles' one script outside of a browser: when it listens, when it stops, and what it says then.

In a real browser it is in tests/browser/test_console_pages.py, where a stream cannot be broken at will.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from synod.common import console

SCRIPT = Path(console.__file__).parent / "static" / "console.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node on this machine")

# As much of a page as the script touches: one live part with three pieces, and streams that a test drives.
PAGE = """
const streams = [], watchers = [], moves = [];
const make = (html) => ({
  innerHTML: html, childNodes: [html],
  replaceChildren(...nodes) { this.innerHTML = nodes.map((one) => one.textContent ?? one).join(''); },
});
const pieces = { state: make('running'), trouble: make(''), rest: make('rest') };
const part = {
  dataset: { live: '/studies/care/live', page: '/studies/care' },
  querySelector: (selector) => pieces[selector.match(/"(.*)"/)[1]],
  querySelectorAll: () => [],
};
globalThis.document = {
  hidden: false,
  addEventListener: (_, watcher) => watchers.push(watcher),
  createElement: () => ({}),
  querySelectorAll: (selector) => (selector === '[data-live]' ? [part] : []),
};
globalThis.location = { replace: (path) => moves.push(path), reload: () => moves.push('reload') };
globalThis.DOMParser = class {
  parseFromString(text) {
    const found = Object.entries(JSON.parse(text));
    const fresh = found.map(([name, html]) => ({ ...make(html), dataset: { piece: name } }));
    return { querySelectorAll: () => fresh, body: { childNodes: [] } };
  }
};
globalThis.EventSource = class {
  constructor(path) { this.path = path; this.isOpen = true; this.heard = {}; streams.push(this); }
  addEventListener(kind, heard) { this.heard[kind] = heard; }
  close() { this.isOpen = false; }
  send(kind, data) { if (this.isOpen && this.heard[kind]) this.heard[kind]({ data: JSON.stringify(data ?? {}) }); }
};
const look = (hidden) => { document.hidden = hidden; watchers.forEach((watcher) => watcher()); };
const tell = () => console.log(JSON.stringify({
  open: streams.map((one) => one.isOpen), moves, trouble: pieces.trouble.innerHTML, state: pieces.state.innerHTML,
}));
"""


def run(steps: str) -> list[dict[str, Any]]:
    """What the page was like at each `tell()`."""
    assert NODE is not None
    ended = subprocess.run(
        [NODE, "-"], input=PAGE + SCRIPT.read_text() + steps, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_a_page_that_is_not_live_any_more_says_so_until_it_is_again() -> None:
    broken, again = run(
        "streams[0].send('error'); tell(); streams[0].send('part', {state: 'keyed', trouble: '', rest: 'x'}); tell();"
    )
    assert (broken["trouble"], broken["state"]) == ("Not live any more; load the page again.", "running")
    assert (again["trouble"], again["state"]) == ("", "keyed")


def test_trouble_of_the_server_leaves_the_rest_as_it_was() -> None:
    (shown,) = run("streams[0].send('part', {trouble: 'no curator'}); tell();")
    assert (shown["trouble"], shown["state"]) == ("no curator", "running")


def test_at_the_end_the_page_is_asked_for_anew_and_no_form_is_sent_again() -> None:
    (shown,) = run("streams[0].send('end'); tell();")
    assert shown["moves"] == ["/studies/care"]
    assert shown["open"] == [False]


def test_a_hidden_page_gives_its_connection_back() -> None:
    hidden, seen = run("look(true); tell(); look(false); tell();")
    assert hidden["open"] == [False]
    assert seen["open"] == [False, True]
