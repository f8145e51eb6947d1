"""Which tables are read, in which cells they are compared, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study, parse_study
from synod.curator.release.files import decode_table
from synod.deploy.evaluate.tables import (
    bin_table,
    cell_labels,
    find_real,
    find_synthetic,
    make_table,
    read_columns,
    split_bits,
)
from tests.support.studies import categorical, draw_columns, integer, make_study, real

SCHEMA: list[dict[str, Any]] = [
    categorical("sex", ("F", "M")),
    categorical("hospital", ("one",)),
    integer("age", 0, 9, bins=4),
    real("income", "0", "1", bins=5, nullable=True),
    integer("year", 2020, 2020, nullable=True),
]
ROWS = "F,one,0,0.1,2020\nM,one,2,,2020\nM,one,3,1,\nF,one,9,0.2,2020\n"
HEADER = "sex,hospital,age,income,year\n"


def study_without_roster(method: str = "hpdp-dp") -> Study:
    return parse_study({"name": "s", "method": {"name": method}, "epsilon": "1", "schema": SCHEMA}, "test")


def codes_of(columns: Any) -> list[list[int]]:
    return [column.tolist() for column in columns]


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn"])
def test_a_table_is_read_in_bins_whatever_the_method(tmp_path: Path, method: str) -> None:
    (tmp_path / "t.csv").write_text(HEADER + ROWS)
    study = study_without_roster(method)
    columns = read_columns([tmp_path / "t.csv"], study)
    assert codes_of(columns) == [[0, 1, 1, 0], [0] * 4, [0, 0, 1, 3], [0, 5, 4, 1], [0, 0, 1, 0]]
    table = make_table(study, columns)
    assert table.names == ("sex", "age", "income", "year"), "an attribute of one cell is left out"
    assert (table.sizes, table.values) == ((2, 4, 6, 2), (2, 4, 5, 1))


def test_bits_are_those_of_the_codes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + ROWS)
    study = study_without_roster()
    table = split_bits(study, read_columns([tmp_path / "t.csv"], study))
    assert table.names == ("sex bit 0", "age bit 1", "age bit 0", "income bit 2", "income bit 1", "income bit 0",
                           "year bit 0")  # fmt: skip
    assert codes_of(table.columns[1:6]) == [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]]
    assert set(table.sizes) == {2}


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn"])
def test_codes_of_a_recipe_are_binned_as_its_published_table_is(tmp_path: Path, method: str) -> None:
    """What a benchmark measures in memory is what `synod evaluate` measures in the file."""
    study = make_study(schema=[s | {"bins": 7} if s["name"] == "age" else s for s in SCHEMA], method={"name": method})
    columns = [np.arange(400) % coding.size for coding in codings_of(study)]
    codes = [column.astype(coding.dtype) for column, coding in zip(columns, codings_of(study), strict=True)]
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(decode_table(study, codes, coins=Coins.public(1, "values")), path)
    in_memory, in_file = bin_table(study, codes), make_table(study, read_columns([path], study))
    assert codes_of(in_memory.columns) == codes_of(in_file.columns)
    assert (in_memory.names, in_memory.sizes) == (in_file.names, in_file.sizes)


def test_labels_say_where_a_bin_begins() -> None:
    study = study_without_roster()
    assert cell_labels(study, "sex") == ["F", "M"]
    assert cell_labels(study, "age") == ["≥ 0", "≥ 3", "≥ 5", "≥ 8"]
    assert cell_labels(study, "income") == ["≥ 0", "≥ 0.2", "≥ 0.4", "≥ 0.6", "≥ 0.8", "(missing)"]
    assert cell_labels(study, "year") == ["≥ 2020", "(missing)"]


def test_bins_begin_where_their_label_says(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "".join(f"F,one,{age},0,2020\n" for age in range(10)))
    ages = read_columns([tmp_path / "t.csv"], study_without_roster())[2].tolist()
    assert [ages.index(code) for code in range(4)] == [0, 3, 5, 8]


def test_the_tables_of_a_folder_are_pooled(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(HEADER + "M,one,2,,2020\n")
    (tmp_path / "a.csv").write_text(HEADER + "F,one,0,0.1,2020\n")
    (tmp_path / "notes.txt").write_text("not a table")
    (tmp_path / "c.csv").mkdir()
    assert [path.name for path in find_real(tmp_path)] == ["a.csv", "b.csv"]
    assert codes_of(read_columns(find_real(tmp_path), study_without_roster()))[2] == [0, 0]
    assert find_real(tmp_path / "b.csv") == [tmp_path / "b.csv"]


def test_a_release_stands_for_its_table(tmp_path: Path) -> None:
    (tmp_path / "synthetic.parquet").write_bytes(b"")
    assert find_synthetic(tmp_path) == tmp_path / "synthetic.parquet"
    assert find_synthetic(tmp_path / "synthetic.parquet") == tmp_path / "synthetic.parquet"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SynodError) as caught:
        call()
    assert caught.value.code is Code.INVALID
    return str(caught.value)


def test_what_cannot_be_found(tmp_path: Path) -> None:
    for find in (find_real, find_synthetic):
        assert "there is no table at" in refusal(lambda find=find: find(tmp_path / "none.csv"))  # type: ignore[misc]
    assert "holds no table" in refusal(lambda: find_real(tmp_path))
    assert "holds no synthetic.parquet" in refusal(lambda: find_synthetic(tmp_path))
    for suffix in (".csv", ".parquet"):
        (tmp_path / f"synthetic{suffix}").write_bytes(b"")
    assert "synthetic in two files" in refusal(lambda: find_real(tmp_path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEADER + "F,one,10,0.1,2020\n", "does not fit the study's schema: column age: outside the domain."),
        (HEADER + "X,one,,2,2020\n", "column sex: outside the domain (2 more after it)."),
        ("sex,hospital,age\nF,one,1\n", "has no column 'income' and 1 others"),
        (HEADER, "has no rows"),
        ("", "cannot be read"),
        (HEADER + "F,one\n", "cannot be read"),
    ],
)
def test_a_table_that_does_not_fit(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert told in refusal(lambda: read_columns([tmp_path / "t.csv"], study_without_roster()))


def test_a_schema_with_nothing_to_compare() -> None:
    study = make_study(schema=[integer("age", 0, 9, bins=1)])
    assert "no attribute" in refusal(lambda: make_table(study, draw_columns(study, "north")))
