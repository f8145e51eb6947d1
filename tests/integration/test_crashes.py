"""`kill -9` of a party or of the curator at every boundary of a step, and inside an upload; then a restart.

The study must end in the same release, byte for byte, as one that was never interrupted, and each ledger must show
each charge once. One prepared site is copied for each crash, so that all keys and secrets are the same; the study's
seed is fixed. Which calls write is found by introspection, so a new one is killed around without being listed here.
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from synod.common.runtime.errors import SynodError
from synod.curator.store import Store
from synod.party.client import CuratorClient
from synod.party.ledger import Ledger
from synod.v1 import study_pb2 as pb
from tests.support.crashes import VICTIM, Reference, await_death, check_end, crash_curator, crash_party, finish
from tests.support.daemons import CRASH_ENTRY, Site, copy_site, make_site, read_release
from tests.support.studies import NAMES

pytestmark = pytest.mark.slow

# Before the commit all work is done and none of it is on disk, so a kill before the call leaves no more than this one.
AROUND_A_WRITE = ("inside", "after")
# Writes and calls that a study's undisturbed run does not make, and where they are looked at instead.
NOT_IN_A_RUN = {
    "synod.curator.store.Store.add_study": "test_killed_while_a_study_is_submitted",
    "synod.party.ledger.Ledger.declare_spent": "made by `synod party init`, before any study",
    "synod.party.ledger.Ledger.rotate": "made between studies; test_party_rotation",
    "synod.curator.store.Store.add_rotation": "made between studies; test_curator_rotation",
    "synod.party.client.CuratorClient.decline": "made when a study is not approved",
    "synod.curator.store.Store.add_not_approved": "made when a study is not approved",
    "synod.curator.store.Store.add_loss": "made when a party is lost; test_losses",
    "synod.curator.store.Store.skip_step": "made when a party is lost; test_losses",
    "synod.party.ledger.Ledger.rename_dataset": "made by `synod party rename-dataset`",
}


def path_of(kind: type, name: str) -> str:
    return f"{kind.__module__}.{kind.__name__}.{name}"


def public_methods(kind: type) -> dict[str, Callable[..., object]]:
    return {
        name: function
        for name, function in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not isinstance(inspect.getattr_static(kind, name), staticmethod)
    }


def writers(kind: type) -> list[str]:
    """The public methods of a store that open a transaction."""
    return [
        path_of(kind, name)
        for name, function in public_methods(kind).items()
        if re.search(r"self\._(write|transaction)\(", inspect.getsource(function))
    ]


CURATOR_WRITES = writers(Store)
PARTY_WRITES = writers(Ledger)
PARTY_CALLS = [path_of(CuratorClient, name) for name in public_methods(CuratorClient) if name != "close"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site at rest: the study is submitted and has its key; nobody has approved."""
    site = make_site(tmp_path_factory.mktemp("prepared"))
    try:
        site.start_curator()
        site.submit()
        assert site.stop("curator") == 0
    finally:
        site.stop_all()
    return site


@pytest.fixture
def copies(prepared: Site, tmp_path: Path) -> Iterator[Callable[[], Site]]:
    """Copies of the prepared site; all are stopped at the end."""
    made: list[Site] = []

    def copy() -> Site:
        made.append(copy_site(prepared, tmp_path / str(len(made))))
        return made[-1]

    try:
        yield copy
    finally:
        for site in made:
            site.stop_all()


@pytest.fixture(scope="module")
def reference(prepared: Site, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """An undisturbed run, its calls written down."""
    folder = tmp_path_factory.mktemp("reference")
    site = copy_site(prepared, folder / "site")
    files = {name: folder / f"{name}.trace" for name in ("curator", VICTIM)}
    try:
        site.start_curator(program=(CRASH_ENTRY, f"trace:{files['curator']}"))
        site.start_party(VICTIM, program=(CRASH_ENTRY, f"trace:{files[VICTIM]}"))
        site.start_parties(*(name for name in NAMES if name != VICTIM))
        finish(site)
    finally:
        site.stop_all()
    lines = {name: [line.split() for line in file.read_text().splitlines()] for name, file in files.items()}
    return Reference(
        read_release(site.release_folder()),
        {name: Counter(call for call, _ in calls) for name, calls in lines.items()},
        {name: most_transactions(calls) for name, calls in lines.items()},
    )


def most_transactions(calls: list[list[str]]) -> dict[str, int]:
    """The most transactions that one call made, of calls that made any."""
    found: dict[str, int] = {}
    for call, count in calls:
        if int(count):
            found[call] = max(int(count), found.get(call, 0))
    return found


def test_every_write_of_a_run_is_killed_around(reference: Reference) -> None:
    """Introspection finds what the undisturbed run wrote, and the run makes what introspection finds."""
    curator, party = reference.transactions["curator"], reference.transactions[VICTIM]
    assert set(curator) <= set(CURATOR_WRITES)
    assert set(party) <= set(PARTY_WRITES)
    assert {*curator.values(), *party.values()} == {1}  # so there is no boundary inside of a write
    made = set(reference.calls["curator"]) | set(reference.calls[VICTIM])
    assert {*CURATOR_WRITES, *PARTY_WRITES, *PARTY_CALLS} - made == set(NOT_IN_A_RUN)


def test_the_same_site_gives_the_same_release_again(copies: Callable[[], Site], reference: Reference) -> None:
    site = copies()
    site.start_curator()
    site.start_parties()
    check_end(site, reference, "no crash")


@pytest.mark.parametrize("write", [call for call in CURATOR_WRITES if call not in NOT_IN_A_RUN])
def test_curator_killed_around_a_write(copies: Callable[[], Site], reference: Reference, write: str) -> None:
    first, *later = reference.numbers("curator", write)
    points = [f"{write}:{when}:{first}" for when in AROUND_A_WRITE]
    points += [f"{write}:after:{number}" for number in later]
    for point in points:
        crash_curator(copies(), reference, point)


@pytest.mark.parametrize("number", [1, 4])
def test_curator_killed_inside_an_upload(copies: Callable[[], Site], reference: Reference, number: int) -> None:
    crash_curator(copies(), reference, f"download:{number}")


@pytest.mark.parametrize(
    "point",
    [
        "synod.curator.release.files.write_csv:after:1",
        "synod.curator.release.files.seal_manifest:after:1",
        "synod.curator.release.files.sync_files:after:1",
        "synod.curator.release.files.sync_folder:before:1",  # moved to its place, and the study not ended
        "synod.curator.session.write_release:after:1",
    ],
)
def test_curator_killed_while_it_writes_the_release(
    copies: Callable[[], Site], reference: Reference, point: str
) -> None:
    crash_curator(copies(), reference, point)


def test_killed_while_a_study_is_submitted(copies: Callable[[], Site], prepared: Site) -> None:
    """The operator submits again, and the study's key is made once."""
    second = prepared.another_study("second-survey", epsilon="0.1")
    for point in (
        "synod.curator.study_handler.generate_key:after:1",
        "synod.curator.study_handler.write_private_file:after:1",
        "synod.curator.store.Store.add_study:before:1",
        "synod.curator.store.Store.add_study:inside:1",
        "synod.curator.store.Store.add_study:after:1",
    ):
        site = copies()
        site.start_curator(program=(CRASH_ENTRY, point))
        with pytest.raises(SynodError):
            site.submit(second)
        await_death(site, "curator", point)
        key = site.paths.folder / "curator" / "keys" / f"{second.digest().hex()}.json"
        before = key.read_bytes() if key.exists() else None
        site.start_curator()
        assert site.submit(second) == second.digest()
        assert before in (None, key.read_bytes())
        with site.operator() as client:
            assert {status.name for status in client.status()} == {prepared.study.name, second.name}
        site.stop_all()


@pytest.mark.parametrize("write", [call for call in PARTY_WRITES if call not in NOT_IN_A_RUN])
def test_party_killed_around_a_write(copies: Callable[[], Site], reference: Reference, write: str) -> None:
    for number in reference.numbers(VICTIM, write):
        for when in AROUND_A_WRITE:
            crash_party(copies(), reference, f"{write}:{when}:{number}")


@pytest.mark.parametrize("call", [call for call in PARTY_CALLS if call not in NOT_IN_A_RUN])
def test_party_killed_around_a_call(copies: Callable[[], Site], reference: Reference, call: str) -> None:
    for number in reference.numbers(VICTIM, call):
        for when in ("before", "after"):
            crash_party(copies(), reference, f"{call}:{when}:{number}")


@pytest.mark.parametrize(
    "point",
    [
        "upload:1",
        "upload:2",
        "synod.party.approval.save_snapshot:before:1",
        "synod.party.approval.save_snapshot:after:1",
        "synod.party.daemon.answer_round:before:1",
        "synod.party.rounds.answer:after:1",
        "synod.party.rounds.answer:after:2",
        "synod.party.daemon.drop_snapshot:before:1",
        "synod.party.daemon.drop_snapshot:after:1",
    ],
)
def test_party_killed_inside_a_step(copies: Callable[[], Site], reference: Reference, point: str) -> None:
    crash_party(copies(), reference, point)


def test_all_killed_at_once(copies: Callable[[], Site], reference: Reference) -> None:
    """A power cut: whoever is there is gone, at every state of the study that an operator can see."""
    site = copies()
    for state in (pb.STUDY_STATE_ENROLLING, pb.STUDY_STATE_RUNNING):
        site.start_curator()
        site.start_party(VICTIM)
        if state == pb.STUDY_STATE_RUNNING:
            site.start_parties("north", "valley")
            site.await_event("north", "answered")
        else:
            site.await_event(VICTIM, "enrolled")
        for name in list(site.processes):
            site.kill(name)
    site.start_curator()
    site.start_parties()
    check_end(site, reference, "all at once")
