"""DuckDB, embedded: opens a file read-only, reaches nothing outside of it, and streams Arrow batches."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import Database

# A view of the file could otherwise read any file of this machine, or fetch code for an extension.
SHUT = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
}
# It would keep what it has read until most of the machine's memory is full, and then write rows beside the file.
MODEST = {"memory_limit": "1GB", "temp_directory": ""}


class DuckdbSession:
    """One open file."""

    def __init__(self, source: Database) -> None:
        if source.file is None or not source.file.is_file():
            raise invalid(f"there is no file for {source.name}.", "Check `source` in the configuration.")
        import duckdb  # noqa: PLC0415  (an optional package)

        self._connection: Any = duckdb.connect(str(source.file), read_only=True, config={**SHUT, **MODEST})
        try:
            self._connection.execute("SET TimeZone = 'UTC'")
        except BaseException:
            self.close()
            raise

    def schema(self, sql: str) -> pa.Schema:
        """The columns that a SELECT would give."""
        return self._connection.sql(f"{sql} LIMIT 0").to_arrow_reader(1).schema

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows that it gives."""
        yield from self._connection.sql(sql).to_arrow_reader(batch_rows)

    @staticmethod
    def is_plain(field: pa.Field) -> bool:
        """Numbers and booleans; those of a fixed precision come as text, since all their digits count."""
        tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        return any(test(field.type) for test in tests)

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()
