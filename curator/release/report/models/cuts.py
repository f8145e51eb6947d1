"""The section about a cut: into which parts columns were split, and which of them were never split."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from synod.common.study.encoding import Coding, codings_of
from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, ModelSection, Publication
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import name_runs, plural, whole
from synod.curator.structure.model import read_tree

MOST_NAMES = 6
MOST_PARTS = 8
COUNTED = "parts together, of columns that were split,"
NO_PAIRS = "No two columns were counted together: at most one of them was split, and the others come out uniform."
NOT_SPLIT = (
    "Do not read anything into a column that was never split, which the section about the cut names: it comes out "
    "uniform over its domain. Inside a part of any other column, values are uniform too."
)


def describe_cut(study: Study, publication: Publication) -> ModelSection:
    """Columns that were never split, by name; then the parts of all others."""
    model: Any = publication.model
    tree, _ = read_tree(model)
    groups = [attribute["groups"] for attribute in model["attributes"]]
    codings = [codings_of(study)[feature.attribute] for feature in features_of(study)]
    split = [place for place, own in enumerate(groups) if max(own) > 0]
    leaves = math.prod(tree.sizes[place] for place in split)
    words = (
        f"Rows are drawn from one table of {plural(leaves, 'cell')}, of {plural(len(split), 'column')} in parts. "
        "Inside its part a value is drawn uniformly."
    )
    never = [outside(codings[place].attribute.name) for place, own in enumerate(groups) if max(own) == 0]
    rows = [_show_column(codings[place], groups[place]) for place in split]
    table = fold_table("The parts", ("column", "parts", "which they are"), rows)
    return ModelSection("The cut", join([tag("p", words), *_name_uniform(never), table]))


def _name_uniform(names: Sequence[Html]) -> list[Html]:
    if not names:
        return []
    what = f"{plural(len(names), 'column')} never split: "
    end = ". They say nothing about the rows: they come out uniform over their domain."
    if len(names) == 1:
        end = ". It says nothing about the rows: it comes out uniform over its domain."
    return [tag("p", tag("strong", what), join(names, ", "), end)]


def _show_column(coding: Coding, groups: Sequence[int]) -> Html:
    parts = max(groups) + 1
    named = [_name_part(coding, [code for code, own in enumerate(groups) if own == part]) for part in range(parts)]
    shown = named[:MOST_PARTS] + [Html(f"{whole(parts - MOST_PARTS)} more")] * (parts > MOST_PARTS)
    name = tag("th", outside(coding.attribute.name), scope="row")
    return tag("tr", name, tag("td", whole(parts)), tag("td", join(shown, "; ")))


def _name_part(coding: Coding, codes: Sequence[int]) -> Html:
    """The values of one part; bins that lie side by side are one range."""
    names = name_runs(coding, codes)
    more = [Html(f"{whole(len(names) - MOST_NAMES)} more")] * (len(names) > MOST_NAMES)
    return join([*map(outside, names[:MOST_NAMES]), *more], ", ")


def cut_error(study: Study, publication: Publication) -> CountError:
    """The noise on a count of two parts: of all leaves that they share, each with noise of its own."""
    model: Any = publication.model
    tree, _ = read_tree(model)
    (table,) = model["tables"]
    sizes = [tree.sizes[place] for place in table["attributes"]]
    every = math.comb(len(features_of(study)), 2)
    if len(sizes) < 2:
        return CountError(None, every, 0, COUNTED, NO_PAIRS)
    leaf = float(table["deviation"]) ** 2
    variances = [leaf * math.prod(sizes) / (a * b) for a, b in combinations(sizes, 2)]
    return CountError(math.sqrt(math.fsum(variances) / len(variances)), every, len(variances), COUNTED)
