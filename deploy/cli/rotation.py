"""`rotate-identity`, `accept-rotation`, `synod trust rotate`: keys that follow others, and who moves on with them."""

import time
from pathlib import Path

import click

from synod.common.crypto.identity import fingerprint
from synod.common.protocol.rotation import LARGEST_ROTATION_BYTES, Rotation, read_rotation
from synod.common.protocol.trust import move_trust, parse_trust
from synod.common.runtime.errors import check_failed, invalid
from synod.common.runtime.files import write_new_file
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.settings import CuratorSettings, PartySettings, load_settings
from synod.common.study.study import CURATOR_NAME
from synod.deploy.cli.curator import config_option as curator_option
from synod.deploy.cli.party.commands import config_option as party_option
from synod.deploy.cli.terminal import Example, command, require_yes, say
from synod.party.ledger import Ledger
from synod.party.rotation import accept_curator, check_curator_rotation, last_rotation
from synod.party.rotation import rotate_identity as rotate_party_identity

LARGEST_TRUST_BYTES = 1 << 20
out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The file to write the signed rotation to."
)
yes_option = click.option("--yes", is_flag=True, help="Say yes beforehand; needed where there is no terminal.")
last_option = click.option("--last", is_flag=True, help="Rotate nothing: write the last rotation again.")


@click.command(name="rotate-identity", cls=Example, example="synod party rotate-identity --out north-rotation.json")
@party_option
@out_option
@last_option
@yes_option
@command
def rotate_party(config: Path, out: Path, last: bool, yes: bool) -> None:
    """Make a new identity key, signed for by the old one, which is then erased. The daemon must be stopped."""
    settings = load_settings(PartySettings, config)
    _require_absent(out)
    with exclusive_lock(settings.state):
        ledger = Ledger.open(settings.state)
        try:
            if last:
                rotation = last_rotation(ledger.account())
            else:
                require_yes(f"Make a new identity key for {settings.name}?", yes=yes, otherwise="Nothing was changed.")
                rotation = rotate_party_identity(settings, ledger, now=int(time.time()))
        finally:
            ledger.close()
    _hand_out(out, rotation)


@click.command(name="rotate-identity", cls=Example, example="synod curator rotate-identity --out curator-rotation.json")
@curator_option
@out_option
@last_option
@yes_option
@command
def rotate_curator(config: Path, out: Path, last: bool, yes: bool) -> None:
    """Make a new identity key, signed for by the old one, which is then erased. The service must be stopped."""
    from synod.curator.roster.rotation import newest_rotation, rotate_identity  # noqa: PLC0415  (pulls in the store)
    from synod.curator.store import Store  # noqa: PLC0415

    settings = load_settings(CuratorSettings, config)
    _require_absent(out)
    with exclusive_lock(settings.state):
        store = Store(settings.state)
        try:
            if last:
                rotation = newest_rotation(store)
            else:
                require_yes("Make a new identity key for the curator?", yes=yes, otherwise="Nothing was changed.")
                rotation = rotate_identity(settings, store)
        finally:
            store.close()
    if rotation is None:
        raise check_failed("this curator's identity was never rotated.")
    _hand_out(out, rotation)


@click.command(name="accept-rotation", cls=Example, example="synod party accept-rotation curator-rotation.json")
@click.argument("rotation", type=click.Path(path_type=Path))
@party_option
@yes_option
@command
def accept_rotation(rotation: Path, config: Path, yes: bool) -> None:
    """Pin the curator's new key, if the pinned one has signed for it. Compare the fingerprint by phone first."""
    settings = load_settings(PartySettings, config)
    statement = _read(rotation)
    check_curator_rotation(settings, statement)
    _show(statement)
    with exclusive_lock(settings.state):
        require_yes("Pin the new key as the curator's?", yes=yes, otherwise="Nothing was changed.")
        ledger = Ledger.open(settings.state)
        try:
            accept_curator(settings, ledger, config, statement, now=int(time.time()))
        finally:
            ledger.close()
    say(f"{config} pins the new key. The ledger has the rotation as an entry.")


@click.command(
    name="rotate", cls=Example, example="synod trust rotate trust.txt north-rotation.json --out trust-new.txt"
)
@click.argument("file", metavar="TRUST", type=click.Path(path_type=Path))
@click.argument("rotations", metavar="ROTATION...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The new trust file.")
@command
def rotate_trust(file: Path, rotations: tuple[Path, ...], out: Path) -> None:
    """Write a trust file that has moved on with signed rotations, in their order. TRUST is left as it is: releases from
    before verify with it.
    """
    _require_absent(out)
    text = _read_text(file)
    for path in rotations:
        statement = _read(path)
        text = move_trust(text, str(file), statement)
        _show(statement)
    write_new_file(out, text.encode())
    say(f"{out} is for releases from now on; keep {file} for those from before.")


def _hand_out(out: Path, rotation: Rotation) -> None:
    write_new_file(out, rotation.to_bytes() + b"\n")
    _show(rotation)
    is_curator = rotation.name == CURATOR_NAME
    who = "every party (`synod party accept-rotation`)" if is_curator else "whoever writes the next roster"
    say(f"{out} goes to {who} and to readers of releases (`synod trust rotate`); it is not secret.")
    say("Tell them the new fingerprint by phone. The old key is erased.")


def _show(rotation: Rotation) -> None:
    say(f"Name  {rotation.name}")
    say(f"Old   {fingerprint(rotation.old)}")
    say(f"New   {fingerprint(rotation.new)}")


def _require_absent(path: Path) -> None:
    if path.exists():
        raise invalid(f"{path} is there already.", "Name another file.")


def _read(path: Path) -> Rotation:
    with path.open("rb") as file:
        return read_rotation(file.read(LARGEST_ROTATION_BYTES + 1).rstrip(b"\n"))


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(LARGEST_TRUST_BYTES + 1)
    if len(data) > LARGEST_TRUST_BYTES:
        raise invalid(f"{path} is too large for a trust file.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise invalid(f"{path} is not text.") from None
    parse_trust(text, str(path))
    return text
