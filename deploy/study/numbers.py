"""The numbers of local tables, for remarks in a forecast. Reads real rows: what is said of them is not private."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import invalid
from synod.common.study.attributes import DaysAttribute
from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute
from synod.common.study.study import Study
from synod.deploy.evaluate.tables import find_real
from synod.party.table.detect import detect_format
from synod.party.table.encode import TableError, read_table
from synod.party.table.source import count_rows

Floats = NDArray[np.float64]
FINEST_LEVELS = 2**24
NOTE = "These remarks come from real rows. They are NOT private: keep them where the rows are."


def read_numbers(paths: Sequence[Path], study: Study) -> dict[str, Floats]:
    """The values of each numeric attribute in these tables, below each other and without the missing ones; an attribute
    whose public range is one value is left out.
    """
    codings = [_finest(coding) for coding in codings_of(study)]
    parts = [_read_one(source, codings) for path in paths for source in find_real(path)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if len(columns[0]) == 0:
        raise invalid(f"{paths[0]} has no rows.", "There is nothing to look at.")
    return {c.attribute.name: _decode(c, codes) for c, codes in zip(codings, columns, strict=True) if _is_number(c)}


def _is_number(coding: Coding) -> bool:
    is_date = isinstance(coding.attribute, DaysAttribute)
    return coding.attribute.is_numeric and not coding.is_constant and not is_date


def _finest(coding: Coding) -> Coding:
    """Levels at which values of their own stay apart, whatever the study's method needs: a spike is one value."""
    attribute = coding.attribute
    if not isinstance(attribute, CategoricalAttribute):
        attribute = attribute.model_copy(update={"edges": ()})
    if isinstance(attribute, IntegerAttribute):
        return Coding(attribute, min(max(attribute.max - attribute.min, 1), FINEST_LEVELS))
    return Coding(attribute, FINEST_LEVELS)


def _decode(coding: Coding, codes: Codes) -> Floats:
    attribute = coding.attribute
    assert not isinstance(attribute, CategoricalAttribute)
    present = codes[codes != coding.null_code] if attribute.nullable else codes
    low, span = float(attribute.min), float(attribute.max) - float(attribute.min)
    numbers: Floats = low + present.astype(np.float64) * (span / (coding.levels or 1))
    return numbers


def _read_one(source: Path, codings: Sequence[Coding]) -> tuple[Codes, ...]:
    layout = detect_format(source)
    try:
        rows = count_rows(source, layout)
        return read_table(source, codings, unit=None, expected_rows=rows, layout=layout).columns
    except TableError as error:
        first = error.misfits[0]
        raise invalid(
            f"{source.name} does not fit the study's schema: column {first.column}: {first.rule}.",
            "Check that table and study belong together.",
        ) from None
