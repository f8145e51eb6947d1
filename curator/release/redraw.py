"""Drawing a release's rows again: from the published model and the seed alone, on any machine.

It proves that the rows are what the model says and that nobody chose among draws after the seed was fixed. What the
model was fitted to is not checked here.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import check_failed
from synod.common.study.study import Study
from synod.curator.methods.base import publisher_of
from synod.curator.release.files import decode_table


def redraw_rows(folder: Path, study: Study, seed: int) -> str:
    """Draws the rows again and compares them with both tables; says what that proved, or why it was not done."""
    draw = publisher_of(study).draw
    if draw is None:
        return f"the rows were not drawn again: the model of {study.method.name} does not fix them"
    try:
        columns = draw(study, _read_model(folder, study), seed)
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        raise check_failed("model.json is not a model that rows can be drawn from.") from None
    expected = decode_table(study, columns, coins=Coins.public(seed, "values"))
    for name, found in _read_tables(folder, expected.schema).items():
        if not found.equals(expected):
            raise check_failed(f"the rows of {name} are not those that the model and the seed give.")
    return f"all {study.rows:,} rows are those that the model and the seed give"


def _read_model(folder: Path, study: Study) -> Any:
    document = json.loads((folder / "model.json").read_bytes())
    if document["method"] != study.method.name:
        raise ValueError("the model is another method's")
    return document["model"]


def _read_tables(folder: Path, schema: pa.Schema) -> dict[str, pa.Table]:
    """Both tables in the schema's types."""
    options = pa.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
    return {
        "synthetic.csv": pa.csv.read_csv(folder / "synthetic.csv", convert_options=options),
        "synthetic.parquet": pa.parquet.read_table(folder / "synthetic.parquet"),
    }
