"""Drawing a release's rows again: from the published model and the seed alone, on any machine.

It proves that the rows are what the model says and that nobody chose among draws after the seed was fixed. What the
model was fitted to is not checked here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from synod.common.privacy.coins import Coins
from synod.common.protocol.manifest import Verdict, verify_release
from synod.common.protocol.trust import Trust
from synod.common.runtime.errors import check_failed
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.study.study import Study
from synod.curator.methods.base import publisher_of
from synod.curator.release.files import decode_table

LARGEST_MODEL_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class CheckedRelease:
    """What verification proved, and what drawing the rows again did; `drawn` is None where no model fixes them."""

    verdict: Verdict
    drawn: str | None

    @property
    def lines(self) -> tuple[str, ...]:
        """Every check that holds."""
        return (*self.verdict.lines, self.drawn) if self.drawn else self.verdict.lines

    @property
    def unproven(self) -> tuple[str, ...]:
        """What none of the checks says."""
        rows = f"that the rows follow from the model: that of {self.verdict.study.method.name} does not fix them"
        return self.verdict.unproven if self.drawn else (rows, *self.verdict.unproven)


def check_release(folder: Path, trust: Trust | None) -> CheckedRelease:
    """All checks of a release: `verify_release`, and then `redraw_rows`; raises at the first that does not hold."""
    verdict = verify_release(folder, trust)
    return CheckedRelease(verdict, redraw_rows(folder, verdict.study, verdict.seed))


def redraw_rows(folder: Path, study: Study, seed: int) -> str | None:
    """Draws the rows again, compares them with both tables, and says what that proved; None where the method's model
    does not fix the rows, so that nothing is proven.

    Raises:
        SynodError: the model is not sound, or a table does not hold the rows that it gives.
    """
    draw = publisher_of(study).draw
    if draw is None:
        return None
    columns = draw(study, _read_model(folder, study), seed)
    expected = decode_table(study, columns, coins=Coins.public(seed, "values"))
    for name, read in {"synthetic.csv": _read_csv, "synthetic.parquet": _read_parquet}.items():
        try:
            is_same = read(folder / name, expected.schema).equals(expected)
        except (OSError, pa.ArrowException):
            raise check_failed(f"{name} cannot be read as a table of the study.") from None
        if not is_same:
            raise check_failed(f"the rows of {name} are not those that the model and the seed give.")
    return f"all {study.rows:,} rows are those that the model and the seed give"


def _read_model(folder: Path, study: Study) -> Any:
    try:
        document = read_json_file(folder / "model.json", LARGEST_MODEL_BYTES)
    except OSError:
        raise check_failed("model.json cannot be read.") from None
    except DocumentError as error:
        raise check_failed(f"model.json {error.reason}.") from None
    if not isinstance(document, dict) or document.get("method") != study.method.name or "model" not in document:
        raise check_failed(f"model.json does not hold a model of {study.method.name}.")
    return document["model"]


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """The table in the schema's types; a row of one missing value is an empty line."""
    options = pa.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
    parsing = pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return pa.csv.read_csv(path, parse_options=parsing, convert_options=options)


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    del schema
    return pa.parquet.read_table(path)
