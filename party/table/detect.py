"""Finds out how a CSV file is written, for `synod study draft` and `synod launch`: whoever holds the table decides.

Encoding and quoted newlines are looked for in all of the file; separator, decimal sign, null tokens and the order of
dates in its first 4 MiB. A party's daemon detects nothing: it reads a file as its configuration says.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import CsvFormat, Database
from synod.party.table.csv_source import COMPRESSED, NAMES, SEPARATORS, open_stream, table_ending
from synod.party.table.text import DateOrder

SAMPLE_BYTES = 4 << 20
CHUNK_BYTES = 1 << 20
MOST_RECORDS = 20_000
LEAST_AGREEING = 0.9
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
PLAIN_NULLS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan")
NULLS_AMONG_NUMBERS = (*PLAIN_NULLS, "None", "none", "-", "--", "?", ".", "na", "missing")
NUMBER = {sign: re.compile(rf"[+-]?[0-9]+([{sign}][0-9]+)?([eE][+-]?[0-9]+)?") for sign in (".", ",")}
FRACTION = {sign: re.compile(rf"[+-]?[0-9]*[{sign}][0-9]+") for sign in (".", ",")}
DAY_FIRST_OR_MONTH = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2[0-9]{4}([T ].*)?")
YEAR_FIRST = re.compile(r"[0-9]{4}([./-])[0-9]{1,2}\1[0-9]{1,2}([T ].*)?")
Columns = list[list[str]]


@dataclass(frozen=True, slots=True)
class Detected:
    """The format of a file; `is_order_open` where dates could have the day or the month first."""

    layout: CsvFormat
    is_order_open: bool = False


def detect_format(source: Path | Database) -> CsvFormat | None:
    """The format of a CSV file; None for what has types, and for what is no table's name, which its reader refuses."""
    found = detect(source)
    return found.layout if found else None


def detect(source: Path | Database) -> Detected | None:
    """The same, with what is still open. No error has anything of the content."""
    if isinstance(source, Database) or table_ending(source) in ("", ".parquet") or not source.is_file():
        return None
    try:
        return _detect(source)
    except (OSError, EOFError, UnicodeError, pa.ArrowException, csv.Error) as error:
        raise invalid(
            f"{source.name} cannot be read as a CSV table ({type(error).__name__}).", "Check that it is complete."
        ) from None


def _detect(source: Path) -> Detected:
    with source.open("rb") as file:
        start = file.read(4)
    found = next((name for magic, name in MAGIC.items() if start.startswith(magic)), "none")
    keys: dict[str, Any] = {"compression": found} if found != COMPRESSED.get(source.suffix.lower(), "none") else {}
    raw = CsvFormat(**keys)
    encoding = _find_encoding(source, raw)
    if encoding != "utf-8":
        keys["encoding"] = encoding
    if _has_quoted_newlines(source, raw, encoding):
        keys["quoted_newlines"] = True
    text = _read_sample(source, raw, encoding)
    keys["separator"], records = _find_separator(text)
    columns = _turn(records)
    if keys["separator"] != "," and _has_decimal_comma(columns):
        keys["decimal"] = ","
    keys["nulls"] = _find_nulls(columns, keys.get("decimal", "."))
    order, is_open = _find_date_order(columns, keys["nulls"])
    keys["date_order"] = order
    return Detected(CsvFormat(**keys), is_open)


def shown(layout: CsvFormat) -> dict[str, Any]:
    """What differs from a plain CSV file: the keys to write as `format`."""
    written: dict[str, Any] = layout.model_dump(mode="json", exclude_defaults=True)
    return written


def describe_format(layout: CsvFormat) -> str:
    """The same in words."""
    words = {
        "separator": f"separated by {NAMES.get(layout.separator, layout.separator)}",
        "encoding": layout.encoding,
        "decimal": "with decimal commas",
        "nulls": f"with {', '.join(layout.nulls)} for missing values",
        "compression": f"compressed by {layout.compression}",
        "quoted_newlines": "with newlines in quotes",
        "date_order": f"with dates in the order {layout.date_order}",
    }
    return ", ".join(words[key] for key in shown(layout))


def _chunks(source: Path, layout: CsvFormat) -> Iterator[bytes]:
    with open_stream(source, layout) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _find_encoding(source: Path, layout: CsvFormat) -> str:
    """UTF-8 if all of it is, UTF-16 if it begins with its mark, and else what Windows writes in the west."""
    utf8, is_utf8, has_controls, is_first = codecs.getincrementaldecoder("utf-8")(), True, False, True
    for chunk in _chunks(source, layout):
        if is_first and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        is_first = False
        is_utf8 = is_utf8 and _decodes(utf8, chunk)
        has_controls = has_controls or re.search(rb"[\x80-\x9f]", chunk) is not None
    is_utf8 = is_utf8 and _decodes(utf8, b"", final=True)
    return "utf-8" if is_utf8 else "cp1252" if has_controls else "iso-8859-1"


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _has_quoted_newlines(source: Path, layout: CsvFormat, encoding: str) -> bool:
    """Whether a line ends with an odd number of quotes before it: between two of them, that is."""
    quote, newline = (1, 2) if encoding == "utf-16" else (ord('"'), ord("\n"))
    before = 0
    for chunk in _chunks(source, layout):
        if encoding == "utf-16":
            chunk = chunk.replace(b"\x00", b"").replace(b'"', b"\x01").replace(b"\n", b"\x02")  # noqa: PLW2901
        signs = np.frombuffer(chunk, np.uint8)
        quotes = before + np.cumsum(signs == quote)
        if (quotes[signs == newline] % 2 == 1).any():
            return True
        before = int(quotes[-1]) % 2 if len(quotes) else before
    return False


def _read_sample(source: Path, layout: CsvFormat, encoding: str) -> str:
    """The beginning of the file, up to the end of a line where it is longer than the sample."""
    with open_stream(source, layout) as stream:
        start: bytes = stream.read(SAMPLE_BYTES)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(start).removeprefix("\ufeff")
    return text if len(start) < SAMPLE_BYTES else text[: text.rfind("\n") + 1]


def _find_separator(text: str) -> tuple[str, list[list[str]]]:
    """The separator with which most records have as many fields as the header, two or more; and the records."""
    best: tuple[float, int, str, list[list[str]]] = (0.0, 1, ",", [])
    for separator in SEPARATORS:
        records = _split(text, separator)
        fields = len(records[0]) if records else 0
        agreeing = sum(len(record) == fields for record in records) / max(1, len(records))
        if fields > 1 and agreeing >= LEAST_AGREEING and (agreeing, fields) > best[:2]:
            best = (agreeing, fields, separator, records)
    return best[2], best[3] or _split(text, ",")


def _split(text: str, separator: str) -> list[list[str]]:
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if record:
                records.append(record)
            if len(records) > MOST_RECORDS:
                break
    except csv.Error:  # a field of great length, which a wrong separator may make
        return []
    return records


def _turn(records: Sequence[Sequence[str]]) -> Columns:
    """The columns below the header, without what is empty."""
    fields = len(records[0]) if records else 0
    whole = [record for record in records[1:] if len(record) == fields]
    return [[record[place].strip() for record in whole if record[place].strip()] for place in range(fields)]


def _has_decimal_comma(columns: Columns) -> bool:
    """Whether more columns of numbers have fractions after a comma than after a point."""
    found = dict.fromkeys((".", ","), 0)
    for column in columns:
        values = [value for value in column if value not in NULLS_AMONG_NUMBERS]
        for sign in found:
            matching = sum(NUMBER[sign].fullmatch(value) is not None for value in values)
            fractions = sum(FRACTION[sign].fullmatch(value) is not None for value in values)
            found[sign] += fractions > 0 and matching >= LEAST_AGREEING * len(values)
    return found[","] > found["."]


def _find_nulls(columns: Columns, decimal: str) -> tuple[str, ...]:
    """Tokens that stand for a missing value: the usual ones anywhere, others only in columns of numbers or dates."""
    found: dict[str, None] = {}
    for column in columns:
        tokens = {value for value in column if value in NULLS_AMONG_NUMBERS}
        rest = [value for value in column if value not in tokens]
        is_numeric = bool(rest) and (_all(NUMBER[decimal], rest) or _all(YEAR_FIRST, rest))
        is_numeric = is_numeric or (bool(rest) and _all(DAY_FIRST_OR_MONTH, rest))
        known = NULLS_AMONG_NUMBERS if is_numeric else PLAIN_NULLS
        found |= {token: None for token in known if token in tokens}
    return tuple(found)


def _all(pattern: re.Pattern[str], values: list[str]) -> bool:
    return sum(pattern.fullmatch(value) is not None for value in values) >= LEAST_AGREEING * len(values)


def _find_date_order(columns: Columns, nulls: Sequence[str]) -> tuple[DateOrder, bool]:
    """The order of day, month and year, and whether it is still open; points are written where the day is first."""
    orders: set[Literal["dmy", "mdy"]] = set()
    is_open = False
    for column in columns:
        values = [value for value in column if value not in nulls]
        if not values or not _all(DAY_FIRST_OR_MONTH, values):
            continue
        found = [match for match in map(DAY_FIRST_OR_MONTH.fullmatch, values) if match]
        if any(int(match[1]) > 12 for match in found) or all(match[2] == "." for match in found):
            orders.add("dmy")
        elif any(int(match[3]) > 12 for match in found):
            orders.add("mdy")
        else:
            is_open = True
    if len(orders) == 1:
        return next(iter(orders)), False
    return "ymd", is_open or len(orders) > 1
