"""Tables as people have them in Python: Arrow, pandas or polars in and out, or a file."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet

from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.encoding import Codes, Coding
from synod.party.table.encode import TableError, read_table
from synod.party.table.source import count_rows

Kind = Literal["arrow", "pandas", "polars"]
Tabular = Any
"""A pandas or polars DataFrame, an Arrow table, a mapping of names to columns, or the path of a CSV or Parquet file."""


def convert_table(table: pa.Table, kind: Kind) -> Any:
    """An Arrow table as `kind`."""
    if kind == "arrow":
        return table
    if kind == "pandas":
        try:
            return table.to_pandas()
        except ImportError:
            raise _not_installed("pandas") from None
    if kind == "polars":
        try:
            import polars  # noqa: PLC0415  (only where it is asked for)
        except ImportError:
            raise _not_installed("polars") from None
        return polars.from_arrow(table)
    raise invalid(f"a table is no {kind!r}.", "Ask for 'arrow', 'pandas' or 'polars'.")


def _not_installed(package: str) -> SynodError:
    return invalid(f"{package} is not installed.", f"Install it (`pip install {package}`), or ask for an Arrow table.")


def to_arrow(table: Tabular, name: str) -> pa.Table:
    """A table in memory as Arrow; a missing value is null, however it is written."""
    try:
        if isinstance(table, pa.Table):
            return table
        if isinstance(table, Mapping):
            return pa.table(dict(table))
        if hasattr(table, "to_arrow"):
            return table.to_arrow()
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, AttributeError):
        # what Arrow says quotes a value
        raise invalid(
            f"{name} is not a table that can be read.",
            "Give a pandas or polars DataFrame, an Arrow table or the path of a file, each column of one type.",
        ) from None


@contextmanager
def as_file(table: Tabular, name: str) -> Iterator[Path]:
    """The path of a table: its own, or that of a temporary file which holds it."""
    if isinstance(table, str | Path):
        yield Path(table)
        return
    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        path = Path(folder) / f"{name}.parquet"
        pa.parquet.write_table(to_arrow(table, name), path)
        yield path


def encode_table(table: Tabular, name: str, codings: Sequence[Coding]) -> tuple[Codes, ...]:
    """A table's codes, read as a party reads it.

    Raises:
        SynodError: the table does not fit; each column and rule is named, and no value.
    """
    with as_file(table, name) as path:
        try:
            return read_table(path, codings, unit=None, expected_rows=count_rows(path)).columns
        except TableError as error:
            misfits = "; ".join(f"column {one.column}: {one.rule} ({one.rows:,} rows)" for one in error.misfits)
            raise invalid(
                f"{name} does not fit the study's schema: {misfits}.", "Correct the table or the schema."
            ) from None
