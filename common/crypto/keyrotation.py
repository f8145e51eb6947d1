"""How a new identity key takes the place of an old one on disk, so that a crash at any moment leaves one that is whole.

The new key is made beside the old one, the change is recorded by whoever owns the state (a party's ledger, a curator's
store), and only then do the files change places. The old key is erased: nothing is signed with it any more, and whoever
found it could sign in the name of its holder towards everybody who has not heard of the new one.
"""

import os
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.common.runtime.files import erase_file, sync_folder


def next_key_path(path: Path) -> Path:
    """Where the key is that will take the place of the one at `path`."""
    return path.with_name(f"{path.stem}.next{path.suffix}")


def _aside_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.old{path.suffix}")


def make_next_key(path: Path, passphrase: bytes | None) -> Identity:
    """A new identity beside the one at `path`; what an attempt that was never recorded left behind is erased."""
    erase_file(next_key_path(path))
    identity = Identity.generate()
    identity.save(next_key_path(path), passphrase)
    return identity


def drop_next_key(path: Path) -> None:
    """Erases the next key: the change was refused."""
    erase_file(next_key_path(path))


def put_next_key(path: Path) -> None:
    """Puts the next key in its place, if it is not there yet, and erases the old one.

    Guarantee: at every moment there is a whole key at `path`; called again after a crash, it goes on.
    """
    coming, aside = next_key_path(path), _aside_path(path)
    if coming.exists():
        if aside.exists() and aside.samefile(path):  # a crash after the link: to erase it would erase the key in use
            aside.unlink()
        erase_file(aside)
        os.link(path, aside)
        coming.replace(path)
        sync_folder(path.parent)
    erase_file(aside)
