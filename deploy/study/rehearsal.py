"""A rehearsal: a study's method run in one process over invented rows, to see what its noise would leave of them.

The invented rows have the study's schema and row counts and nothing of anybody's table, so a rehearsal is made from
public numbers and costs nothing. Every two columns of them are related alike, by a correlation of one half, since
nobody can know beforehand which columns of the real rows are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from time import process_time

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study, parse_study
from synod.curator.release.report.alone import distance_to_independence
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, bin_table
from synod.deploy.simulate import publish_in_process

Floats = NDArray[np.float64]
COMMON = 0.5  # the part of every column's variance that all columns share, hence their correlation
MISSING_SHARE = 0.05
SPREAD = 0.2  # of a number's bell, in parts of its range
MOST, WHERE_MOST_ARE = 0.6, 0.3  # the part of the rows of a number with a long tail at one place of its range
PURPOSE = "rehearsal"
MOST_ROWS = 1_000_000
COARSE_BINS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """What came out of invented rows.

    Attributes:
        names: the columns that vary in the schema's bins.
        columns: for each column, what part of the rows is in another bin than it should be.
        coarse_columns: the same with numbers in at most eight bins.
        pairs: for each two columns, by their places, what part of their relation was kept: 1 less the distance of their
            table from the invented rows' over that of exact but independent columns. Numbers are in at most eight bins,
            because a relation is seen in them and noise in finer ones. Below 0, noise adds more than is kept.
        distance: the mean distance of all these tables of two columns.
        alone: the same distance if the columns were exact, and independent of each other.
        seconds: of one core, for the parties' counting and the curator's work, without encryption.
    """

    names: tuple[str, ...]
    columns: Floats
    coarse_columns: Floats
    pairs: dict[tuple[int, int], float]
    distance: float | None
    alone: float | None
    seconds: float

    @property
    def kept(self) -> float | None:
        """What part of all relations was kept, each pair counted by how strongly it is related."""
        return None if self.distance is None or not self.alone else 1 - self.distance / self.alone


def shorten_roster(study: Study) -> Study:
    """A resolved study with at most a million rows, the roster's in proportion: what more rows bring is small then."""
    total = study.total_rows
    if total <= MOST_ROWS:
        return study
    fewer = [{**entry.model_dump(), "rows": max(1, entry.rows * MOST_ROWS // total)} for entry in study.roster]
    return parse_study({**study.to_json(), "roster": fewer, "rows": min(study.rows or total, MOST_ROWS)}, study.name)


def rehearse(study: Study, *, seed: int) -> Rehearsal:
    """Publishes invented rows by a resolved study's method and compares. The same study and seed give the same figures.

    Guarantee: reads the study and nothing else; the coins are public, because there is nobody to protect.
    """
    study = shorten_roster(study)
    invented = invent_rows(study, rng=np.random.default_rng([seed, 1]))
    ends = np.cumsum([entry.rows for entry in study.roster])[:-1]
    tables = list(zip(*(np.split(column, ends) for column in invented), strict=True))
    started = process_time()
    published = publish_in_process(
        study, tables, coins=Coins.public(seed, PURPOSE), rng=np.random.default_rng([seed, 2])
    )
    seconds = process_time() - started
    return _compare(study, bin_table(study, invented), bin_table(study, published.columns), seconds)


def invent_rows(study: Study, *, rng: np.random.Generator) -> list[Codes]:
    """Rows of a study's schema, as many as its roster has. Numbers are bells or, every other one, a long tail with most
    rows at one value; a category is the rarer the later it is listed. Every two columns have a correlation
    of one half on a normal scale, on which categories lie in any order, as real ones do, so that no method is at home
    in such rows.
    """
    common = rng.standard_normal(study.total_rows)
    codings = codings_of(study)
    numbers = [place for place, coding in enumerate(codings) if not isinstance(coding.attribute, CategoricalAttribute)]
    tails = set(numbers[1::2])
    return [_invent_column(coding, common, place in tails, rng=rng) for place, coding in enumerate(codings)]


def _invent_column(coding: Coding, common: Floats, has_tail: bool, *, rng: np.random.Generator) -> Codes:
    own = np.sqrt(COMMON) * common + np.sqrt(1 - COMMON) * rng.standard_normal(len(common))
    missing = rng.random(len(common)) < MISSING_SHARE
    order, shares = _order_and_shares(coding, has_tail, rng=rng)
    ends = np.cumsum(shares)[:-1] / np.sum(shares)
    cuts = [NormalDist().inv_cdf(min(max(end, 1e-12), 1 - 1e-12)) for end in ends]
    codes: Codes = np.array(order)[np.searchsorted(cuts, own)].astype(coding.dtype)
    if coding.attribute.nullable:
        codes[missing] = coding.null_code
    return codes


def _order_and_shares(
    coding: Coding, has_tail: bool, *, rng: np.random.Generator
) -> tuple[Sequence[int] | NDArray[np.int64], Floats]:
    """The codes of values along the normal scale, and how many rows each has, in proportion."""
    count = coding.value_codes
    if isinstance(coding.attribute, CategoricalAttribute):
        order = rng.permutation(count)
        return order, 1 / (order + 1.0)
    places = (np.arange(count) + 0.5) / count
    if not has_tail:
        return coding.in_order(), np.exp(-(((places - 0.5) / SPREAD) ** 2) / 2)
    tail = np.exp(-places / SPREAD)
    tail[int(WHERE_MOST_ARE * count)] += MOST / (1 - MOST) * tail.sum()
    return coding.in_order(), tail


def coarsen(study: Study, table: Table) -> Table:
    """A table in which a number has at most eight bins, each of some of the schema's; a missing value stays one."""
    attributes = {attribute.name: attribute for attribute in study.attributes}
    sizes, values, columns = [], [], []
    for name, size, count, column in zip(table.names, table.sizes, table.values, table.columns, strict=True):
        few = count if isinstance(attributes[name], CategoricalAttribute) else min(count, COARSE_BINS)
        groups = np.append(np.arange(count) * few // count, few)
        columns.append(groups[column].astype(np.uint16))
        sizes.append(few + size - count)
        values.append(few)
    return Table(table.names, tuple(sizes), tuple(values), tuple(columns))


def _compare(study: Study, invented: Table, published: Table, seconds: float) -> Rehearsal:
    rng = np.random.default_rng(0)
    ones = measure_marginals(invented, published, 1, rng=rng)
    coarse_invented, coarse_published = coarsen(study, invented), coarsen(study, published)
    coarse, twos = (measure_marginals(coarse_invented, coarse_published, order, rng=rng) for order in (1, 2))
    independent = [_distance_apart(coarse_invented, pair) for pair in twos.sets]
    off = twos.total_variation.tolist()
    return Rehearsal(
        names=invented.names,
        columns=ones.total_variation,
        coarse_columns=coarse.total_variation,
        pairs={
            (pair[0], pair[1]): 1 - own / apart
            for pair, own, apart in zip(twos.sets, off, independent, strict=True)
            if apart > 0
        },
        distance=float(np.mean(off)) if off else None,
        alone=float(np.mean(independent)) if off else None,
        seconds=seconds,
    )


def _distance_apart(table: Table, pair: tuple[int, ...]) -> float:
    """The distance of a pair's table from that of independent columns."""
    height, width = (table.sizes[place] for place in pair)
    first, second = (table.columns[place].astype(np.int64) for place in pair)
    return distance_to_independence((first, height), (second, width))
