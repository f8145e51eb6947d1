"""A backup: all that a party needs to go on elsewhere, in one private file, made while the daemon runs.

It holds the ledger with its secrets, the identity key, the snapshots of open studies, and the configuration for
reference: whoever has it has the party. It holds no table, no TLS key and no passphrase. The file is a tar archive, on
request sealed with a passphrase; its last member lists the others with their hashes, so that one cut short is noticed.
"""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.sealedfile import SealedWriter
from synod.common.protocol.heads import Head
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.settings import PartySettings
from synod.party.account import Approval, ApprovalState
from synod.party.approval import IDENTITY_FILE, identity_path, load_identity, snapshot_folder
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.party.table.snapshot import KeptSnapshot, load_snapshot

FORMAT = 1
CONFIG_FILE = "party.yaml"
CONTENTS_FILE = "contents.json"
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LedgerCopy:
    """A ledger and the snapshots of its open studies, all of one moment; of `missing` studies there is no snapshot."""

    database: bytes
    head: Head
    snapshots: dict[str, KeptSnapshot]
    missing: tuple[str, ...]


def copy_ledger(settings: PartySettings) -> LedgerCopy:
    """Copies the ledger and finds the snapshots that belong to it; begins again if an entry came in between."""
    ledger = Ledger.open(settings.state)
    try:
        for _ in range(ATTEMPTS):
            head, approvals = ledger.head(), ledger.account().approvals.values()
            database = ledger.copy()
            opened = [a for a in approvals if a.state is ApprovalState.OPEN]
            found = {a.study: _find_snapshot(settings, ledger, a) for a in opened}
            if ledger.head() == head:
                snapshots = {study: snapshot for study, snapshot in found.items() if snapshot is not None}
                return LedgerCopy(database, head, snapshots, tuple(a.name for a in opened if a.study not in snapshots))
    finally:
        ledger.close()
    raise SynodError(Code.NOT_READY, "the ledger changed while it was copied, again and again.", "Try again later.")


def _find_snapshot(settings: PartySettings, ledger: Ledger, approval: Approval) -> KeptSnapshot | None:
    study_hash = bytes.fromhex(approval.study)
    folder, sealed = snapshot_folder(settings, study_hash), bytes.fromhex(approval.snapshot)
    try:
        return load_snapshot(folder, ledger.study(study_hash), sealed, seal=ledger.seal)
    except SynodError:
        return None


def write_backup(
    settings: PartySettings, config: bytes, sink: BinaryIO, passphrase: bytes | None, *, now: int
) -> LedgerCopy:
    """Writes a backup of this party; `config` is its configuration as the operator wrote it.

    Guarantee: the ledger in it is whole and of one moment. With a passphrase nothing of it is in the clear. Without
    one it is as secret as the state folder.
    """
    identity = load_identity(settings)
    copy = copy_ledger(settings)
    sealed = SealedWriter(sink, passphrase) if passphrase else None
    hashes: dict[str, Json] = {}
    with tarfile.open(fileobj=sealed or sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
        for name, data in _members(settings, config, copy):
            hashes[name] = hashlib.sha256(data).hexdigest()
            _add(archive, name, data)
        contents: dict[str, Json] = {
            "format": FORMAT,
            "name": settings.name,
            "dataset": settings.dataset,
            "made": now,
            "head": copy.head.statement(),
            "files": hashes,
        }
        signature = identity.sign("backup", contents).hex()
        _add(archive, CONTENTS_FILE, canonical_bytes({"contents": contents, "signature": signature}))
    if sealed:
        sealed.finish()
    return copy


def _members(settings: PartySettings, config: bytes, copy: LedgerCopy) -> Iterator[tuple[str, bytes]]:
    yield LEDGER_FILE, copy.database
    try:
        yield IDENTITY_FILE, identity_path(settings).read_bytes()
    except OSError:
        raise invalid(f"there is no identity key at {identity_path(settings)}.", "Run `init` first.") from None
    yield CONFIG_FILE, config
    for study, snapshot in copy.snapshots.items():
        for name, array in snapshot.files():
            file = io.BytesIO()
            np.save(file, array, allow_pickle=False)
            yield f"snapshots/{study}/{name}", file.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    archive.addfile(member, io.BytesIO(data))
