"""`synod certs`: the transport authority, which signs requests for TLS certificates and revokes them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from synod.common.crypto.authority import (
    REVOKED,
    issue_certificate,
    known_key,
    make_authority,
    refuse_revoked_key,
    revoke_certificates,
    sign_request,
)
from synod.common.crypto.certificates import Holder, Role
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.crypto.requests import make_request, read_request
from synod.common.runtime.settings import TlsFiles
from synod.deploy.cli.terminal import Example, command, require_yes, say

folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
role_option = click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    help="What the holder is; left out: curator or operator for whoever is called so, else party.",
)


@click.command(name="init", cls=Example, example="synod certs init authority")
@folder_argument
@command
def init(folder: Path) -> None:
    """Make a transport authority in DIR (ca.pem, ca.key, revoked.pem)."""
    make_authority(folder, now=datetime.now(UTC))
    say(f"{folder}/ca.pem goes to everybody, {folder}/{REVOKED} to the curator; {folder}/ca.key stays here.")


@click.command(name="sign", cls=Example, example="synod certs sign authority north.csr")
@folder_argument
@click.argument("request", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Say yes beforehand; needed where there is no terminal.")
@command
def sign(folder: Path, request: Path, yes: bool) -> None:
    """Show whom a request is for, and sign it as DIR/NAME.pem. Compare the fingerprint by phone before you say yes."""
    asked = read_request(request)
    before = known_key(folder, asked.holder)
    refuse_revoked_key(folder, asked)
    say(f"Role         {asked.holder.role.value}")
    say(f"Name         {asked.holder.name}")
    if asked.hosts:
        say(f"Hosts        {', '.join(asked.hosts)}")
    say(f"Fingerprint  {asked.fingerprint}")
    if before == asked.fingerprint:
        say("A renewal: the key is the one that was signed before.")
    elif before:
        say(f"ANOTHER KEY than the one that was signed before, {before}: ask its holder why.")
    require_yes(f"Sign for {asked.holder}?", yes=yes, otherwise="Nothing was signed.")
    path = sign_request(folder, asked, now=datetime.now(UTC))
    say(f"{path} goes to {asked.holder}, with {folder}/ca.pem; neither is secret.")


@click.command(name="revoke", cls=Example, example="synod certs revoke authority north")
@folder_argument
@click.argument("name")
@role_option
@command
def revoke(folder: Path, name: str, role: str | None) -> None:
    """Put every certificate that NAME got so far on the list DIR/revoked.pem, which the curator reads."""
    holder = _holder(name, role)
    count = revoke_certificates(folder, holder, now=datetime.now(UTC))
    say(f"Revoked, of {holder}: {count}." if count else f"All certificates of {holder} were revoked before.")
    say(f"Copy {folder}/{REVOKED} to the curator, to the file that `revoked` names there.")


@click.command(name="issue", cls=Example, example="synod certs issue authority curator --host curator.example.org")
@folder_argument
@click.argument("name")
@role_option
@click.option("--host", "hosts", multiple=True, help="A host name or address that parties dial the curator at.")
@command
def issue(folder: Path, name: str, role: str | None, hosts: tuple[str, ...]) -> None:
    """For demos: make DIR/NAME.pem and the key DIR/NAME.key here, which then has to travel. Else use `sign`."""
    holder = _holder(name, role)
    issue_certificate(folder, holder, list(hosts), now=datetime.now(UTC))
    say(f"{folder}/{name}.pem and {folder}/{name}.key go to {holder}.")


def _holder(name: str, role: str | None) -> Holder:
    """The role that was given; else a curator and an operator are known by the names that they usually have."""
    usual = name if name in (Role.CURATOR.value, Role.OPERATOR.value) else Role.PARTY.value
    return Holder(Role(role or usual), name)


def write_request(files: TlsFiles, holder: Holder, hosts: Sequence[str]) -> None:
    """Makes the key that `tls` names if there is none, and a request beside the certificate that it is to become."""
    path = files.certificate.with_suffix(".csr")
    is_new = not files.key.exists()
    passphrase = read_passphrase(files.passphrase_file)
    request = make_request(path, holder, hosts, key_path=files.key, passphrase=passphrase)
    say(f"Made the key {files.key}, which stays here." if is_new else f"The key {files.key} is used again.")
    say(f"Send {path} to whoever runs the transport authority, and tell them this fingerprint by phone:")
    say(request.fingerprint)
    say(f"What comes back goes to {files.certificate}.")
