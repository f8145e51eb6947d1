"""The released answers: every number that epsilon paid for, in one Parquet file that anybody can open.

A row for each number: the round, whose answer it is (nobody's where all parties were added up), the table that it is
in, what that is of, the number's place in it, the number, and the deviation of the noise on it where noise was added.
All but the numbers follows from study and queries, and is compared when the file is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import Agreements, SumAgreements
from synod.common.protocol.queries.base import ClearQuery, SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals, Tables
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import Noise
from synod.common.protocol.queries.parents import Choice, ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import features_of, sizes_of
from synod.common.study.study import Study

ANSWERS_FILE = "answers.parquet"
GROUP_ROWS = 1 << 20
CLOSE = 1e-9  # deviations are floats, which another machine may round otherwise
TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("round", TEXT), ("party", TEXT), ("table", pa.int32()), ("of", TEXT), ("cell", pa.int64()),
        ("value", pa.int64()), ("deviation", pa.float64()),
    ]
)  # fmt: skip
WHOLE_NUMBERS = ("table", "cell", "value")
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The numbers of one answer in the order of the file, each with its table, its place in it, and which of `names`
    says what it is of.
    """

    tables: Whole
    cells: Whole
    values: Whole
    names: Sequence[str]
    places: Whole


def write_answers(path: Path, study: Study, answers: Iterator[tuple[Step, AnyQuery, Any]]) -> None:
    """Writes the roster's answers, in the order of the plan; one answer is in memory at a time."""
    plain = dict.fromkeys(WHOLE_NUMBERS, "DELTA_BINARY_PACKED")
    texts = [name for name in SCHEMA.names if name not in plain]
    with pa.parquet.ParquetWriter(
        path, SCHEMA, compression="zstd", use_dictionary=texts, column_encoding=plain
    ) as writer:
        for step, query, answer in answers:
            table = lay_out(step, query, study, answer)
            writer.write_table(table, row_group_size=GROUP_ROWS)


class ReleasedAnswers:
    """The answers of a release, read one at a time; whatever is not laid out as `write_answers` does it is refused.

    Guarantee: nothing in the file is free but the numbers of sums and of answers in the clear; the latter are checked
    as the curator checked them, and are the bytes that their party signed if `party_payloads` has their hash.
    """

    def __init__(self, path: Path, study: Study, queries: Mapping[str, AnyQuery]) -> None:
        self._study = study
        self._queries = queries
        try:
            self._file = pa.parquet.ParquetFile(path)
            schema, self._facts = self._file.schema_arrow, self._file.metadata
        except (OSError, ValueError, pa.ArrowException):
            raise check_failed(f"{ANSWERS_FILE} cannot be read as a table.") from None
        if not schema.equals(SCHEMA):
            raise check_failed(f"{ANSWERS_FILE} does not have the columns of released answers.")
        self._groups: dict[str, range] = {}
        first = 0
        for step in _answered(study, queries):
            last = first + _group_count(queries[step.label], study)
            self._groups[step.label] = range(first, last)
            first = last
        if self._facts.num_row_groups != first:
            raise check_failed(f"{ANSWERS_FILE} does not hold one answer to each query.")

    def read(self, label: str) -> Any:
        """The roster's answer to the query of one round, as a recipe gets it."""
        step, query = plan_study(self._study).step(label), self._queries[label]
        groups = self._groups[label]
        rows = [self._facts.row_group(group).num_rows for group in groups]
        many = _count_numbers(query, self._study)
        if max(rows) > GROUP_ROWS or many not in (None, sum(rows)):
            raise _wrong(label, "it does not have as many numbers as were asked for")
        try:
            table = self._file.read_row_groups(list(groups))
            table.validate(full=True)
        except (OSError, ValueError, pa.ArrowException):
            raise check_failed(f"{ANSWERS_FILE} cannot be read as a table.") from None
        if any(table[name].null_count for name in WHOLE_NUMBERS):
            raise _wrong(label, "a number is missing")
        tables, cells, values = (table[name].to_numpy().astype(np.int64) for name in WHOLE_NUMBERS)
        try:
            answer = KINDS[query.kind].read(query, self._study, tables, cells, values)
            for party, payload in party_payloads(query, step, answer):
                query.read_answer(payload, self._study, party)
        except SynodError as error:
            raise _wrong(label, error.sentence.rstrip(".")) from None
        except (LookupError, OverflowError, TypeError, ValueError):
            raise _wrong(label, "a number is none that such an answer can have") from None
        expected = lay_out(step, query, self._study, answer)
        for start in range(0, max(table.num_rows, expected.num_rows), GROUP_ROWS):
            _compare(label, table.slice(start, GROUP_ROWS), expected.slice(start, GROUP_ROWS))
        return answer


def _answered(study: Study, queries: Mapping[str, AnyQuery]) -> list[Step]:
    """The steps in the order of the plan; one that was skipped, because its party was lost, has no query."""
    return [step for step in plan_study(study).steps if step.label in queries]


def party_payloads(query: AnyQuery, step: Step, answer: Any) -> Iterator[tuple[str, bytes]]:
    """The bytes that each party sent, where they travelled in the clear; none for an encrypted sum."""
    if isinstance(query, Synthesize):
        ends = np.cumsum(query.rows)[:-1]
        parts = zip(*(np.split(column, ends) for column in answer), strict=True)
        for place, (party, part) in enumerate(zip(step.answerers, parts, strict=True)):
            if not query.present or place in query.present:
                yield party, query.write_answer(list(part))
    elif isinstance(query, ClearQuery):
        (party,) = step.answerers
        yield party, query.write_answer(answer)


def _wrong(label: str, why: str) -> SynodError:
    return check_failed(f"the released answer to {label} is not sound: {why}.")


def _compare(label: str, found: pa.Table, expected: pa.Table) -> None:
    """Raises unless everything beside the numbers is what it has to be."""
    for name in SCHEMA.names:
        one, other = (_plain(table[name]) for table in (found, expected))
        same = one.equals(other)
        if name == "deviation" and not same and one.is_null().equals(other.is_null()):
            same = np.allclose(one.drop_null().to_numpy(), other.drop_null().to_numpy(), rtol=CLOSE, atol=0)
        if not same:
            raise _wrong(label, f"its column {name} is not that of the query")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as such: how their dictionary is ordered says nothing."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def lay_out(step: Step, query: AnyQuery, study: Study, answer: Any) -> pa.Table:
    """An answer as rows of the file."""
    numbers = KINDS[query.kind].lay(query, study, answer)
    many = len(numbers.values)
    deviations = _deviations(query, step, study)
    whose = _parties(query, many)
    names = pa.DictionaryArray.from_arrays(pa.array(numbers.places, pa.int32()), pa.array(numbers.names, pa.string()))
    own = pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(whose, 0), pa.int32(), mask=whose < 0), pa.array(step.answerers, pa.string())
    )
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(many, np.int32)), pa.array([step.label]))
    columns = [
        labels,
        own,
        pa.array(numbers.tables, pa.int32()),
        names,
        pa.array(numbers.cells, pa.int64()),
        pa.array(numbers.values, pa.int64()),
        pa.nulls(many, pa.float64()) if deviations is None else pa.array(deviations, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _parties(query: AnyQuery, many: int) -> Whole:
    """Whose each number is, by the place among the step's answerers; -1 where all were added up."""
    if isinstance(query, Synthesize):
        rows = np.repeat(np.arange(len(query.rows)), query.rows)
        return np.tile(rows, many // max(1, len(rows)))
    return np.full(many, -1 if isinstance(query, SumQuery) else 0, dtype=np.int64)


def _deviations(query: AnyQuery, step: Step, study: Study) -> NDArray[np.float64] | None:
    """The standard deviation of the noise on each number; None where there is no noise that was added."""
    runs: tuple[Noise, ...] = ()
    if isinstance(query, SumQuery):
        runs = query.terms(step, study).runs
    elif isinstance(query, LocalMarginals):
        runs = query.runs(step, study)
    return np.sqrt(np.concatenate([run.variances() for run in runs])) if runs else None


def _count_numbers(query: AnyQuery, study: Study) -> int | None:
    """How many numbers an answer has; None where the answer itself decides."""
    if isinstance(query, ChooseParents):
        return None
    if isinstance(query, Synthesize):
        return sum(query.rows) * len(codings_of(study))
    return query.size(study).numbers


def _group_count(query: AnyQuery, study: Study) -> int:
    many = _count_numbers(query, study)
    return 1 if many is None else -(-many // GROUP_ROWS)


# One way to lay out and to read for each kind of query


def feature_names(study: Study) -> list[str]:
    """What the features are called in the file: attributes, bits of their codes, the highest first, or
    coarser levels of them.
    """
    names, features = [], features_of(study)
    for feature in features:
        name = study.attributes[feature.attribute].name
        bits = [other.bit for other in features if other.attribute == feature.attribute]
        if feature.level:
            name = _name_groups(name, feature.size)
        elif len(bits) > 1 and feature.bit is not None:
            name = f"{name} (bit {bits.index(feature.bit) + 1})"
        names.append(name)
    return names


def _name_groups(name: str, groups: int) -> str:
    return f"{name} (in {groups} groups)"


def _lay_tables(query: Tables, study: Study, answer: Sequence[Whole]) -> Numbers:
    names, sizes = feature_names(study), query.cells(study)
    entries = [*names, *(_name_groups(names[one.feature], one.size) for one in query.groupings)]
    tables = np.repeat(np.arange(len(sizes)), sizes)
    cells = np.concatenate([np.arange(size) for size in sizes])
    titles = [" x ".join(entries[entry] for entry in own) for own in query.sets]
    return Numbers(tables, cells, np.concatenate(answer), titles, tables)


def _read_sums(query: SumQuery[Any], study: Study, _tables: Whole, _cells: Whole, values: Whole) -> Any:
    return query.split(values, study)


def _read_tables(query: Tables, study: Study, _tables: Whole, _cells: Whole, values: Whole) -> Any:
    return query.split_tables(values, study)


def _lay_moments(query: SumMoments, study: Study, answer: Whole) -> Numbers:
    del query
    design, attributes = moment_design(study), study.attributes
    columns = ["1"]
    columns += [attributes[own.attribute].name + " (missing)" * (own.role == "missing") for own in design.signed]
    columns += [f"{attributes[own.attribute].name} (code {i})" for own in design.blocks for i in range(own.size)]
    firsts, seconds = np.nonzero(design.asked())
    titles = [f"{columns[a]} * {columns[b]}" for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True)]
    places = np.arange(len(answer))
    return Numbers(np.zeros_like(places), places, answer, titles, places)


def _lay_agreements(query: SumAgreements, study: Study, answer: Agreements) -> Numbers:
    """Ones are a table of their own, the first; each split is another."""
    names = feature_names(study)
    two_valued = [name for name, size in zip(names, sizes_of(study), strict=True) if size == 2]
    ones, (splits, pairs) = len(answer.ones), answer.pairs.shape
    firsts, seconds = np.triu_indices(len(names), 1)
    agreeing = [f"{names[a]} = {names[b]}" for a, b in zip(firsts.tolist(), seconds.tolist(), strict=True)]
    titles = [*(f"{name} = 1" for name in two_valued[:ones]), *agreeing]
    tables = np.concatenate([np.zeros(ones, np.int64), np.repeat(np.arange(splits), pairs) + (ones > 0)])
    cells = np.concatenate([np.arange(ones), np.tile(np.arange(pairs), splits)])
    places = np.concatenate([np.arange(ones), np.tile(np.arange(pairs), splits) + ones])
    return Numbers(tables, cells, query.join(answer), titles, places)


def _lay_choices(query: ChooseParents, study: Study, answer: Sequence[Choice]) -> Numbers:
    """A table for each draw: the feature, and then its parents."""
    del query
    chosen = [(feature, *parents) for feature, parents in answer]
    sizes = [len(own) for own in chosen]
    values = np.array([feature for own in chosen for feature in own], dtype=np.int64)
    cells = np.concatenate([np.arange(size) for size in sizes])
    return Numbers(np.repeat(np.arange(len(chosen)), sizes), cells, values, feature_names(study), values)


def _read_choices(_query: ChooseParents, _study: Study, tables: Whole, cells: Whole, values: Whole) -> list[Choice]:
    del tables
    starts = np.flatnonzero(cells == 0)[1:]
    return [(own[0], tuple(own[1:])) for own in (part.tolist() for part in np.split(values, starts))]


def _lay_rows(query: Synthesize, study: Study, answer: Sequence[Codes]) -> Numbers:
    rows, names = sum(query.rows), [attribute.name for attribute in study.attributes]
    tables = np.repeat(np.arange(len(names)), rows)
    values = np.concatenate([column.astype(np.int64) for column in answer])
    return Numbers(tables, np.tile(np.arange(rows), len(names)), values, names, tables)


def _read_rows(_query: Synthesize, study: Study, _tables: Whole, _cells: Whole, values: Whole) -> list[Codes]:
    """A number that no code has comes back as another one, and is found when the columns are compared."""
    codings = codings_of(study)
    columns = values.reshape(len(codings), -1)
    return [column.astype(coding.dtype) for column, coding in zip(columns, codings, strict=True)]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the answers to one kind of query are laid out, and read."""

    lay: Callable[[Any, Study, Any], Numbers]
    read: Callable[[Any, Study, Whole, Whole, Whole], Any]


KINDS: Mapping[QueryKind, Kind] = {
    QueryKind.SUM_MARGINALS: Kind(_lay_tables, _read_sums),
    QueryKind.SUM_MOMENTS: Kind(_lay_moments, _read_sums),
    QueryKind.SUM_AGREEMENTS: Kind(_lay_agreements, _read_sums),
    QueryKind.LOCAL_MARGINALS: Kind(_lay_tables, _read_tables),
    QueryKind.CHOOSE_PARENTS: Kind(_lay_choices, _read_choices),
    QueryKind.SYNTHESIZE: Kind(_lay_rows, _read_rows),
}
