"""Columns published independently: what any method must beat at the same cost, because it says nothing of any pair.

All one-way tables in the schema's bins, counted by the same encrypted sum, parties and threshold as any other, with
the whole budget of the study. A table's part of it grows with its size, so that the errors add up to the least.
"""

from fractions import Fraction

import numpy as np

from synod.common.privacy.coins import Coins
from synod.common.privacy.laws import TABLE, noise_for
from synod.common.study.study import Study
from synod.curator.inference.junction import build_tree
from synod.curator.inference.synthesis import draw_rows, integer_weights
from synod.curator.structure.groups import OneWay, estimate_shares
from synod.deploy.evaluate.tables import Table

LARGEST_PART = 1 << 16


def publish_columns(study: Study, real: Table, *, coins: Coins) -> Table:
    """A table with the rows of `real`, each column drawn by itself.

    Guarantee: the one-way tables cost the study's budget together; the parts add up to at most 1.
    """
    one_ways = [
        count_column(study, real, place, part, coins=coins) for place, part in enumerate(divide_budget(study, real))
    ]
    shares = [estimate_shares(one, real.rows) for one in one_ways]
    tree = build_tree(real.sizes, ())
    weights = integer_weights([shares[clique[0]] for clique in tree.cliques])
    drawn = draw_rows(tree, weights, real.rows, coins=coins)
    columns = tuple(drawn[:, place].astype(column.dtype) for place, column in enumerate(real.columns))
    return Table(real.names, real.sizes, real.values, columns)


def divide_budget(study: Study, real: Table) -> list[Fraction]:
    """Each table's part of the budget: by size^(2/3) under rho and by size^(1/2) under pure epsilon."""
    power = 1 / 2 if study.delta is None else 2 / 3
    whole = [max(1, round(LARGEST_PART * (size / max(real.sizes)) ** power)) for size in real.sizes]
    return [Fraction(part, sum(whole)) for part in whole]


def count_column(study: Study, real: Table, place: int, part: Fraction, *, coins: Coins) -> OneWay:
    """A one-way table with the noise of all parties' shares."""
    parties = len(study.roster)
    law = noise_for(study.budget, TABLE, part=part, parties=parties, threshold=study.collusion)
    counts = np.bincount(real.columns[place], minlength=real.sizes[place])
    noise = sum((law.sample(real.sizes[place], coins=coins) for _ in range(parties)), start=np.zeros(1, dtype=np.int64))
    return OneWay((counts + noise).astype(np.float64), law.variance**0.5)
