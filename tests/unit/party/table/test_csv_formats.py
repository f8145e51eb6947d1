"""CSV files as people have them: read as their format says, and the format detected."""

import codecs
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import CsvFormat
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.deploy.simulate import publish_in_process
from synod.party.table.detect import detect, detect_format, shown
from synod.party.table.encode import TableError, read_table
from synod.party.table.snapshot import Snapshot
from synod.party.table.source import count_rows, read_header
from tests.support.sources import SECRET
from tests.support.studies import make_study

ROWS = 60
SCHEMA = (
    {"name": "größe", "type": "real", "min": 0, "max": 300, "nullable": True},
    {"name": "seen", "type": "date", "min": "2020-01-01", "max": "2020-12-31"},
    {"name": "alive", "type": "boolean"},
    {"name": "ward", "type": "categorical", "categories": ["a", "b;c", 'the "day"\nward'], "nullable": True},
    {"name": "visits", "type": "integer", "min": 0, "max": 500, "transform": "log"},
)


def study() -> Study:
    return make_study(rows=(ROWS, ROWS, ROWS), schema=SCHEMA, method={"name": "independent"})


def rows() -> list[list[Any]]:
    wards = ["a", "b;c", 'the "day"\nward', None]
    return [
        [None if i % 7 == 0 else 150 + i / 4, f"2020-{i % 12 + 1:02}-{i % 28 + 1:02}", i % 3 == 0, wards[i % 4], i * 8]
        for i in range(ROWS)
    ]


def quoted(text: str, separator: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in f'{separator}"\n') else text


def write(path: Path, *, separator: str = ",", encoding: str = "utf-8", decimal: str = ".", null: str = "",
          order: str = "ymd", truths: tuple[str, str] = ("False", "True")) -> Path:  # fmt: skip
    lines = [separator.join(["größe", "seen", "alive", "ward", "visits"])]
    for size, seen, alive, ward, visits in rows():
        y, m, d = seen.split("-")
        cells = [null if size is None else str(size).replace(".", decimal), seen if order == "ymd" else f"{d}.{m}.{y}"]
        cells += [truths[alive], null if ward is None else ward, str(visits)]
        lines.append(separator.join(quoted(cell, separator) for cell in cells))
    data = ("\n".join(lines) + "\n").encode(encoding)
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(data)
    else:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("t.csv", {}),
    "semicolons, decimal commas, gzip": ("t.csv.gz", {"separator": ";", "decimal": ",", "null": "NA"}),
    "a hospital's export": ("t.txt", {"separator": ";", "encoding": "iso-8859-1", "decimal": ",", "order": "dmy"}),
    "tabs, zstd, pandas' booleans": ("t.tsv.zst", {"separator": "\t", "null": "NaN", "truths": ("0.0", "1.0")}),
    "UTF-16": ("t.csv", {"encoding": "utf-16", "separator": ";"}),
    "UTF-8 with a mark": ("t.csv", {"encoding": "utf-8-sig", "separator": "|", "truths": ("no", "YES")}),
}


def read(path: Path, layout: CsvFormat | None) -> Snapshot:
    return read_table(path, codings_of(study()), unit=None, expected_rows=ROWS, layout=layout)


@pytest.mark.parametrize(("name", "way"), WAYS.values(), ids=WAYS.keys())
def test_however_it_is_written_it_is_the_same_snapshot(tmp_path: Path, name: str, way: dict[str, Any]) -> None:
    path = write(tmp_path / name, **way)
    layout = detect_format(path)
    assert layout is not None
    assert count_rows(path, layout) == ROWS
    plain = read(write(tmp_path / "plain.csv"), CsvFormat(quoted_newlines=True))
    assert read(path, layout).digest() == plain.digest()
    assert CsvFormat.model_validate(json.loads(json.dumps(shown(layout)))) == layout, "as a configuration says it"


def test_the_same_coins_release_the_same_numbers(tmp_path: Path) -> None:
    released = []
    for name, way in (WAYS["plain"], WAYS["semicolons, decimal commas, gzip"]):
        path = write(tmp_path / name, **way)
        table = read(path, detect_format(path)).columns
        rng = np.random.default_rng(1)
        published = publish_in_process(study(), [table] * 3, coins=Coins(bytes(KEY_BYTES)), rng=rng)
        released.append([column.tolist() for column in published.columns])
    assert released[0] == released[1]


def test_what_is_detected(tmp_path: Path) -> None:
    name, way = WAYS["a hospital's export"]
    layout = detect_format(write(tmp_path / name, **way))
    assert layout is not None
    assert shown(layout) == {
        "separator": ";", "encoding": "iso-8859-1", "decimal": ",", "quoted_newlines": True, "date_order": "dmy",
    }  # fmt: skip
    assert detect_format(tmp_path / "t.parquet") is None


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    packed = write(tmp_path / "t.csv.gz")
    renamed = packed.rename(tmp_path / "t.csv")
    layout = detect_format(renamed)
    assert layout is not None
    assert layout.compression == "gzip"
    assert count_rows(renamed, layout) == ROWS


def test_a_late_character_decides_the_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 1_200_000 + b"1,\xfc\n")
    found = detect_format(path)
    assert found is not None
    assert found.encoding == "iso-8859-1"


def test_a_character_across_two_chunks_is_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1," + b"x" * ((1 << 20) - 7) + "ü".encode() + b"\n")
    found = detect_format(path)
    assert found is not None
    assert found.encoding == "utf-8"


def test_an_order_of_dates_that_nothing_tells_stays_open(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i},0{i % 9 + 1}/0{i % 5 + 1}/2020\n" for i in range(40)))
    found = detect(tmp_path / "t.csv")
    assert found is not None
    assert found.is_order_open
    (tmp_path / "t.csv").write_text("a,b\n1,01/02/2020\n2,01/31/2020\n")
    found = detect(tmp_path / "t.csv")
    assert found is not None
    assert (found.layout.date_order, found.is_order_open) == ("mdy", False)


def test_a_category_that_looks_like_nothing_stays_one(tmp_path: Path) -> None:
    """`?` and `None` stand for a missing value among numbers only."""
    (tmp_path / "t.csv").write_text("n,c\n1,?\n2,None\n-,x\n" + "3,y\n" * 50)
    found = detect_format(tmp_path / "t.csv")
    assert found is not None
    assert found.nulls == ("-",)


# A wrong separator


def test_a_file_of_one_column_by_a_wrong_separator_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"age;sex\n1;{SECRET}\n")
    with pytest.raises(SynodError, match="read as one column; its separator seems to be a semicolon") as caught:
        read_header(tmp_path / "t.csv")
    assert 'format: {separator: ";"}' in caught.value.hint
    assert SECRET not in str(caught.value) + caught.value.hint


def test_a_wrong_separator_in_the_configuration_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", separator=";")
    with pytest.raises(SynodError, match="has no column") as caught:
        read(path, CsvFormat(separator="|"))
    assert 'separator: ";"' in caught.value.hint


def test_one_column_is_one_where_the_configuration_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age;sex\n1;2\n")
    assert read_header(tmp_path / "t.csv", CsvFormat()) == ["age;sex"]


# Misfits


def test_examples_are_kept_only_where_the_owner_asks(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    path.write_text(path.read_text().replace("True", SECRET).replace("2020-02", "2019-02"))
    for show_values in (False, True):
        with pytest.raises(TableError) as caught:
            read_table(
                path, codings_of(study()), unit=None, expected_rows=ROWS,
                layout=CsvFormat(quoted_newlines=True), show_values=show_values,
            )  # fmt: skip
        found = {(misfit.column, misfit.rule): misfit for misfit in caught.value.misfits}
        assert {key: misfit.rows for key, misfit in found.items()} == {
            ("alive", "not true or false"): 20,
            ("seen", "outside the domain"): 5,
        }
        examples = found["alive", "not true or false"].examples
        assert examples == ((SECRET,) if show_values else ())
        assert len(found["seen", "outside the domain"].examples) == (5 if show_values else 0)
        assert SECRET not in repr(caught.value.misfits) + str(caught.value)


def test_what_is_no_date_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    path.write_text(path.read_text().replace("2020-02-02", "2020-02-31"))
    with pytest.raises(TableError) as caught:
        read(path, CsvFormat(quoted_newlines=True))
    assert [(m.column, m.rule, m.rows) for m in caught.value.misfits] == [("seen", "not a date", 1)]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"separator": ";;"}, "separator"),
        ({"separator": ",", "decimal": ","}, "the same sign"),
        ({"encoding": "rot13"}, "no encoding of text"),
        ({"encoding": "klingon"}, "no encoding of text"),
        ({"thousands": "."}, "thousands"),
    ],
)
def test_what_is_no_format_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CsvFormat.model_validate(keys)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b broken", codecs.BOM_UTF16_LE + b"\x00\xd8"])
def test_detection_of_rubbish_ends_in_a_sentence_or_a_guess(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    told = ""
    try:
        detect_format(tmp_path / "t.csv")
    except SynodError as error:
        told = str(error)
    assert not told or "cannot be read as a CSV table" in told
