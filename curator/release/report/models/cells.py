"""The section about a table of all columns: how many cells it has and keeps, and which values were counted as one."""

import math
from collections.abc import Sequence
from itertools import combinations

from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, ModelSection, Publication
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import listed, name_runs, plural, whole
from synod.curator.structure.cells import CellModel, read_cells

VALUES = "values together"
PARTS = "parts of columns together, of columns with more than one part,"
JOINED = "No two columns have more than one part each: they are published as if they were independent."
MOST_RUNS = 8


def describe_cells(study: Study, publication: Publication) -> ModelSection:
    """The cells, and the parts of each column where some values were joined."""
    model = read_cells(study, publication.model)
    words = _describe_table(study, model)
    if all(max(own) + 1 == len(own) for own in model.groups):
        return ModelSection("The table of all columns", tag("p", words))
    rows = [row for place in range(len(model.groups)) for row in _show_parts(study, model, place)]
    table = fold_table("Which values were counted as one", ("column", "part", "values"), rows)
    return ModelSection("The parts of the columns", join([tag("p", words), table]))


def _describe_table(study: Study, model: CellModel) -> str:
    kept, every = int((model.weights > 0).sum()), model.weights.size
    words = (
        f"The model is one table of {plural(len(model.groups), 'column')} with {plural(every, 'cell')}, of which "
        f"{whole(kept)} {'has' if kept == 1 else 'have'} rows after the noise was cut off. An average cell has "
        f"{study.total_rows / every:.2g} rows, and noise of {model.deviation:.2g}."
    )
    values = math.prod(len(own) for own in model.groups)
    if every < values:
        words += (
            " Values that were found to behave alike were counted as one part; inside a part each has the same share "
            f"of every cell, so that the table stands for {whole(values)} cells of values."
        )
    return words


def _show_parts(study: Study, model: CellModel, place: int) -> list[Html]:
    """A row for each part of one column."""
    coding, own = codings_of(study)[features_of(study)[place].attribute], model.groups[place]
    rows = []
    for part in range(max(own) + 1):
        names = name_runs(coding, [code for code, other in enumerate(own) if other == part])
        cells = (outside(coding.attribute.name), Html(whole(part + 1)), outside(listed(_shorten(names))))
        rows.append(tag("tr", *(tag("td", cell) for cell in cells)))
    return rows


def _shorten(names: Sequence[str]) -> list[str]:
    if len(names) <= MOST_RUNS:
        return list(names)
    return [*names[: MOST_RUNS - 1], f"{len(names) - MOST_RUNS + 1} others"]


def cell_error(study: Study, publication: Publication) -> CountError:
    """The noise of a count of two values, or of two parts: that of all cells that it adds up."""
    model = read_cells(study, publication.model)
    sizes, every = model.sizes, model.weights.size
    pairs = list(combinations(range(len(sizes)), 2))
    covered = [every / (sizes[a] * sizes[b]) for a, b in pairs if min(sizes[a], sizes[b]) > 1]
    counted = VALUES if sizes == tuple(len(own) for own in model.groups) else PARTS
    if not covered:
        return CountError(None, len(pairs), 0, counted, JOINED)
    deviation = model.deviation * math.sqrt(math.fsum(covered) / len(covered))
    return CountError(deviation, len(pairs), len(covered), counted)
