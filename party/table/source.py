"""Opens a table, in a file, a folder of Parquet files or a database: header, rows in batches, how many there are.

What cannot be read ends in a sentence that names the table and holds nothing of its content.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import CsvFormat, Database
from synod.party.table.csv_source import (
    MOST_COLUMNS,
    csv_batches,
    find_separator,
    many_columns,
    read_csv_header,
    set_hint,
    table_ending,
)
from synod.party.table.engines.database import database_batches, read_database_header
from synod.party.table.folder import folder_batches, is_folder, read_folder_header

BATCH_ROWS = 65_536
Source = Path | Database


def count_rows(source: Source, layout: CsvFormat | None = None) -> int:
    """How many rows a table has; the launcher fills a roster with it."""
    return sum(len(batch) for batch in open_batches(source, read_header(source, layout)[:1], layout))


def read_header(source: Source, layout: CsvFormat | None = None) -> list[str]:
    """The names of a table's columns, each once; `layout` is the format of a CSV file."""
    names = _read_names(source, layout)
    if len(names) > MOST_COLUMNS:
        raise many_columns(source)
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise invalid(f"the column {repeated[0]} appears twice in {source.name}.", "Rename one of them.")
    return names


def _read_names(source: Source, layout: CsvFormat | None) -> list[str]:
    if isinstance(source, Database):
        return read_database_header(source)
    with _readable(source):
        if is_folder(source):
            return read_folder_header(source)
        if source.suffix == ".parquet":
            return list(pa.parquet.read_schema(source).names)
        return read_csv_header(source, layout)


def open_batches(source: Source, wanted: list[str], layout: CsvFormat | None = None) -> Iterator[pa.RecordBatch]:
    """The rows in batches, with the wanted columns only; CSV values come as texts, all others with
    types of their own.
    """
    present = read_header(source, layout)
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        other = find_separator(present, layout.separator) if layout else None
        raise invalid(
            f"{source.name} has no column {missing[0]!r}"
            + (f" and {len(missing) - 1} others of the schema." if len(missing) > 1 else "."),
            set_hint(other) if other else "Column names must be those of the study's schema.",
        )
    if isinstance(source, Database):
        yield from database_batches(source, wanted, BATCH_ROWS)
        return
    with _readable(source):
        if is_folder(source):
            yield from folder_batches(source, wanted, BATCH_ROWS)
        elif source.suffix == ".parquet":
            # Arrow would keep what it reads ahead until the end: all of the file.
            with pa.parquet.ParquetFile(source, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=BATCH_ROWS, columns=wanted)
        else:
            yield from csv_batches(source, wanted, layout)


class _readable:  # noqa: N801  (a context manager used as a verb)
    """Turns what a broken file raises into a sentence without its content."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def __enter__(self) -> None:
        if is_folder(self.source):
            return
        if not self.source.is_file():
            raise invalid(f"there is no table at {self.source}.", "Check `source` in the configuration.")
        if not table_ending(self.source):
            raise invalid(
                f"{self.source.name} is neither .csv nor .parquet.",
                "Export the table as one of them; a CSV may be called .tsv or .txt, too, and end in .gz or .zst.",
            )

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError | UnicodeError):
            is_parquet = is_folder(self.source) or self.source.suffix == ".parquet"
            kind = "PARQUET" if is_parquet else "CSV"
            raise invalid(
                f"{self.source.name} cannot be read as a {kind} table with a header ({type(error).__name__}).",
                "Check that it is complete and has one header line, and that `format` has its encoding and separator.",
            ) from None
