"""`synod launch`, `synod demo` and `synod verify`: whole studies, seen from outside."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import click

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import Database, read_source
from synod.common.study.study import Study, load_study
from synod.curator.release.redraw import check_release
from synod.curator.release.spreadsheet import write_spreadsheet
from synod.deploy.api.release import read_trust
from synod.deploy.cli.progress import show_progress, show_release
from synod.deploy.cli.terminal import Example, command, say, show_misfits, show_values_option, spreadsheet_option
from synod.deploy.demo import write_tables
from synod.deploy.launch.bundles import bundle_curator, bundle_operator, bundle_party, unpack
from synod.deploy.launch.containers import IMAGE, container_daemons
from synod.deploy.launch.docker import docker, removal, require_image
from synod.deploy.launch.interrupts import terminated_as_interrupted
from synod.deploy.launch.launcher import Daemons, NotApprovedError, launch
from synod.deploy.launch.operator import require_empty
from synod.deploy.launch.processes import process_daemons
from synod.deploy.launch.site import WARNING, SitePaths, plan_paths, prepare
from synod.party.table.folder import is_folder
from synod.party.table.marks import digest_content, digest_place
from synod.party.table.source import Source

DEMO_SEED = 20260101
TABLE_HELP = "One per party: a file, a folder of Parquet, duckdb:FILE#TABLE or postgresql://USER@HOST/DATABASE#TABLE."


@click.command(
    name="launch",
    cls=Example,
    example="synod launch study.yaml --data north.csv --data harbour.csv --data valley.parquet --out release/",
)
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--data", "tables", multiple=True, required=True, metavar="SOURCE", help=TABLE_HELP)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new or empty folder for the release.")
@click.option("--backend", type=click.Choice(["process", "docker"]), default="process", show_default=True)
@click.option("--image", default=IMAGE, show_default=True, help="With --backend docker: what the containers run.")
@click.option("--keep", is_flag=True, help="With --backend docker: leave the containers running. Needs --state.")
@click.option("--state", type=click.Path(path_type=Path), help="Keep keys, ledgers and logs in this new folder.")
@click.option(
    "--unit", metavar="COLUMN", help="The column of every table that tells persons apart; it is not published."
)
@show_values_option
@command
def launch_command(
    study: Path,
    tables: tuple[str, ...],
    out: Path,
    backend: str,
    image: str,
    keep: bool,
    state: Path | None,
    unit: str | None,
    show_values: bool,
) -> None:
    """Run a study over tables on this machine: keys, a curator, one daemon per table, to publication."""
    say(WARNING)
    sources = [read_source(table, "--data") for table in tables]
    if keep and (backend != "docker" or state is None):
        raise invalid("--keep leaves containers running.", "Give it with --backend docker and --state DIR.")
    if backend == "process":
        loaded = load_study(study)
        run_study(loaded, sources, out, state, start=process_daemons, unit=unit, show_values=show_values)
        return
    require_image(image)
    name = f"synod-{os.urandom(4).hex()}"
    try:
        start = partial(announced, name=name, image=image, keep=keep)
        loaded = load_study(study)
        run_study(loaded, sources, out, state, start=start, unit=unit, show_values=show_values)
    finally:
        if keep and docker("ps", "--quiet", "--filter", f"label=synod.launch={name}"):
            say(f"Left running. See {state}/operator.yaml, and `docker ps --filter label=synod.launch={name}`.")
            say(f"Remove all of it: {removal(f'synod.launch={name}')}")


def announced(paths: SitePaths, *, name: str, image: str, keep: bool) -> AbstractContextManager[Daemons]:
    """A daemons of containers that says how to find them."""
    say(f"Containers, networks and volumes are named {name}-* and labelled synod.launch={name}.")
    return container_daemons(paths, name=name, image=image, keep=keep)


def run_study(
    study: Study,
    tables: Sequence[Source],
    out: Path,
    state: Path | None,
    *,
    start: Callable[[SitePaths], AbstractContextManager[Daemons]],
    unit: str | None = None,
    show_values: bool = False,
) -> None:
    """Launches a study, shows its progress, and says where the release is; or what does not fit in which table."""
    require_empty(out)
    for table in tables:
        if isinstance(table, Path) and not table.is_file() and not is_folder(table):
            raise invalid(f"there is no table at {table}.", "Check --data.")
    for one, other in find_equal(tables):
        say(
            f"WARNING: {tell_source(one)} and {tell_source(other)} are the same table, so its rows count twice and "
            "spend two budgets. Check --data."
        )
    try:
        with terminated_as_interrupted(), _state_folder(state) as folder, show_progress(study.name) as report:
            launch(
                study, tables, out, folder, start=start, progress=report, unit=unit, tell=say, show_values=show_values
            )
    except NotApprovedError as error:
        for name, misfits in error.misfits.items():
            show_misfits(name, misfits)
        raise
    show_release(out)


def tell_source(source: Source) -> str:
    """A source in words."""
    return source.name if isinstance(source, Database) else str(source)


def find_equal(tables: Sequence[Source]) -> list[tuple[Source, Source]]:
    """Each table that holds the same bytes as an earlier one, or is the same of a server, beside that one."""
    first: dict[bytes, Source] = {}
    hashes = [digest_content(table) or digest_place(table) for table in tables]
    pairs = ((first.setdefault(hashes[place], table), place, table) for place, table in enumerate(tables))
    return [(one, table) for one, place, table in pairs if tables.index(one) < place]


@contextmanager
def _state_folder(state: Path | None) -> Iterator[Path]:
    if state is None:
        with tempfile.TemporaryDirectory(prefix="synod-") as folder:
            yield Path(folder)
    else:
        require_empty(state)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield state.resolve()


@click.command(name="demo", cls=Example, example="synod demo --out demo-release/")
@click.option("--study", type=click.Path(path_type=Path), show_default="the study that comes with Synod")
@click.option("--out", default=Path("demo-release"), show_default=True, type=click.Path(path_type=Path))
@click.option(
    "--prepare",
    "folder",
    type=click.Path(path_type=Path),
    help="Run nothing: write what each container of docker-compose.yml is given below this folder.",
)
@command
def demo(study: Path | None, out: Path, folder: Path | None) -> None:
    """Run the demo: three invented hospitals publish one table together."""
    say(WARNING)
    loaded = load_study(study) if study else _load_demo_study()
    with terminated_as_interrupted(), tempfile.TemporaryDirectory(prefix="synod-demo-") as temporary:
        tables: list[Source] = list(write_tables(Path(temporary) / "tables", DEMO_SEED).values())
        if folder is not None:
            _prepare_bundles(loaded, tables, Path(temporary), folder)
            return
        run_study(loaded, tables, out, None, start=process_daemons)
    say(f"Open {out}/report.html in a browser, and {out}/synthetic.csv in a spreadsheet.")
    say(f"`synod verify {out}` checks it again.")


def _load_demo_study() -> Study:
    with as_file(files("synod") / "examples" / "hospitals" / "study.yaml") as path:
        return load_study(path)


def _prepare_bundles(study: Study, tables: Sequence[Source], temporary: Path, folder: Path) -> None:
    """Keys, certificates, configurations, ledgers and tables, once; a second time changes nothing."""
    paths = plan_paths(temporary / "site", tables)
    paths.folder.mkdir()
    done = folder / "operator" / "given" / paths.study_file.name
    if done.exists():
        say("Everything is there already; `docker-compose down --volumes` removes it.")
        return
    prepare(paths, study)
    unpack(bundle_curator(paths), folder / "curator")
    for member in paths.members:
        unpack(bundle_party(paths, member), folder / member.name)
    unpack(bundle_operator(paths), folder / "operator")
    say(f"Made keys, certificates, ledgers and tables for {', '.join(member.name for member in paths.members)}.")


@click.command(name="verify", cls=Example, example="synod verify release/ --trust trusted.txt")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--trust",
    type=click.Path(path_type=Path),
    help="A file with a line `curator sha256:...`, and one `NAME sha256:...` for each party; # for comments.",
)
@click.option(
    "--no-recompute",
    "skip",
    is_flag=True,
    help="Do not run the method again over the released answers, which can take as long as it took the curator.",
)
@spreadsheet_option
@command
def verify(folder: Path, trust: Path | None, skip: bool, spreadsheet: Path | None) -> None:
    """Check a release offline: hashes, signatures, plan, spend, and that all of it follows from the released answers;
    with --trust also who signed.
    """
    named = read_trust(trust) if trust else None
    checked = check_release(folder, named, recompute=not skip)
    for line in checked.lines:
        say(f"ok  {line}")
    for line in checked.unproven:
        say(f"--  not proven: {line}")
    for name, key in checked.verdict.signers.items():
        say(f"    {name} signed with {key}")
    if named is None:
        say("Proven: the release is whole and belongs together. NOT proven: who signed it; use --trust for that.")
    else:
        say("Proven: the release is whole and belongs together, and every signer is the one that you named.")
    if spreadsheet:
        write_spreadsheet(folder, spreadsheet)
