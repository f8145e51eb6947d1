"""Fifty parties on this machine finish a small study; time and memory are reported, not judged."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from synod.common.protocol.manifest import verify_release
from synod.v1 import study_pb2 as pb
from tests.support.daemons import MakeSite, Site, check_charges
from tests.support.surveys import draft_survey, make_rows, write_table

PARTIES = 50
SECONDS = 600.0


def resident_mib(site: Site) -> dict[str, float]:
    """The peak of each process's memory, where the system tells it."""
    found: dict[str, float] = {}
    for name, started in site.processes.items():
        status = Path(f"/proc/{started.process.pid}/status")
        if status.exists():
            (peak,) = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            found[name] = int(peak) / 1024
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_parties_finish_a_study(
    sites: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    tables = [write_table(tmp_path / f"party-{n:02}.csv", make_rows(10 + n, n)) for n in range(PARTIES)]
    site = sites(draft_survey("fifty", collusion=5), tables)
    assert len(site.study.roster) == PARTIES
    site.start_curator()
    site.submit()
    start = time.monotonic()
    site.start_parties()
    assert len({started.process.pid for started in site.processes.values()}) == PARTIES + 1
    site.await_state(pb.STUDY_STATE_PUBLISHED, seconds=SECONDS)
    seconds = time.monotonic() - start
    site.await_closed()
    memory = resident_mib(site)
    verify_release(site.release_folder(), None)
    check_charges(site)
    report = (
        f"{PARTIES} parties: {seconds:.0f} s from the first start to the release; "
        f"curator {memory.get('curator', 0):.0f} MiB, largest party "
        f"{max((mib for name, mib in memory.items() if name != 'curator'), default=0):.0f} MiB, "
        f"all {sum(memory.values()) / 1024:.1f} GiB"
    )
    record_property("report", report)
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
