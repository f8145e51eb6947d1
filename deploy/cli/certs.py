"""`synod certs`: a transport authority and TLS certificates."""

from datetime import UTC, datetime
from pathlib import Path

import click

from synod.common.crypto.certificates import issue_certificate, make_authority
from synod.deploy.cli.terminal import Example, command, say


@click.group()
def certs() -> None:
    """Make a transport authority, and certificates for curator, operators and parties."""


@certs.command(name="init", cls=Example, example="synod certs init certs/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@command
def init(folder: Path) -> None:
    """Make a transport authority in DIR (ca.pem, ca.key)."""
    make_authority(folder, now=datetime.now(UTC))
    say(f"{folder}/ca.pem goes to everybody; {folder}/ca.key stays here.")


@certs.command(name="issue", cls=Example, example="synod certs issue certs/ curator --host curator.example.org")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--host", "hosts", multiple=True, help="A host name or address that this certificate's holder serves at.")
@command
def issue(folder: Path, name: str, hosts: tuple[str, ...]) -> None:
    """Issue DIR/NAME.pem and DIR/NAME.key, signed by the authority in DIR."""
    issue_certificate(folder, name, list(hosts), now=datetime.now(UTC))
    say(f"{folder}/{name}.pem and {folder}/{name}.key go to {name}.")
