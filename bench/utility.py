"""How good published tables are: average total variation distance of all 2-way marginals, against real rows.

Not private: reads real rows. Runs the same recipe code as the daemons, over in-process parties.
Usage: python -m bench.utility STUDY TABLE [--method dp-subn ...] [--parties 3 ...] [--epsilon 0.2 ...] [--runs 10]
"""

import itertools
import json
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from synod.common.privacy.coins import Coins
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, bin_table, make_table, read_columns
from synod.deploy.simulate import publish_in_process
from synod.party.table.encode import read_table
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import count_rows

METHODS: dict[str, dict[str, Any]] = {
    "hpdp-dp": {"name": "hpdp-dp"},
    "hpdp-dp, linear link": {"name": "hpdp-dp", "link": "linear"},
    "dp-subn, sequential": {"name": "dp-subn"},
    "dp-subn, joint": {"name": "dp-subn", "update": "joint"},
    "dp-subn, sequential, paper's split": {"name": "dp-subn", "split": "paper"},
    "dp-subn, joint, paper's split": {"name": "dp-subn", "update": "joint", "split": "paper"},
    "independent": {"name": "independent"},
    "independent, score R": {"name": "independent", "score": "R"},
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the table."""

    method: str
    parties: int
    epsilon: str
    collusion: int


def split_study(data: dict[str, Any], rows: int, setting: Setting) -> Study:
    """The study over equal organizations."""
    shares = [len(part) for part in np.array_split(np.arange(rows), setting.parties)]
    roster = [{"name": f"p{i}", "key": f"sha256:{i:064x}", "rows": share} for i, share in enumerate(shares)]
    changes = {"epsilon": setting.epsilon, "method": METHODS[setting.method], "collusion": setting.collusion}
    return parse_study({**data, **changes, "roster": roster}, "bench").resolve()


def split_table(table: Snapshot, parties: int, *, rng: np.random.Generator) -> list[list[Codes]]:
    """Rows dealt out at random."""
    order = np.array_split(rng.permutation(table.rows), parties)
    return [[column[part] for column in table.columns] for part in order]


def measure(study: Study, table: Snapshot, real: Table, *, seed: int) -> float:
    """The distance of one run; `real` is the table in the schema's bins."""
    rng = np.random.default_rng(seed)
    tables = split_table(table, len(study.roster), rng=rng)
    coins = Coins(seed.to_bytes(32, "big"))
    publication = publish_in_process(study, tables, coins=coins, rng=rng)
    distances = measure_marginals(real, bin_table(study, publication.columns), 2, rng=rng)
    return float(distances.total_variation.mean())


def measure_setting(setting: Setting, *, data: dict[str, Any], table: Path, runs: int) -> dict[str, Any]:
    """Mean and standard error over the runs of one setting."""
    rows = count_rows(table)
    study = split_study(data, rows, setting)
    snapshot = read_table(table, codings_of(study), unit=None, expected_rows=rows)
    real = make_table(study, read_columns([table], study))
    distances = [measure(study, snapshot, real, seed=seed) for seed in range(runs)]
    error = statistics.stdev(distances) / runs**0.5 if runs > 1 else 0.0
    return {**asdict(setting), "tvd2": statistics.fmean(distances), "standard_error": error}


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--method", "methods", multiple=True, type=click.Choice(sorted(METHODS)), default=sorted(METHODS))
@click.option("--parties", "party_counts", multiple=True, default=[3])
@click.option("--epsilon", "epsilons", multiple=True, default=["0.2", "0.8"])
@click.option("--collusion", default=1)
@click.option("--runs", default=10)
@click.option("--workers", default=2)
def main(**options: Any) -> None:
    """Measures methods on a table, and prints a table and one JSON object."""
    print("Reads real rows: these figures are not private.")
    grid = itertools.product(options["methods"], options["party_counts"], options["epsilons"])
    settings = [Setting(method, parties, epsilon, options["collusion"]) for method, parties, epsilon in grid]
    work = partial(measure_setting, data=load_yaml(options["study"]), table=options["table"], runs=options["runs"])
    results = []
    with ProcessPoolExecutor(options["workers"]) as pool:
        for result in pool.map(work, settings):
            print(
                f"{result['method']:36} K {result['parties']:2} epsilon {result['epsilon']:>5}: "
                f"{result['tvd2']:.4f} +- {result['standard_error']:.4f}",
                flush=True,
            )
            results.append(result)
    print(json.dumps({"runs": options["runs"], "results": results}))


if __name__ == "__main__":
    main()
