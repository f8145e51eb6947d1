"""A million rows of twenty attributes are read, kept and answered within a small multiple of the encoded table.

Each measurement is a process of its own, so that its peak is its own; a process that only imports is subtracted.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from tests.support.studies import categorical, integer, real

ROWS = 1_000_000
PIECES = 20
SCHEMA: list[dict[str, Any]] = [
    *(categorical(f"c{i}", ("a", "b", "c", "d")) for i in range(8)),
    *(integer(f"i{i}", 0, 1000) for i in range(6)),
    *(real(f"r{i}", "0", "1", nullable=True) for i in range(6)),
]
ENCODED_BYTES = ROWS * (8 * 1 + 6 * 2 + 6 * 2)
MULTIPLE = 6

PROGRAM = """
import json, re, sys
from pathlib import Path
import numpy as np
import pyarrow.csv, pyarrow.parquet
from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments
from synod.common.study.encoding import codings_of
from synod.party.answer import noisy_values
from synod.party.table.snapshot import load_snapshot, save_snapshot
from synod.party.table.encode import read_table
from tests.support.studies import make_study

setup = json.loads(sys.stdin.read())
study = make_study(rows=(setup["rows"], 5, 5), schema=setup["schema"])
digest = b""
if setup["source"]:
    snapshot = read_table(Path(setup["source"]), codings_of(study), unit=None, expected_rows=setup["rows"])
    folder = Path(setup["folder"])
    save_snapshot(folder, snapshot)
    digest = snapshot.digest()
    del snapshot
    snapshot = load_snapshot(folder, study, digest, seal=bytes)
    terms = SumMoments().terms(plan_study(study).step("moments"), study)
    values = noisy_values(SumMoments(), study, snapshot.columns, terms, coins=Coins(bytes(32)))
    assert len(values) == terms.length
# The peak of this program alone: ru_maxrss would begin with the parent's size, from before the exec.
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
print(json.dumps({"kib": int(peak[1]), "digest": digest.hex()}))
"""


def make_piece(rng: np.random.Generator, rows: int) -> pa.Table:
    columns: dict[str, Any] = {}
    for attribute in SCHEMA:
        match attribute["type"]:
            case "categorical":
                columns[attribute["name"]] = np.array(list("abcd"))[rng.integers(0, 4, rows)]
            case "integer":
                columns[attribute["name"]] = rng.integers(0, 1001, rows)
            case _:
                numbers = rng.integers(0, 10_000, rows) / 10_000
                columns[attribute["name"]] = pa.array(numbers, mask=rng.random(rows) < 0.1)
    return pa.table(columns)


def write_table(path: Path) -> None:
    rng = np.random.default_rng(5)
    pieces = (make_piece(rng, ROWS // PIECES) for _ in range(PIECES))
    first = next(pieces)
    if path.suffix == ".csv":
        with pa.csv.CSVWriter(path, first.schema) as writer:
            for piece in (first, *pieces):
                writer.write_table(piece)
        return
    whole = pa.concat_tables([first, *pieces])
    pa.parquet.write_table(whole, path, row_group_size=ROWS)  # one group: the worst case


def measure(source: Path | None, folder: Path) -> dict[str, Any]:
    setup = {"rows": ROWS, "schema": SCHEMA, "source": str(source or ""), "folder": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(setup),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
def test_a_million_rows_in_bounded_memory(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytestconfig.rootpath)
    baseline = measure(None, tmp_path / "none")["kib"] * 1024
    digests = set()
    for name in ("table.csv", "table.parquet"):
        write_table(tmp_path / name)
        result = measure(tmp_path / name, tmp_path / "snapshot")
        used = result["kib"] * 1024 - baseline
        assert used > ENCODED_BYTES / 2, "the measurement misses the table"
        assert used < MULTIPLE * ENCODED_BYTES, f"{name}: {used / ENCODED_BYTES:.1f} times the encoded table"
        digests.add(result["digest"])
        (tmp_path / name).unlink()
    assert len(digests) == 1
