"""`synod study`: write, check and run studies."""

import shutil
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from synod.common.crypto.certificates import Holder, Role
from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.jsontext import read_json_file
from synod.common.runtime.settings import OperatorSettings, load_settings, read_source
from synod.common.study.promise import explain_delta, explain_several_rows, name_budget
from synod.common.study.study import Study, load_study
from synod.curator.release.redraw import check_release
from synod.curator.release.spreadsheet import write_spreadsheet
from synod.deploy.cli.advice import advice_document, show_advice
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.forecast import forecast_document, show_forecast
from synod.deploy.cli.progress import head_line, show_progress, show_release, state_name, watch_status
from synod.deploy.cli.terminal import (
    Example,
    Group,
    command,
    errors,
    say,
    say_json,
    show_table,
    spreadsheet_option,
    tell_aside,
)
from synod.deploy.evaluate.plot import require_plot
from synod.deploy.launch.launcher import follow
from synod.deploy.launch.operator import OperatorClient, require_empty
from synod.deploy.study.advice import Advice, advise_on, assume_roster, read_row_counts
from synod.deploy.study.draft import draft_study, write_format
from synod.deploy.study.forecast import remark_on
from synod.deploy.study.numbers import read_numbers
from synod.deploy.study.plot import draw_forecast
from synod.party.table.detect import detect_format
from synod.v1 import study_pb2 as pb

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("operator.yaml"), show_default=True,
    help="How to reach the curator.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
LONG_WAIT_SECONDS = 3600
WATCH_SECONDS = 2.0
study_argument = click.argument("study", type=click.Path(path_type=Path))


@click.group(cls=Group, name="study")
def study_group() -> None:
    """Write, check and run studies."""


@study_group.command(cls=Example, example="synod study check study.yaml")
@study_argument
@json_option
@command
def check(study: Path, as_json: bool) -> None:
    """Validate a study; print its hash, the resolved study and its plan, or every rule that it breaks."""
    written = load_study(study)
    if not written.roster:
        say(f"{study} is a valid study without a roster; its hash and plan come with one.")
        return
    resolved = written.resolve()
    check_feasible(resolved)
    plan = plan_study(resolved)
    document: dict[str, Any] = {
        "study": resolved.to_json(),
        "hash": resolved.digest().hex(),
        "plan": plan.to_json(),
    }
    if as_json:
        say_json(document)
        return
    say(f"Hash: {document['hash']}")
    say_json(document["study"])
    told = [explain_delta(resolved)] if resolved.delta is not None else []
    say(" ".join([f"Budget: {name_budget(resolved)}.", *told, explain_several_rows(resolved)]))
    rows = [[step.label, step.kind.value, str(len(step.answerers)), step.cost.describe()] for step in plan.steps]
    show_table(["step", "query", "parties", "cost for each"], rows, title="Plan")


@study_group.command(cls=Example, example="synod study draft north.csv harbour.csv.gz > study.yaml")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--unit", metavar="COLUMN", help="The column that tells persons apart; it is left out of the schema.")
@click.option(
    "--config", "config", type=click.Path(path_type=Path), metavar="FILE",
    help="Also write how the one TABLE is written into this party's configuration, as `format`.",
)  # fmt: skip
@command
def draft(tables: tuple[str, ...], unit: str | None, config: Path | None) -> None:
    """Draft a study from one or several tables, to edit. Reads real rows: the draft is not private."""
    if config is not None and len(tables) != 1:
        raise invalid("--config is of the party that holds one table.", "Draft each party's table by itself.")
    sources = [read_source(table, "TABLE") for table in tables]
    try:
        drafted = draft_study(sources, unit)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise invalid(f"{sources[0].name} cannot be read as a table ({type(error).__name__}).") from None
    if config is not None:
        click.echo(write_format(config, detect_format(sources[0])), err=True)
    sys.stdout.write(drafted)


@study_group.command(cls=Example, example="synod study forecast study.yaml --rows 12000,8000,4000 --plot forecast.png")
@study_argument
@click.option("--rows", "rows", metavar="N,N,...", help="Assume parties of so many rows, in place of the roster.")
@click.option("--quick", is_flag=True, help="The noise of each round only: no rehearsal, other methods or advice.")
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw the rehearsal into this PNG file.")
@click.option(
    "--data", "tables", multiple=True, type=click.Path(path_type=Path), metavar="TABLE",
    help="Also look at a table of your own, or a folder of them, on this machine only; repeatable. NOT private.",
)  # fmt: skip
@json_option
@command
def forecast(
    study: Path, rows: str | None, quick: bool, plot: Path | None, tables: tuple[Path, ...], as_json: bool
) -> None:
    """Say what a study will take and how good its table can be, from public numbers only.

    The study's method, and the others, are rehearsed on invented rows: what of each column and of each pair of columns
    would be usable, and what more epsilon, more rows or fewer bins would bring. With --data also which columns of real
    rows the study's method would draw wrongly; these remarks are NOT private.
    """
    if plot is not None:
        require_plot(plot)
    if plot is not None and quick:
        raise invalid("--quick rehearses nothing, so there is nothing to plot.", "Leave one of the two out.")
    written = load_study(study)
    if rows is not None:
        written = assume_roster(written, read_row_counts(rows))
    elif not written.roster:
        raise invalid(f"{study} has no roster, so its rows are not known.", "Assume some: --rows 12000,8000,4000.")
    resolved = written.resolve()
    remarks = remark_on(resolved, None)
    of_rows = remark_on(resolved, read_numbers(tables, resolved)) if tables else None
    advice = None if quick else _rehearse(written)
    if as_json:
        further = {} if advice is None else advice_document(resolved, advice)
        say_json(forecast_document(resolved, remarks, of_rows) | further)
    else:
        show_forecast(resolved, remarks, of_rows)
        if advice is not None:
            show_advice(resolved, advice)
    if plot is not None and advice is not None:
        draw_forecast(resolved, advice, plot)
        tell_aside(f"Drawn: {plot}")


def _rehearse(written: Study) -> Advice:
    """The advice, with what is being rehearsed on a terminal only."""
    if not errors.is_terminal:
        return advise_on(written, compare=True)
    with errors.status("rehearsing") as status:
        return advise_on(written, compare=True, tell=lambda name: status.update(f"rehearsing {name}"))


@study_group.command(
    name="request-certificate", cls=Example, example="synod study request-certificate operator --config operator.yaml"
)
@click.argument("name")
@config_option
@command
def request_certificate(name: str, config: Path) -> None:
    """Make the TLS key of the curator's operator NAME if there is none, and a request that the authority signs."""
    write_request(load_settings(OperatorSettings, config).tls, Holder(Role.OPERATOR, name), ())


@study_group.command(cls=Example, example="synod study submit study.yaml")
@study_argument
@config_option
@command
def submit(study: Path, config: Path) -> None:
    """Hand a study to the curator."""
    resolved = load_study(study).resolve()
    client = OperatorClient(load_settings(OperatorSettings, config))
    digest = client.submit(resolved)
    (standing,) = client.status(resolved.name)
    client.close()
    say(f"{resolved.name} is with the curator: {state_name(standing)}, {len(resolved.roster)} parties.")
    say(f"Hash: {digest.hex()}")


@study_group.command(cls=Example, example="synod study run study.yaml --out release/")
@study_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new or empty folder for the release.")
@click.option("--replace", is_flag=True, help="A release of an earlier study in --out is removed first.")
@config_option
@command
def run(study: Path, out: Path, replace: bool, config: Path) -> None:
    """Hand a study to the curator, wait until it is published, fetch the release and verify it.

    It may be interrupted and run again: the same study goes on where it is.
    """
    resolved = load_study(study).resolve()
    held = held_release(out)
    if held == resolved.digest().hex():
        say(f"The release of {resolved.name} is in {out} already.")
        return
    if held and replace:
        shutil.rmtree(out)
    require_empty(out)
    with closing(OperatorClient(load_settings(OperatorSettings, config))) as client, going_on(resolved.name):
        client.submit(resolved)
        with show_progress(resolved.name) as report:
            for standing in follow(client, resolved.name):
                report(standing)
        client.fetch(resolved.name, out)
    show_release(out)


@contextmanager
def going_on(name: str) -> Iterator[None]:
    """Ctrl-C in the block ends this command and not the study, and says so."""
    try:
        yield
    except KeyboardInterrupt:
        raise SynodError(
            Code.NOT_READY,
            f"interrupted here, while {name} goes on at the curator if it was taken there.",
            f"See `synod study status {name}`; the same command again waits for the release, and `synod study abort "
            f"{name}` ends it.",
        ) from None


@study_group.command(cls=Example, example="synod study status care-survey --json")
@click.argument("name", default="")
@config_option
@click.option("--watch", is_flag=True, help="Go on, with a line for each change, until the studies have ended.")
@json_option
@command
def status(name: str, config: Path, watch: bool, as_json: bool) -> None:
    """Say how studies stand, and whom they wait for since when."""
    if watch and as_json:
        raise invalid("`--watch` writes lines for people, and `--json` one document.", "Give one of the two.")
    if watch:
        with closing(OperatorClient(load_settings(OperatorSettings, config))) as client, suppress(KeyboardInterrupt):
            watch_status(
                lambda: client.status(name) if name else client.newest()[0], pause=lambda: time.sleep(WATCH_SECONDS)
            )
        return
    with closing(OperatorClient(load_settings(OperatorSettings, config))) as client:
        studies, older = (client.status(name), 0) if name or as_json else client.newest()
    if as_json:
        say_json([describe(study) for study in studies])
        return
    for study in studies:
        say(head_line(study))
        lost = {loss.party: loss_line(loss) for loss in study.losses}
        for party in study.parties:
            say(f"  {party.name}: {lost.get(party.name) or party_line(party, study.gathering)}")
        for hint in loss_hints(study):
            say(hint)
    if older:
        say(f"{older:,} older studies are not listed: name one, or see all of them with --json.")


def held_release(folder: Path) -> str | None:
    """The hash of the study whose whole release a folder holds, if it holds one."""
    try:
        manifest = read_json_file(folder / MANIFEST_FILE)
        check_release(folder, None)
    except (OSError, ValueError, SynodError):
        return None
    return str(manifest["study_hash"])


def party_line(party: pb.PartyStatus, gathering: Collection[str] = ()) -> str:
    """One party's part, for people; `gathering` are those whom the next sum waits for before it is asked."""
    if not party.awaited:
        return "done for now" if party.enrolled else "not enrolled"
    waits = "its answer" if party.enrolled else "its approval" if party.not_approved else "its enrolment"
    waits = "its call, before the next sum is asked," if party.name in gathering else waits
    since = datetime.fromtimestamp(party.awaited_since, UTC)
    seen = f"last seen {int(time.time()) - party.last_seen} s ago" if party.last_seen else "never seen"
    return f"waiting for {waits} since {since:%Y-%m-%d %H:%M:%S} UTC, {seen}"


def loss_line(loss: pb.Loss) -> str:
    """A lost party, for people."""
    since = datetime.fromtimestamp(loss.unix_seconds, UTC)
    first = f", first left out of {loss.since}" if loss.since else ""
    return f"lost since {since:%Y-%m-%d %H:%M:%S} UTC{first}: {loss.reason}"


def loss_hints(study: pb.StudyStatus) -> list[str]:
    """What may be done about parties that keep a running study waiting for more than an hour."""
    late = [party for party in study.parties if party.enrolled and party.awaited]
    names = [party.name for party in late if time.time() - party.awaited_since > LONG_WAIT_SECONDS]
    lost = {loss.party for loss in study.losses}
    wait_or_abort = (
        f"the round {study.label} was opened with it and closes with its answer alone; or `synod study abort`."
    )
    may_be_lost = "if it is gone for good, see `synod study lose`, which goes on without it where the study may."
    told = [(name, wait_or_abort if name in lost else may_be_lost) for name in names]
    return [f"Waiting for {name} for more than an hour: {hint}" for name, hint in told]


def describe(study: pb.StudyStatus) -> dict[str, Any]:
    """A status for a machine."""
    return {
        "name": study.name,
        "hash": study.study_hash.hex(),
        "state": pb.StudyState.Name(study.state).removeprefix("STUDY_STATE_").lower(),
        "round": study.round,
        "rounds": study.rounds,
        "label": study.label,
        "reason": study.reason,
        "halted": study.halted,
        "waiting": study.waiting,
        "answer_bytes": study.answer_bytes,
        "parties": [
            {
                "name": party.name,
                "enrolled": party.enrolled,
                "awaited": party.awaited,
                "awaited_since": party.awaited_since,
                "last_seen": party.last_seen,
                "not_approved": party.not_approved,
            }
            for party in study.parties
        ],
        "losses": [
            {"party": loss.party, "since": loss.since, "reason": loss.reason, "unix_seconds": loss.unix_seconds}
            for loss in study.losses
        ],
        "gathering": list(study.gathering),
    }


@study_group.command(cls=Example, example="synod study fetch care-survey --out release/")
@click.argument("name")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new or empty folder.")
@spreadsheet_option
@config_option
@command
def fetch(name: str, out: Path, spreadsheet: Path | None, config: Path) -> None:
    """Fetch a published study's release and verify it."""
    client = OperatorClient(load_settings(OperatorSettings, config))
    client.fetch(name, out)
    client.close()
    show_release(out)
    if spreadsheet:
        write_spreadsheet(out, spreadsheet)


@study_group.command(cls=Example, example='synod study lose care-survey north --reason "its server burned down"')
@click.argument("name")
@click.argument("party")
@click.option("--reason", required=True, help="Why, in one line; it goes into the manifest of the release.")
@config_option
@command
def lose(name: str, party: str, reason: str, config: Path) -> None:
    """Go on without a party, for good, where the study allows it (`may_lose`). What it has spent stays spent."""
    client = OperatorClient(load_settings(OperatorSettings, config))
    effect = client.lose(name, party, reason)
    client.close()
    say(effect)


@study_group.command(cls=Example, example="synod study abort care-survey")
@click.argument("name")
@config_option
@command
def abort(name: str, config: Path) -> None:
    """End a study for good. What parties have spent stays spent."""
    client = OperatorClient(load_settings(OperatorSettings, config))
    client.abort(name)
    client.close()
    say(f"{name} is aborted; reservations that were not spent are free again.")
