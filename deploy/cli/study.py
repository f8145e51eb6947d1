"""`synod study`, at the curator: hand a study in, see how it stands, fetch its release."""

import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from synod.common.crypto.certificates import Holder, Role
from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.jsontext import read_json_file
from synod.common.runtime.settings import OperatorSettings, load_settings
from synod.common.study.study import load_study
from synod.curator.release.redraw import check_release
from synod.curator.release.spreadsheet import write_spreadsheet
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.progress import head_line, show_progress, show_release, state_name, watch_status
from synod.deploy.cli.terminal import (
    Example,
    command,
    say,
    say_json,
    spreadsheet_option,
)
from synod.deploy.launch.launcher import follow
from synod.deploy.launch.operator import OperatorClient, require_empty
from synod.v1 import study_pb2 as pb

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("operator.yaml"), show_default=True,
    help="How to reach the curator.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
LONG_WAIT_SECONDS = 3600
WATCH_SECONDS = 2.0
study_argument = click.argument("study", type=click.Path(path_type=Path))


@click.command(
    name="request-certificate", cls=Example, example="synod study request-certificate operator --config operator.yaml"
)
@click.argument("name")
@config_option
@command
def request_certificate(name: str, config: Path) -> None:
    """Make the TLS key of the curator's operator NAME if there is none, and a request that the authority signs."""
    write_request(load_settings(OperatorSettings, config).tls, Holder(Role.OPERATOR, name), ())


@click.command(cls=Example, example="synod study submit study.yaml")
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


@click.command(cls=Example, example="synod study run study.yaml --out release/")
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


@click.command(cls=Example, example="synod study status care-survey --json")
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
    waits = name_wait(party, gathering)
    if not party.awaited:
        return waits
    since = datetime.fromtimestamp(party.awaited_since, UTC)
    seen = f"last seen {int(time.time()) - party.last_seen} s ago" if party.last_seen else "never seen"
    return f"{waits} since {since:%Y-%m-%d %H:%M:%S} UTC, {seen}"


def name_wait(party: pb.PartyStatus, gathering: Collection[str] = ()) -> str:
    """What is waited for from a party, without since when; or that nothing is."""
    if not party.awaited:
        return "done for now" if party.enrolled else "not enrolled"
    waits = "its answer" if party.enrolled else "its approval" if party.not_approved else "its enrolment"
    return f"waiting for {'its call, before the next sum is asked,' if party.name in gathering else waits}"


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


@click.command(cls=Example, example="synod study fetch care-survey --out release/")
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


@click.command(cls=Example, example='synod study lose care-survey north --reason "its server burned down"')
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


@click.command(cls=Example, example="synod study abort care-survey")
@click.argument("name")
@config_option
@command
def abort(name: str, config: Path) -> None:
    """End a study for good. What parties have spent stays spent."""
    client = OperatorClient(load_settings(OperatorSettings, config))
    client.abort(name)
    client.close()
    say(f"{name} is aborted; reservations that were not spent are free again.")
