"""`synod study draft`: a first schema out of a table's header and types, for a person to edit.

Reads real rows, so its output is not private: the domains that it proposes must be replaced by public knowledge
before the study leaves the house, and the draft says so.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import yaml

from synod.common.runtime.errors import invalid
from synod.party.table.source import read_header

MOST_CATEGORIES = 40
TEMPLATE = Path(__file__).with_name("draft.yaml")


def draft_study(source: Path, unit: str | None = None) -> str:
    """A study as YAML text, with TODO where only a person can decide. `unit` is the column that tells persons apart: it
    is no part of the schema, and says how many rows a person has.
    """
    names = read_header(source)
    if unit is not None and unit not in names:
        raise invalid(f"{source.name} has no column {unit!r}.", "Check --unit.")
    table = pa.parquet.read_table(source) if source.suffix == ".parquet" else _read_csv(source)
    opening = TEMPLATE.read_text(encoding="utf-8").replace("SOURCE", source.name)
    drafted: dict[str, object] = {} if unit is None else {"max_rows_per_unit": _most_rows(table.column(unit))}
    drafted["schema"] = [_draft_attribute(name, table.column(name)) for name in table.column_names if name != unit]
    return opening + yaml.safe_dump(drafted, sort_keys=False, allow_unicode=True)


def _most_rows(persons: pa.ChunkedArray) -> int:
    """How many rows the person with the most has; rows of nobody are not counted, and a party would refuse them."""
    return max(pc.value_counts(persons.drop_null()).field("counts").to_pylist(), default=1)


def _read_csv(source: Path) -> pa.Table:
    """Numbers as numbers, and all else as the texts that a party's reader will meet; only an empty field is missing."""
    options = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    schema = pa.csv.read_csv(source, convert_options=options).schema
    texts = {field.name: pa.string() for field in schema if not _is_number(field.type)}
    options.column_types = texts
    return pa.csv.read_csv(source, convert_options=options)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _draft_attribute(name: str, column: pa.ChunkedArray) -> dict[str, object]:
    attribute: dict[str, object] = {"name": name}
    if _is_number(column.type):
        extremes = pc.min_max(column).as_py()
        kind = "integer" if pa.types.is_integer(column.type) else "real"
        attribute |= {"type": kind, "min": extremes["min"], "max": extremes["max"]}
    else:
        texts = sorted(text for text in column.cast(pa.string()).unique().to_pylist() if text is not None)
        too_many = len(texts) > MOST_CATEGORIES
        attribute |= {"type": "categorical", "categories": ["TODO: too many to list"] if too_many else texts}
    if column.null_count:
        attribute["nullable"] = True
    return attribute
