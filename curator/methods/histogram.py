"""Histogram's recipe: one encrypted sum of all cells, brought to the number of rows, and rows in its shares."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query
from synod.common.study.study import Study
from synod.curator.drawing.trees import open_cells
from synod.curator.methods.base import Numbers, Parties, Publication, Publisher, Released, register
from synod.curator.network.tables import project_tables
from synod.curator.release.report.models.cells import cell_error, describe_cells
from synod.curator.structure.cells import draw_cells, write_cells
from synod.curator.structure.joint import ask_everything, release_everything, values_apart

STEP = "histogram"
FEW_ROWS = (
    "An average cell has {:.2g} times as many rows as its noise: cells that stand out are kept, and the others are "
    "mostly noise. Name fewer `attributes`, give numbers fewer bins, or choose a method that asks for smaller tables."
)
SPARSE = (
    "Do not read rare combinations of many columns: a cell of all columns is kept where its noisy count stands out, so "
    "most rare ones are missing, and some that are there are noise."
)


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Asks for the table of all attributes, and takes norm-sub's shares of its cells.

    Guarantee: the one step costs what the plan says; the rest is post-processing.
    """
    del rng  # the rows are drawn from the model and the seed
    (counts,) = await parties.ask(STEP, ask_everything(study))
    released = release_everything(study, parties, STEP, counts)
    model = await parties.remember("model", partial(_write, study, released))
    return Publication([], model, tables=[released])


def _write(study: Study, released: Released) -> Json:
    shares = project_tables(released.counts, released.rows) / released.rows
    return write_cells(study, values_apart(study), shares, sqrt(released.mean_variance))


def warnings(study: Study) -> Sequence[str]:
    """What a noisy table of all cells does to rare combinations."""
    del study
    return (SPARSE,)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The one query."""
    return {STEP: ask_everything(study)}


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """That there are too few rows for so many cells; of real rows there is nothing to say."""
    ratio = ask_everything(study).cell_to_noise(plan_study(study).step(STEP), study)
    return [FEW_ROWS.format(ratio)] if numbers is None and ratio < 1 else ()


register(
    "histogram",
    Publisher(
        title="Histogram, an encrypted table of all columns",
        publish=publish,
        describe=describe_cells,
        expected_error=cell_error,
        warnings=warnings,
        typical_queries=typical_queries,
        advise=advise,
        draw=draw_cells,
        open_model=open_cells,
    ),
)
