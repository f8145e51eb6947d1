"""Runs of real processes that are killed at a point and started again, and must end as if nothing had happened."""

from collections import Counter
from dataclasses import dataclass

from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import SynodError
from synod.deploy.launch.processes import await_curator
from synod.v1 import study_pb2 as pb
from tests.support.daemons import CRASH_ENTRY, Site, check_charges, read_release, until
from tests.support.studies import NAMES

VICTIM = "harbour"  # in the middle of the roster: it adds one mask and subtracts another
OFTEN = 8  # a call that comes more often than this is a heartbeat, and its last one is not a boundary of a step


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run left: its release, and by process how often it made which call, and how many
    transactions one call made at most.
    """

    release: dict[str, bytes]
    calls: dict[str, Counter[str]]
    transactions: dict[str, dict[str, int]]

    def numbers(self, process: str, call: str) -> list[int]:
        """Which calls of a run to kill at: the first and the last; of a heartbeat, the first."""
        count = self.calls[process][call]
        return sorted({1, count if count <= OFTEN else 1})


def finish(site: Site) -> None:
    """Waits until the study is published and every ledger is closed."""
    site.await_state(pb.STUDY_STATE_PUBLISHED)
    site.await_closed()


def check_end(site: Site, reference: Reference, point: str) -> None:
    """The study ends as if nothing had happened."""
    finish(site)
    release = read_release(site.release_folder())
    assert sorted(release) == sorted(reference.release), point
    assert [name for name in release if release[name] != reference.release[name]] == [], point
    verify_release(site.release_folder(), None)
    check_charges(site)
    assert [path.name for path in site.release_folder().parent.iterdir()] == [site.release_folder().name], point


def await_death(site: Site, name: str, point: str) -> None:
    """Waits until a process has killed itself."""
    process = site.processes[name].process
    code = until(f"{name} dies at {point}", process.poll, seconds=60)
    assert code == -9, (point, code, site.processes[name].log.read_text())


def crash_curator(site: Site, reference: Reference, point: str) -> None:
    """A run in which the curator is killed at this point, and started again."""
    dying = site.start_curator(program=(CRASH_ENTRY, point), wait=False)
    try:
        await_curator(site.paths, dying)
        site.start_parties()
    except SynodError:
        assert dying.process.poll() == -9, point
    await_death(site, "curator", point)
    site.start_curator()
    for name in NAMES:
        if name not in site.processes:
            site.start_party(name)
    check_end(site, reference, point)
    site.stop_all()


def crash_party(site: Site, reference: Reference, point: str) -> None:
    """A run in which one party is killed at this point, and started again."""
    site.start_curator()
    site.start_party(VICTIM, program=(CRASH_ENTRY, point))
    site.start_parties(*(name for name in NAMES if name != VICTIM))
    await_death(site, VICTIM, point)
    site.start_party(VICTIM)
    check_end(site, reference, point)
    site.stop_all()
