"""How good published tables are: average total variation distance of all 1-, 2- and 3-way marginals, on real rows.

Usage: python -m bench.utility STUDY TABLE [--method adaptive ...] [--parties 3 ...] [--collusion 1 ...]
       [--epsilon 0.8 ...] [--delta 1e-9 ...] [--order alike ...] [--target NAME] [--central] [--runs 10] [--markdown]
"""

import json
from pathlib import Path
from typing import Any

import click

from bench.utility.markdown import to_json, write_table
from bench.utility.measure import Source, measure_references
from bench.utility.runs import make_rows, run_settings
from bench.utility.settings import ALIKE, METHODS, PURE, make_central, make_grid, with_baselines
from synod.deploy.evaluate.classifiers import require_classifier


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--method", "methods", multiple=True, type=click.Choice(sorted(METHODS)), default=sorted(METHODS))
@click.option("--parties", multiple=True, default=[3])
@click.option("--collusion", "collusions", multiple=True, default=[1])
@click.option("--epsilon", "epsilons", multiple=True, default=["0.2", "0.8"])
@click.option("--delta", "deltas", multiple=True, default=["1e-9"], help=f"{PURE} for pure epsilon.")
@click.option("--order", "orders", multiple=True, default=[ALIKE], help="alike, or an attribute to sort rows by.")
@click.option("--target", help="An attribute that a classifier predicts; needs scikit-learn.")
@click.option("--central", is_flag=True, help="Beside MST and AIM in one place that sees all rows.")
@click.option("--runs", default=10)
@click.option("--workers", default=2)
@click.option("--markdown", is_flag=True, help="Print a table for a page instead of JSON.")
def main(**options: Any) -> None:
    """Measures methods on a table, each beside columns published independently at the same cost."""
    click.echo("Reads real rows: these figures are not private.")
    if options["target"]:
        require_classifier()
    source = Source(options["study"], options["table"], options["target"])
    axes = ("methods", "parties", "collusions", "epsilons", "deltas", "orders")
    settings = list(make_grid(*(options[axis] for axis in axes)))
    if options["central"]:
        settings += make_central(options["epsilons"], options["deltas"])
    wanted = dict.fromkeys(with_baselines(settings), options["runs"])
    found = run_settings(source, wanted, None, workers=options["workers"], tell=click.echo)
    rows, references = make_rows(settings, found), measure_references(source)
    if options["markdown"]:
        click.echo("\n".join(write_table(rows, references)))
    else:
        click.echo(json.dumps(to_json(rows, references, options["runs"])))


if __name__ == "__main__":
    main()
