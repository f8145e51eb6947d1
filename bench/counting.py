"""All 3-way and 4-way tables of 52 binary features: Synod's counting against one bincount a table, on one core.

Both count 45,222 generated rows in contiguous uint8 columns; Synod's time includes packing them. The baseline is
timed on all 3-way tables, a part each turn, and on a random sample of the 4-way ones, and scaled to all of them.
They take turns in one run and medians of CPU seconds are compared, so that a busy machine hurts both alike; every
table of the baseline is compared with Synod's. The last line is one JSON object.
"""

import argparse
import json
import resource
import tracemalloc
from itertools import combinations
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from synod.party.count.marginals import PackedTable

ROWS = 45_222
FEATURES = 52
FACTORS = 6
SAMPLE = 3_000
SEED = 20

Columns = list[NDArray[np.uint8]]


def make_columns() -> Columns:
    """Features that depend on a few hidden ones and are one in 3 to 97 % of the rows."""
    rng = np.random.default_rng(SEED)
    hidden = rng.normal(size=(ROWS, FACTORS))
    columns = []
    for share in rng.uniform(0.03, 0.97, size=FEATURES):
        values = hidden @ rng.normal(size=FACTORS) / FACTORS**0.5 + rng.normal(size=ROWS)
        columns.append((values > np.quantile(values, 1 - share)).astype(np.uint8))
    return columns


def count_with_bincount(columns: Columns, features: list[int]) -> NDArray[np.intp]:
    """What one would write with numpy alone, in the faster of the two obvious ways."""
    codes = columns[features[0]]
    for feature in features[1:]:
        codes = codes * np.uint8(2) + columns[feature]
    return np.bincount(codes, minlength=2 ** len(features))


def compare(columns: Columns, size: int, turns: int) -> dict[str, float]:
    """CPU microseconds a table of both, in turns."""
    sets = np.array(list(combinations(range(FEATURES), size)))
    rng = np.random.default_rng(SEED + size)
    asked = rng.permutation(len(sets))[: len(sets) if size == 3 else SAMPLE]
    ours, theirs = [], []
    for part in np.array_split(asked, turns):
        start = process_time()
        tables = PackedTable(columns).count_tables(sets)
        ours.append((process_time() - start) / len(sets) * 1e6)
        lists = sets[part].tolist()
        start = process_time()
        expected = [count_with_bincount(columns, features) for features in lists]
        theirs.append((process_time() - start) / len(part) * 1e6)
        assert np.array_equal(tables[part], expected)
    return {
        f"ratio_{size}_way": median(theirs) / median(ours),
        f"synod_us_per_{size}_way_table": median(ours),
        f"bincount_us_per_{size}_way_table": median(theirs),
        f"tables_{size}_way": len(sets),
        f"bincount_tables_{size}_way": len(asked),
    }


def measure_memory(columns: Columns) -> dict[str, float]:
    """What counting all 4-way tables allocates at its peak, its result included."""
    sets = np.array(list(combinations(range(FEATURES), 4)))
    tracemalloc.start()
    tables = PackedTable(columns).count_tables(sets)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "peak_mib": peak / 2**20,
        "of_which_result_mib": tables.nbytes / 2**20,
        "process_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }


def measure(turns: int) -> dict[str, float]:
    """All figures; the ratio is the smaller of the two."""
    columns = make_columns()
    figures = {**compare(columns, 3, turns), **compare(columns, 4, turns)}
    ratio = min(figures["ratio_3_way"], figures["ratio_4_way"])
    return {
        "ratio": ratio,
        **figures,
        **measure_memory(columns),
        "rows": ROWS,
        "features": FEATURES,
        "turns": turns,
    }


def main() -> None:
    """Prints the figures, then the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.counting", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=7, help="turns that bincount and Synod take")
    figures = measure(parser.parse_args().turns)
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):<30} {figure:>14,.6g}")
    print(json.dumps({name: float(f"{figure:.6g}") for name, figure in figures.items()}))


if __name__ == "__main__":
    main()
