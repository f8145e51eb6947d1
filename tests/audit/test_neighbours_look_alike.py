"""What is not noise must not differ between neighbouring tables: which calls are made, in which order, of which size,
what ledgers and logs say, and what the curator is told about a table that does not fit.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.parties import file_of
from tests.support.simulation import SimulatedSite, World, make_site, run_world, settings_of
from tests.support.studies import NAMES

PARTY = 0
RANDOM = {"salt", "previous", "snapshot", "source", "transcript", "query", "answer"}
"""Of a ledger's entry: hashes that depend on a random salt, on keys that are drawn for a snapshot, or on the ledger's
secret.
"""


def replace_row(site: SimulatedSite, folder: Path, *rows: tuple[int, str]) -> SimulatedSite:
    """The same site, ledgers and all, but for rows of one party's table."""
    shutil.copytree(site.folder, folder)
    source = file_of(settings_of(folder, PARTY))
    lines = source.read_text().splitlines()
    for place, row in rows:
        assert lines[place] != row
        lines[place] = row
    source.write_text("\n".join(lines) + "\n")
    return SimulatedSite(folder, site.study)


@contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, Any]]]:
    """What the program logs meanwhile, with everything that was noted beside a line."""
    usual = set(logging.makeLogRecord({}).__dict__)
    caplog.clear()
    found: list[dict[str, Any]] = []
    with caplog.at_level(logging.DEBUG, logger="synod"):
        yield found
    for record in caplog.records:
        noted = {key: value for key, value in record.__dict__.items() if key not in usual}
        found.append({"text": record.getMessage(), **noted})


def look_of(world: World) -> dict[str, Any]:
    """Everything about a run that is no noisy content."""
    entries = []
    for index in range(len(NAMES)):
        with world.ledger(index) as ledger:
            entries.append([{k: v for k, v in entry.items() if k not in RANDOM} for entry in ledger.entries()])
    sizes = {key: [(s.length, len(payload)) for s, payload in sent] for key, sent in world.left.items()}
    return {
        "calls": [(message.party, message.name) for message in world.sent],
        "sizes": sizes,
        "declined": world.declined,
        "states": world.states,
        "ledgers": entries,
        "files": sorted(world.release()),
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    return make_site(tmp_path_factory.mktemp("site"))


def test_a_study_over_neighbouring_tables_looks_the_same(
    original: SimulatedSite, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    neighbour = replace_row(original, tmp_path / "neighbour", (1, "M,90"))
    looks, logs, answers = [], [], []
    for site in (original, neighbour):
        with logged(caplog) as log, run_world(site) as world:
            world.finish()
            looks.append(look_of(world))
            answers.append({key: {payload for _, payload in sent} for key, sent in world.left.items()})
        logs.append(log)
    assert looks[0] == looks[1]
    assert logs[0] == logs[1]
    assert logs[0]
    differ = {key for key in answers[0] if answers[0][key] != answers[1][key]}
    assert (NAMES[PARTY], "moments") in differ, "the tables are neighbours, and not the same"


def test_the_curator_hears_the_same_of_every_table_that_does_not_fit(original: SimulatedSite, tmp_path: Path) -> None:
    broken = [
        replace_row(original, tmp_path / "one", (1, "X,30")),
        replace_row(original, tmp_path / "two", (2, "F,200"), (3, "M,")),
    ]
    heard = []
    for site in broken:
        with run_world(site) as world:
            for _ in range(2):
                for index in range(len(NAMES)):
                    world.converse(index)
            heard.append(look_of(world))
    assert heard[0]["declined"]
    assert heard[0] == heard[1]
