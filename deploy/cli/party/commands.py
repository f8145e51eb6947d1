"""`synod party`: the party operator's verbs."""

import re
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import click

from synod.common.crypto.certificates import Holder, Role
from synod.common.privacy.cost import Cost
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import OUTCOMES, Code, SynodError, invalid
from synod.common.runtime.settings import PartySettings, load_settings
from synod.common.study.promise import describe_cost
from synod.common.study.study import SLUG, load_study
from synod.deploy.cli.certs import write_request
from synod.deploy.cli.terminal import (
    Example,
    command,
    require_assertions,
    require_yes,
    say,
    serving,
    stay_option,
)
from synod.party.account import ApprovalState
from synod.party.approval import (
    initialize,
    is_history_lost,
    load_identity,
    rename_dataset,
    revoke,
)
from synod.party.ledger import Ledger
from synod.party.release import compare_release

config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), default=Path("party.yaml"), show_default=True,
    help="The party's configuration.",
)  # fmt: skip
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?|[0-9]{1,20}/0*[1-9][0-9]{0,19}")
json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")


def read_settings(config: Path) -> PartySettings:
    """The party's configuration."""
    return load_settings(PartySettings, config)


def tell_cost(settings: PartySettings, cost: Cost) -> str:
    """A cost as the party's operator thinks of it: rho also as an epsilon at the policy's delta."""
    return describe_cost(cost, settings.shown_delta)


@click.command(cls=Example, example="synod party init --config party.yaml")
@config_option
@click.option("--spent", help="What the dataset has spent before this ledger, as an epsilon. It is never taken back.")
@click.option("--spent-rho", help="What it has spent before in studies with a delta, as a rho.")
@click.option("--yes", is_flag=True, help="Say yes to what --spent declares; needed where there is no terminal.")
@command
def init(config: Path, spent: str | None, spent_rho: str | None, yes: bool) -> None:
    """Make this party's identity key and ledger. Nothing that exists is replaced."""
    settings = read_settings(config)
    if (spent is None) != (spent_rho is None) and is_history_lost(settings):
        raise invalid(
            f"the earlier ledger of {settings.dataset} is lost, so what it spent must be said of both kinds.",
            "Give `--spent` and `--spent-rho`, and 0 for a kind that it never spent.",
        )
    declared = _read_spent(spent, spent_rho)
    if declared is not None:
        say(f"{settings.dataset} is declared to have spent {tell_cost(settings, declared)} before this ledger.")
        say(f"That counts against {tell_cost(settings, settings.cap)} in all. It can be raised later, never lowered.")
        require_yes(f"Declare it for {settings.dataset}, for good?", yes=yes, otherwise="Nothing was declared.")
    identity = initialize(settings, spent=declared, now=int(time.time()))
    say(f"{settings.name} is ready. Give this fingerprint to the curator's operator, by phone or in person:")
    say(identity.fingerprint)
    with closing(Ledger.open(settings.state)) as ledger:
        account = ledger.account()
    if declared is not None:
        left = settings.cap.left_after(account.spent(settings.dataset) + account.held(settings.dataset))
        told = [tell_cost(settings, cost) for cost in (account.spent(settings.dataset), left)]
        say(f"Declared. {settings.dataset} has spent {told[0]} in all, and has {told[1]} left: `synod party ledger`.")
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


@click.command(cls=Example, example="synod party fingerprint")
@config_option
@command
def fingerprint(config: Path) -> None:
    """Print the fingerprint that a study's roster pins."""
    say(load_identity(read_settings(config)).fingerprint)


@click.command(name="request-certificate", cls=Example, example="synod party request-certificate --config party.yaml")
@config_option
@command
def request_certificate(config: Path) -> None:
    """Make this party's TLS key if there is none, and a request that the transport authority signs."""
    settings = read_settings(config)
    write_request(settings.tls, Holder(Role.PARTY, settings.name), ())


@click.command(name="rename-dataset", cls=Example, example="synod party rename-dataset north-stays north-stays-2026")
@click.argument("old")
@click.argument("new")
@config_option
@command
def rename(old: str, new: str, config: Path) -> None:
    """Let the dataset NEW go on with what OLD has spent: from then on both names have one account, for good."""
    settings = read_settings(config)
    if not SLUG.fullmatch(new):
        raise invalid(f"{new!r} is no name of a dataset.", "Write small letters, digits and inner hyphens.")
    rename_dataset(settings, old, new, now=int(time.time()))
    ledger = Ledger.open(settings.state)
    spent = ledger.account().spent(new)
    ledger.close()
    say(f"{old} is {new} now, with one account: spent {tell_cost(settings, spent)}.")
    if settings.dataset not in (old, new):
        say(f"The configuration has another dataset, {settings.dataset}.")


@click.command(name="revoke", cls=Example, example="synod party revoke care-survey")
@click.argument("name")
@config_option
@command
def revoke_study(name: str, config: Path) -> None:
    """End an approval: nothing more is answered, and what was not spent is free again."""
    settings = read_settings(config)
    ledger = Ledger.open(settings.state)
    approvals = [
        a for a in ledger.account().approvals.values() if name in (a.name, a.study) and a.state is ApprovalState.OPEN
    ]
    ledger.close()
    if not approvals:
        raise SynodError(Code.NOT_FOUND, f"there is no open approval of {name}.", "See `synod party ledger`.")
    for approval in approvals:
        revoke(settings, bytes.fromhex(approval.study), now=int(time.time()))
        say(f"Revoked {approval.name}; spent on it: {tell_cost(settings, approval.spent)}.")


@click.command(name="check-release", cls=Example, example="synod party check-release release/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@config_option
@command
def check_own_release(folder: Path, config: Path) -> None:
    """Verify a release, and compare what it says of this party with this party's own ledger."""
    settings = read_settings(config)
    verdict = verify_release(folder, None)
    identity, ledger = load_identity(settings), Ledger.open(settings.state)
    entries = ledger.entries()
    ledger.close()
    own = compare_release(verdict, entries, name=settings.name, key=identity.fingerprint, curator=settings.curator)
    for line in (*verdict.lines, *own):
        say(f"ok  {line}")
    say(f"The release says of {settings.name} what this ledger says. Other parties: `synod verify DIR --trust FILE`.")


@click.command(cls=Example, example="synod party doctor --study study.yaml")
@config_option
@click.option("--study", type=click.Path(path_type=Path), help="Also check whether this study could be approved.")
@command
def doctor(config: Path, study: Path | None) -> None:
    """Find out why this party cannot talk to its curator, or whether it can."""
    from synod.party.doctor import examine  # noqa: PLC0415  (pulls in grpc)

    settings = read_settings(config)
    resolved = load_study(study).resolve() if study else None
    worst: SynodError | None = None
    for finding in examine(settings, resolved, now=datetime.now(UTC)):
        mark = "FAIL" if finding.error else "WARN" if finding.warns else "ok  "
        say(f"{mark} {finding.what}: {finding.told or finding.error}")
        worst = worst or finding.error
    if worst is not None:
        sys.exit(OUTCOMES[worst.code].exit_code)


@click.command(cls=Example, example="synod party serve --config party.yaml")
@config_option
@stay_option
@command
def serve(config: Path, stay: bool) -> None:
    """Run the daemon: dial the curator, answer what was approved."""
    from synod.deploy.cli.party.serve import serve_party  # noqa: PLC0415  (pulls in grpc)

    require_assertions()
    settings = read_settings(config)
    with serving(stay=stay, health=settings.health):
        serve_party(settings)
