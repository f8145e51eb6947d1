"""`synod party console` and `synod curator console`: the same verbs in a browser, started on demand."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, load_settings
from synod.deploy.cli.party.commands import config_option as party_config_option
from synod.deploy.cli.party.commands import read_settings
from synod.deploy.cli.study import config_option as operator_config_option
from synod.deploy.cli.terminal import Example, command, require_assertions, screen

if TYPE_CHECKING:
    from synod.common.console.place import Place

OPTIONS = (
    click.option("--listen", show_default="127.0.0.1:0", metavar="HOST:PORT",
                 help="Where to listen; the port 0 takes a free one."),
    click.option("--socket", "path", type=click.Path(path_type=Path), metavar="PATH",
                 help="Listen on a Unix socket, for its owner alone, in place of a port."),
    click.option("--certificate", type=click.Path(path_type=Path), metavar="FILE", help="Serve under TLS, with this."),
    click.option("--key", type=click.Path(path_type=Path), metavar="FILE", help="The key of the certificate."),
    click.option("--beyond-loopback", is_flag=True, help="Other machines may connect; needs TLS."),
    click.option("--idle-minutes", type=click.IntRange(1, 1440), default=30, show_default=True,
                 help="A session ends after so long without a request."),
)  # fmt: skip


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where a console listens, and for how long a session lasts."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@click.command(name="console", cls=Example, example="synod party console --config party.yaml")
@party_config_option
@place_options
@command
def party_console(
    config: Path,
    listen: str | None,
    path: Path | None,
    certificate: Path | None,
    key: Path | None,
    beyond_loopback: bool,
    idle_minutes: int,
) -> None:
    """Read, approve and revoke studies in a browser: prints a link that is good once, and serves until stopped."""
    _require_packages()
    from synod.common.console.serve import serve_console  # noqa: PLC0415  (optional packages)
    from synod.party.console.routes import PartyConsole, make_pages  # noqa: PLC0415

    settings = read_settings(config)
    pages = make_pages(settings)
    console = PartyConsole(lambda: read_settings(config), pages, clock=time.time)
    place = _take_place(listen, path, certificate, key, beyond=beyond_loopback)
    serve_console("party", pages, console.routes(), place, announce=_announce, idle_seconds=60 * idle_minutes)


@click.command(name="console", cls=Example, example="synod curator console --config operator.yaml")
@operator_config_option
@click.option(
    "--curator-config", type=click.Path(path_type=Path), metavar="FILE",
    help="The curator's own configuration, where this machine has it: for kits of new parties.",
)  # fmt: skip
@place_options
@command
def curator_console(
    config: Path,
    curator_config: Path | None,
    listen: str | None,
    path: Path | None,
    certificate: Path | None,
    key: Path | None,
    beyond_loopback: bool,
    idle_minutes: int,
) -> None:
    """Submit and watch studies in a browser: prints a link that is good once, and serves until stopped."""
    _require_packages()
    from synod.common.console.serve import serve_console  # noqa: PLC0415  (optional packages)
    from synod.deploy.console.routes import CuratorConsole, make_pages  # noqa: PLC0415

    settings = load_settings(OperatorSettings, config)
    curator = load_settings(CuratorSettings, curator_config) if curator_config else None
    pages = make_pages(settings)
    with CuratorConsole(settings, curator, pages) as console:
        place = _take_place(listen, path, certificate, key, beyond=beyond_loopback)
        serve_console("curator", pages, console.routes(), place, announce=_announce, idle_seconds=60 * idle_minutes)


def _require_packages() -> None:
    require_assertions()
    try:
        import jinja2  # noqa: F401, PLC0415  (an optional package)
        import python_multipart  # noqa: F401, PLC0415
        import starlette  # noqa: F401, PLC0415
        import uvicorn  # noqa: F401, PLC0415
    except ImportError as error:
        raise invalid(
            f"the console needs {error.name}, which is not installed.", "Install Synod's extra `console`."
        ) from None


def _take_place(
    listen: str | None, path: Path | None, certificate: Path | None, key: Path | None, *, beyond: bool
) -> "Place":
    """The last step before it serves, so that a wrong configuration takes no place. SIGTERM ends a console as Ctrl-C
    does, with the exit code 0.
    """
    from synod.common.console.place import Wanted, take_place  # noqa: PLC0415  (optional packages)

    place = take_place(Wanted(listen, path, certificate, key, beyond))
    signal.signal(signal.SIGTERM, lambda *_: None)
    if place.path is not None:
        told = f"Forward a port to it, such as with ssh -L 8080:{place.path}, and put it into the link."
        _tell(f"It listens on {place.path}. {told}")
    return place


def _announce(link: str) -> None:
    _tell(f"Open this link in a browser; it is good once, for ten minutes: {link}")


def _tell(text: str) -> None:
    screen.print(text, markup=False)
    screen.file.flush()
