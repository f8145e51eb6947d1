"""`synod party ledger`: what was approved, answered and spent, and when."""

import json
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from synod.common.privacy.conversion import spent_epsilon
from synod.common.privacy.cost import Cost
from synod.common.runtime.settings import PartySettings
from synod.common.study.schema import write_decimal, write_delta
from synod.deploy.cli.party.commands import config_option, json_option, read_settings, tell_cost
from synod.deploy.cli.terminal import Example, ExampleGroup, command, say, say_json, show_table
from synod.party.approval import load_identity
from synod.party.inbox.entries import view_entries
from synod.party.ledger import Ledger


@click.group(name="ledger", cls=ExampleGroup, example="synod party ledger --json", invoke_without_command=True)
@config_option
@json_option
@click.pass_context
@command
def ledger_group(context: click.Context, config: Path, as_json: bool) -> None:
    """Show what this party approved and spent, every entry with its date. `ledger export` prints the whole chain."""
    context.obj = config
    if context.invoked_subcommand is None:
        _show_ledger(read_settings(config), as_json)


def _show_ledger(settings: PartySettings, as_json: bool) -> None:
    with closing(Ledger.open(settings.state)) as ledger:
        account, head = ledger.account(), ledger.head()
        entries = list(view_entries(ledger.entries(), delta=settings.shown_delta))
    cap, spent, held = settings.cap, account.spent(settings.dataset), account.held(settings.dataset)
    delta, epsilon = _spent_at_delta(settings, spent)
    if as_json:
        say_json(
            {
                "dataset": settings.dataset,
                "cap": str(cap),
                "spent": str(spent),
                "held": str(held),
                "spent_at_delta": None if delta is None else {"epsilon": epsilon, "delta": write_delta(delta)},
                "head": {"sequence": head.sequence, "hash": head.hash.hex()},
                "studies": [
                    {
                        "name": a.name,
                        "hash": a.study,
                        "state": a.state.value,
                        "reserved": str(a.reserved),
                        "spent": str(a.spent),
                        "charges": [
                            {
                                "label": c.label,
                                "query": c.query,
                                "transcript": c.transcript,
                                "cost": str(c.cost),
                            }
                            for c in a.charges
                        ],
                    }
                    for a in account.approvals.values()
                ],
                "entries": [asdict(entry) for entry in entries],
            }
        )
        return
    told = [tell_cost(settings, cost) for cost in (spent, held, cap)]
    say(f"{settings.dataset}: spent {told[0]}, held {told[1]}, of {told[2]} in all")
    if delta is not None:
        say(f"Spent as (epsilon, delta): epsilon {epsilon} at delta {write_delta(delta)}")
    rows = [
        [a.name, a.study[:16], a.state.value, tell_cost(settings, a.reserved), tell_cost(settings, a.spent)]
        for a in account.approvals.values()
    ]
    show_table(["study", "hash", "state", "reserved", "spent"], rows)
    say("Every entry, in order:")
    for entry in entries:
        when = datetime.fromtimestamp(entry.time, UTC)
        study = f"{entry.study}: " if entry.study else ""
        say(f"{entry.sequence:>5}  {when:%Y-%m-%d %H:%M:%S} UTC  {study}{entry.told}")


def _spent_at_delta(settings: PartySettings, spent: Cost) -> tuple[Decimal | None, str]:
    """The policy's delta, and the epsilon of everything that is spent at it; no delta where all is pure."""
    if settings.max_rho_total is None and spent.rho == 0:
        return None, ""
    delta = settings.shown_delta
    return delta, write_decimal(spent_epsilon(spent, Fraction(delta)))


@ledger_group.command(cls=Example, example="synod party ledger export > ledger.json")
@click.option("--config", "config", type=click.Path(path_type=Path), help="As of `ledger`.")
@click.pass_context
@command
def export(context: click.Context, config: Path | None) -> None:
    """Print every entry of the chain, with the signed head, to prove later what left the house."""
    settings = read_settings(config or context.obj)
    with closing(Ledger.open(settings.state)) as ledger:
        head, identity = ledger.head(), load_identity(settings)
        entries: list[Any] = [json.loads(json.dumps(entry)) for entry in ledger.entries()]
    say_json(
        {
            "entries": entries,
            "head": head.statement(),
            "identity": identity.public_key.hex(),
            "signature": identity.sign("head", head.statement()).hex(),
        }
    )
