"""`synod launch` over a DuckDB file, a PostgreSQL server and a folder of Parquet files, with real daemons: a verified
release, and a value that is planted in each of them is in no log, no message and nothing that the curator has.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

from synod.common.protocol.manifest import verify_release
from tests.support.daemons import run_synod
from tests.support.databases import PASSWORD, Server, duckdb_table
from tests.support.surveys import draft_survey, make_rows, write_table

COLUMNS = "sex char(3), age smallint, weight numeric(12, 8), ward text, stays integer, person text"
PERSON = "Zachariah"  # how everybody is called in a column that no study may ask for
WEIGHTS = ("61.23456789", "62.23456789", "63.23456789")  # no other row and no border of a bin has them


def write_sources(folder: Path, server: Server) -> list[str]:
    tables = [[["F", "30", weight, "day", "1"], *make_rows(100, seed)] for seed, weight in enumerate(WEIGHTS)]
    listed = [
        [", ".join(f"'{value}'" if value else "NULL" for value in [*row, PERSON]) for row in rows] for rows in tables
    ]
    plain = pa.csv.read_csv(write_table(folder / "plain.csv", tables[2]))
    plain = plain.append_column("person", pa.array([PERSON] * len(plain)))
    (folder / "lake").mkdir()
    for place, start in enumerate((0, 60)):
        pa.parquet.write_table(plain.slice(start, 60 if place == 0 else None), folder / "lake" / f"{place}.parquet")
    first = duckdb_table(folder, COLUMNS, listed[0])
    second = server.table(COLUMNS, listed[1])
    return [f"{first.url}#stays", f"{second.url}#{second.table}", str(folder / "lake")]


@pytest.mark.slow
def test_launch_over_databases_tells_no_private_value(
    tmp_path: Path, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    study, out, state = tmp_path / "study.yaml", tmp_path / "release", tmp_path / "state"
    content = {key: value for key, value in draft_survey().to_json().items() if key not in ("roster", "rows")}
    study.write_text(yaml.safe_dump(content))
    data = [part for source in write_sources(tmp_path, postgresql) for part in ("--data", source)]
    ran = run_synod("launch", study, *data, "--out", out, "--state", state)
    assert ran.returncode == 0, ran.stderr
    verify_release(out, None)
    logs = "".join(log.read_text() for log in sorted(state.glob("*.log")))
    seen = [path for path in [*(state / "curator").rglob("*"), *out.iterdir()] if path.is_file()]
    assert len(seen) > 8
    for value in (*WEIGHTS, PERSON, PASSWORD):
        assert value not in ran.stdout + ran.stderr + logs
        assert all(value.encode() not in path.read_bytes() for path in seen)


@pytest.mark.slow
def test_launch_says_what_is_wrong_with_a_database(
    tmp_path: Path, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong")
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump({k: v for k, v in draft_survey().to_json().items() if k not in ("roster", "rows")}))
    source = postgresql.table(COLUMNS, [f"'F', 30, 60, 'day', 1, '{PERSON}'"])
    ran = run_synod("launch", study, "--data", f"{source.url}#{source.table}", "--out", tmp_path / "release")
    assert ran.returncode == 4
    assert "refuses this user or its password" in ran.stderr
    assert "Traceback" not in ran.stderr
