"""`synod party backup` and `restore`: a party's state in one private file, and back."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import click

from synod.common.crypto.identity import Identity
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.protocol.heads import Head
from synod.common.runtime.errors import invalid
from synod.common.runtime.files import new_private_file
from synod.common.runtime.settings import PartySettings, load_settings
from synod.deploy.cli.party.commands import config_option
from synod.deploy.cli.terminal import Example, command, say, tell_aside
from synod.party.operations.backup import write_backup

STANDARD = Path("-")
passphrase_option = click.option(
    "--passphrase-file", type=click.Path(path_type=Path), metavar="FILE",
    help="Its first line encrypts the backup; left out, that of the configuration's `passphrase_file`, if any.",
)  # fmt: skip


@click.command(cls=Example, example="synod party backup north.backup")
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@passphrase_option
@command
def backup(file: Path, config: Path, passphrase_file: Path | None) -> None:
    """Write ledger, identity and snapshots of open studies to a new private file, also while the daemon runs.

    With - as FILE it goes to standard output. Guard it like the table.
    """
    settings = load_settings(PartySettings, config)
    passphrase = read_passphrase(passphrase_file or settings.passphrase_file)
    with _sink(file) as sink:
        copy = write_backup(settings, config.read_bytes(), sink, passphrase, now=int(time.time()))
    tell_aside(f"Backed up {settings.name} up to entry {copy.head.sequence} of its ledger, {_locked(passphrase)}.")
    for name in copy.missing:
        tell_aside(f"The snapshot of {name} is not there, so it is not in the backup.")


def _locked(passphrase: bytes | None) -> str:
    return "encrypted" if passphrase else "NOT encrypted: whoever has the file has this party"


@contextmanager
def _sink(file: Path) -> Iterator[BinaryIO]:
    if file != STANDARD:
        with new_private_file(file) as sink:
            yield sink
        return
    if sys.stdout.isatty():
        raise invalid("a backup does not go to a terminal.", "Send it to a file: `synod party backup - > FILE`.")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


@click.command(cls=Example, example="synod party restore north.backup --check")
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@passphrase_option
@click.option("--check", is_flag=True, help="Say what would be restored, and restore nothing.")
@click.option("--offline", is_flag=True, help="Do not ask the curator now; the daemon asks before it answers anything.")
@click.option("--identity-only", is_flag=True, help="Only the identity key, for a backup whose ledger is too old.")
@click.option(
    "--release", "releases", type=click.Path(path_type=Path), multiple=True, metavar="DIR",
    help="A release that this party took part in: the ledger must know what it states.",
)  # fmt: skip
@click.option(
    "--export", "exports", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="A ledger that `synod party ledger export` printed: the backup must not be older.",
)  # fmt: skip
@command
def restore(
    file: Path,
    config: Path,
    passphrase_file: Path | None,
    check: bool,
    offline: bool,
    identity_only: bool,
    releases: tuple[Path, ...],
    exports: tuple[Path, ...],
) -> None:
    """Bring a party's state back from a backup, unless anybody has seen a later ledger of it.

    The state folder must have no ledger. With - as FILE the backup comes from standard input.
    """
    from synod.party.client import CuratorClient, Greeting  # noqa: PLC0415  (pulls in grpc)
    from synod.party.operations.restore import examine, place, reserved, unpacked  # noqa: PLC0415  (pulls in grpc)

    settings = load_settings(PartySettings, config)
    passphrase = read_passphrase(passphrase_file or settings.passphrase_file)

    def greet(identity: Identity, head: Head) -> Greeting:
        client = CuratorClient(settings, identity)
        try:
            return client.greet(head)
        finally:
            client.close()

    alone = nullcontext() if check else reserved(settings)  # a check may be made beside the daemon
    with _source(file) as source, alone, unpacked(settings, source, passphrase) as found:
        say(f"A backup of {found.name} and its dataset {found.dataset}, made {_time(found.made)} UTC")
        if not identity_only:
            asked = None if offline else greet
            for line in examine(settings, found, greet=asked, releases=releases, exports=exports):
                say(f"ok  {line}")
            if offline:
                say("The curator was not asked: `synod party serve` asks before it answers anything.")
        if check:
            say("Nothing was restored.")
            return
        place(settings, found, identity_only=identity_only)
    if identity_only:
        say("Restored the identity key alone. Next: `synod party init --spent EPSILON --spent-rho RHO`.")
    else:
        say("Restored. The old machine must never serve again. Next: `synod party doctor`, serve, and a new backup.")


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


@contextmanager
def _source(file: Path) -> Iterator[BinaryIO]:
    if file == STANDARD:
        yield sys.stdin.buffer
        return
    with file.open("rb") as source:
        yield source
