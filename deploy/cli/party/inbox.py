"""`synod party studies`, `show` and `approve`: what waits, what it asks for, and the decision."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import PartySettings
from synod.common.study.study import SLUG, Study, load_study
from synod.deploy.cli.party.commands import config_option, json_option, read_settings, tell_cost
from synod.deploy.cli.terminal import (
    Example,
    command,
    require_yes,
    say,
    say_json,
    show_misfits,
    show_values_option,
)
from synod.party.approval import check_study, load_identity, reserve
from synod.party.inbox.listing import announced_study, check_prefix, find_view, heard_of, list_views
from synod.party.inbox.views import WAITING, ColumnView, Heard, RosterView, StudyView, name_state, view_study
from synod.party.ledger import Ledger
from synod.party.table.encode import TableError


@click.command(name="studies", cls=Example, example="synod party studies --json")
@config_option
@click.option("--all", "ended", is_flag=True, help="Also those that are over.")
@json_option
@command
def list_studies(config: Path, ended: bool, as_json: bool) -> None:
    """List the studies that wait for a decision here, and those that are approved and not ended.

    The daemon keeps what the curator announces; nothing has to be sent by mail.
    """
    settings = read_settings(config)
    views = list_views(settings, ended=ended)
    if as_json:
        say_json([view.to_json() for view in views])
        return
    if not views:
        say("No study waits here. The daemon lists what the curator announces while it runs.")
        return
    for view in views:
        say(f"{view.name}: {_state(view)}")
        say(f"  hash {view.hash[:16]}, {len(view.columns)} columns, {len(view.roster)} parties, {view.method}")
        say(f"  costs {view.cost.told}; {settings.dataset} has {view.account.remains.told} left")
        if view.problem:
            say(f"  cannot be approved: {view.problem}")
    if any(view.state == WAITING for view in views):
        say("Read one with `synod party show NAME` before you approve it.")


@click.command(name="show", cls=Example, example="synod party show care-survey")
@click.argument("name")
@config_option
@json_option
@command
def show_study(name: str, config: Path, as_json: bool) -> None:
    """Show all that a study asks of this party: columns, what leaves at each step, cost, roster. NAME may be a hash."""
    settings = read_settings(config)
    view = find_view(settings, name)
    if as_json:
        say_json(view.to_json())
        return
    for line in render(view, settings.dataset):
        say(line)
    if view.state == WAITING and not view.problem:
        say(f"To approve it: synod party approve {view.name} --hash {view.hash[:16]}")


@click.command(name="approve", cls=Example, example="synod party approve care-survey --hash 0123456789abcdef --dry-run")
@click.argument("study", metavar="NAME|FILE")
@config_option
@click.option("--hash", "prefix", metavar="PREFIX", help="How the study's hash must begin, as `show` prints it.")
@click.option("--dry-run", is_flag=True, help="Check everything, reserve nothing.")
@click.option("--yes", is_flag=True, help="Say yes beforehand; needed where there is no terminal.")
@show_values_option
@command
def approve_study(study: str, config: Path, prefix: str | None, dry_run: bool, yes: bool, show_values: bool) -> None:
    """Check a study against policy, budget and table, and reserve what it costs.

    It is named as `synod party studies` lists it, or by a file. Announced studies need `--hash` where `--yes` is given.
    """
    settings = read_settings(config)
    resolved, heard = _find_study(settings, study, prefix, yes=yes)
    with closing(Ledger.open(settings.state)) as ledger:
        account = ledger.account()
    own_key = load_identity(settings).fingerprint
    for line in render(view_study(settings, resolved, account, own_key=own_key, heard=heard), settings.dataset):
        say(line)
    try:
        checked = check_study(settings, resolved, show_values=show_values)
    except TableError as error:
        show_misfits(settings.source.name, error.misfits)
        raise
    if dry_run:
        say(f"It fits, and would cost {tell_cost(settings, checked.cost)}. Nothing was reserved.")
        return
    require_yes("Approve, vouching for this roster?", yes=yes, otherwise="Nothing was reserved.")
    reserve(settings, checked, now=int(time.time()))
    say(f"Approved: {tell_cost(settings, checked.cost)} is reserved for {resolved.name}.")


def _find_study(settings: PartySettings, text: str, prefix: str | None, *, yes: bool) -> tuple[Study, Heard | None]:
    """The study of a file, or an announced one with what the curator says of it.

    Guarantee: an announced study is never approved unseen: whoever says yes beforehand says which hash is meant.
    """
    path = Path(text)
    if path.is_file() or not SLUG.fullmatch(text):
        study = load_study(path).resolve()
        check_prefix(study.digest().hex(), prefix, study.name)
        return study, None
    if yes and prefix is None:
        raise invalid(
            f"`--yes` says yes to {text} unseen, unless `--hash` says which study is meant. Nothing was reserved.",
            f"Copy the beginning of its hash from `synod party show {text}`.",
        )
    found = announced_study(settings, text, prefix)
    return found.study, heard_of(found)


# What is shown


def render(view: StudyView, dataset: str) -> Iterator[str]:
    """A study for a terminal, line by line; nothing is cut."""
    yield f"Study {view.name}, {view.method}, {view.budget}"
    yield f"Hash  {view.hash}"
    yield f"State {_state(view)}"
    yield from view.promises
    yield f"Asked for, {len(view.columns)} columns of your table:"
    yield from (f"  {_column_line(column)}" for column in view.columns)
    yield f"What leaves this house, in {len(view.steps)} steps:"
    for number, step in enumerate(view.steps, start=1):
        yield f"  {number}. step {step.label} ({step.phase}): {step.query}, {step.cost.told}"
        yield f"     {step.leaves}"
    account = view.account
    yield f"Cost  {view.cost.told} for the whole study"
    yield (
        f"      {dataset} has spent {account.spent.told} and holds {account.held.told}, of {account.cap.told} in all: "
        f"{account.remains.told} is left"
        + (f", and {account.after.told} after this study" if account.after is not None else "")
    )
    told = f"; who has approved is the curator's word, of {_moment(view.last_heard)}" if view.last_heard else ""
    yield f"Roster, {len(view.roster)} parties{told}:"
    width = max(len(entry.name) for entry in view.roster)
    yield from (f"  {_roster_line(entry, width)}" for entry in view.roster)
    yield f"Publishes {view.synthetic_rows:,} synthetic rows; keys of {view.key_bits} bits"
    if view.problem:
        yield f"It cannot be approved here: {view.problem}"


def _state(view: StudyView) -> str:
    heard = f", announced {_moment(view.first_heard)}" if view.first_heard else ""
    return name_state(view.state) + heard


def _column_line(column: ColumnView) -> str:
    missing = "values may be missing, " if column.nullable else ""
    return f"{column.name}: {column.type}, {column.domain}; {missing}{column.outside}"


def _roster_line(entry: RosterView, width: int) -> str:
    said = {None: "", True: ", has approved", False: ", has not approved yet"}[entry.approved]
    return f"{entry.name:<{width}}  {entry.key}  {entry.rows:,} rows{', this party' if entry.is_own else said}"


def _moment(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%Y-%m-%d %H:%M} UTC"
