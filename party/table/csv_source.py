"""Opens a CSV file as its `format` says: separator, encoding, null tokens, compression, quoted newlines.

Values come as texts. A file whose header is one column only because its separator is another is recognized.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.settings import CsvFormat, Database

BATCH_BYTES = 2 << 20
MOST_COLUMNS = 10_000
SEPARATORS = (",", ";", "\t", "|")
NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
ENDINGS = (".csv", ".tsv", ".txt")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
USUAL = CsvFormat()


def table_ending(source: Path) -> str:
    """What a table's name ends with, its compression included, such as `.csv.gz`; empty where it is no table's name."""
    outer = source.suffix.lower()
    inner = Path(source.stem).suffix.lower() if outer in COMPRESSED else outer
    if outer == ".parquet" or inner in ENDINGS:
        return inner + outer if outer in COMPRESSED else outer
    return ""


def compression_of(source: Path, layout: CsvFormat) -> str | None:
    """How the file is compressed, as its format or its name says."""
    named = layout.compression or COMPRESSED.get(source.suffix.lower(), "none")
    return None if named == "none" else named


def open_stream(source: Path, layout: CsvFormat) -> pa.NativeFile:
    """The file's bytes as they were before compression."""
    return pa.input_stream(str(source), compression=compression_of(source, layout))


def read_csv_header(source: Path, layout: CsvFormat | None) -> list[str]:
    """The names of the columns; too many are refused before Arrow makes a column of each.

    Where no format is given, a single column whose name holds another separator is refused.
    """
    used = layout or USUAL
    if _first_line(source, used).count(used.separator) >= MOST_COLUMNS:
        raise many_columns(source)
    with _open(source, used, pa.csv.ConvertOptions()) as reader:
        names = list(reader.schema.names)
    other = find_separator(names, used.separator)
    if layout is None and other is not None:
        raise invalid(
            f"{source.name} is read as one column; its separator seems to be {NAMES[other]}.", set_hint(other)
        )
    return names


def find_separator(names: list[str], used: str) -> str | None:
    """The separator that a header of one column seems to have, if it is not the one that was used."""
    if len(names) != 1:
        return None
    found = [(names[0].count(other), other) for other in SEPARATORS if other != used and other in names[0]]
    return max(found)[1] if found else None


def set_hint(separator: str) -> str:
    """What to do about another separator."""
    shown = "\\t" if separator == "\t" else separator
    return (
        f'Write `format: {{separator: "{shown}"}}` beside `source`, '
        "or let `synod study draft TABLE --config party.yaml` find the format."
    )


def csv_batches(source: Path, wanted: list[str], layout: CsvFormat | None) -> Iterator[pa.RecordBatch]:
    """The rows in batches, with the wanted columns as texts."""
    used = layout or USUAL
    convert = pa.csv.ConvertOptions(
        column_types={name: pa.string() for name in wanted},
        include_columns=wanted,
        null_values=["", *used.nulls],
        strings_can_be_null=True,
    )
    with _open(source, used, convert) as reader:
        yield from reader


@contextmanager
def _open(source: Path, layout: CsvFormat, convert: pa.csv.ConvertOptions) -> Iterator[pa.csv.CSVStreamingReader]:
    read = pa.csv.ReadOptions(block_size=BATCH_BYTES, encoding=layout.encoding)
    parse = pa.csv.ParseOptions(delimiter=layout.separator, newlines_in_values=layout.quoted_newlines)
    with (
        open_stream(source, layout) as stream,
        pa.csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert) as reader,
    ):
        yield reader


def _first_line(source: Path, layout: CsvFormat) -> str:
    with open_stream(source, layout) as stream:
        start: bytes = stream.read(BATCH_BYTES)
    return start.decode(layout.encoding, "replace").partition("\n")[0]


def many_columns(source: Path | Database) -> SynodError:
    """The error for more columns than any study has."""
    return invalid(f"{source.name} has more than {MOST_COLUMNS:,} columns.", "Keep those of the study's schema.")
