"""`synod study`: write, check and run studies."""

import shutil
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from synod.common.crypto.certificates import Holder, Role
from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.jsontext import read_json_file
from synod.common.runtime.settings import OperatorSettings, load_settings
from synod.common.study.promise import explain_delta, explain_several_rows, name_budget
from synod.common.study.study import load_study
from synod.curator.release.redraw import check_release
from synod.curator.release.spreadsheet import write_spreadsheet
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.forecast import forecast_document, show_forecast
from synod.deploy.cli.progress import show_progress, show_release, state_name
from synod.deploy.cli.terminal import Example, command, say, say_json, show_table, spreadsheet_option
from synod.deploy.launch.launcher import follow
from synod.deploy.launch.operator import OperatorClient, require_empty
from synod.deploy.study.draft import draft_study
from synod.deploy.study.forecast import remark_on
from synod.deploy.study.numbers import read_numbers
from synod.v1 import study_pb2 as pb

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("operator.yaml"), show_default=True,
    help="How to reach the curator.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
LONG_WAIT_SECONDS = 3600
study_argument = click.argument("study", type=click.Path(path_type=Path))


@click.group(name="study")
def study_group() -> None:
    """Write, check and run studies."""


@study_group.command(cls=Example, example="synod study check study.yaml")
@study_argument
@json_option
@command
def check(study: Path, as_json: bool) -> None:
    """Validate a study; print the resolved study, its hash and its plan."""
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
    say_json(document["study"])
    say(f"Hash: {document['hash']}")
    told = [explain_delta(resolved)] if resolved.delta is not None else []
    say(" ".join([f"Budget: {name_budget(resolved)}.", *told, explain_several_rows(resolved)]))
    rows = [[step.label, step.kind.value, str(len(step.answerers)), step.cost.describe()] for step in plan.steps]
    show_table(["step", "query", "parties", "cost for each"], rows, title="Plan")


@study_group.command(cls=Example, example="synod study draft patients.csv > study.yaml")
@click.argument("table", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--unit", metavar="COLUMN", help="The column that tells persons apart; it is left out of the schema.")
@command
def draft(table: Path, unit: str | None) -> None:
    """Draft a schema from a table, to edit. Reads real rows: the draft is not private."""
    try:
        sys.stdout.write(draft_study(table, unit))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise invalid(f"{table} cannot be read as a table ({type(error).__name__}).") from None


@study_group.command(cls=Example, example="synod study forecast study.yaml --data patients.csv")
@study_argument
@click.option(
    "--data", "tables", multiple=True, type=click.Path(path_type=Path), metavar="TABLE",
    help="Also look at a table of your own, or a folder of them, on this machine only; repeatable. NOT private.",
)  # fmt: skip
@json_option
@command
def forecast(study: Path, tables: tuple[Path, ...], as_json: bool) -> None:
    """Say what a study will take and how exact it can be, from public numbers only.

    With --data also which columns of real rows the study's method would draw wrongly; these remarks are NOT private.
    """
    resolved = load_study(study).resolve()
    remarks = remark_on(resolved, None)
    of_rows = remark_on(resolved, read_numbers(tables, resolved)) if tables else None
    if as_json:
        say_json(forecast_document(resolved, remarks, of_rows))
        return
    show_forecast(resolved, remarks, of_rows)


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
    with closing(OperatorClient(load_settings(OperatorSettings, config))) as client:
        client.submit(resolved)
        with show_progress(resolved.name) as report:
            for standing in follow(client, resolved.name):
                report(standing)
        client.fetch(resolved.name, out)
    show_release(out)


@study_group.command(cls=Example, example="synod study status care-survey --json")
@click.argument("name", default="")
@config_option
@json_option
@command
def status(name: str, config: Path, as_json: bool) -> None:
    """Say how studies stand, and whom they wait for since when."""
    with closing(OperatorClient(load_settings(OperatorSettings, config))) as client:
        studies, older = (client.status(name), 0) if name or as_json else client.newest()
    if as_json:
        say_json([describe(study) for study in studies])
        return
    for study in studies:
        waits = study.halted and f"halted: {study.halted}"
        remark = study.reason or waits or (study.waiting and f"waits and tries again: {study.waiting}")
        say(f"{study.name}: {state_name(study)}" + (f" ({remark})" if remark else ""))
        lost = {loss.party: loss_line(loss) for loss in study.losses}
        for party in study.parties:
            say(f"  {party.name}: {lost.get(party.name) or party_line(party)}")
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


def party_line(party: pb.PartyStatus) -> str:
    """One party's part, for people."""
    if not party.awaited:
        return "done for now" if party.enrolled else "not enrolled"
    waits = "its answer" if party.enrolled else "its approval" if party.not_approved else "its enrolment"
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
    return [f"Waiting for {', '.join(names)} for more than an hour: see `synod study lose --help`."] if names else []


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
