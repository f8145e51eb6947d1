"""`synod launch`, `synod demo` and `synod verify`: whole studies, seen from outside."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from synod.v1 import study_pb2 as pb

from common.errors import invalid
from common.manifest import verify_release
from common.study import Study, load_study
from deploy.commands.study import state_name
from deploy.containers import IMAGE, container_crew
from deploy.demo import write_tables
from deploy.docker import removal
from deploy.launcher import Crew, launch
from deploy.operator import require_empty
from deploy.processes import process_crew
from deploy.site import WARNING, Layout
from deploy.terminal import Example, command, say, screen

DEMO_SEED = 20260101
TRUSTED_LINE = re.compile(r"([a-z0-9-]+ )?sha256:[0-9a-f]{64}")


@click.command(
    name="launch",
    cls=Example,
    example="synod launch study.yaml --data north.csv --data harbour.csv --data valley.parquet --out release/",
)
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--data", "tables", multiple=True, required=True, type=click.Path(path_type=Path), help="One per party.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new or empty folder for the release.")
@click.option("--backend", type=click.Choice(["process", "docker"]), default="process", show_default=True)
@click.option("--image", default=IMAGE, show_default=True, help="With --backend docker: what the containers run.")
@click.option("--keep", is_flag=True, help="With --backend docker: leave the containers running. Needs --state.")
@click.option("--state", type=click.Path(path_type=Path), help="Keep keys, ledgers and logs in this new folder.")
@command
def launch_command(
    study: Path, tables: tuple[Path, ...], out: Path, backend: str, image: str, keep: bool, state: Path | None
) -> None:
    """Run a study over tables on this machine: keys, a curator, one daemon per table, to publication."""
    say(WARNING)
    if keep and (backend != "docker" or state is None):
        raise invalid("--keep leaves containers running.", "Give it with --backend docker and --state DIR.")
    if backend == "process":
        run_study(load_study(study), list(tables), out, state, crew=process_crew)
        return
    name = f"synod-{os.urandom(4).hex()}"
    say(f"Containers, networks and volumes are named {name}-* and labelled synod.launch={name}.")
    crew = partial(container_crew, name=name, image=image, keep=keep)
    try:
        run_study(load_study(study), list(tables), out, state, crew=crew)
    finally:
        if keep:
            say(f"Left running. See {state}/operator.yaml, and `docker ps --filter label=synod.launch={name}`.")
            say(f"Remove all of it: {removal(f'synod.launch={name}')}")


def run_study(
    study: Study,
    tables: list[Path],
    out: Path,
    state: Path | None,
    *,
    crew: Callable[[Layout], AbstractContextManager[Crew]],
) -> None:
    """Launches a study, shows its progress, and says where the release is."""
    require_empty(out)
    for table in tables:
        if not table.is_file():
            raise invalid(f"there is no table at {table}.", "Check --data.")
    with _state_folder(state) as folder, show_progress(study.name) as report:
        launch(study, tables, out, folder, crew=crew, progress=report)
    show_release(out)


def show_release(out: Path) -> None:
    """Verifies a release and says what is in it."""
    verdict = verify_release(out, None)
    say(f"Published and verified ({len(verdict.lines)} checks): {out}/")
    for path in sorted(out.iterdir()):
        say(f"  {path.name}: {path.stat().st_size:,} bytes")


@contextmanager
def _state_folder(state: Path | None) -> Iterator[Path]:
    if state is None:
        with tempfile.TemporaryDirectory(prefix="synod-") as folder:
            yield Path(folder)
    else:
        require_empty(state)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield state.resolve()


@contextmanager
def show_progress(name: str) -> Iterator[Callable[[pb.StudyStatus], None]]:
    """A bar on a terminal, plain lines elsewhere."""
    if not screen.is_terminal:
        last: list[str] = []

        def report_line(status: pb.StudyStatus) -> None:
            line = f"{name}: {state_name(status)}"
            if last[-1:] != [line]:
                last.append(line)
                say(line)
                sys.stdout.flush()

        yield report_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(name, total=1.0)

        def report_bar(status: pb.StudyStatus) -> None:
            answered = sum(not party.awaited for party in status.parties) / max(1, len(status.parties))
            done = (status.round + answered) / (status.rounds + 1)
            bar.update(task, description=f"{name}: {state_name(status)}", completed=min(done, 1.0))

        yield report_bar


@click.command(name="demo", cls=Example, example="synod demo --out demo-release/")
@click.option(
    "--study",
    default=Path("examples/hospitals/study.yaml"),
    show_default=True,
    type=click.Path(path_type=Path),
)
@click.option("--out", default=Path("demo-release"), show_default=True, type=click.Path(path_type=Path))
@command
def demo(study: Path, out: Path) -> None:
    """Run the demo: three invented hospitals publish one table together."""
    say(WARNING)
    with tempfile.TemporaryDirectory(prefix="synod-demo-") as folder:
        tables = write_tables(Path(folder), DEMO_SEED)
        run_study(load_study(study), list(tables.values()), out, None, crew=process_crew)
    say(
        f"Open {out}/synthetic.csv in a spreadsheet, or read {out}/manifest.json; `synod verify {out}` checks it again."
    )


@click.command(name="verify", cls=Example, example="synod verify release/ --trust fingerprints.txt")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--trust",
    type=click.Path(path_type=Path),
    help="A file of fingerprints, one a line, each after its holder's name or alone; # for comments.",
)
@command
def verify(folder: Path, trust: Path | None) -> None:
    """Check a release offline: hashes, signatures, plan and spend; with --trust also who signed."""
    trusted = _read_fingerprints(trust) if trust else None
    verdict = verify_release(folder, trusted)
    for line in verdict.lines:
        say(f"ok  {line}")
    for name, key in verdict.signers.items():
        say(f"    {name} signed with {key}")
    if trusted is None:
        say("Proven: the release is whole and belongs together. NOT proven: who signed it; use --trust for that.")
    else:
        say("Proven: the release is whole and belongs together, and every signer is one that you trust.")


def _read_fingerprints(path: Path) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise invalid(f"{path} cannot be read as a file of fingerprints.") from None
    stripped = (" ".join(line.split("#")[0].split()) for line in lines)
    found = {line for line in stripped if line}
    if not all(TRUSTED_LINE.fullmatch(line) for line in found):
        raise invalid(f"{path} has a line that is not a fingerprint.", "A line is `[NAME] sha256:` and 64 digits.")
    if not found:
        raise invalid(f"{path} holds no fingerprint.", "A fingerprint is `sha256:` and 64 hexadecimal digits.")
    return found
