"""Opens a CSV or Parquet table: its header, its rows in batches, how many there are.

What cannot be read ends in a sentence that names the file and holds nothing of its content.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from synod.common.runtime.errors import SynodError, invalid

BATCH_ROWS = 65_536
BATCH_BYTES = 1 << 20
MOST_COLUMNS = 10_000


def count_rows(source: Path) -> int:
    """How many rows a table has; the launcher fills a roster with it."""
    return sum(len(batch) for batch in open_batches(source, read_header(source)[:1]))


def read_header(source: Path) -> list[str]:
    """The names of a table's columns, each once; too many are refused before Arrow makes a column of each."""
    with _readable(source):
        if source.suffix == ".csv" and _first_line(source).count(b",") >= MOST_COLUMNS:
            raise _many_columns(source)
        if source.suffix == ".parquet":
            names = list(pa.parquet.read_schema(source).names)
        else:
            with pa.csv.open_csv(source, read_options=pa.csv.ReadOptions(block_size=BATCH_BYTES)) as reader:
                names = list(reader.schema.names)
    if len(names) > MOST_COLUMNS:
        raise _many_columns(source)
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise invalid(f"the column {repeated[0]} appears twice in {source.name}.", "Rename one of them.")
    return names


def _first_line(source: Path) -> bytes:
    with source.open("rb") as file:
        return file.readline(BATCH_BYTES)


def _many_columns(source: Path) -> SynodError:
    return invalid(f"{source.name} has more than {MOST_COLUMNS:,} columns.", "Keep those of the study's schema.")


def open_batches(source: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows in batches, with the wanted columns only; CSV values come as texts, Parquet values as they are."""
    present = set(read_header(source))
    missing = [name for name in wanted if name not in present]
    if missing:
        raise invalid(
            f"{source.name} has no column {missing[0]!r}"
            + (f" and {len(missing) - 1} others of the schema." if len(missing) > 1 else "."),
            "Column names must be those of the study's schema.",
        )
    with _readable(source):
        if source.suffix == ".parquet":
            with pa.parquet.ParquetFile(source) as file:
                yield from file.iter_batches(batch_size=BATCH_ROWS, columns=wanted)
        else:
            yield from _csv_batches(source, wanted)


def _csv_batches(source: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    convert = pa.csv.ConvertOptions(
        column_types={name: pa.string() for name in wanted},
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=True,
    )
    read = pa.csv.ReadOptions(block_size=BATCH_BYTES)
    with pa.csv.open_csv(source, read_options=read, convert_options=convert) as reader:
        yield from reader


class _readable:  # noqa: N801  (a context manager used as a verb)
    """Turns what a broken file raises into a sentence without its content."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def __enter__(self) -> None:
        if not self.source.is_file():
            raise invalid(f"there is no table at {self.source}.", "Check `source` in the configuration.")
        if self.source.suffix not in (".csv", ".parquet"):
            raise invalid(f"{self.source.name} is neither .csv nor .parquet.", "Export the table as one of them.")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError):
            raise invalid(
                f"{self.source.name} cannot be read as a {self.source.suffix[1:].upper()} table "
                f"with a header ({type(error).__name__}).",
                "Check that it is complete, UTF-8 and has one header line.",
            ) from None
