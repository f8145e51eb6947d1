"""Values of a database's own types are encoded as those of a file: the same codes, the same misfits, row by row.

Each case has the values as SQL writes them beside the texts that a CSV file has for them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from synod.common.runtime.settings import CsvFormat, Database
from synod.common.study.encoding import codings_of
from synod.party.table.encode import _encode
from synod.party.table.source import open_batches
from synod.party.table.text import decoded
from tests.support.databases import Server, duckdb_table
from tests.support.sources import study_of

Maker = Callable[[str, Sequence[str]], Database]
Case = tuple[dict[str, Any], str, dict[str, str]]
COLOUR = {
    "name": "v",
    "type": "categorical",
    "categories": ["red", "Red", "blå", "0042", "1.50", "-0"],
    "nullable": True,
}
WHOLE = {"name": "v", "type": "integer", "min": -10, "max": 256, "nullable": True}
REAL = {"name": "v", "type": "real", "min": "-1", "max": "3", "bins": 8, "nullable": True}
DATE = {"name": "v", "type": "date", "min": "2026-01-28", "max": "2026-02-08", "bins": "day", "nullable": True}
TRUTH = {"name": "v", "type": "boolean", "nullable": True}
TEXTS = {"'red'": "red", "'Red'": "Red", "'RED'": "RED", "'blå'": "blå", "'0042'": "0042", "NULL": ""}
EDGES = {
    "2.5": "2.5", "0.5": "0.5", "1.5": "1.5", "-0.0": "-0.0", "0.125": "0.125", "3": "3", "-1": "-1",
    "3.0000001": "3.0000001", "-1.0000001": "-1.0000001", "0.3": "0.3", "0.7": "0.7", "NULL": "",
}  # fmt: skip
BOTH: dict[str, Case] = {
    "texts": (COLOUR, "varchar", TEXTS | {"'red '": '"red "', "' red'": '" red"'}),
    "small whole numbers": (WHOLE, "smallint", {"0": "0", "256": "256", "257": "257", "-10": "-10", "NULL": ""}),
    "large whole numbers": (
        WHOLE,
        "bigint",
        {"9007199254740993": "9007199254740993", "-9223372036854775807": "-9223372036854775807", "7": "7"},
    ),
    "doubles": (REAL, "double precision", EDGES),
    "doubles as whole numbers": (WHOLE, "double precision", EDGES),
    "what is no number": (
        REAL,
        "double precision",
        {"'NaN'": "NaN", "'Infinity'": "Infinity", "'-Infinity'": "-Infinity", "1e308": "1e308", "1": "1"},
    ),
    "decimals": (REAL, "numeric(18, 7)", EDGES),
    "decimals as whole numbers": (WHOLE, "numeric(18, 2)", {"2.50": "2.50", "2.00": "2.00", "0.49": "0.49"}),
    "decimals as texts": (COLOUR, "numeric(5, 2)", {"1.5": "1.50", "42": "42.00"}),
    "dates": (DATE, "date", {"'2026-01-31'": "2026-01-31", "'2026-01-27'": "2026-01-27", "NULL": ""}),
    "dates of no calendar": (
        DATE,
        "date",
        {"'infinity'": "infinity", "'-infinity'": "-infinity", "'2026-02-05'": "2026-02-05"},
    ),
    "timestamps": (
        DATE,
        "timestamp",
        {"'2026-01-31 23:59:59.999999'": "2026-01-31 23:59:59.999999", "'2026-02-01 00:00'": "2026-02-01 00:00"},
    ),
    "moments, as UTC": (
        DATE,
        "timestamp with time zone",
        {"'2026-02-01 00:30+02'": "2026-01-31 22:30", "'2026-01-31 23:30-01'": "2026-02-01 00:30", "NULL": ""},
    ),
    "booleans": (TRUTH, "boolean", {"true": "true", "false": "false", "NULL": ""}),
    "booleans as whole numbers": (TRUTH, "integer", {"1": "1", "0": "0", "2": "2", "NULL": ""}),
    "booleans as texts": (TRUTH, "varchar", {"'Yes'": "Yes", "'n'": "n", "'T'": "T", "'perhaps'": "perhaps"}),
    "numbers as texts": (REAL, "varchar", {"'1.5'": "1.5", "' 2 '": '" 2 "', "'1,5'": '"1,5"', "'0x1'": "0x1"}),
    "times are no dates": (DATE, "time", {"'10:30'": "10:30"}),
    "identifiers": (COLOUR, "uuid", {"'6ecd8c99-4036-403d-bf84-cf8400f67836'": "6ecd8c99-4036-403d-bf84-cf8400f67836"}),
}
POSTGRESQL: dict[str, Case] = {
    "texts of a fixed length": (COLOUR, "char(6)", TEXTS | {"'red '": "red"}),
    "one sign": (COLOUR, '"char"', {"'x'": "x"}),
    "decimals of any precision": (
        REAL,
        "numeric",
        {
            "'NaN'": "NaN",
            "2.99999999999999999999999999999": "2.99999999999999999999999999999",
            "3.00000000000000000000000000001": "3.00000000000000000000000000001",
            "1e40": "1" + 40 * "0",
            "0.5": "0.5",
        },
    ),
    "decimals without end": (REAL, "numeric", {"'Infinity'": "Infinity", "'-Infinity'": "-Infinity"}),
    "years before and far after": (
        DATE,
        "date",
        {"'0044-03-15 BC'": "0044-03-15 BC", "'294000-01-01'": "294000-01-01", "'2026-02-03'": "2026-02-03"},
    ),
    "timestamps without end": (DATE, "timestamptz", {"'infinity'": "infinity", "'2026-02-03 00:00+00'": "2026-02-03"}),
    "money is no number": (REAL, "money", {"'1.50'": "$1.50"}),
    "objects' numbers": (WHOLE, "oid", {"4294967295": "4294967295", "7": "7"}),
    "lists": (COLOUR, "text[]", {"'{red}'": "{red}"}),
}
DUCKDB: dict[str, Case] = {
    "very large whole numbers": (
        WHOLE,
        "hugeint",
        {"170141183460469231731687303715884105727": "1" + 38 * "0", "7": "7"},
    ),
    "unsigned whole numbers": (WHOLE, "ubigint", {"18446744073709551615": "18446744073709551615", "7": "7"}),
    "one of some texts": (COLOUR, "enum('red', 'RED')", {"'red'": "red", "'RED'": "RED", "NULL": ""}),
    "days without a zone": (DATE, "timestamp_ns", {"'2026-01-31 23:59:59.999999999'": "2026-01-31 23:59:59.9"}),
    "lists": (COLOUR, "varchar[]", {"['red']": "[red]"}),
}
VARIANTS: tuple[dict[str, Any], ...] = ({}, {"nullable": False}, {"out_of_domain": "clip"}, {"out_of_domain": "null"})


def make_table(make: Maker, cases: Sequence[Case]) -> Database:
    """All cases as columns v0, v1, ... of one table, whose rows have a number; short ones go on with nulls."""
    height = max(len(values) for _, _, values in cases)
    columns = ", ".join(["n integer", *(f"v{place} {kind}" for place, (_, kind, _) in enumerate(cases))])
    filled = [[*values, *["NULL"] * (height - len(values))] for _, _, values in cases]
    return make(columns, [", ".join([str(n), *row]) for n, row in enumerate(zip(*filled, strict=True))][::-1])


def encode(values: pa.Array, attribute: dict[str, Any]) -> tuple[list[int], dict[str, list[bool]]]:
    """Codes and broken rules, row by row; where a rule is broken, no code is looked at."""
    (coding,) = codings_of(study_of(len(values), attribute))
    codes, broken = _encode(coding, decoded(values), CsvFormat())
    fits = ~np.any([np.zeros(len(values), bool), *broken.values()], axis=0)
    return np.where(fits, codes, 0).tolist(), {rule: where.tolist() for rule, where in broken.items()}


def compare(make: Maker, cases: dict[str, Case], tmp_path: Path) -> None:
    source = make_table(make, list(cases.values()))
    names = ["n", *(f"v{place}" for place in range(len(cases)))]
    table = pa.Table.from_batches(open_batches(source, names)).sort_by("n")
    for place, (title, (attribute, kind, values)) in enumerate(cases.items()):
        path = tmp_path / "table.csv"
        path.write_text("\n".join(["v,w", *(f"{text}," for text in values.values())]) + "\n", encoding="utf-8")
        texts = pa.Table.from_batches(open_batches(path, ["v"]))["v"].combine_chunks()
        typed = table[f"v{place}"].combine_chunks().slice(0, len(values))
        for variant in VARIANTS:
            if "out_of_domain" in variant and attribute["type"] in ("categorical", "boolean"):
                continue
            asked = attribute | variant
            assert encode(typed, asked) == encode(texts, asked), (title, kind, variant)


def test_values_of_duckdb(tmp_path: Path) -> None:
    compare(lambda columns, values: duckdb_table(tmp_path, columns, values), BOTH | DUCKDB, tmp_path)


def test_values_of_postgresql(tmp_path: Path, postgresql: Server) -> None:
    compare(postgresql.table, BOTH | POSTGRESQL, tmp_path)
