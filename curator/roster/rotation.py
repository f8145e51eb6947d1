"""Rotations at the curator: those of parties, so that a ledger is held to its head whatever its identity's key is, and
the curator's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from synod.common.crypto.identity import Identity, fingerprint
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.crypto.keyrotation import drop_next_key, make_next_key, next_key_path, put_next_key
from synod.common.protocol.rotation import Rotation, read_rotation, sign_rotation, successors
from synod.common.runtime.errors import SynodError, check_failed, invalid, refused
from synod.common.runtime.settings import CuratorSettings
from synod.common.study.study import CURATOR_NAME
from synod.curator.party_store import STORE_FILE
from synod.curator.records import SeenHead
from synod.curator.store import Store

MOST_ROTATIONS = 64
IDENTITY_FILE = "identity.pem"


# Parties


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What a party is told of its own ledger: the highest head that was seen, by which key it is signed, and the
    rotations that follow the party's key.
    """

    highest: SeenHead | None
    identity: bytes
    rotations: tuple[Rotation, ...]


def learn_rotations(store: Store, party: str, documents: Sequence[bytes]) -> None:
    """Keeps the rotations that a party shows.

    1. there are not too many; 2. each is signed by both of its keys, and of the caller's name; 3. its old key is one of
    a roster, or the new one of a rotation that is kept; 4. no other key followed the old one. What fails 3 is passed
    over, because nobody here knows that key; anything else is refused.
    """
    # 1
    if len(documents) > MOST_ROTATIONS:
        raise invalid(f"a greeting shows at most {MOST_ROTATIONS} rotations.")
    for document in documents:
        # 2
        rotation = read_rotation(document)
        if rotation.name != party:
            raise check_failed(f"{party} shows a rotation of {rotation.name}.")
        # 3 and 4
        if store.is_pinned(party, fingerprint(rotation.old)):
            store.add_rotation(rotation)


def witness(store: Store, party: str, identity: bytes, ledger: bytes) -> Witnessed:
    """The highest head of a ledger under any key that comes before or after this one, and the rotations after it.

    Guarantee: a state from before a rotation is shown what the ledger was after it.
    """
    rotations = store.rotations(party)
    following = successors(identity, rotations)
    earlier = successors(identity, {r.new: Rotation(r.name, r.new, r.old, b"", b"") for r in rotations.values()})
    keys = [identity, *(rotation.new for rotation in (*earlier, *following))]
    seen = [(head, key) for key in keys if (head := store.highest_head(key, ledger)) is not None]
    highest, key = max(seen, key=lambda found: found[0].sequence, default=(None, identity))
    return Witnessed(highest, key, tuple(following))


def follows(store: Store, party: str, key: str, signer: str) -> bool:
    """Whether the signer's key is the one of this fingerprint, or came after it."""
    return key in followed_by(store, party, signer)


def followed_by(store: Store, party: str, signer: str) -> list[str]:
    """The fingerprint of the signer's key, and those of the keys that it followed."""
    earlier = {fingerprint(rotation.new): fingerprint(rotation.old) for rotation in store.rotations(party).values()}
    keys = [signer]
    while len(keys) <= len(earlier) and keys[-1] in earlier:
        keys.append(earlier[keys[-1]])
    return keys


# The curator's own identity


def load_identity(settings: CuratorSettings) -> Identity:
    """The curator's identity; made at the first start, and never beside a store, whose parties know another."""
    path, passphrase = settings.state / IDENTITY_FILE, read_passphrase(settings.passphrase_file)
    if not path.exists():
        if (settings.state / STORE_FILE).exists():
            raise invalid(
                f"the curator has a store and no identity key at {path}.",
                "Restore identity.pem from its backup: no party would know a new one.",
            )
        settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        Identity.generate().save(path, passphrase)
    return Identity.load(path, passphrase)


def newest_rotation(store: Store) -> Rotation | None:
    """The curator's own last rotation."""
    rotations = store.rotations(CURATOR_NAME)
    last = [rotation for rotation in rotations.values() if rotation.new not in rotations]
    return last[0] if last else None


def require_current(store: Store, identity: Identity) -> None:
    """Refuses an identity that the store has rotated away from, or not yet come to."""
    newest = newest_rotation(store)
    if newest is not None and newest.new != identity.public_key:
        raise refused(
            "the identity key is not the one that the curator was last rotated to.",
            "Run `synod curator rotate-identity` again if it was cut short; else restore identity.pem.",
        )


def rotate_identity(settings: CuratorSettings, store: Store) -> Rotation:
    """Makes a new identity key, keeps the rotation, and erases the old key; one that was cut short is finished.

    Guarantee: refused while a study is open, because its parties have agreed on the old key.
    """
    path, passphrase = settings.state / IDENTITY_FILE, read_passphrase(settings.passphrase_file)
    identity, newest = load_identity(settings), newest_rotation(store)
    if newest is not None and newest.new != identity.public_key:
        if Identity.load(next_key_path(path), passphrase).public_key != newest.new:
            raise invalid("the key of the last rotation is lost.", "Restore identity.pem from its backup.")
        put_next_key(path)
        return newest
    for record in store.open_studies():
        raise refused(
            f"the study {record.study.name} is open under the old key.",
            "Wait for its end, or end it with `synod study abort`; nothing was changed.",
        )
    rotation = sign_rotation(CURATOR_NAME, identity, make_next_key(path, passphrase))
    try:
        store.add_rotation(rotation)
    except SynodError:
        drop_next_key(path)
        raise
    put_next_key(path)
    return rotation
