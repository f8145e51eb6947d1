"""The way back of a backup: everything is checked before anything is put in its place, and nothing is replaced.

A ledger that has forgotten a charge would let its party answer what was answered already. So a backup is refused if
anybody holds a later head of it: the curator, a release, or an exported ledger.
"""

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.crypto.sealedfile import MAGIC, Readable, SealedReader, read_exactly
from synod.common.protocol.heads import Head
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError, check_failed, invalid, refused
from synod.common.runtime.files import sync_folder, write_private_file
from synod.common.runtime.jsontext import DocumentError, read_json
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.settings import PartySettings
from synod.party.account import Account, ApprovalState
from synod.party.approval import IDENTITY_FILE, identity_path, snapshot_folder
from synod.party.client import Greeting
from synod.party.daemon import check_not_behind
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.party.operations.backup import CONFIG_FILE, CONTENTS_FILE, FORMAT
from synod.party.release import compare_release
from synod.party.table.snapshot import load_snapshot

STAGING = "restore-"
MEMBER = re.compile(
    rf"{re.escape(LEDGER_FILE)}|{re.escape(IDENTITY_FILE)}|{CONFIG_FILE}|{CONTENTS_FILE}"
    r"|snapshots/[0-9a-f]{64}/(?:[0-9]{4}|rows)\.npy"
)
WAY_OUT = (
    "Restore a newer backup. With none, `synod party restore FILE --identity-only`, then `synod party init --spent "
    "EPSILON --spent-rho RHO` with all that was spent: a new ledger, and open studies end."
)


@dataclass(frozen=True, slots=True)
class Backup:
    """An unpacked backup that is whole: what it says of itself, and where its parts are."""

    folder: Path
    name: str
    dataset: str
    made: int
    head: Head
    identity: Identity


@contextmanager
def reserved(settings: PartySettings) -> Iterator[None]:
    """Holds the state folder, so that no daemon serves from it, and removes what a restore that was killed has left."""
    with exclusive_lock(settings.state):
        for left in settings.state.glob(f"{STAGING}*"):
            shutil.rmtree(left)
        yield


@contextmanager
def unpacked(settings: PartySettings, source: IO[bytes], passphrase: bytes | None) -> Iterator[Backup]:
    """Unpacks a backup inside of the state folder; it is gone after the block, unless it was put in its place."""
    known = (settings.state / LEDGER_FILE).exists() or identity_path(settings).exists()
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = Path(mkdtemp(dir=settings.state, prefix=STAGING))
    try:
        hashes = _unpack(_opened(source, passphrase), folder)
        yield _read_contents(settings, folder, hashes)
    finally:
        shutil.rmtree(folder)
        if not known and {path.name for path in settings.state.glob("*")} <= {"process.lock"}:
            shutil.rmtree(settings.state, ignore_errors=True)  # a volume's folder stays


def _opened(source: IO[bytes], passphrase: bytes | None) -> Readable:
    """The archive inside of the file, sealed or not."""
    start = read_exactly(source, len(MAGIC))
    if start != MAGIC:
        return _Rejoined(start, source)
    if passphrase is None:
        raise invalid("the backup is encrypted.", "Name the file of its passphrase with `--passphrase-file`.")
    return SealedReader(source, passphrase)


class _Rejoined:
    """A source whose first bytes were read already."""

    def __init__(self, start: bytes, source: Readable) -> None:
        self._start, self._source = start, source

    def read(self, size: int, /) -> bytes:
        if self._start:
            taken, self._start = self._start[:size], self._start[size:]
            return taken
        return self._source.read(size)


def _unpack(source: Readable, folder: Path) -> dict[str, str]:
    """Writes the members for the owner alone; returns their hashes. Only files that a backup has are taken."""
    hashes: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is None or not MEMBER.fullmatch(member.name) or member.name in hashes:
                    raise check_failed("the file holds what no backup of a party does.", "Nothing was restored.")
                hashes[member.name] = _write(folder / member.name, file)
    except (tarfile.TarError, EOFError):
        raise check_failed("the file is no backup of a party, or is damaged.", "Nothing was restored.") from None
    return hashes


def _write(path: Path, source: Readable) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while part := source.read(1 << 20):
            digest.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _read_contents(settings: PartySettings, folder: Path, hashes: dict[str, str]) -> Backup:
    """1. the list of contents is there, and every other file has its hash; 2. the identity key opens, and has signed
    the list; 3. it is a backup of this party and of this dataset.
    """
    # 1
    try:
        told = read_json((folder / CONTENTS_FILE).read_bytes())
        contents, signature = told["contents"], bytes.fromhex(told["signature"])
        if contents["format"] != FORMAT or contents["files"] != _without(hashes, CONTENTS_FILE):
            raise ValueError  # noqa: TRY301  (what follows says it)
        statement = contents["head"]
        head = Head(statement["sequence"], bytes.fromhex(statement["hash"]), bytes.fromhex(statement["ledger"]))
    except (OSError, DocumentError, KeyError, TypeError, ValueError):
        raise check_failed("the backup is not whole, or of another version.", "Nothing was restored.") from None
    # 2
    identity = Identity.load(folder / IDENTITY_FILE, read_passphrase(settings.passphrase_file))
    if not verify(identity.public_key, "backup", contents, signature):
        raise check_failed("the backup is not signed by the identity in it.", "Nothing was restored.")
    # 3
    if (contents["name"], contents["dataset"]) != (settings.name, settings.dataset):
        raise invalid(
            f"the backup is of {contents['name']} and its dataset {contents['dataset']}, and the configuration is not.",
            f"Take `name` and `dataset` from the {CONFIG_FILE} in it: a new id would start with nothing spent.",
        )
    return Backup(folder, contents["name"], contents["dataset"], contents["made"], head, identity)


def _without(hashes: dict[str, str], name: str) -> dict[str, str]:
    return {other: digest for other, digest in hashes.items() if other != name}


def examine(
    settings: PartySettings,
    backup: Backup,
    *,
    greet: Callable[[Identity, Head], Greeting] | None,
    releases: Iterable[Path],
    exports: Iterable[Path],
) -> Iterator[str]:
    """What the backup holds and what was found to agree, a line each; raises at the first that does not.

    1. the ledger's chain is whole, and ends at the head that the list names; 2. the snapshots of open studies are those
    that were approved; 3. the curator, asked with `greet`, is the pinned one and has seen no later head; 4. nor has any
    of `exports`; 5. each of `releases` states what this ledger was charged for, and nothing else.

    Guarantee: a ledger that anybody who was asked has seen further along never passes. A curator that hides what it has
    seen, and is the only one asked, is believed; the same question still gets the same noise.
    """
    ledger = Ledger.open(backup.folder)
    try:
        # 1
        account = ledger.account()
        if ledger.head() != backup.head:
            raise check_failed("the ledger in the backup does not end where its list says.", "Nothing was restored.")
        yield f"the ledger is whole: {backup.head.sequence} entries; {_describe(account, backup.dataset)}"
        # 2
        yield from _check_snapshots(settings, backup, ledger, account)
        # 3
        if greet is not None:
            yield _check_curator(settings, backup, ledger, greet)
        # 4
        for path in exports:
            check_seen(ledger, backup.identity, *_read_export(path), told_by=str(path))
            yield f"not behind the ledger that was exported to {path}"
        # 5
        for folder in releases:
            yield _check_release(settings, backup, ledger, folder)
    finally:
        ledger.close()


def _describe(account: Account, dataset: str) -> str:
    return f"spent {account.spent(dataset).describe()}, held {account.held(dataset).describe()}"


def _check_snapshots(settings: PartySettings, backup: Backup, ledger: Ledger, account: Account) -> Iterator[str]:
    for approval in account.approvals.values():
        if approval.state is not ApprovalState.OPEN:
            continue
        study_hash = bytes.fromhex(approval.study)
        folder = backup.folder / snapshot_folder(settings, study_hash).relative_to(settings.state)
        rounds = f"{approval.name} is open, with {len(approval.charges)} rounds answered"
        try:
            load_snapshot(folder, ledger.study(study_hash), bytes.fromhex(approval.snapshot), seal=ledger.seal)
        except SynodError:
            yield f"{rounds}; its snapshot is not in the backup, so it will wait until you revoke it"
        else:
            yield f"{rounds}; its snapshot is the table that was approved"


def _check_curator(
    settings: PartySettings, backup: Backup, ledger: Ledger, greet: Callable[[Identity, Head], Greeting]
) -> str:
    # The first entry, and not the last: what is not restored yet must not become the curator's highest head.
    greeting = greet(backup.identity, Head(1, backup.head.ledger, backup.head.ledger))
    if fingerprint(greeting.curator) != settings.curator:
        raise refused("the curator's key is not the one that `curator` pins.", "Compare fingerprints by phone.")
    if greeting.highest is None:
        return "the curator has not seen this ledger"
    seen = Head(greeting.highest.sequence, greeting.highest.hash, greeting.highest.ledger)
    try:
        check_not_behind(ledger, backup.identity, greeting.highest)
    except SynodError as error:
        if error.code is not Code.REFUSED:
            raise
        raise _behind(backup.head, seen, "the curator") from None
    return f"not behind what the curator has seen, which is entry {seen.sequence}"


def check_seen(ledger: Ledger, identity: Identity, seen: Head, signature: bytes, *, told_by: str) -> None:
    """Refuses a ledger that does not have the entry of a head that its identity has signed."""
    if not verify(identity.public_key, "head", seen.statement(), signature):
        raise check_failed(
            f"the head in {told_by} is not signed by this party.", "Leave it out, or take the right one."
        )
    if ledger.head().ledger != seen.ledger:
        raise refused(f"{told_by} is of another ledger of this party.", WAY_OUT)
    if ledger.hash_at(seen.sequence) != seen.hash:
        raise _behind(ledger.head(), seen, told_by)


def _behind(head: Head, seen: Head, told_by: str) -> SynodError:
    if seen.sequence > head.sequence:
        return refused(
            f"the backup is older than what {told_by} has seen of this ledger: it ends at entry {head.sequence}, and "
            f"entry {seen.sequence} was seen.",
            WAY_OUT,
        )
    return refused(f"the backup is of another copy of the ledger than {told_by} has seen.", WAY_OUT)


def _read_export(path: Path) -> tuple[Head, bytes]:
    try:
        told: Any = read_json(path.read_bytes())
        head = told["head"]
        signature = bytes.fromhex(told["signature"])
        return Head(head["sequence"], bytes.fromhex(head["hash"]), bytes.fromhex(head["ledger"])), signature
    except (OSError, DocumentError, KeyError, TypeError, ValueError):
        raise invalid(f"{path} is not what `synod party ledger export` printed.") from None


def _check_release(settings: PartySettings, backup: Backup, ledger: Ledger, folder: Path) -> str:
    verdict = verify_release(folder, None)
    key = backup.identity.fingerprint
    try:
        compare_release(verdict, ledger.entries(), name=settings.name, key=key, curator=settings.curator)
    except SynodError as error:
        raise refused(f"the release in {folder} does not agree with the backup: {error.sentence}", WAY_OUT) from None
    return f"the release in {folder} states what this ledger was charged for"


def place(settings: PartySettings, backup: Backup, *, identity_only: bool) -> None:
    """Puts an examined backup in its place: snapshots, identity, and the ledger last, so that there is a ledger only
    where all is. Nothing that exists is replaced.
    """
    if (settings.state / LEDGER_FILE).exists():
        raise invalid(
            f"there is a ledger at {settings.state / LEDGER_FILE} already.",
            "It is never replaced: if it is whole it is the newer one. Move it away yourself if it is not.",
        )
    _place_identity(settings, backup)
    if identity_only:
        return
    snapshots = backup.folder / "snapshots"
    for folder in snapshots.glob("*"):
        target = snapshot_folder(settings, bytes.fromhex(folder.name))
        target.parent.mkdir(exist_ok=True, mode=0o700)
        shutil.rmtree(target, ignore_errors=True)  # of no approval, as there is no ledger
        folder.rename(target)
        sync_folder(target.parent)
    ledger = backup.folder / LEDGER_FILE
    with ledger.open("rb") as file:
        os.fsync(file.fileno())
    ledger.rename(settings.state / LEDGER_FILE)
    sync_folder(settings.state)


def _place_identity(settings: PartySettings, backup: Backup) -> None:
    path = identity_path(settings)
    if not path.exists():
        write_private_file(path, (backup.folder / IDENTITY_FILE).read_bytes())
    elif Identity.load(path, read_passphrase(settings.passphrase_file)).fingerprint != backup.identity.fingerprint:
        raise invalid(f"there is another identity key at {path}.", "Restore into an empty state folder.")
