"""Rotation of this party's identity, and of the curator's key that its configuration pins.

A rotation is refused while a study is open under the old key, and is an entry of the ledger, whose chain goes on: a
copy of the state from before is behind, like any other.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.crypto.keyrotation import drop_next_key, make_next_key, next_key_path, put_next_key
from synod.common.protocol.rotation import Rotation, move_key, read_rotation, sign_rotation
from synod.common.runtime.errors import SynodError, check_failed, invalid, refused
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import CURATOR_NAME
from synod.party.account import Account
from synod.party.approval import identity_path, load_identity
from synod.party.ledger import Ledger


def require_current(account: Account, identity: Identity) -> None:
    """Refuses an identity that the ledger has rotated away from, or not yet come to."""
    rotations = account.own_rotations
    if rotations and rotations[-1].new != identity.public_key:
        raise refused(
            "the identity key is not the one that the ledger was last rotated to.",
            "Run `synod party rotate-identity` again to finish a rotation that was cut short, or restore identity.pem.",
        )


def rotate_identity(settings: PartySettings, ledger: Ledger, *, now: int) -> Rotation:
    """Makes a new identity key, records the rotation, and erases the old key; one that was cut short is finished.

    Guarantee: there is a usable identity key at every moment; the ledger has the rotation before the new key is used,
    and the old key is gone when this returns.
    """
    path, passphrase = identity_path(settings), read_passphrase(settings.passphrase_file)
    identity, recorded = load_identity(settings), ledger.account().own_rotations
    if recorded and recorded[-1].new != identity.public_key:
        coming = Identity.load(next_key_path(path), passphrase)
        if coming.public_key != recorded[-1].new:
            raise invalid("the key of the last rotation is lost.", "Restore identity.pem from its backup.")
        put_next_key(path)
        return recorded[-1]
    rotation = sign_rotation(settings.name, identity, make_next_key(path, passphrase))
    try:
        ledger.rotate(rotation, now=now)
    except SynodError:
        drop_next_key(path)
        raise
    put_next_key(path)
    return rotation


def own_keys(account: Account, identity: Identity) -> set[bytes]:
    """The identity keys that this ledger was ever used with."""
    return {identity.public_key, *(rotation.old for rotation in account.own_rotations)}


def check_not_rotated(account: Account, identity: Identity, documents: Iterable[bytes]) -> None:
    """Refuses to go on where somebody shows a rotation that this party's key has signed and its ledger does not have:
    the state is a copy from before. What is not signed by this party says nothing about it.
    """
    keys, known = own_keys(account, identity), set(account.own_rotations)
    for document in documents:
        try:
            rotation = read_rotation(document)
        except SynodError:
            continue
        if rotation.old in keys and rotation not in known:
            raise refused(
                "this party's identity was rotated to another key, and this ledger does not know of it: an old copy.",
                "Stop the other copy and restore the newest state folder; never run two.",
            )


def check_curator_rotation(settings: PartySettings, rotation: Rotation) -> str:
    """The curator's new fingerprint, if the rotation is from the key that the configuration pins."""
    return move_key(CURATOR_NAME, settings.curator, [rotation])


def accept_curator(settings: PartySettings, ledger: Ledger, config: Path, rotation: Rotation, *, now: int) -> None:
    """Records the curator's rotation and pins the new key in the configuration file; cut short, it can be repeated."""
    new = check_curator_rotation(settings, rotation)
    text = repin(config.read_text(), settings.curator, new)
    if rotation not in ledger.account().rotations:
        ledger.rotate(rotation, now=now)
    draft = config.with_name(f"{config.name}.draft")
    draft.write_text(text)
    draft.chmod(config.stat().st_mode & 0o777)
    draft.replace(config)


def repin(text: str, old: str, new: str) -> str:
    """A configuration with another key after `curator:`, and nothing else changed."""
    changed, times = re.subn(rf"(?m)^(curator:[ \t]*[\"']?){re.escape(old)}", rf"\g<1>{new}", text)
    if times != 1:
        raise invalid(
            "the line `curator:` of the configuration was not found.", f"Write it yourself: `curator: {new}`."
        )
    return changed


def last_rotation(account: Account) -> Rotation:
    """The newest rotation of this party's identity."""
    if not account.own_rotations:
        raise check_failed("this party's identity was never rotated.")
    return account.own_rotations[-1]
