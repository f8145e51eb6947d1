"""Whole counts: what MODL takes, out of non-negative numbers that add up to a public total."""

import numpy as np

from synod.curator.coclustering.criterion import Floats, Integers


def round_counts(shares: Floats, total: int) -> Integers:
    """Whole numbers that add up to `total`, each rounded down or up: up where most was cut off, ties by place."""
    floors = np.floor(shares).astype(np.int64)
    missing = total - int(floors.sum())
    cut = shares - floors
    assert 0 <= missing <= len(shares)
    floors[np.argsort(-cut, kind="stable")[:missing]] += 1
    return floors
