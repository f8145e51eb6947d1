"""One table as CSV, as CSV of another make, as a folder of Parquet files, in DuckDB and in PostgreSQL: one snapshot and
digest, and the same released numbers with the same coins. Databases give rows in any order; files keep theirs, so the
files here are in the order that rows of databases are put into.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from synod.common.privacy.coins import Coins
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments
from synod.common.runtime.settings import CsvFormat, Database
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.party.answer import noisy_values
from synod.party.table.encode import Unit, read_table
from synod.party.table.marks import mark_source
from synod.party.table.order import sort_rows, sum_rows
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import count_rows, read_header
from tests.support.databases import Server, duckdb_table
from tests.support.parties import parties_in_memory
from tests.support.studies import LINEAR, make_study

ROWS = 120
COLUMNS = (
    "person bigint, sex varchar(10), age smallint, income numeric(9, 2), admitted date, urgent boolean, mass float8"
)
SCHEMA: tuple[dict[str, Any], ...] = (
    {"name": "sex", "type": "categorical", "categories": ["f", "m", "d"]},
    {"name": "age", "type": "integer", "min": 0, "max": 100, "nullable": True},
    {"name": "income", "type": "real", "min": "0", "max": "1000", "nullable": True, "out_of_domain": "clip"},
    {"name": "admitted", "type": "date", "min": "2025-01-01", "max": "2025-12-31"},
    {"name": "urgent", "type": "boolean", "nullable": True},
    {"name": "mass", "type": "real", "min": "-1", "max": "1"},
)
Row = tuple[int, str, int | None, str | None, str, str | None, float]
GERMAN = CsvFormat(separator=";", decimal=",", nulls=("NA",))


def draw_rows() -> list[Row]:
    rng = np.random.default_rng(5)
    return [
        (
            2**53 + int(rng.integers(0, 60)) * 2 + 1,
            "fmd"[rng.integers(0, 3)],
            None if rng.random() < 0.1 else int(rng.integers(0, 101)),
            None if rng.random() < 0.1 else f"{rng.integers(0, 120_000) / 100:.2f}",
            f"2025-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}",
            (None, "true", "false")[rng.integers(0, 3)],
            float(rng.integers(-8, 9)) / 8,
        )
        for _ in range(ROWS)
    ]


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(rows=(ROWS, 5, 5), schema=SCHEMA, method=LINEAR, max_rows_per_unit=20)


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    path.write_text("\n".join(["person,sex,age,income,admitted,urgent,mass", *lines]) + "\n")
    return path


def write_german(path: Path, rows: Sequence[Row]) -> Path:
    lines = [";".join("NA" if value is None else str(value).replace(".", ",") for value in row) for row in rows]
    path.write_bytes(gzip.compress("\n".join(["person;sex;age;income;admitted;urgent;mass", *lines, ""]).encode()))
    return path


def write_folder(folder: Path, source: Path) -> Path:
    folder.mkdir()
    table = pa.csv.read_csv(source)
    for place, start in enumerate(range(0, ROWS, 50)):
        pa.parquet.write_table(table.slice(start, 50), folder / f"part-{place}.parquet")
    return folder


def sql_rows(rows: Sequence[Row]) -> list[str]:
    return [", ".join("NULL" if value is None else f"'{value}'" for value in row) for row in rows]


def read(source: Path | Database, study: Study, layout: CsvFormat | None = None) -> Snapshot:
    return read_table(source, codings_of(study), unit=Unit("person", 20), expected_rows=ROWS, layout=layout)


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory, study: Study) -> list[Row]:
    """The rows in the order of their codes."""
    rows = draw_rows()
    columns = read(write_csv(tmp_path_factory.mktemp("any") / "table.csv", rows), study).columns
    return [rows[place] for place in np.lexsort(columns[::-1])]


@pytest.fixture(scope="module")
def shuffled(ordered: list[Row]) -> list[Row]:
    return [ordered[place] for place in np.random.default_rng(6).permutation(ROWS)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, ordered: list[Row]) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    plain = write_csv(folder / "table.csv", ordered)
    return {
        "plain": plain,
        "german": write_german(folder / "t.csv.gz", ordered),
        "lake": write_folder(folder / "l", plain),
    }


def released(study: Study, snapshot: Snapshot) -> list[int]:
    """What the party adds to the sum, with the coins of one ledger."""
    party = parties_in_memory(study, [snapshot.columns] * 3)[0]
    (step, *_) = plan_study(study).steps
    coins = Coins(party.secrets.derive("noise", "moments", "00"))
    terms = SumMoments().terms(step, study)
    return [int(value) for value in noisy_values(SumMoments(), study, snapshot.columns, terms, coins=coins)]


def databases(tmp_path: Path, request: pytest.FixtureRequest, rows: Sequence[Row]) -> dict[str, Database]:
    server: Server = request.getfixturevalue("postgresql")
    return {
        "duckdb": duckdb_table(tmp_path, COLUMNS, sql_rows(rows)),
        "postgresql": server.table(COLUMNS, sql_rows(rows)),
    }


def test_all_have_one_digest_and_release_the_same_numbers(
    tmp_path: Path, request: pytest.FixtureRequest, study: Study, files: dict[str, Path], shuffled: list[Row]
) -> None:
    first = read(files["plain"], study)
    digest, numbers = first.digest(), released(study, first)
    read_all = [read(files["german"], study, GERMAN), read(files["lake"], study)]
    sources = databases(tmp_path, request, shuffled)
    read_all += [read(source, study) for source in sources.values()]
    query = sources["duckdb"].model_copy(update={"table": None, "query": "SELECT * FROM stays; "})
    read_all.append(read(query, study))
    remark = sources["postgresql"].model_copy(
        update={"table": None, "query": f"SELECT * FROM {sources['postgresql'].table} -- all"}
    )
    read_all.append(read(remark, study))
    assert [snapshot.digest() for snapshot in read_all] == [digest] * len(read_all)
    assert [released(study, snapshot) for snapshot in read_all] == [numbers] * len(read_all)
    for source in sources.values():
        assert (count_rows(source), len(read_header(source))) == (ROWS, 7)


def test_one_other_row_is_another_digest(
    tmp_path: Path, request: pytest.FixtureRequest, study: Study, files: dict[str, Path], shuffled: list[Row]
) -> None:
    changed = [*shuffled[1:], (*shuffled[0][:-1], -shuffled[0][-1] or 1.0)]
    first = read(files["plain"], study)
    for source in databases(tmp_path, request, changed).values():
        assert read(source, study).digest() != first.digest()
        assert sum_rows(read(source, study).columns) != sum_rows(first.columns)


def test_a_file_in_another_order_has_a_mark_of_the_database(
    tmp_path: Path, request: pytest.FixtureRequest, study: Study, shuffled: list[Row]
) -> None:
    path = write_csv(tmp_path / "table.csv", shuffled)
    marks = set(mark_source(path, read(path, study)))
    for source in databases(tmp_path, request, shuffled[::-1]).values():
        assert {mark[:4] for mark in marks & set(mark_source(source, read(source, study)))} == {b"rows"}


def test_rows_are_sorted_as_a_slow_twin_sorts_them() -> None:
    rng = np.random.default_rng(8)
    columns = [rng.integers(0, size, 500).astype(kind) for size, kind in ((2, "u1"), (300, "u2"), (3, "u1"), (9, "u4"))]
    twin = sorted(zip(*(column.tolist() for column in columns), strict=True))
    before = sum_rows(columns)
    sort_rows(columns)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == twin
    assert sum_rows(columns) == before
    mixed = rng.permutation(500)
    assert sum_rows([column[mixed] for column in columns]) == sum_rows(columns)
    assert sum_rows([columns[0][mixed], *columns[1:]]) != sum_rows(columns)
    assert sum_rows([column[:499] for column in columns]) != sum_rows(columns)
