"""Opens a database's table: its columns, and its rows in batches.

Engines quote values in their errors, so nothing of an error's text goes on: a sentence of ours stands for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.settings import Database
from synod.party.table.engines.duckdb import DuckdbSession
from synod.party.table.engines.postgresql import PostgresqlSession
from synod.party.table.engines.select import select_all, select_columns

NO_SUCH = ("42P01", "3F000", "CatalogException")
NOT_ALLOWED = ("42501", "PermissionException")
UNSPENT = "nothing was spent."


class Session(Protocol):
    """What every engine does."""

    def schema(self, sql: str) -> pa.Schema:
        """The columns that a SELECT would give."""

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows that it gives."""

    def is_plain(self, field: pa.Field) -> bool:
        """Whether the encoder takes a column as the engine gives it."""

    def close(self) -> None:
        """Ends it."""


def read_database_header(source: Database) -> list[str]:
    """The names of the columns."""
    with _opened(source) as session, _Asking(source):
        return list(session.schema(select_all(source)).names)


def database_batches(source: Database, wanted: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches, in whatever order the engine gives them; all are of one moment."""
    with _opened(source) as session:
        with _Asking(source):
            schema = session.schema(select_all(source))
            sql = select_columns(source, wanted, schema, is_plain=session.is_plain)
        with _Reading(source):
            yield from session.batches(sql, batch_rows)


@contextmanager
def _opened(source: Database) -> Iterator[Session]:
    with _Opening(source):
        session: Session = DuckdbSession(source) if source.file is not None else PostgresqlSession(source)
    try:
        yield session
    finally:
        session.close()


class _Told:
    """Replaces every error of an engine by a sentence of ours."""

    def __init__(self, source: Database) -> None:
        self.source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, SynodError):
            raise self.told(error) from None

    def told(self, error: Exception) -> SynodError:
        raise NotImplementedError


class _Opening(_Told):
    def told(self, error: Exception) -> SynodError:
        name = self.source.name
        if isinstance(error, ImportError):
            extra = "duckdb" if self.source.file is not None else "postgres"
            return invalid(f"{name} needs a driver that is not installed.", f"Install `synod-dp[{extra}]`.")
        if self.source.file is not None:
            hint = f"It must be a DuckDB file that no other program has open for writing; {UNSPENT}"
            return invalid(f"the file of {name} cannot be opened ({type(error).__name__}).", hint)
        if "authentication" in str(error):
            hint = f"Check the user in `url`, and `password_file` or PGPASSWORD; {UNSPENT}"
            return SynodError(Code.UNREACHABLE, f"the server of {name} refuses this user or its password.", hint)
        return SynodError(
            Code.UNREACHABLE,
            f"the server of {name} does not answer, or refuses the database, the user or the encryption.",
            f"Check `url` in `source` with psql, and the server's log; {UNSPENT}",
        )


class _Asking(_Told):
    def told(self, error: Exception) -> SynodError:
        # A state is five signs of a fixed list, and a class is a name in the driver: neither has a value in it.
        state = getattr(error, "sqlstate", None) or type(error).__name__
        if state in NO_SUCH:
            hint = f"Check `table` in `source`, which is spelled as the database spells it; {UNSPENT}"
            return invalid(f"there is no table or view for {self.source.name}.", hint)
        if state in NOT_ALLOWED:
            return invalid(f"{self.source.name} may not be read by this user.", f"Grant it SELECT; {UNSPENT}")
        return invalid(
            f"{self.source.name} cannot be read: the database refuses the query ({state}).",
            f"Try it in the database's own shell, which shows why; {UNSPENT}",
        )


class _Reading(_Told):
    def told(self, error: Exception) -> SynodError:
        state = getattr(error, "sqlstate", None) or type(error).__name__
        return invalid(
            f"{self.source.name} broke off while it was read ({state}): the database went away, or a "
            "view or query failed on a row.",
            f"Try it in the database's own shell, which shows why; {UNSPENT}",
        )
