"""PostgreSQL over ADBC: one read-only transaction, whose rows arrive as Arrow batches.

The password is put into the address in memory, for libpq alone; it is in no attribute, repr or error.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import Database, read_options

PLAIN = {b"int2", b"int4", b"int8", b"float4", b"float8", b"bool"}
# A server that does not answer is given up, before the rows and in the middle of them.
USUAL = {
    "application_name": "synod",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
ALWAYS = {"client_encoding": "UTF8"}
# The state of one moment, nothing written, and texts that do not depend on how server or user are set up.
BEFORE = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL TIME ZONE 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
)


class PostgresqlSession:
    """One transaction."""

    def __init__(self, source: Database) -> None:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415  (an optional package)

        self._connection: Any = dbapi.connect(_address(source), autocommit=False)
        try:
            with closing(self._connection.cursor()) as cursor:
                for statement in BEFORE:
                    cursor.execute(statement)
        except BaseException:
            self.close()
            raise

    def schema(self, sql: str) -> pa.Schema:
        """The columns that a SELECT would give, if this user may run it."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"{sql} LIMIT 0")
            with cursor.fetch_record_batch() as reader:
                return reader.schema

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows that it gives, in batches as the driver makes them, of some 16 MiB at most, or smaller ones."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            with cursor.fetch_record_batch() as reader:
                for batch in reader:
                    yield from (batch.slice(start, batch_rows) for start in range(0, len(batch), batch_rows))

    @staticmethod
    def is_plain(field: pa.Field) -> bool:
        """By the server's own name of the type: `money` and `oid` are whole numbers to Arrow, and others to people."""
        return (field.metadata or {}).get(b"POSTGRESQL:type") in PLAIN

    def close(self) -> None:
        """Ends the transaction; a server that is gone has ended it already."""
        with suppress(Exception):
            self._connection.close()


def _address(source: Database) -> str:
    parts = urlsplit(source.url)
    options = {**USUAL, **read_options(source.url), **ALWAYS}
    if source.password_file is not None:
        options["password"] = _read_password(source)
    written = "&".join(f"{key}={quote(value, safe='')}" for key, value in options.items())
    return f"postgresql://{parts.netloc}{parts.path or '/'}?{written}"


def _read_password(source: Database) -> str:
    assert source.password_file is not None
    try:
        lines = source.password_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise invalid(
            f"the file {source.password_file} of the password cannot be read ({type(error).__name__}).",
            "Check `password_file` of `source`, and that this user may read it.",
        ) from None
    if not lines or not lines[0]:
        raise invalid(f"the file {source.password_file} has no password.", "Its first line is the password.")
    return lines[0]
