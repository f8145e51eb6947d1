"""Backups: whole, private, of one moment; and a way back that replaces nothing and refuses what is not the newest."""

import io
import json
import stat
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto import sealedfile
from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import new_private_file
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import Study
from synod.party.account import ApprovalState
from synod.party.approval import check_study, identity_path, initialize, reserve, revoke, snapshot_folder
from synod.party.client import Greeting
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.party.operations import restore as restore_module
from synod.party.operations.backup import CONTENTS_FILE, copy_ledger, write_backup
from synod.party.operations.restore import examine, place, reserved, unpacked
from synod.party.table.snapshot import drop_snapshot, load_snapshot
from synod.v1 import party_pb2 as pb
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import file_of, make_settings
from tests.support.studies import make_study

NOW = 1_700_000_000
CONFIG = b"name: north\n"
PASSPHRASE = b"correct horse"
TABLE = "sex,age,income,ward\nF,30,500,a\nM,40,,b\nF,50,1000,c\n"
Greet = Callable[[Identity, Head], Greeting]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sealedfile.SCRYPT, "n", 2)


def study_for(settings: PartySettings, **changes: Any) -> Study:
    study = make_study(rows=(3, 5, 5), **changes)
    first, *rest = study.roster
    first = first.model_copy(update={"key": Identity.load(identity_path(settings)).fingerprint})
    return study.model_copy(update={"roster": (first, *rest), "rows": 13}).resolve()


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    """A party with one open study."""
    made = make_settings(tmp_path / "here")
    made.state.mkdir(parents=True)
    file_of(made).write_text(TABLE)
    initialize(made, spent=None, now=NOW)
    reserve(made, check_study(made, study_for(made)), now=NOW)
    return made


@pytest.fixture
def elsewhere(tmp_path: Path) -> PartySettings:
    """The same party's configuration on another machine, without a state."""
    return make_settings(tmp_path / "there")


def back_up(settings: PartySettings, passphrase: bytes | None = None) -> bytes:
    sink = io.BytesIO()
    write_backup(settings, CONFIG, sink, passphrase, now=NOW)
    return sink.getvalue()


def head_of(settings: PartySettings) -> Head:
    ledger = Ledger.open(settings.state)
    try:
        return ledger.head()
    finally:
        ledger.close()


def go_on(settings: PartySettings) -> None:
    """One more entry."""
    ledger = Ledger.open(settings.state)
    ledger.end_study(study_for(settings).digest(), ApprovalState.PUBLISHED, now=NOW)
    ledger.close()


def curator_that_saw(seen: Head | None, by: Identity, curator: str = CURATOR) -> Greet:
    """A curator that shows a head, signed by the identity `by`."""

    def greet(_: Identity, head: Head) -> Greeting:
        assert head == Head(1, head.ledger, head.ledger), "what is not restored yet is not told"
        shown = None
        if seen is not None:
            signature = by.sign("head", seen.statement())
            shown = pb.LedgerHead(sequence=seen.sequence, hash=seen.hash, ledger=seen.ledger, signature=signature)
        return Greeting("synod/v1", NOW, shown, identity_of(curator).public_key)

    return greet


def restore(
    settings: PartySettings,
    data: bytes,
    passphrase: bytes | None = None,
    *,
    greet: Greet | None = None,
    exports: Iterable[Path] = (),
) -> list[str]:
    with reserved(settings), unpacked(settings, io.BytesIO(data), passphrase) as found:
        lines = list(examine(settings, found, greet=greet, releases=(), exports=exports))
        place(settings, found, identity_only=False)
    return lines


def refusal(settings: PartySettings, data: bytes, sentence: str, code: Code, **how: Any) -> None:
    """It is refused with this sentence, and nothing is there afterwards that was not before."""
    before = sorted(settings.state.rglob("*")) if settings.state.exists() else None
    with pytest.raises(SynodError, match=sentence) as caught:
        restore(settings, data, **how)
    assert caught.value.code is code
    after = sorted(settings.state.rglob("*")) if settings.state.exists() else None
    assert after == (before if before is None else sorted({*before, settings.state / "process.lock"}))


# What is in one


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_all_comes_back_elsewhere(settings: PartySettings, elsewhere: PartySettings, passphrase: bytes | None) -> None:
    data = back_up(settings, passphrase)
    lines = restore(elsewhere, data, passphrase)
    assert head_of(elsewhere) == head_of(settings)
    assert identity_path(elsewhere).read_bytes() == identity_path(settings).read_bytes()
    study = study_for(settings)
    ledger = Ledger.open(elsewhere.state)
    sealed = bytes.fromhex(ledger.account().approvals[study.digest().hex()].snapshot)
    load_snapshot(snapshot_folder(elsewhere, study.digest()), study, sealed, seal=ledger.seal)
    ledger.close()
    assert lines[0].startswith("the ledger is whole: 2 entries; spent epsilon 0, held epsilon ")
    assert lines[1].endswith("is open, with 0 rounds answered; its snapshot is the table that was approved")
    private = [identity_path(elsewhere), elsewhere.state / LEDGER_FILE, elsewhere.state, elsewhere.state / "snapshots"]
    assert [path for path in private if path.stat().st_mode & 0o077] == []
    assert not list(elsewhere.state.glob("restore-*"))


def test_a_passphrase_hides_everything(settings: PartySettings) -> None:
    clear, sealed = back_up(settings), back_up(settings, PASSPHRASE)
    for text in (b"PRIVATE KEY", b"SQLite format 3", CONFIG, b"NUMPY", CONTENTS_FILE.encode()):
        assert text in clear
        assert text not in sealed


def test_the_file_is_for_its_owner_and_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.backup"
    with pytest.raises(TypeError), new_private_file(path) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
    with new_private_file(path) as file:
        assert stat.S_IMODE((tmp_path / "a.backup.draft").stat().st_mode) == 0o600
        file.write(b"whole")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"whole", 0o600)
    with pytest.raises(SynodError, match="is there already"), new_private_file(path) as file:
        file.write(b"other")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"whole", [path])


def test_it_is_of_one_moment(settings: PartySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study ends while the ledger is copied: the copy is made again, and neither has nor misses its snapshot."""
    copy = Ledger.copy
    made: list[bytes] = []

    def interrupted(self: Ledger) -> bytes:
        data = copy(self)
        if not made:
            revoke(settings, study_for(settings).digest(), now=NOW)
        made.append(data)
        return data

    monkeypatch.setattr(Ledger, "copy", interrupted)
    copied = copy_ledger(settings)
    assert len(made) == 2
    assert (copied.database, copied.snapshots, copied.missing) == (made[1], {}, ())
    assert copied.head == head_of(settings)


def test_a_ledger_that_never_rests_is_not_copied_for_ever(
    settings: PartySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = iter(range(1000))
    monkeypatch.setattr(Ledger, "head", lambda _: Head(next(heads), bytes(32), bytes(32)))
    with pytest.raises(SynodError, match="changed while it was copied"):
        copy_ledger(settings)


def test_a_snapshot_that_is_gone_is_named(settings: PartySettings, elsewhere: PartySettings) -> None:
    study = study_for(settings)
    drop_snapshot(snapshot_folder(settings, study.digest()))
    assert copy_ledger(settings).missing == (study.name,)
    assert "its snapshot is not in the backup" in restore(elsewhere, back_up(settings))[1]


# What is refused


def test_a_head_older_than_the_curator_has_seen(settings: PartySettings, elsewhere: PartySettings) -> None:
    old, identity = back_up(settings), Identity.load(identity_path(settings))
    at_the_time = head_of(settings)
    go_on(settings)
    newest = head_of(settings)
    refusal(
        elsewhere,
        old,
        "older than what the curator has seen of this ledger: it ends at entry 2, and entry 3 was seen",
        Code.REFUSED,
        greet=curator_that_saw(newest, identity),
    )
    beside = replace(at_the_time, hash=bytes(32))
    refusal(
        elsewhere, old, "of another copy of the ledger than the curator has seen", Code.REFUSED,
        greet=curator_that_saw(beside, identity),
    )  # fmt: skip
    refusal(
        elsewhere, old, "not the one that `curator` pins", Code.REFUSED,
        greet=curator_that_saw(None, identity, "somebody"),
    )  # fmt: skip
    restore(elsewhere, old, greet=curator_that_saw(at_the_time, identity))


@pytest.mark.parametrize("seen_by", ["nobody", "somebody else"])
def test_what_this_party_has_not_signed_says_nothing(
    settings: PartySettings, elsewhere: PartySettings, seen_by: str
) -> None:
    seen = None if seen_by == "nobody" else Head(9, bytes(32), bytes(32))
    lines = restore(elsewhere, back_up(settings), greet=curator_that_saw(seen, identity_of("valley")))
    assert "curator" in lines[-1]


def test_an_exported_ledger_is_a_witness(settings: PartySettings, elsewhere: PartySettings, tmp_path: Path) -> None:
    old, identity = back_up(settings), Identity.load(identity_path(settings))
    export = tmp_path / "ledger.json"

    def write(head: Head, by: Identity = identity) -> None:
        signature = by.sign("head", head.statement()).hex()
        export.write_text(json.dumps({"head": head.statement(), "signature": signature}))

    go_on(settings)
    write(head_of(settings))
    refusal(elsewhere, old, "older than what .*ledger.json has seen", Code.REFUSED, exports=[export])
    write(Head(1, bytes(32), bytes(32)))
    refusal(elsewhere, old, "is of another ledger of this party", Code.REFUSED, exports=[export])
    write(head_of(settings), identity_of("valley"))
    refusal(elsewhere, old, "is not signed by this party", Code.CHECK_FAILED, exports=[export])
    export.write_text("{}")
    refusal(elsewhere, old, "is not what `synod party ledger export` printed", Code.INVALID, exports=[export])
    first = head_of(settings).ledger
    write(Head(1, first, first))
    assert restore(elsewhere, old, exports=[export])[-1].startswith("not behind the ledger that was exported")


def test_nothing_is_replaced(settings: PartySettings, elsewhere: PartySettings) -> None:
    data = back_up(settings)
    refusal(settings, data, "there is a ledger at", Code.INVALID)
    elsewhere.state.mkdir(parents=True)
    identity_of("valley").save(identity_path(elsewhere))
    refusal(elsewhere, data, "there is another identity key", Code.INVALID)
    identity_path(elsewhere).write_bytes(identity_path(settings).read_bytes())
    restore(elsewhere, data)
    assert head_of(elsewhere) == head_of(settings)


def test_not_beside_a_daemon(settings: PartySettings, elsewhere: PartySettings) -> None:
    with exclusive_lock(elsewhere.state):
        refusal(elsewhere, back_up(settings), "another process is serving", Code.CONFLICT)


def test_another_party_or_dataset(settings: PartySettings, elsewhere: PartySettings) -> None:
    for changes in ({"name": "valley"}, {"dataset": "fresh"}):
        other = elsewhere.model_copy(update=changes)
        refusal(other, back_up(settings), "the backup is of north and its dataset table", Code.INVALID)


def test_a_passphrase_that_is_wrong_or_missing(settings: PartySettings, elsewhere: PartySettings) -> None:
    sealed = back_up(settings, PASSPHRASE)
    refusal(elsewhere, sealed, "the backup is encrypted", Code.INVALID)
    refusal(elsewhere, sealed, "does not open with this passphrase", Code.CHECK_FAILED, passphrase=b"other")


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_a_file_that_was_cut_short_or_damaged(
    settings: PartySettings, elsewhere: PartySettings, passphrase: bytes | None
) -> None:
    data = back_up(settings, passphrase)
    place_of_the_key = data.find(b"PRIVATE KEY") if passphrase is None else len(data) // 2
    damaged = bytearray(data)
    damaged[place_of_the_key + 60] ^= 1
    for broken in (b"", data[:100], data[: len(data) // 2], bytes(damaged), b"x" * 20_000):
        with pytest.raises(SynodError) as caught:
            restore(elsewhere, broken, passphrase)
        assert caught.value.code in (Code.CHECK_FAILED, Code.INVALID)
        assert not elsewhere.state.exists()


def repacked(data: bytes, change: Callable[[dict[str, bytes]], None], kind: bytes = tarfile.REGTYPE) -> bytes:
    """The archive with other members."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    change(files)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), kind, "x"
            archive.addfile(member, io.BytesIO(content))
    return sink.getvalue()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "snapshots/../../evil", "snapshots/evil", "other.sqlite"])
def test_members_that_no_backup_has_are_not_written(
    settings: PartySettings, elsewhere: PartySettings, name: str
) -> None:
    data = repacked(back_up(settings), lambda files: files.update({name: b"evil"}))
    refusal(elsewhere, data, "holds what no backup of a party does", Code.CHECK_FAILED)


def test_links_are_not_followed(settings: PartySettings, elsewhere: PartySettings) -> None:
    data = repacked(back_up(settings), lambda _: None, tarfile.SYMTYPE)
    refusal(elsewhere, data, "holds what no backup of a party does", Code.CHECK_FAILED)


@pytest.mark.parametrize("name", [LEDGER_FILE, "party.yaml", CONTENTS_FILE])
def test_a_member_that_is_missing_or_another_is_noticed(
    settings: PartySettings, elsewhere: PartySettings, name: str
) -> None:
    data = back_up(settings)
    refusal(elsewhere, repacked(data, lambda files: files.pop(name)), "not whole", Code.CHECK_FAILED)  # type: ignore[arg-type]
    refusal(elsewhere, repacked(data, lambda files: files.update({name: b"{}"})), "not whole", Code.CHECK_FAILED)


def test_an_older_ledger_under_a_newer_list_is_noticed(settings: PartySettings, elsewhere: PartySettings) -> None:
    """Whoever has the file has the key that signs its list; the head in it still has to be the ledger's."""
    identity = Identity.load(identity_path(settings))

    def claim(files: dict[str, bytes]) -> None:
        contents = json.loads(files[CONTENTS_FILE])["contents"]
        contents["head"]["sequence"] = 3
        signature = identity.sign("backup", contents).hex()
        files[CONTENTS_FILE] = json.dumps({"contents": contents, "signature": signature}).encode()

    refusal(elsewhere, repacked(back_up(settings), claim), "does not end where its list says", Code.CHECK_FAILED)


def test_the_list_is_signed_by_the_identity_beside_it(settings: PartySettings, elsewhere: PartySettings) -> None:
    def claim(files: dict[str, bytes]) -> None:
        told = json.loads(files[CONTENTS_FILE])
        told["contents"]["made"] += 1
        files[CONTENTS_FILE] = json.dumps(told).encode()

    refusal(elsewhere, repacked(back_up(settings), claim), "not signed by the identity in it", Code.CHECK_FAILED)


def test_the_identity_alone_makes_a_ledger_that_counts_as_lost(
    settings: PartySettings, elsewhere: PartySettings
) -> None:
    """The way out where only an old backup is left."""
    with unpacked(elsewhere, io.BytesIO(back_up(settings)), None) as found:
        place(elsewhere, found, identity_only=True)
    assert not (elsewhere.state / LEDGER_FILE).exists()
    initialize(elsewhere, spent=None, now=NOW)
    ledger = Ledger.open(elsewhere.state)
    assert ledger.account().history_lost
    ledger.close()


@pytest.mark.parametrize("step", ["write_private_file", "snapshot_folder", "sync_folder"])
def test_a_restore_that_ends_in_the_middle_leaves_no_ledger_and_can_be_made_again(
    settings: PartySettings, elsewhere: PartySettings, step: str
) -> None:
    """Before the identity is in its place, before the snapshots are, and before the ledger is."""
    data = back_up(settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restore_module, step, interrupt)
        with (
            pytest.raises(KeyboardInterrupt),
            reserved(elsewhere),
            unpacked(elsewhere, io.BytesIO(data), None) as found,
        ):
            place(elsewhere, found, identity_only=False)
    assert not (elsewhere.state / LEDGER_FILE).exists()
    restore(elsewhere, data)
    assert head_of(elsewhere) == head_of(settings)
    assert "its snapshot is the table" in restore_again(elsewhere)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def restore_again(settings: PartySettings) -> str:
    """What a check of a backup of this party says of its study."""
    with unpacked(settings, io.BytesIO(back_up(settings)), None) as found:
        return list(examine(settings, found, greet=None, releases=(), exports=()))[1]


def test_what_a_killed_restore_left_is_removed(settings: PartySettings, elsewhere: PartySettings) -> None:
    left = elsewhere.state / "restore-abc"
    left.mkdir(parents=True)
    (left / LEDGER_FILE).write_bytes(b"secret")
    restore(elsewhere, back_up(settings))
    assert not left.exists()
