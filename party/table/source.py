"""The only reader of rows: a CSV or Parquet table is read once, checked, encoded, and kept as a snapshot.

What does not fit the schema is reported by column, rule and count, to the party's own operator only. Tables are
read in batches, so memory is the encoded table plus one batch.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from synod.common.crypto.canonical import canonical_bytes
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.files import sync_files, sync_folder
from synod.common.study.encoding import Codes, Coding, codings_of, encode_numbers
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute
from synod.common.study.study import Study

BATCH_ROWS = 65_536
BATCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Misfit:
    """What does not fit: shown to the party's operator, never sent."""

    column: str
    rule: str
    rows: int


class TableError(SynodError):
    """The table does not fit the study; `misfits` are for the operator's eyes and not in the sentence."""

    def __init__(self, misfits: list[Misfit]) -> None:
        super().__init__(
            Code.INVALID,
            "the table does not fit the study's schema.",
            "Mend the table or ask for another schema; nothing was spent.",
        )
        self.misfits = misfits


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An encoded table: one array of codes for each attribute, in the schema's order."""

    columns: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])

    def digest(self) -> bytes:
        """SHA-256 over the shape and every code."""
        header = canonical_bytes([[column.dtype.str, len(column)] for column in self.columns])
        running = hashlib.sha256(len(header).to_bytes(8, "big") + header)
        for column in self.columns:
            running.update(np.ascontiguousarray(column).data)
        return running.digest()


def read_table(source: Path, study: Study, *, unit: str | None, expected_rows: int) -> Snapshot:
    """Reads, checks and encodes a table; raises `TableError` with all misfits if anything does not fit."""
    codings = codings_of(study)
    columns = tuple(np.zeros(expected_rows, dtype=coding.dtype) for coding in codings)
    names = [coding.attribute.name for coding in codings]
    misfits: dict[tuple[str, str], int] = {}
    units: list[pa.Array] = []
    rows = 0
    for batch in _open_batches(source, names, unit):
        start, rows = rows, rows + len(batch)
        if unit is not None:
            units.append(_decoded(batch.column(unit)))
        for coding, column in zip(codings, columns, strict=True):
            codes, broken = _encode(coding, batch.column(coding.attribute.name))
            for rule, count in broken.items():
                misfits[coding.attribute.name, rule] = misfits.get((coding.attribute.name, rule), 0) + count
            kept = max(0, min(rows, expected_rows) - start)
            column[start : start + kept] = codes[:kept]
    if rows != expected_rows:
        misfits["(rows)", "the row count is not the roster's"] = rows
    if unit is not None:
        misfits |= _check_unit(unit, units)
    if misfits:
        raise TableError([Misfit(column, rule, count) for (column, rule), count in misfits.items()])
    return Snapshot(columns)


def count_rows(source: Path) -> int:
    """How many rows a table has; the launcher fills a roster with it."""
    names = _header(source)
    return sum(len(batch) for batch in _open_batches(source, names[:1], None))


def _header(source: Path) -> list[str]:
    with _readable(source):
        if source.suffix == ".parquet":
            names = list(pa.parquet.read_schema(source).names)
        else:
            with pa.csv.open_csv(source, read_options=pa.csv.ReadOptions(block_size=1 << 20)) as reader:
                names = list(reader.schema.names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise invalid(f"the column {repeated[0]} stands twice in {source.name}.", "Rename one of them.")
    return names


def _open_batches(source: Path, names: list[str], unit: str | None) -> Iterator[pa.RecordBatch]:
    present = _header(source)
    wanted = [*names, *([unit] if unit is not None and unit not in names else [])]
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
        if isinstance(error, pa.ArrowInvalid | pa.ArrowTypeError | OSError | UnicodeDecodeError):
            raise invalid(
                f"{self.source.name} cannot be read as a {self.source.suffix[1:].upper()} table "
                f"with a header ({type(error).__name__}).",
                "Check that it is complete, UTF-8 and has one header line.",
            ) from None


def _encode(coding: Coding, values: pa.Array) -> tuple[Codes, dict[str, int]]:
    """Codes of one batch of one column, and how many rows break which rule."""
    attribute, values = coding.attribute, _decoded(values)
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    broken: dict[str, int] = {}
    if isinstance(attribute, CategoricalAttribute):
        codes, outside = _encode_categories(coding, values)
    else:
        codes, outside, not_a_number = _encode_range(coding, values)
        if (not_a_number & ~is_null).any():
            kind = "whole number" if isinstance(attribute, IntegerAttribute) else "number"
            broken[f"not a {kind}"] = int((not_a_number & ~is_null).sum())
    outside &= ~is_null
    if outside.any() and attribute.out_of_domain == "refuse":
        broken["outside the domain"] = int(outside.sum())
    if is_null.any() and not attribute.nullable:
        broken["missing, but not nullable"] = int(is_null.sum())
    if attribute.nullable:
        as_null = is_null | outside if attribute.out_of_domain == "null" else is_null
        codes[as_null] = coding.null_code
    return codes, broken


def _encode_categories(coding: Coding, values: pa.Array) -> tuple[Codes, np.ndarray]:
    assert isinstance(coding.attribute, CategoricalAttribute)
    positions = pc.index_in(_to_texts(values), value_set=pa.array(coding.attribute.categories))
    outside = positions.is_null().to_numpy(zero_copy_only=False)
    codes = positions.fill_null(0).to_numpy(zero_copy_only=False).astype(coding.dtype)
    return codes, outside


def _encode_range(coding: Coding, values: pa.Array) -> tuple[Codes, np.ndarray, np.ndarray]:
    numbers = _to_numbers(values)
    not_a_number = ~np.isfinite(numbers)
    attribute = coding.attribute
    if isinstance(attribute, IntegerAttribute):
        not_a_number |= np.where(np.isfinite(numbers), numbers != np.rint(numbers), False)
    assert not isinstance(attribute, CategoricalAttribute)
    low, high = float(attribute.min), float(attribute.max)
    numbers = np.where(not_a_number, low, numbers)
    outside = (numbers < low) | (numbers > high)
    return encode_numbers(coding, np.clip(numbers, low, high)), outside, not_a_number


def _to_numbers(values: pa.Array) -> np.ndarray:
    """Doubles, with NaN where there is no number."""
    if _is_number(values.type):
        numbers = values.cast(pa.float64(), safe=False)  # beyond 2**53 is outside of every domain, rounded or not
        return np.asarray(numbers.fill_null(float("nan")).to_numpy(zero_copy_only=False))
    trimmed = pc.utf8_trim_whitespace(_to_texts(values))
    looks_right = pc.match_substring_regex(trimmed, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    cleaned = pc.if_else(looks_right.fill_null(False), pc.replace_substring_regex(trimmed, r"^\+", ""), None)
    return np.asarray(cleaned.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False))


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _to_texts(values: pa.Array) -> pa.Array:
    """Texts, and null for all where the type has none: Arrow's own errors quote a value, so none may come out."""
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return pa.nulls(len(values), pa.string())


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _check_unit(unit: str, parts: list[pa.Array]) -> dict[tuple[str, str], int]:
    ids = pa.chunked_array(parts) if parts else pa.chunked_array([pa.array([], pa.string())])
    misfits: dict[tuple[str, str], int] = {}
    repeated = len(ids) - ids.null_count - pc.count_distinct(ids, mode="only_valid").as_py()
    if repeated:
        misfits[unit, "the unit of privacy stands in more than one row"] = repeated
    if ids.null_count:
        misfits[unit, "the unit of privacy is missing"] = ids.null_count
    return misfits


def save_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Writes the columns for the owner alone, durably; a folder left by a crash is replaced."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True, mode=0o700)
        for index, column in enumerate(snapshot.columns):
            np.save(folder / f"{index:04}.npy", column, allow_pickle=False)
        sync_files(folder)
        sync_folder(folder.parent)
    except OSError as error:
        drop_snapshot(folder)
        raise SynodError(
            Code.STORAGE,
            f"the snapshot of the table cannot be kept ({type(error).__name__}).",
            "Check free disk space, the volume and its permissions; nothing was spent.",
        ) from None


def load_snapshot(folder: Path, study: Study, sealed: bytes, *, seal: Callable[[bytes], bytes]) -> Snapshot:
    """Maps the columns back, and refuses them if they are not what was approved; the study then waits, others go on."""
    try:
        names = [folder / f"{index:04}.npy" for index in range(len(study.attributes))]
        snapshot = Snapshot(tuple(np.load(name, mmap_mode="r", allow_pickle=False) for name in names))
    except (OSError, ValueError, EOFError):
        raise SynodError(
            Code.NOT_READY,
            "the snapshot of the approved table is gone.",
            "Restore it from a backup, or revoke the study.",
        ) from None
    if seal(snapshot.digest()) != sealed:
        raise SynodError(
            Code.NOT_READY,
            "the snapshot is not the table that was approved.",
            "Restore it, or revoke the study.",
        )
    return snapshot


def drop_snapshot(folder: Path) -> None:
    """Removes a snapshot that is no longer needed."""
    shutil.rmtree(folder, ignore_errors=True)
