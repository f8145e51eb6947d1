"""All checks of a release: its signatures, its rows drawn again from the model and the seed, and its method run again.

Drawing rows again proves that they are what the model says and that nobody chose among draws after the seed was fixed.
That the model follows from the released answers is checked in rerun.py.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from synod.common.privacy.coins import Coins
from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import Verdict, verify_release
from synod.common.protocol.queries.rows import Synthesize
from synod.common.protocol.trust import Trust
from synod.common.runtime.errors import check_failed
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, publisher_of
from synod.curator.release.files import CSV_FILE, MODEL_FILE, PARQUET_FILE, decode_table
from synod.curator.release.rerun import Found, check_sums, rerun_recipe
from synod.curator.release.versions import use_one_thread

LARGEST_MODEL_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class CheckedRelease:
    """What verification proved, and what it could not."""

    verdict: Verdict
    found: tuple[Found, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Every check that holds."""
        return (*self.verdict.lines, *(line for one in self.found for line in one.lines))

    @property
    def unproven(self) -> tuple[str, ...]:
        """What none of the checks says."""
        return (*(line for one in self.found for line in one.unproven), *self.verdict.unproven)


def check_release(folder: Path, trust: Trust | None, *, recompute: bool = True) -> CheckedRelease:
    """All checks of a release; raises at the first that does not hold.

    1. `verify_release`; 2. the released numbers agree with the row counts and each other; 3. the rows are those that
    model and seed give, or that the parties drew and signed; 4. both tables hold the same rows; 5. the model is that of
    the signed query, where parties drew from it; 6. with `recompute`, the method run again gives all of it.
    """
    use_one_thread()
    # 1
    verdict = verify_release(folder, trust)
    study, model = verdict.study, read_model(folder, verdict.study)
    # 2
    found = [check_sums(folder, verdict)]
    # 3
    drawn = redraw_rows(folder, study, verdict.seed) or _compare_signed_rows(folder, verdict)
    # 4
    _check_both_tables(folder, study)
    found.append(Found((*([drawn] if drawn else []), f"{CSV_FILE} and {PARQUET_FILE} hold the same rows")))
    # 5
    found.append(_check_signed_model(verdict, model))
    # 6
    if recompute:
        again = partial(_compare_recipe_rows, folder, study, verdict.seed) if drawn is None else lambda _: None
        found.append(rerun_recipe(folder, verdict, model, again))
    else:
        published = "queries, model and report" if drawn else "queries, model, rows and report"
        found.append(Found((), (f"that {published} follow from the released answers, which was not computed again",)))
    return CheckedRelease(verdict, tuple(found))


def redraw_rows(folder: Path, study: Study, seed: int) -> str | None:
    """Draws the rows again, compares them with both tables, and says what that proved; None where the method's model
    does not fix the rows, so that nothing is proven.

    Raises:
        SynodError: the model is not sound, or a table does not hold the rows that it gives.
    """
    draw = publisher_of(study).draw
    if draw is None:
        return None
    _compare_rows(folder, study, draw(study, read_model(folder, study), seed), seed, "the model and the seed give")
    return f"all {study.rows:,} rows are those that the model and the seed give"


def _compare_signed_rows(folder: Path, verdict: Verdict) -> str | None:
    """The rows beside those that the parties drew, where they did; their hashes are compared already."""
    study = verdict.study
    for label, query in verdict.queries.items():
        if isinstance(query, Synthesize):
            columns = ReleasedAnswers(folder / ANSWERS_FILE, study, verdict.queries).read(label)
            _compare_rows(folder, study, columns, verdict.seed, "the parties drew and signed")
            return f"all {study.rows:,} rows are those that the parties drew and signed"
    return None


def _compare_recipe_rows(folder: Path, study: Study, seed: int, publication: Publication) -> str:
    """The rows beside those that the method drew when it was run again."""
    _compare_rows(folder, study, publication.columns, seed, f"{study.method.name} gives for the released answers")
    return f"all {study.rows:,} rows"


def _compare_rows(folder: Path, study: Study, columns: list[Codes], seed: int, whose: str) -> None:
    expected = decode_table(study, columns, coins=Coins.public(seed, "values"))
    for name in READERS:
        if not _read_table(folder, name, expected.schema).equals(expected):
            raise check_failed(f"the rows of {name} are not those that {whose}.")


def _check_both_tables(folder: Path, study: Study) -> None:
    nothing = [np.zeros(0, dtype=coding.dtype) for coding in codings_of(study)]
    schema = decode_table(study, nothing, coins=Coins.public(0, "values")).schema
    one, other = (_read_table(folder, name, schema) for name in READERS)
    if not one.equals(other):
        raise check_failed(f"{CSV_FILE} and {PARQUET_FILE} do not hold the same rows.")
    if one.num_rows != study.rows:
        raise check_failed(f"{CSV_FILE} does not have as many rows as the study.")


def _check_signed_model(verdict: Verdict, model: Any) -> Found:
    for query in verdict.queries.values():
        if isinstance(query, Synthesize):
            if model != query.model.to_json():
                raise check_failed(f"{MODEL_FILE} is not the model of the query that the parties answered.")
            return Found((f"{MODEL_FILE} is the model of the query that the parties answered",))
    return Found()


def read_model(folder: Path, study: Study) -> Any:
    """The model of a release, which is nothing but that."""
    try:
        document = read_json_file(folder / MODEL_FILE, LARGEST_MODEL_BYTES)
    except OSError:
        raise check_failed(f"{MODEL_FILE} cannot be read.") from None
    except DocumentError as error:
        raise check_failed(f"{MODEL_FILE} {error.reason}.") from None
    is_model = isinstance(document, dict) and document.keys() == {"method", "model"}
    if not is_model or document["method"] != study.method.name:
        raise check_failed(f"{MODEL_FILE} does not hold a model of {study.method.name}.")
    return document["model"]


def _read_table(folder: Path, name: str, schema: pa.Schema) -> pa.Table:
    try:
        return READERS[name](folder / name, schema)
    except (OSError, pa.ArrowException):
        raise check_failed(f"{name} cannot be read as a table of the study.") from None


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """The table in the schema's types; a row of one missing value is an empty line."""
    options = pa.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True)
    parsing = pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return pa.csv.read_csv(path, parse_options=parsing, convert_options=options)


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    del schema
    return pa.parquet.read_table(path)


READERS = {CSV_FILE: _read_csv, PARQUET_FILE: _read_parquet}
