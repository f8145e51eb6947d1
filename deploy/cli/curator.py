"""`synod curator`: the curator's service."""

import asyncio
from pathlib import Path

import click

from synod.common.crypto.certificates import Holder, Role
from synod.common.runtime.files import write_new_file
from synod.common.runtime.settings import CuratorSettings, load_settings
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.terminal import Example, command, require_assertions, say, serving, stay_option
from synod.deploy.enrolment.kit import USUAL_CONTACT
from synod.deploy.enrolment.making import make_kit

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("curator.yaml"), show_default=True,
    help="The curator's configuration.",
)  # fmt: skip


@click.command(name="serve", cls=Example, example="synod curator serve --config curator.yaml")
@config_option
@stay_option
@command
def serve_curator(config: Path, stay: bool) -> None:
    """Serve parties and operators over mutual TLS until stopped."""
    from synod.curator.server import serve  # noqa: PLC0415  (pulls in grpc)

    require_assertions()
    settings = load_settings(CuratorSettings, config)
    with serving(stay=stay, health=settings.health):
        asyncio.run(serve(settings))


@click.command(
    name="request-certificate",
    cls=Example,
    example="synod curator request-certificate --config curator.yaml --host curator.example.org",
)
@config_option
@click.option("--host", "hosts", multiple=True, required=True, help="A host name or address that parties dial.")
@click.option("--name", default="curator", show_default=True, help="The curator's name in its certificate.")
@command
def request_certificate(config: Path, hosts: tuple[str, ...], name: str) -> None:
    """Make the curator's TLS key if there is none, and a request that the transport authority signs."""
    settings = load_settings(CuratorSettings, config)
    write_request(settings.tls, Holder(Role.CURATOR, name), hosts)


@click.command(cls=Example, example="synod curator fingerprint")
@config_option
@command
def fingerprint(config: Path) -> None:
    """Print the fingerprint that parties pin as `curator`; makes the identity if there is none."""
    from synod.curator.roster.rotation import load_identity  # noqa: PLC0415  (pulls in the store)

    say(load_identity(load_settings(CuratorSettings, config)).fingerprint)


@click.command(cls=Example, example="synod curator kit --address curator.example.org:7443 --out hospital.kit")
@config_option
@click.option("--address", required=True, metavar="HOST:PORT", help="Where parties dial this curator.")
@click.option(
    "--certificates", default=USUAL_CONTACT, show_default=True, metavar="TEXT",
    help="Who signs parties' requests for certificates, in one line.",
)  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new file.")
@command
def kit(config: Path, address: str, certificates: str, out: Path) -> None:
    """Write the one file that a party needs to join: address, transport authority, this curator's fingerprint.

    It is not secret. Read the fingerprint out by phone: `synod party join` asks for it.
    """
    made = make_kit(load_settings(CuratorSettings, config), address=address, certificates=certificates)
    write_new_file(out, made.content)
    say(f"{out} goes to every party; it is not secret. Read this fingerprint out to each of them, by phone:")
    say(made.fingerprint)
