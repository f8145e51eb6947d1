"""`synod methods`, and `synod study` before the curator has it: check, draft and forecast a study."""

import sys
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import read_source
from synod.common.study.promise import explain_delta, explain_several_rows, name_budget
from synod.common.study.study import Study, known_methods, load_study
from synod.deploy.cli.advice import advice_document, show_advice
from synod.deploy.cli.forecast import forecast_document, show_forecast
from synod.deploy.cli.terminal import Example, command, errors, say, say_json, show_table, tell_aside
from synod.deploy.evaluate.plot import require_plot
from synod.deploy.study.advice import Advice, advise_on, assume_roster, read_row_counts
from synod.deploy.study.draft import draft_study, write_format
from synod.deploy.study.forecast import remark_on
from synod.deploy.study.numbers import read_numbers
from synod.deploy.study.plot import draw_forecast
from synod.party.table.detect import detect_format

json_option = click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
study_argument = click.argument("study", type=click.Path(path_type=Path))


@click.command(name="methods", cls=Example, example="synod methods --json")
@json_option
@command
def list_methods(as_json: bool) -> None:
    """List the methods that a study may name, with one line each."""
    from synod.curator.methods.base import method_titles  # noqa: PLC0415  (pulls in every recipe)

    titles, known = method_titles(), known_methods()
    if as_json:
        keys = {name: [key for key in known[name].model_fields if key not in ("name", "version")] for name in titles}
        say_json([{"name": name, "title": title, "keys": keys[name]} for name, title in titles.items()])
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        say(f"{name:<{width}}  {title}")
    say("The keys of each, and what it can and cannot express, are in docs/curator-operator.md.")


@click.command(cls=Example, example="synod study check study.yaml")
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


@click.command(cls=Example, example="synod study draft north.csv harbour.csv.gz > study.yaml")
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


@click.command(cls=Example, example="synod study forecast study.yaml --rows 12000,8000,4000 --plot forecast.png")
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
