"""`synod curator`: the curator's service."""

import asyncio
from pathlib import Path

import click

from synod.common.runtime.settings import CuratorSettings, load_settings
from synod.deploy.cli.terminal import Example, command, require_assertions, say, serving

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("curator.yaml"), show_default=True,
    help="The curator's configuration.",
)  # fmt: skip


@click.group()
def curator() -> None:
    """Run the curator's service."""


@curator.command(name="serve", cls=Example, example="synod curator serve --config curator.yaml")
@config_option
@command
def serve_curator(config: Path) -> None:
    """Serve parties and operators over mutual TLS until stopped."""
    from synod.curator.server import serve  # noqa: PLC0415  (pulls in grpc)

    require_assertions()
    settings = load_settings(CuratorSettings, config)
    with serving():
        asyncio.run(serve(settings))


@curator.command(cls=Example, example="synod curator fingerprint")
@config_option
@command
def fingerprint(config: Path) -> None:
    """Print the fingerprint that parties pin as `curator`; makes the identity if there is none."""
    from synod.curator.server import load_identity  # noqa: PLC0415  (pulls in grpc)

    say(load_identity(load_settings(CuratorSettings, config)).fingerprint)
