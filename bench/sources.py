"""A table of twenty attributes from its source to its answers: validated and encoded, then counted on the snapshot.

Each source is measured in a process of its own, in turns, by CPU seconds and by the peak of its memory in each part; a
busy machine hurts all alike, so compare within one run. `--before FOLDER` measures another checkout of Synod, too. What
is counted must be the same everywhere. The last line is one JSON object, with ratios where there is a `before`.

A server of PostgreSQL is measured if SYNOD_BENCH_POSTGRESQL has an address whose user may make a table (its password
goes into PGPASSWORD); what the server
itself computes is not in the CPU seconds.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from synod.common.protocol.queries.marginals import LocalMarginals
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import codings_of
from synod.common.study.features import features_of
from synod.common.study.study import Study, parse_study
from synod.party.count.moments import sum_moments
from synod.party.count.tables import exact_counts
from synod.party.table.encode import read_table
from synod.party.table.snapshot import Snapshot, load_snapshot, save_snapshot

ROWS = 1_000_000
PIECE_ROWS = 250_000
VIEWS = 57
SEED = 13
TABLE = "synod_bench"
SERVER = os.environ.get("SYNOD_BENCH_POSTGRESQL", "")
PARTS = ("encode", "pairs", "views", "moments")
TITLES = {
    "encode": "validate + encode",
    "pairs": "190 pair tables",
    "views": "57 views of 8 bits",
    "moments": "moments",
}
CATEGORIES = (2, 2, 2, 4, 5, 6, 8, 9, 12, 16)
BINS = (8, 8, 8, 16, 16, 16)
SCHEMA: list[dict[str, Any]] = [
    *(
        {"name": f"c{i}", "type": "categorical", "categories": [f"group {value}" for value in range(size)]}
        for i, size in enumerate(CATEGORIES)
    ),
    *({"name": f"i{i}", "type": "integer", "min": 0, "max": 999, "bins": bins} for i, bins in enumerate(BINS)),
    *(
        {"name": f"r{i}", "type": "real", "min": "0", "max": "100", "bins": bins, "nullable": True}
        for i, bins in enumerate((7, 15, 15, 15))
    ),
]


def make_study(rows: int, method: Mapping[str, str]) -> Study:
    """A study of these attributes by a method, of three parties of which the first has the rows."""
    roster = [{"name": f"p{i}", "key": f"sha256:{i:064x}", "rows": rows} for i in range(3)]
    document = {"name": "bench", "method": dict(method), "epsilon": "1", "roster": roster, "schema": SCHEMA}
    return parse_study(document, "the benchmark's study").resolve()


def make_pieces(rows: int) -> Iterator[pa.Table]:
    """Rows whose values lean on one hidden number, piece by piece."""
    rng = np.random.default_rng(SEED)
    for start in range(0, rows, PIECE_ROWS):
        count = min(PIECE_ROWS, rows - start)
        hidden = rng.random(count)
        columns: dict[str, Any] = {}
        for attribute in SCHEMA:
            place = (hidden + rng.random(count)) / 2
            if attribute["type"] == "categorical":
                values = attribute["categories"]
                columns[attribute["name"]] = pa.array(values).take(pa.array((place * len(values)).astype(np.int64)))
            elif attribute["type"] == "integer":
                columns[attribute["name"]] = (place * 1000).astype(np.int64)
            else:
                columns[attribute["name"]] = pa.array(np.round(place * 100, 3), mask=rng.random(count) < 0.05)
        yield pa.table(columns)


def write_csv(path: Path, rows: int) -> None:
    """The table as a CSV file."""
    pieces = make_pieces(rows)
    first = next(pieces)
    with pa.csv.CSVWriter(path, first.schema, write_options=pa.csv.WriteOptions(quoting_style="none")) as writer:
        for piece in (first, *pieces):
            writer.write_table(piece)


def write_parquet(path: Path, rows: int) -> None:
    """The table as a Parquet file."""
    pieces = make_pieces(rows)
    first = next(pieces)
    with pa.parquet.ParquetWriter(path, first.schema) as writer:
        for piece in (first, *pieces):
            writer.write_table(piece)


def write_duckdb(path: Path, rows: int) -> None:
    """The table in a file of DuckDB."""
    import duckdb  # noqa: PLC0415  (an optional package)

    with duckdb.connect(str(path)) as connection:
        for number, piece in enumerate(make_pieces(rows)):
            connection.register("piece", piece)
            connection.execute(f"INSERT INTO {TABLE} FROM piece" if number else f"CREATE TABLE {TABLE} AS FROM piece")


def write_postgresql(path: Path, rows: int) -> None:
    """The table on a server, in place of what is there under its name; the file has the server's address."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415  (an optional package)

    with dbapi.connect(SERVER, autocommit=True) as connection, connection.cursor() as cursor:
        for number, piece in enumerate(make_pieces(rows)):
            cursor.adbc_ingest(TABLE, piece, mode="append" if number else "replace")
    path.write_text(SERVER)


def read_source(source: Any, study: Study) -> Snapshot:
    """A table against a study."""
    return read_table(source, codings_of(study), unit=None, expected_rows=study.roster[0].rows)


def read_database(url: str, study: Study) -> Snapshot:
    """A table of a database against a study; an older checkout knows of none."""
    from synod.common.runtime.settings import Database  # noqa: PLC0415

    return read_source(Database(url=url, table=TABLE), study)


# A source has what writes it and what reads it; both get a path of its own in the folder of the run.
SOURCES: dict[str, tuple[Callable[[Path, int], None], Callable[[Path, Study], Snapshot]]] = {
    "csv": (write_csv, read_source),
    "parquet": (write_parquet, read_source),
    "duckdb": (write_duckdb, lambda path, study: read_database(f"duckdb:{path}", study)),
    "postgresql": (write_postgresql, lambda path, study: read_database(path.read_text(), study)),
}
FILES = ("csv", "parquet")
USUAL = [*FILES, "duckdb", *(["postgresql"] if SERVER else [])]


def choose_views(features: int) -> tuple[tuple[int, ...], ...]:
    """Views of eight of the binary features."""
    rng = np.random.default_rng(SEED)
    return tuple(tuple(sorted(rng.choice(features, 8, replace=False).tolist())) for _ in range(VIEWS))


class Meter:
    """CPU seconds and peak memory of the parts of one process, and a digest of the numbers that they found."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}
        self.digest = hashlib.sha256()

    def measure(self, part: str, work: Callable[[], NDArray[np.int64]]) -> None:
        """Does the work and keeps its figures."""
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        start = process_time()
        result = work()
        self.found[f"{part}_cpu_s"] = process_time() - start
        status = Path("/proc/self/status").read_text()
        peak = re.search(r"VmHWM:\s+([0-9]+) kB", status)
        assert peak is not None
        self.found[f"{part}_peak_mib"] = int(peak[1]) / 2**10
        self.digest.update(result.tobytes())


def measure_source(name: str, path: Path, rows: int) -> dict[str, Any]:
    """All parts, for one source; answers are counted on snapshots as a daemon loads them."""
    meter, read = Meter(), SOURCES[name][1]
    cells, bits = (make_study(rows, {"name": "independent", "encoding": one}) for one in ("vanilla", "binary"))
    levels = make_study(rows, {"name": "hpdp-dp"})
    folder = path.with_suffix(".snapshot")
    meter.measure("encode", lambda: _keep(folder, read(path, cells)))
    meter.found["disk_bytes_a_row"] = sum(file.stat().st_size for file in folder.iterdir()) / rows
    columns = _load(folder, cells).columns
    pairs = LocalMarginals(tuple(combinations(range(len(SCHEMA)), 2)))
    views = LocalMarginals(choose_views(len(features_of(bits))))
    meter.measure("pairs", lambda: exact_counts(pairs, cells, columns))
    meter.measure("views", lambda: exact_counts(views, bits, columns))
    _keep(folder, read(path, levels))
    loaded = _load(folder, levels).columns
    meter.measure("moments", lambda: sum_moments(moment_design(levels), loaded))
    return {**meter.found, "digest": meter.digest.hexdigest()}


def _keep(folder: Path, snapshot: Snapshot) -> NDArray[np.int64]:
    """Keeps the snapshot, and its digest beside it. Rows of a database have another order than those of a file, so
    what is compared are the counts.
    """
    save_snapshot(folder, snapshot)
    _digest_path(folder).write_bytes(snapshot.digest())
    return np.array([snapshot.rows])


def _load(folder: Path, study: Study) -> Any:
    """The snapshot as a daemon loads it; what type it has differs between checkouts."""
    return load_snapshot(folder, study, _digest_path(folder).read_bytes(), seal=bytes)


def _digest_path(folder: Path) -> Path:
    return folder.with_suffix(".digest")


def run_apart(tree: Path, name: str, path: Path, rows: int) -> dict[str, Any]:
    """The figures of one source in a process of its own, with the program of a checkout."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(Path(__file__).resolve()), "--rows", str(rows), "--measure", name, str(path)],
        env={**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, rows: int, turns: int, trees: Mapping[str, Path], names: Sequence[str]) -> dict[str, Any]:
    """Medians of all figures for each checkout and source; what was counted must be the same everywhere."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        path = folder / f"table.{name}"
        SOURCES[name][0](path, rows)
        for _ in range(turns):
            for title, tree in trees.items() if name in FILES else [list(trees.items())[-1]]:
                runs.setdefault(f"{title} {name}".strip(), []).append(run_apart(tree, name, path, rows))
        path.unlink()
    digests = {run["digest"] for found in runs.values() for run in found}
    if len(digests) != 1:
        raise SystemExit("The sources or the checkouts do not agree on what they counted.")
    return {
        title: {key: median(run[key] for run in found) for key in found[0] if key != "digest"}
        for title, found in runs.items()
    }


def print_table(figures: Mapping[str, Mapping[str, float]]) -> None:
    """CPU seconds, and the peak of memory in brackets."""
    print(f"| source | {' | '.join(TITLES[part] for part in PARTS)} | snapshot, bytes a row |")
    print("| --- " * (len(PARTS) + 2) + "|")
    for title, found in figures.items():
        cells = [f"{found[f'{part}_cpu_s']:.2f} s ({found[f'{part}_peak_mib']:.0f} MiB)" for part in PARTS]
        print(f"| {title} | {' | '.join(cells)} | {found['disk_bytes_a_row']:.2f} |")


def ratios(figures: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """How many times the checkout of before takes, part by part."""
    pairs = [(name, figures[f"before {name}"], figures[f"now {name}"]) for name in names if name in FILES]
    keys = [f"{part}_{unit}" for part in PARTS for unit in ("cpu_s", "peak_mib")]
    return {f"{name}_{key}_ratio": before[key] / now[key] for name, before, now in pairs for key in keys}


def main() -> None:
    """Prints the table, then its figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.sources", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=3, help="turns that the sources take")
    parser.add_argument("--before", type=Path, help="another checkout of Synod, to be measured beside this one")
    parser.add_argument("--sources", nargs="+", choices=list(SOURCES), default=USUAL)
    parser.add_argument("--folder", type=Path, help="where tables and snapshots are made; a temporary folder otherwise")
    parser.add_argument("--measure", nargs=2, metavar=("SOURCE", "PATH"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        name, path = asked.measure
        print(json.dumps(measure_source(name, Path(path), asked.rows)))
        return
    here = Path(__file__).resolve().parents[1]
    trees = {"before": asked.before.resolve(), "now": here} if asked.before else {"": here}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        figures = compare(Path(folder), asked.rows, asked.turns, trees, asked.sources)
    print_table(figures)
    found = ratios(figures, asked.sources) if asked.before else {}
    print(json.dumps({"rows": asked.rows, "turns": asked.turns, **found, "figures": figures}))


if __name__ == "__main__":
    main()
