"""`synod evaluate`: how near a synthetic table comes to real rows. Local, and not private."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from synod.common.runtime.errors import invalid
from synod.common.study.study import Study, load_study
from synod.deploy.cli.terminal import Example, command, errors, say, say_json, show_table
from synod.deploy.evaluate.classifiers import parse_target, require_classifier
from synod.deploy.evaluate.information import MODEL_FILE, Pairs, read_networks
from synod.deploy.evaluate.measure import ALONE, NOTE, ORDERS, Cells, Evaluation, Request, average, evaluate, to_json
from synod.deploy.evaluate.plot import draw_figure, require_plot
from synod.deploy.evaluate.tables import find_real, find_synthetic, make_table, read_columns, read_release_study

WORSE = (
    "The published table is worse than columns alone for pairs of columns: publishing each column by itself would have "
    "been nearer to the real rows at the same cost."
)
PART = (
    "These rows are not all of the study's, so whether the published table is better than columns alone cannot be told "
    "here: columns alone knows the shares of these very rows, and the published table has those of all rows."
)


@click.command(
    name="evaluate",
    cls=Example,
    example="synod evaluate patients.csv release/ --plot evaluation.png",
)
@click.argument("real", type=click.Path(path_type=Path))
@click.argument("synthetic", type=click.Path(path_type=Path))
@click.option(
    "--study", "study_path", type=click.Path(path_type=Path), help="Its schema is used.", show_default="the release's"
)
@click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw a figure into this PNG file.")
@click.option(
    "--target", "targets", multiple=True, metavar="ATTRIBUTE[=VALUE|...]",
    help="Also train a classifier that predicts this attribute, or whether it is one of these values; repeatable.",
)  # fmt: skip
@click.option("--queries", default=1000, show_default=True, type=click.IntRange(0, 10**6), help="Random range queries.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of queries, samples and test rows.")
@click.option("--network", type=click.Path(path_type=Path), help="A model.json, or a release; default: SYNTHETIC's.")
@click.option(
    "--encoding", "cells", type=click.Choice(["bins", "bits"]), default="bins", show_default=True,
    help="Compare marginals of attributes, or of the bits of their binary encoding.",
)  # fmt: skip
@command
def evaluate_command(
    real: Path,
    synthetic: Path,
    study_path: Path | None,
    as_json: bool,
    plot: Path | None,
    targets: tuple[str, ...],
    queries: int,
    seed: int,
    network: Path | None,
    cells: Cells,
) -> None:
    """Compare the table SYNTHETIC, or that of a release, with REAL rows: a table, or a folder of them to be pooled.

    Reads real rows: the figures are NOT private.
    """
    study = load_study(study_path) if study_path else read_release_study(synthetic)
    if plot is not None:
        require_plot(plot)
    if targets:
        require_classifier()
    networks = _networks(network, synthetic, study)
    published = find_synthetic(synthetic)
    real_rows, synthetic_rows = read_columns(find_real(real), study), read_columns([published], study)
    names = make_table(study, real_rows).names
    request = Request(cells, queries, tuple(parse_target(t, study, names) for t in targets), networks, seed)
    with _progress() as progress:
        evaluation = evaluate(study, real_rows, synthetic_rows, request, progress=progress)
        if plot is not None:
            progress("figure")
            draw_figure(study, evaluation, plot)
    if as_json:
        say_json(to_json(study, request, evaluation))
    else:
        _show(study, evaluation, plot)


def _networks(network: Path | None, synthetic: Path, study: Study) -> tuple[Pairs, ...]:
    """The networks that were asked for, or those of the release if there are any."""
    if network is not None:
        found = read_networks(network, study)
        if not found:
            raise invalid(f"{network} has no network.", f"{study.method.name} learns none; leave --network out.")
        return found
    return read_networks(synthetic, study) if (synthetic / MODEL_FILE).is_file() else ()


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being measured, on a terminal only: figures may be piped."""
    if not errors.is_terminal:
        yield lambda _: None
        return
    with errors.status("reading") as status:
        yield status.update


def _show(study: Study, evaluation: Evaluation, plot: Path | None) -> None:
    say(NOTE)
    say(f"{study.name}: {evaluation.real.rows:,} real rows, {evaluation.synthetic.rows:,} synthetic rows")
    show_table(
        ["figure", "value", "columns alone", "of"],
        _figures(evaluation),
        title="Averages; smaller is better, a distance is within 0 and 1",
    )
    say(ALONE)
    if not evaluation.has_all_rows:
        say(PART)
    elif evaluation.is_worse_than_columns_alone:
        say(WORSE)
    _show_worst(evaluation)
    _show_information(evaluation)
    _show_misclassification(evaluation)
    if plot is not None:
        say(f"Drawn: {plot}")


def _figures(evaluation: Evaluation) -> list[list[str]]:
    """A line for each average distance, and for the range queries, each beside that of columns alone."""
    what, alone = "attributes" if evaluation.cells == "bins" else "bits", evaluation.alone
    lines = []
    for order, distances, baseline in zip(ORDERS, evaluation.distances, alone.distances, strict=True):
        if distances.sets:
            is_sample = len(distances.sets) < distances.all_sets
            amount = f"{len(distances.sets):,} of {distances.all_sets:,}" if is_sample else f"{distances.all_sets:,}"
            marginals = "marginal" if amount == "1" else "marginals"
            of = f"{amount} {marginals} of {what}"
            variation, hellinger = zip(average(distances), average(baseline), strict=True)
            lines.append([f"total variation, {order}-way", *map(_write, variation), of])
            lines.append([f"Hellinger, {order}-way", *map(_write, hellinger), ""])
    if evaluation.queries:
        asked = evaluation.queries
        absolute, relative = (asked.absolute, alone.absolute), (asked.relative, alone.relative)
        lines.append(["range queries, absolute", *map(_write, absolute), f"{asked.queries:,} queries, share of rows"])
        lines.append(["range queries, relative", *map(_write, relative), f"shares below {asked.sanity_bound} as that"])
    return lines


def _write(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.4f}"


def _show_worst(evaluation: Evaluation) -> None:
    names = evaluation.real.names
    rows = [
        [
            f"{d.order}-way",
            ", ".join(names[i] for i in d.sets[place]),
            f"{d.total_variation[place]:.4f}",
            f"{alone.total_variation[place]:.4f}",
        ]
        for d, alone in zip(evaluation.distances, evaluation.alone.distances, strict=True)
        for place in d.worst(3)
    ]
    headings = ["order", "attributes", "total variation", "columns alone"]
    show_table(headings, rows, title="Where the tables differ most")


def _show_information(evaluation: Evaluation) -> None:
    held = evaluation.information
    if held is not None:
        of = f", mean of {held.networks} networks" if held.networks > 1 else ""
        say(
            f"Sum of mutual information of the network{of}: {held.real:.3f} bits in the real rows, "
            f"{held.synthetic:.3f} in the synthetic ones, {evaluation.alone.information:.3f} with columns alone."
        )


def _show_misclassification(evaluation: Evaluation) -> None:
    if evaluation.misclassification:
        rows = [
            [
                label,
                f"{wrong.synthetic:.4f}",
                f"{evaluation.alone.misclassification[label]:.4f}",
                f"{wrong.real:.4f}",
                f"{wrong.majority:.4f}",
                f"{wrong.tested_rows:,}",
            ]
            for label, wrong in evaluation.misclassification.items()
        ]
        headings = ["target", "learned from synthetic", "columns alone", "from real", "majority", "tested real rows"]
        show_table(headings, rows, title="Wrongly predicted real rows")
