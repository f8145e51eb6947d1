"""The copy for spreadsheet programs: texts that they would compute stay texts, and nothing else changes."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.curator.release.spreadsheet import write_spreadsheet


def copy_rows(folder: Path, **columns: pa.Array) -> list[list[str]]:
    release = folder / "release"
    release.mkdir()
    pa.parquet.write_table(pa.table(columns), release / "synthetic.parquet")
    write_spreadsheet(release, folder / "rows.csv")
    with (folder / "rows.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        " =1",
        "\r=1",
        "\n=1",
        "=cmd|' /C calc'!A0",
        "\N{FULLWIDTH EQUALS SIGN}1",
        "-",
        "=\n=1",
    ],
)
def test_a_text_that_would_be_a_formula_gets_an_apostrophe(tmp_path: Path, text: str) -> None:
    assert copy_rows(tmp_path, a=pa.array([text, "b"])) == [["a"], ["'" + text], ["b"]]


@pytest.mark.parametrize("text", ["a=1", "1-2", "a@b", "'=1", "é", "a, b", 'say "so"'])
def test_any_other_text_stays(tmp_path: Path, text: str) -> None:
    assert copy_rows(tmp_path, a=pa.array([text])) == [["a"], [text]]


def test_numbers_stay_numbers_and_missing_values_missing(tmp_path: Path) -> None:
    rows = copy_rows(tmp_path, a=pa.array([-1, None]), b=pa.array([-0.5, 2.0]), c=pa.array([None, "-"]))
    assert rows == [["a", "b", "c"], ["-1", "-0.5", ""], ["", "2", "'-"]]


def test_names_of_columns_are_texts_too(tmp_path: Path) -> None:
    assert copy_rows(tmp_path, **{"=a": pa.array([1])}) == [["'=a"], ["1"]]
