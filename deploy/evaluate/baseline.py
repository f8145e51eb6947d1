"""Columns alone: what publishing every column by itself would give, at the whole budget of the study.

Every figure of an evaluation stands beside that of this baseline. It reads real rows on one machine, and its coins are
no secret, so nothing that comes from it is private.
"""

import numpy as np
from numpy.typing import NDArray

from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import NoiseLaw
from synod.common.study.encoding import Codes
from synod.common.study.study import Study
from synod.curator.structure.columns import column_laws
from synod.curator.structure.groups import OneWay, estimate_shares
from synod.deploy.evaluate.tables import Table

DRAWS = 3
PURPOSE = "columns alone"
Floats = NDArray[np.float64]


def draw_baselines(study: Study, real: Table, rows: int) -> list[Table]:
    """The baseline's tables, the same in every run: their coins and generators have fixed seeds."""
    return [
        publish_columns(study, real, rows, coins=Coins.public(draw, PURPOSE), rng=np.random.default_rng(draw))
        for draw in range(DRAWS)
    ]


def has_all_rows(study: Study, real: int, synthetic: int) -> bool:
    """Whether so many real rows are all of the study's: the roster's total, or without a roster as many as synthetic.

    Why it matters: the baseline keeps the shares of the rows that it is given. Those of one party are not those of all
    rows, which a release has, so on a part of the rows columns alone may look better than any release.
    """
    return real == (study.total_rows or synthetic)


def publish_columns(study: Study, real: Table, rows: int, *, coins: Coins, rng: np.random.Generator) -> Table:
    """A table of `rows` rows whose columns come from noisy one-way tables of the real ones, each by itself.

    The real rows stand for as many as the roster has, so that a party that looks at its own rows alone sees the noise
    of all parties' table.

    Guarantee: none. The noise is that of a release which costs the study's budget, but its coins are public.
    """
    total = study.total_rows or real.rows
    one_ways = measure_columns(study, real, total, coins=coins)
    columns = tuple(draw_column(estimate_shares(one, total), rows, rng=rng) for one in one_ways)
    return Table(real.names, real.sizes, real.values, columns)


def measure_columns(study: Study, real: Table, total: int, *, coins: Coins) -> list[OneWay]:
    """The noisy one-way table of each column, as if `total` rows were distributed as the real ones are."""
    parties, scale = len(study.roster) or 1, total / real.rows
    one_ways = []
    for column, size, law in zip(real.columns, real.sizes, column_laws(study), strict=True):
        counts: Floats = np.bincount(column, minlength=size).astype(np.float64) * scale
        one_ways.append(OneWay(counts + _draw_noise(law, size, parties, coins=coins), law.variance**0.5))
    return one_ways


def _draw_noise(law: NoiseLaw, cells: int, parties: int, *, coins: Coins) -> NDArray[np.int64]:
    """All parties' shares of the noise on a table."""
    noise: NDArray[np.int64] = law.sample(cells * parties, coins=coins).reshape(parties, cells).sum(axis=0)
    return noise


def draw_column(shares: Floats, rows: int, *, rng: np.random.Generator) -> Codes:
    """Codes in these shares, in random order: how often each occurs is what is expected of it, to within one."""
    ends = np.minimum(np.floor(np.cumsum(shares) / shares.sum() * rows + rng.random()).astype(np.int64), rows)
    ends[-1] = rows
    values: Codes = np.arange(len(shares)).astype(np.min_scalar_type(len(shares) - 1))
    drawn: Codes = rng.permutation(np.repeat(values, np.diff(ends, prepend=0)))
    return drawn
