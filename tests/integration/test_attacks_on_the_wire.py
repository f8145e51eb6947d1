"""What a bad party, a clone or an old copy of a ledger can do over the wire: nothing, and it is told why."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

from synod.common.crypto.certificates import read_tls
from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import SecretKey
from synod.common.protocol.heads import Head
from synod.common.protocol.plan import plan_study
from synod.common.protocol.submission import AnsweredStep, Submission, digest_of
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import open_channel
from synod.party.approval import identity_path
from synod.party.client import CuratorClient
from synod.party.ledger import Ledger
from synod.v1 import party_pb2 as pb
from synod.v1 import party_pb2_grpc as rpc
from synod.v1 import study_pb2 as spb
from tests.support.daemons import CRASH_ENTRY, Site, check_charges, copy_site, make_site, read_release, run_synod, until
from tests.support.studies import NAMES

BAD = "valley"


@dataclass
class Attacker:
    """A party that has its own key and its sound answer to the open round, and sends what it likes."""

    site: Site
    client: CuratorClient
    identity: Identity
    head: Head
    sound: Submission
    payload: bytes
    key: SecretKey

    def signed(self, payload: bytes, **changes: bytes | int | str) -> Submission:
        """A header for other bytes, with signatures of this party's own."""
        header = replace(self.sound, length=len(payload), digest=digest_of(payload))
        header = replace(header, **changes)  # type: ignore[arg-type]
        cost = plan_study(self.site.study).step(self.sound.label).cost
        curator = Identity.load(self.site.paths.folder / "curator" / "identity.pem").public_key
        return header.signed_by(self.identity, BAD, curator, [AnsweredStep(header.label, header.query.hex(), cost)])

    def send(self, header: Submission, payload: bytes) -> None:
        """Sends an answer."""
        self.client.submit(header, payload, self.head)

    def stored(self, party: str = BAD) -> list[tuple[str, bytes]]:
        """What the curator has stored of a party."""
        with closing(sqlite3.connect(self.site.paths.folder / "curator" / "store.sqlite")) as database:
            rows = database.execute("SELECT label, header FROM submissions WHERE party = ?", (party,)).fetchall()
        return [(str(label), bytes(header)) for label, header in rows]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site at rest with its study submitted."""
    site = make_site(tmp_path_factory.mktemp("prepared"))
    try:
        site.start_curator()
        site.submit()
        site.stop("curator")
    finally:
        site.stop_all()
    return site


@pytest.fixture
def copied(prepared: Site, tmp_path: Path) -> Iterator[Site]:
    """A copy of the prepared site."""
    site = copy_site(prepared, tmp_path / "site")
    try:
        yield site
    finally:
        site.stop_all()


@contextmanager
def attack(site: Site) -> Iterator[Attacker]:
    """The round `moments` is open, two have answered, and the third holds its answer in hand."""
    site.start_curator()
    dying = site.start_party(BAD, program=(CRASH_ENTRY, "synod.party.ledger.Ledger.charge:after:1"))
    site.start_parties(*(name for name in NAMES if name != BAD))
    assert dying.process.wait(60) == -9
    until(
        "the others have answered",
        lambda: [party.name for party in site.status().parties if party.awaited] == [BAD],
    )
    settings = site.settings(BAD)
    identity = Identity.load(identity_path(settings))
    ledger = Ledger.open(settings.state)
    stored, head = ledger.answer(site.study.digest(), "moments"), ledger.head()
    ledger.close()
    assert stored is not None
    key_file = site.paths.folder / "curator" / "keys" / f"{site.study.digest().hex()}.json"
    key = SecretKey.from_json(json.loads(key_file.read_bytes()))
    client = CuratorClient(settings, identity)
    with closing(client):
        yield Attacker(site, client, identity, head, Submission.from_json(stored.header), stored.payload, key)


@pytest.fixture
def attacker(copied: Site) -> Iterator[Attacker]:
    """An attacker whose study may go on."""
    with attack(copied) as found:
        yield found


@pytest.fixture(scope="module")
def stuck(prepared: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    """An attacker for tests that must leave everything as it was."""
    site = copy_site(prepared, tmp_path_factory.mktemp("stuck") / "site")
    try:
        with attack(site) as found:
            yield found
    finally:
        site.stop_all()


def test_unsound_submissions_are_refused_and_leave_nothing(stuck: Attacker) -> None:
    attacker = stuck
    sound, payload, key = attacker.sound, attacker.payload, attacker.key
    width = key.public.ciphertext_bytes
    flipped = payload[:-1] + bytes([payload[-1] ^ 1])

    def with_first(ciphertext: int) -> bytes:
        return ciphertext.to_bytes(width, "big") + payload[width:]

    def resigned(body: bytes, **changes: bytes | int | str) -> tuple[Submission, bytes]:
        return attacker.signed(body, **changes), body

    nsquare = key.public.n**2
    cases: list[tuple[tuple[Submission, bytes], Code, str]] = [
        # altered on its way
        ((sound, flipped), Code.CHECK_FAILED, "the answer of valley is not the one that its header describes."),
        ((sound, payload[:-1]), Code.CHECK_FAILED, "the answer of valley is not the one that its header describes."),
        ((sound, b""), Code.CHECK_FAILED, "the answer of valley is not the one that its header describes."),
        ((sound, payload + b"\0"), Code.INVALID, "the upload is longer than its header says."),
        # 1. signatures
        (
            (replace(sound, signature=bytes(64)), payload),
            Code.CHECK_FAILED,
            "the signature of valley on answer is not valid.",
        ),
        (
            (replace(sound, digest=digest_of(flipped)), flipped),
            Code.CHECK_FAILED,
            "the signature of valley on answer is not valid.",
        ),
        (
            (replace(sound, account_signature=bytes(64)), payload),
            Code.CHECK_FAILED,
            "the signature of valley on account is not valid.",
        ),
        # 2. what it is bound to
        (
            resigned(payload, transcript=bytes(32)),
            Code.CHECK_FAILED,
            "bound to another transcript, round, query or key",
        ),
        (resigned(payload, query=bytes(32)), Code.CHECK_FAILED, "bound to another transcript, round, query or key"),
        (resigned(payload, key_id=bytes(32)), Code.CHECK_FAILED, "bound to another transcript, round, query or key"),
        (resigned(payload, label="rows"), Code.NOT_FOUND, "the round rows is not open."),
        (resigned(payload, label="moments-again"), Code.NOT_READY, "survey has no such round open."),
        (resigned(payload, study_hash=bytes(32)), Code.NOT_FOUND, "there is no such study."),
        # 3. length
        (resigned(payload + payload[:width]), Code.CHECK_FAILED, "has the wrong length."),
        (resigned(payload[:-1]), Code.CHECK_FAILED, "has the wrong length."),
        # 4. ciphertexts
        (resigned(with_first(0)), Code.CHECK_FAILED, "Ciphertext 0 is out of range."),
        (resigned(with_first(nsquare)), Code.CHECK_FAILED, "Ciphertext 0 is out of range."),
        (resigned(with_first(key.p)), Code.CHECK_FAILED, "Ciphertext 0 is not coprime to the Paillier modulus."),
        (resigned(with_first(7 * key.q)), Code.CHECK_FAILED, "Ciphertext 0 is not coprime to the Paillier modulus."),
    ]
    entries = attacker.site.ledger_entries(BAD)
    for number, ((header, body), code, sentence) in enumerate(cases):
        with pytest.raises(SynodError) as caught:
            attacker.send(header, body)
        assert (number, caught.value.code) == (number, code)
        assert sentence in caught.value.sentence
        assert attacker.stored() == []
    status = attacker.site.status()
    assert (status.state, status.label) == (spb.STUDY_STATE_RUNNING, "moments")
    assert [party.name for party in status.parties if party.awaited] == [BAD]
    assert attacker.site.ledger_entries(BAD) == entries


def test_a_replayed_submission_is_taken_once_and_another_one_never(attacker: Attacker) -> None:
    for _ in range(3):
        attacker.send(attacker.sound, attacker.payload)
        ((label, header),) = attacker.stored()
        assert (label, Submission.from_json(json.loads(header))) == ("moments", attacker.sound)
    until("the round closes", lambda: attacker.site.status().gathering == [BAD])  # which has not polled since
    attacker.send(attacker.sound, attacker.payload)

    public = attacker.key.public
    first = int.from_bytes(attacker.payload[: public.ciphertext_bytes], "big")
    other = first * public.h_s % public.n**2  # the same plaintext under other coins: sound in itself
    body = other.to_bytes(public.ciphertext_bytes, "big") + attacker.payload[public.ciphertext_bytes :]
    with pytest.raises(SynodError) as caught:
        attacker.send(attacker.signed(body), body)
    assert caught.value.code is Code.CONFLICT
    assert caught.value.sentence == "valley has another answer stored for round moments."
    assert len(attacker.stored()) == 1

    attacker.site.start_party(BAD)
    attacker.site.await_state(spb.STUDY_STATE_PUBLISHED)
    attacker.site.await_closed()
    check_charges(attacker.site)
    entries, stored = attacker.site.ledger_entries(BAD), attacker.stored()
    attacker.send(attacker.sound, attacker.payload)  # also when all is over
    assert (attacker.site.ledger_entries(BAD), attacker.stored()) == (entries, stored)
    with pytest.raises(SynodError):
        attacker.send(attacker.signed(body), body)
    assert attacker.stored() == stored


def test_one_party_cannot_answer_for_another(stuck: Attacker) -> None:
    """The certificate says who speaks; the signature must be that party's."""
    settings = stuck.site.settings("north")
    north = CuratorClient(settings, Identity.load(identity_path(settings)))
    with closing(north), pytest.raises(SynodError, match="the signature of north on answer is not valid"):
        north.submit(stuck.sound, stuck.payload, stuck.head)
    assert stuck.stored() == []


def test_an_upload_without_a_header_or_with_a_second_one_is_refused(stuck: Attacker) -> None:
    settings = stuck.site.settings(BAD)
    header, *chunks = stuck.client._parts(stuck.sound, stuck.payload, stuck.head)
    uploads: list[tuple[list[pb.SubmitRequest], str]] = [
        ([], "an upload starts with its header."),
        (chunks, "an upload starts with its header."),
        ([header, header, *chunks], "after its header, an upload is chunks of at most 512 KiB."),
        ([header, pb.SubmitRequest()], "after its header, an upload is chunks of at most 512 KiB."),
        (
            [header, pb.SubmitRequest(chunk=bytes(600 << 10))],
            "after its header, an upload is chunks of at most 512 KiB.",
        ),
    ]
    with closing(open_channel(settings.address, read_tls(settings.tls), proxy=None)) as channel:
        for parts, sentence in uploads:
            with pytest.raises(grpc.RpcError) as caught:
                rpc.PartyServiceStub(channel).Submit(iter(parts), timeout=10)
            assert caught.value.details() == sentence
    assert stuck.stored() == []


# Clones and old ledgers


@pytest.fixture(scope="module")
def finished(prepared: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """The prepared site after an undisturbed study, and a clone of a party from before it."""
    site = copy_site(prepared, tmp_path_factory.mktemp("finished") / "site")
    try:
        site.start_curator()
        config = clone(site, BAD)
        site.start_parties()
        site.await_state(spb.STUDY_STATE_PUBLISHED)
        site.await_closed()
        yield site, config
    finally:
        site.stop_all()


def clone(site: Site, name: str) -> Path:
    """A copy of a party's folder, as a machine's snapshot would make one; returns its configuration."""
    folder = site.config(name).parent
    shutil.copytree(folder, folder.with_name(f"{name}-clone"))
    return folder.with_name(f"{name}-clone") / site.config(name).name


def answers(config: Path, study_hash: bytes) -> dict[str, str]:
    """The headers of a ledger's answers, each with its bytes' hash; the bytes are gone when the study has ended."""
    ledger = Ledger.open(config.parent / "state")
    try:
        found = {label: ledger.answer(study_hash, label) for label in ("moments", "rows")}
    finally:
        ledger.close()
    return {label: json.dumps(a.header) for label, a in found.items() if a is not None}


def test_a_clone_at_the_same_time_sends_the_very_same_bytes(copied: Site, finished: tuple[Site, Path]) -> None:
    copied.start_curator()
    config = clone(copied, BAD)
    copied.start_clone("clone", config)
    copied.start_parties()
    ends = (spb.STUDY_STATE_PUBLISHED, spb.STUDY_STATE_ABORTED)
    ended = until("the study ends", lambda: (status := copied.status()).state in ends and status)
    own, cloned = (answers(path, copied.study.digest()) for path in (copied.config(BAD), config))
    # One of the two may miss a round that the other answered; it ends then, and declines nothing.
    assert ended.state == spb.STUDY_STATE_PUBLISHED, ended.reason
    assert read_release(copied.release_folder()) == read_release(finished[0].release_folder())
    assert set(own) | set(cloned) == {"moments", "rows"}
    for label in set(own) & set(cloned):
        assert own[label] == cloned[label]
    for path in (copied.config(BAD), config):
        ledger = Ledger.open(path.parent / "state")
        charged = [entry["label"] for entry in ledger.entries() if entry["kind"] == "charged"]
        ledger.close()
        assert len(charged) == len(set(charged))


def test_a_ledger_from_before_an_unsent_answer_gives_the_same_answer(attacker: Attacker) -> None:
    """The curator cannot know of a charge whose answer never left; the coins are the same, so nothing is lost."""
    site = attacker.site
    config = clone(site, BAD)
    with closing(sqlite3.connect(config.parent / "state" / "ledger.sqlite")) as database, database:
        database.execute("DELETE FROM entries WHERE sequence > 2")  # as it was after the approval
        database.execute("DELETE FROM answers")
    site.start_clone("clone", config)
    until("the clone answers", lambda: "moments" in dict(attacker.stored()))
    assert Submission.from_json(json.loads(dict(attacker.stored())["moments"])) == attacker.sound
    site.await_state(spb.STUDY_STATE_PUBLISHED)
    # The first copy is beside its clone now, and the curator has seen the clone's head.
    ran = run_synod("party", "serve", "--config", site.config(BAD))
    assert ran.returncode == 3
    assert "this ledger is behind, or beside, what the curator has seen of it: an old copy or a clone." in ran.stderr


def test_a_clone_after_the_study_is_refused(finished: tuple[Site, Path]) -> None:
    site, config = finished
    ran = run_synod("party", "serve", "--config", config)
    assert ran.returncode == 3
    assert "this ledger is behind, or beside, what the curator has seen of it" in ran.stderr
    assert answers(config, site.study.digest()) == {}
    check_charges(site)


def restore(backup: Path, state: Path) -> None:
    for path in state.glob("ledger.sqlite*"):
        path.unlink()
    for path in backup.glob("ledger.sqlite*"):
        shutil.copy(path, state)


def test_a_restored_old_ledger_is_refused(copied: Site, tmp_path: Path) -> None:
    """Restored in the middle of a study: what was reserved is not in it, and it may not go on."""
    state = copied.settings(BAD).state
    shutil.copytree(state, tmp_path / "backup")
    copied.start_curator()
    copied.start_parties(BAD)
    copied.await_event(BAD, "enrolled")
    until("the curator has seen the approval", lambda: seen_heads(copied) == {2})
    assert copied.stop(BAD) == 0
    shutil.copytree(state, tmp_path / "newest")
    restore(tmp_path / "backup", state)
    ran = run_synod("party", "serve", "--config", copied.config(BAD))
    assert ran.returncode == 3
    assert "Stop the other copy and restore the newest ledger; never run two." in ran.stderr

    # Beside: as long as the newest, but with another history.
    approved = run_synod("party", "init", "--spent", "0.1", "--spent-rho", "0", "--yes", "--config", copied.config(BAD))
    assert approved.returncode == 0, approved.stderr
    assert len(copied.ledger_entries(BAD)) == 2
    assert run_synod("party", "serve", "--config", copied.config(BAD)).returncode == 3

    restore(tmp_path / "newest", state)
    copied.start_parties()
    copied.await_state(spb.STUDY_STATE_PUBLISHED)
    copied.await_closed()
    check_charges(copied)


def seen_heads(site: Site) -> set[int]:
    with closing(sqlite3.connect(site.paths.folder / "curator" / "store.sqlite")) as database:
        return {int(sequence) for (sequence,) in database.execute("SELECT sequence FROM heads")}


@pytest.mark.parametrize("who", ["party", "curator"])
def test_one_process_for_each_state_folder(finished: tuple[Site, Path], who: str) -> None:
    site, _ = finished
    config = site.config(BAD) if who == "party" else site.paths.curator_config
    second = run_synod(who, "serve", "--config", config)
    assert second.returncode == 1
    assert "another process is serving" in second.stderr
    assert all(started.process.poll() is None for started in site.processes.values())


def test_a_question_that_the_curator_did_not_sign_is_not_answered(copied: Site) -> None:
    """Somebody runs the curator's program with its TLS key and its transcript, and lacks its identity."""
    copied.start_curator()
    dying = copied.start_party(BAD, program=(CRASH_ENTRY, "synod.party.ledger.Ledger.charge:before:1"))
    copied.start_parties(*(name for name in NAMES if name != BAD))
    assert dying.process.wait(60) == -9
    assert copied.stop("curator") == 0
    signature = Identity.generate().sign("query", {"label": "moments"})
    with closing(sqlite3.connect(copied.paths.folder / "curator" / "store.sqlite")) as database, database:
        assert database.execute("UPDATE queries SET signature = ?", (signature,)).rowcount == 1
    copied.start_curator()
    copied.start_parties(BAD)
    copied.await_state(spb.STUDY_STATE_ABORTED)
    assert f"{BAD} declined: a check on its side failed" in copied.status().reason
    refusals = [line for line in copied.log(BAD) if line.get("why")]
    assert any("the signature of the curator on query is not valid" in line["why"] for line in refusals)
    assert all(entry["kind"] != "charged" for entry in copied.ledger_entries(BAD))
