"""`synod party`: the party operator's verbs."""

import json
import re
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from synod.common.crypto.certificates import Holder, Role
from synod.common.privacy.conversion import spent_epsilon
from synod.common.privacy.cost import Cost
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import OUTCOMES, Code, SynodError, invalid
from synod.common.runtime.settings import PartySettings, load_settings
from synod.common.study.promise import describe_cost, explain_delta, explain_several_rows, name_budget, name_unit
from synod.common.study.schema import write_decimal, write_delta
from synod.common.study.study import SLUG, Study, load_study
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.terminal import (
    Example,
    ExampleGroup,
    command,
    require_assertions,
    require_yes,
    say,
    say_json,
    serving,
    show_table,
    stay_option,
)
from synod.party.account import ApprovalState
from synod.party.approval import (
    check_study,
    initialize,
    is_history_lost,
    load_identity,
    rename_dataset,
    reserve,
    revoke,
)
from synod.party.ledger import Ledger
from synod.party.release import compare_release
from synod.party.table.encode import TableError

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("party.yaml"), show_default=True,
    help="The party's configuration.",
)  # fmt: skip
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?|[0-9]{1,20}/0*[1-9][0-9]{0,19}")
json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")


@click.group()
def party() -> None:
    """Run a party's daemon, and decide what it may answer."""


def _settings(config: Path) -> PartySettings:
    return load_settings(PartySettings, config)


@party.command(cls=Example, example="synod party init --config party.yaml")
@config_option
@click.option("--spent", help="What the dataset has spent before this ledger, as an epsilon.")
@click.option("--spent-rho", help="What it has spent before in studies with a delta, as a rho.")
@command
def init(config: Path, spent: str | None, spent_rho: str | None) -> None:
    """Make this party's identity key and ledger. Nothing that exists is replaced."""
    settings = _settings(config)
    if (spent is None) != (spent_rho is None) and is_history_lost(settings):
        raise invalid(
            f"the earlier ledger of {settings.dataset} is lost, so what it spent must be said of both kinds.",
            "Give `--spent` and `--spent-rho`, and 0 for a kind that it never spent.",
        )
    identity = initialize(settings, spent=_read_spent(spent, spent_rho), now=int(time.time()))
    say(f"{settings.name} is ready. Give this fingerprint to the curator's operator, by phone or in person:")
    say(identity.fingerprint)
    ledger = Ledger.open(settings.state)
    account = ledger.account()
    ledger.close()
    if account.history_lost and not account.is_declared(settings.dataset):
        say(
            f"The identity was there but its ledger was not: {settings.dataset} counts as fully spent. "
            "Enter what it has spent with `synod party init --spent EPSILON --spent-rho RHO`."
        )


def _read_spent(epsilon: str | None, rho: str | None) -> Cost | None:
    if epsilon is None and rho is None:
        return None
    return Cost(_read_number(epsilon, "an epsilon", "0.8"), _read_number(rho, "a rho", "0.01"))


def _read_number(text: str | None, what: str, sample: str) -> Fraction:
    if text is None:
        return Fraction(0)
    if not NUMBER.fullmatch(text):
        raise invalid(f"{text!r} is not {what}.", f"Write a number such as {sample}, or a fraction such as 4/5.")
    return Fraction(text)


@party.command(cls=Example, example="synod party fingerprint")
@config_option
@command
def fingerprint(config: Path) -> None:
    """Print the fingerprint that a study's roster pins."""
    say(load_identity(_settings(config)).fingerprint)


@party.command(name="request-certificate", cls=Example, example="synod party request-certificate --config party.yaml")
@config_option
@command
def request_certificate(config: Path) -> None:
    """Make this party's TLS key if there is none, and a request that the transport authority signs."""
    settings = _settings(config)
    write_request(settings.tls, Holder(Role.PARTY, settings.name), ())


@party.command(name="approve", cls=Example, example="synod party approve study.yaml --dry-run")
@click.argument("study", type=click.Path(path_type=Path))
@config_option
@click.option("--dry-run", is_flag=True, help="Check everything, reserve nothing.")
@click.option("--yes", is_flag=True, help="Say yes beforehand; needed where there is no terminal.")
@command
def approve_study(study: Path, config: Path, dry_run: bool, yes: bool) -> None:
    """Check a study against policy, budget and table, and reserve what it costs."""
    settings = _settings(config)
    resolved = load_study(study).resolve()
    _show_study(resolved, settings.name)
    try:
        checked = check_study(settings, resolved)
    except TableError as error:
        rows = [[misfit.column, misfit.rule, str(misfit.rows)] for misfit in error.misfits]
        show_table(["column", "rule", "rows"], rows, title=f"{settings.source.name} (for your eyes only)")
        raise
    if dry_run:
        say(f"It fits, and would cost {_describe(settings, checked.cost)}. Nothing was reserved.")
        return
    require_yes("Approve, vouching for this roster?", yes=yes, otherwise="Nothing was reserved.")
    reserve(settings, checked, now=int(time.time()))
    say(f"Approved: {_describe(settings, checked.cost)} is reserved for {resolved.name}.")


def _show_study(study: Study, own_name: str) -> None:
    say(f"Study {study.name}, {study.method.name}, {name_budget(study)}")
    say(f"Protects any one {name_unit(study)}. {explain_several_rows(study)}")
    if study.delta is not None:
        say(explain_delta(study))
    say(f"Hash  {study.digest().hex()}")
    rows = [[entry.name, entry.key, str(entry.rows)] for entry in study.roster]
    show_table(["party", "key", "rows"], rows)
    say(
        f"Approving vouches that at most {study.collusion} of these parties may side with the curator."
        if study.collusion
        else "collusion is 0: any single party can subtract its own noise from what is published."
    )
    if study.may_lose:
        say(f"The study may go on without up to {study.may_lose} of these parties; the curator says which.")
    for step in plan_study(study).steps_of(own_name):
        say(f"  step {step.label}: {step.kind.value}, {step.cost.describe()}")


@party.command(name="rename-dataset", cls=Example, example="synod party rename-dataset north-stays north-stays-2026")
@click.argument("old")
@click.argument("new")
@config_option
@command
def rename(old: str, new: str, config: Path) -> None:
    """Let the dataset NEW go on with what OLD has spent: from then on both names have one account, for good."""
    settings = _settings(config)
    if not SLUG.fullmatch(new):
        raise invalid(f"{new!r} is no name of a dataset.", "Write small letters, digits and inner hyphens.")
    rename_dataset(settings, old, new, now=int(time.time()))
    ledger = Ledger.open(settings.state)
    spent = ledger.account().spent(new)
    ledger.close()
    say(f"{old} is {new} now, with one account: spent {_describe(settings, spent)}.")
    if settings.dataset not in (old, new):
        say(f"The configuration has another dataset, {settings.dataset}.")


@party.command(name="revoke", cls=Example, example="synod party revoke care-survey")
@click.argument("name")
@config_option
@command
def revoke_study(name: str, config: Path) -> None:
    """End an approval: nothing more is answered, and what was not spent is free again."""
    settings = _settings(config)
    ledger = Ledger.open(settings.state)
    approvals = [
        a for a in ledger.account().approvals.values() if name in (a.name, a.study) and a.state is ApprovalState.OPEN
    ]
    ledger.close()
    if not approvals:
        raise SynodError(Code.NOT_FOUND, f"there is no open approval of {name}.", "See `synod party ledger`.")
    for approval in approvals:
        revoke(settings, bytes.fromhex(approval.study), now=int(time.time()))
        say(f"Revoked {approval.name}; spent on it: {_describe(settings, approval.spent)}.")


@party.group(name="ledger", cls=ExampleGroup, example="synod party ledger --json", invoke_without_command=True)
@config_option
@json_option
@click.pass_context
@command
def ledger_group(context: click.Context, config: Path, as_json: bool) -> None:
    """Show what this party approved and spent. `ledger export` prints the whole chain."""
    context.obj = config
    if context.invoked_subcommand is None:
        _show_ledger(_settings(config), as_json)


def _show_ledger(settings: PartySettings, as_json: bool) -> None:
    ledger = Ledger.open(settings.state)
    account, head = ledger.account(), ledger.head()
    ledger.close()
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
            }
        )
        return
    told = [_describe(settings, cost) for cost in (spent, held, cap)]
    say(f"{settings.dataset}: spent {told[0]}, held {told[1]}, of {told[2]} in all")
    if delta is not None:
        say(f"Spent as (epsilon, delta): epsilon {epsilon} at delta {write_delta(delta)}")
    rows = [
        [a.name, a.study[:16], a.state.value, _describe(settings, a.reserved), _describe(settings, a.spent)]
        for a in account.approvals.values()
    ]
    show_table(["study", "hash", "state", "reserved", "spent"], rows)


def _spent_at_delta(settings: PartySettings, spent: Cost) -> tuple[Decimal | None, str]:
    """The policy's delta, and the epsilon of everything that is spent at it; no delta where all is pure."""
    if settings.max_rho_total is None and spent.rho == 0:
        return None, ""
    delta = settings.shown_delta
    return delta, write_decimal(spent_epsilon(spent, Fraction(delta)))


def _describe(settings: PartySettings, cost: Cost) -> str:
    """A cost as the party's operator thinks of it: rho also as an epsilon at the policy's delta."""
    return describe_cost(cost, settings.shown_delta)


@ledger_group.command(cls=Example, example="synod party ledger export > ledger.json")
@click.option("--config", "config", type=click.Path(path_type=Path), help="As of `ledger`.")
@click.pass_context
@command
def export(context: click.Context, config: Path | None) -> None:
    """Print every entry of the chain, with the signed head, to prove later what left the house."""
    settings = _settings(config or context.obj)
    ledger = Ledger.open(settings.state)
    head, identity = ledger.head(), load_identity(settings)
    entries: list[Any] = [json.loads(json.dumps(entry)) for entry in ledger.entries()]
    ledger.close()
    say_json(
        {
            "entries": entries,
            "head": head.statement(),
            "identity": identity.public_key.hex(),
            "signature": identity.sign("head", head.statement()).hex(),
        }
    )


@party.command(name="check-release", cls=Example, example="synod party check-release release/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@config_option
@command
def check_own_release(folder: Path, config: Path) -> None:
    """Verify a release, and compare what it says of this party with this party's own ledger."""
    settings = _settings(config)
    verdict = verify_release(folder, None)
    identity, ledger = load_identity(settings), Ledger.open(settings.state)
    entries = ledger.entries()
    ledger.close()
    own = compare_release(verdict, entries, name=settings.name, key=identity.fingerprint, curator=settings.curator)
    for line in (*verdict.lines, *own):
        say(f"ok  {line}")
    say(f"The release says of {settings.name} what this ledger says. Other parties: `synod verify DIR --trust FILE`.")


@party.command(cls=Example, example="synod party doctor --study study.yaml")
@config_option
@click.option("--study", type=click.Path(path_type=Path), help="Also check_study the approval of this study.")
@command
def doctor(config: Path, study: Path | None) -> None:
    """Find out why this party cannot talk to its curator, or whether it can."""
    from synod.party.doctor import examine  # noqa: PLC0415  (pulls in grpc)

    settings = _settings(config)
    resolved = load_study(study).resolve() if study else None
    worst: SynodError | None = None
    for finding in examine(settings, resolved, now=datetime.now(UTC)):
        mark = "FAIL" if finding.error else "WARN" if finding.warns else "ok  "
        say(f"{mark} {finding.what}: {finding.told or finding.error}")
        worst = worst or finding.error
    if worst is not None:
        sys.exit(OUTCOMES[worst.code].exit_code)


@party.command(cls=Example, example="synod party serve --config party.yaml")
@config_option
@stay_option
@command
def serve(config: Path, stay: bool) -> None:
    """Run the daemon: dial the curator, answer what was approved."""
    from synod.deploy.cli.serve import serve_party  # noqa: PLC0415  (pulls in grpc)

    require_assertions()
    settings = _settings(config)
    with serving(stay=stay, health=settings.health):
        serve_party(settings)
