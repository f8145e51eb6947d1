"""`synod party join`: from a kit to a party that only lacks its certificate; asks on a terminal what is not given."""

import re
import sys
import time
from pathlib import Path

import click

from synod.common.runtime.errors import SynodError, invalid, refused
from synod.common.runtime.settings import Database, read_source
from synod.common.study.study import SLUG
from synod.deploy.cli.terminal import Example, command, say
from synod.deploy.enrolment.join import Answers, Joined, join, require_free
from synod.deploy.enrolment.kit import Kit, read_kit, require_expected
from synod.deploy.launch.site import plan_names
from synod.party.table.source import Source, read_header

USUAL_EPSILON = "1"
FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")


@click.command(
    name="join",
    cls=Example,
    example="synod party join hospital.kit --name north --source stays.csv --max-epsilon-total 3",
)
@click.argument("kit", type=click.Path(path_type=Path))
@click.option("--expect", metavar="sha256:...", help="The curator's fingerprint, as its operator said it by phone.")
@click.option("--name", help="This party's name: small letters, digits and inner hyphens.")
@click.option("--dataset", help="The account that studies are charged to; left out: after the table's file.")
@click.option("--source", metavar="SOURCE", help="The table: a file, a folder of Parquet files, or one of a database.")
@click.option("--unit", metavar="COLUMN", help="The column that tells persons apart, if some have several rows.")
@click.option("--max-epsilon-total", metavar="EPSILON", help="The most that this table may ever give away.")
@click.option(
    "--max-epsilon-per-study", metavar="EPSILON", help="The most for one study; left out: no limit of its own."
)
@click.option(
    "--max-rho-total", "rho", nargs=2, metavar="EPSILON DELTA",
    help="The most for all studies with a delta, beside that; left out: such studies are refused.",
)  # fmt: skip
@click.option(
    "--folder", type=click.Path(path_type=Path), help="A new folder for all that is made; left out: the name."
)
@command
def join_curator(
    kit: Path,
    expect: str | None,
    name: str | None,
    dataset: str | None,
    source: str | None,
    unit: str | None,
    max_epsilon_total: str | None,
    max_epsilon_per_study: str | None,
    rho: tuple[str, str] | None,
    folder: Path | None,
) -> None:
    """Make party.yaml, keys, a request for a certificate and a ledger, from the kit of a curator's operator.

    On a terminal it asks for what is not given. Nothing is made before the curator's fingerprint is compared.
    """
    read = read_kit(kit)
    _compare(read, expect)
    name = _ask(name, "--name", "This party's name")
    if not SLUG.fullmatch(name):
        raise invalid(f"{name!r} is not a name.", "A name is 1 to 63 small letters, digits and inner hyphens.")
    folder = folder or Path(name)
    require_free(folder)
    table = read_source(_ask(source, "--source", "The table: a file, or a table of a database"), "--source")
    asked = Answers(
        name=name,
        dataset=dataset or _ask(None, "--dataset", "The dataset's name", _dataset_name(table, name)),
        source=table,
        max_epsilon_total=_ask(
            max_epsilon_total,
            "--max-epsilon-total",
            "The most epsilon that it may ever spend",
            USUAL_EPSILON,
            must=True,
        ),
        max_epsilon_per_study=max_epsilon_per_study or _ask(None, "", "The most for one study, or nothing", "") or None,
        rho=rho,
        unit=unit or _ask(None, "", "The column that tells persons apart, or nothing", "") or None,
    )
    _look_at_table(table)
    _tell(read, asked, join(read, asked, folder, now=int(time.time())))


def _compare(kit: Kit, expect: str | None) -> None:
    """Shows whose kit it is, and goes on only if a person, or `--expect`, says that this is the curator.

    Guarantee: a kit that somebody else made joins nobody who compares.
    """
    say(f"Curator      {kit.address}")
    say(f"Fingerprint  {kit.curator}")
    if expect is not None:
        if not FINGERPRINT.fullmatch(expect):
            raise invalid("`--expect` takes sha256: and 64 hexadecimal digits.", "Copy it as the operator gave it.")
        require_expected(kit, expect)
        return
    if not sys.stdin.isatty():
        raise refused(
            "nobody can compare the curator's fingerprint here, because standard input is not a terminal. Nothing was "
            "made.",
            "Give it with `--expect sha256:...`, as the curator's operator said it by phone.",
        )
    if not click.confirm("Did the curator's operator read out this very fingerprint to you, by phone or in person?"):
        raise refused("the fingerprint was not compared. Nothing was made.", "Call the curator's operator first.")


def _ask(given: str | None, option: str, question: str, default: str | None = None, *, must: bool = False) -> str:
    """What was given, or what a person answers; in a script the default, unless there is none or a person must say."""
    if given is not None:
        return given
    if sys.stdin.isatty():
        return str(click.prompt(question, default=default, show_default=bool(default)))
    if default is None or must:
        raise invalid(f"`{option}` is missing. Nothing was made.", "Give it, or run the command on a terminal.")
    return default


def _dataset_name(source: Source, name: str) -> str:
    """A name for the dataset, after the table."""
    last = plan_names([source])[0] if isinstance(source, Database) else source.name.split(".")[0]
    words = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:63].strip("-")
    return words if SLUG.fullmatch(words) else name


def _look_at_table(source: Source) -> None:
    try:
        say(f"The table {source.name} has {len(read_header(source))} columns.")
    except SynodError as error:
        say(f"The table cannot be read yet, and can be put right later: {error}")


def _tell(kit: Kit, answers: Answers, made: Joined) -> None:
    say(f"Made {made.config.parent}/: configuration, keys, ledger. Nothing of it leaves but what follows here.")
    say(f"1. A certificate: {made.request}. {kit.certificates} Read out by phone the fingerprint of its key:")
    say(f"   {made.tls_key}")
    say(f"   What comes back goes to {made.certificate}.")
    say("2. Rosters name this party by its identity. Read it out to the curator's operator and to the other parties:")
    say(f"   {made.identity}")
    say(f"3. Then: synod party doctor --config {made.config}, and synod party serve --config {made.config}")
    say(
        f"{answers.dataset} may spend epsilon {answers.max_epsilon_total} in all. If the same people's data were in "
        f"other private releases, declare it now: synod party init --spent EPSILON --config {made.config}"
    )
