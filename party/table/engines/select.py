"""The one SELECT of a database's table, the same text for every engine.

Whole numbers, floating-point numbers and booleans come as they are. Everything else comes as text, cast by the engine,
which gives dates as 2026-01-31, numbers of any precision with all digits, and texts of a fixed length without padding.
Of a moment in time it is what a clock in UTC shows. What the values mean is decided by the encoder, never by an engine.
"""

import hashlib
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import pyarrow as pa

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import Database, read_options

PLACES = ("host", "hostaddr", "port", "dbname")


def select_all(source: Database) -> str:
    """All columns, for their names and types."""
    return f"SELECT * FROM {_relation(source)}"  # noqa: S608  (names are quoted, and a query is the operator's own)


def select_columns(
    source: Database, wanted: Sequence[str], schema: pa.Schema, *, is_plain: Callable[[pa.Field], bool]
) -> str:
    """The wanted columns in forms that the encoder takes; `is_plain` says of which the engine's own is one."""
    if any(schema.get_field_index(name) < 0 for name in wanted):
        raise invalid(f"the columns of {source.name} changed meanwhile.", "Try again; nothing was spent.")
    columns = ", ".join(_expression(schema.field(name), is_plain=is_plain) for name in wanted)
    return f"SELECT {columns} FROM {_relation(source)}"  # noqa: S608


def _relation(source: Database) -> str:
    if source.table is not None:
        return ".".join(map(quote_name, source.table.split(".")))
    assert source.query is not None
    return f"({source.query.strip().removesuffix(';')}\n) AS asked"  # the last line may be a comment


def _expression(field: pa.Field, *, is_plain: Callable[[pa.Field], bool]) -> str:
    name = quote_name(field.name)
    if is_plain(field):
        return name
    has_zone = pa.types.is_timestamp(field.type) and field.type.tz is not None
    value = f"({name} AT TIME ZONE 'UTC')" if has_zone else name
    return f"CAST({value} AS text) AS {name}"


def quote_name(name: str) -> str:
    """A name exactly as it is spelled."""
    return '"' + name.replace('"', '""') + '"'


def digest_database(source: Database) -> bytes:
    """Where the table is, whoever asks for it and however the way there is protected."""
    parts = urlsplit(source.url)
    options = read_options(source.url)
    server = [parts.netloc.rpartition("@")[2], parts.path, *(options.get(key, "") for key in PLACES)]
    place = [str(source.file.resolve())] if source.file else server
    return hashlib.sha256("\0".join([*place, asked(source)]).encode("utf-8", "surrogateescape")).digest()


def asked(source: Database) -> str:
    """The table or the query, whichever it is."""
    return f"table {source.table}" if source.table is not None else f"query {source.query}"
