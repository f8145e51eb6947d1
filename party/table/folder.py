"""Parquet files that are one table: those of a folder and the folders below it, or those that a pattern matches.

Their rows follow each other in the order of the files' paths. Files whose columns differ are refused.
"""

import glob
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from synod.common.runtime.errors import invalid

ENDING = ".parquet"
Listing = list[tuple[Path, int, int, int]]


def is_folder(source: Path) -> bool:
    """Whether a source is a folder or a pattern; a file whose own name looks like a pattern is a file."""
    return source.is_dir() or (not source.exists() and glob.has_magic(str(source)))


def list_files(source: Path) -> list[Path]:
    """The files of the table, in the order of their rows. Names that begin with a point or an underscore, as those of
    marks that programs leave beside their files, are no part of it.
    """
    if source.is_dir():
        found = [path for path in source.rglob(f"*{ENDING}") if not _is_hidden(path.relative_to(source))]
    else:
        root = Path(source.anchor)
        plain = root.joinpath(*takewhile(lambda part: not glob.has_magic(part), source.relative_to(root).parts))
        found = [path for path in root.glob(str(source.relative_to(root))) if not _is_hidden(path.relative_to(plain))]
    files = sorted(
        (path for path in found if path.is_file()), key=lambda path: path.as_posix().encode("utf-8", "surrogateescape")
    )
    others = [path for path in files if path.suffix != ENDING]
    if others:
        raise invalid(f"{others[0].name} of {source} is no .parquet file.", f"Let the pattern end in *{ENDING}.")
    if not files:
        raise invalid(
            f"there is no table at {source}: no file there ends in {ENDING}.", "Check `source` in the configuration."
        )
    return files


def read_folder_header(source: Path) -> list[str]:
    """The names of the columns, which every file must have, with the same types."""
    first, *others = list_files(source)
    schema = pa.parquet.read_schema(first)
    for file in others:
        _require_same(schema, pa.parquet.read_schema(file), first, file)
    return list(schema.names)


def folder_batches(source: Path, wanted: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of all files in batches; refused at the end if a file came, went or changed meanwhile."""
    before = _look(source)
    for path, *_ in before:
        with pa.parquet.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=batch_rows, columns=wanted)
    if _look(source) != before:
        raise invalid(
            f"files of {source.name} changed while they were read.",
            "Try again when nobody writes there; nothing was spent.",
        )


def _look(source: Path) -> Listing:
    """The files, and what tells that one of them is another."""
    found = [(path, path.stat()) for path in list_files(source)]
    return [(path, status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _require_same(schema: pa.Schema, other: pa.Schema, first: Path, file: Path) -> None:
    types = dict(zip(schema.names, schema.types, strict=True))
    others = dict(zip(other.names, other.types, strict=True))
    for name in [*types, *others]:
        if types.get(name) != others.get(name):
            what = "type of" if name in types and name in others else "column"
            raise invalid(
                f"{first.name} and {file.name} are files of one table, and differ in the {what} {name!r}.",
                "Write them anew with the same columns and types, or name a pattern that matches only one kind.",
            )
