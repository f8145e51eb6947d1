"""Marginals: what was released about some columns together, beside what the model says."""

from collections.abc import Sequence
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa

from synod.common.runtime.errors import invalid
from synod.common.study.encoding import Codes, Coding, binned_codings, codings_of, to_bins
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.curator.drawing.base import Floats, RowModel
from synod.curator.release.counts import Counted, Groups, ReleasedCounts
from synod.curator.release.report.wording import find_spikes, name_codes, name_runs

DRAWN_ROWS, DRAWN_SEED = 1 << 18, 1
RELEASED, DEVIATION, MODEL = "released", "deviation", "model"


class ModelShares:
    """What a model says of columns: exact where it can be computed, else by 2^18 rows of it, the same each time."""

    def __init__(self, study: Study, model: RowModel) -> None:
        self._study, self._model = study, model

    def table(self, attributes: Sequence[int]) -> Floats:
        """The share of each combination of values, an axis for each attribute."""
        exact = self._model.table(attributes)
        if exact is not None:
            return exact
        sizes = [_coding_of(self._study, attribute).size for attribute in attributes]
        cells = np.ravel_multi_index([self._drawn[attribute] for attribute in attributes], sizes)
        shares: Floats = np.bincount(cells, minlength=int(np.prod(sizes))).reshape(sizes) / DRAWN_ROWS
        return shares

    @cached_property
    def _drawn(self) -> list[Codes]:
        rng, study = np.random.default_rng(DRAWN_SEED), self._study
        drawn = self._model.draw(DRAWN_ROWS, [None] * len(study.attributes), rng=rng)
        return drawn if study.method.number_levels is None else to_bins(study, drawn)


def marginal_table(study: Study, released: ReleasedCounts, shares: ModelShares, names: Sequence[str]) -> pa.Table:
    """A row for each cell: the values, the released count, the deviation of its noise and the model's count."""
    attributes = find_columns(study, names)
    codings = [_coding_of(study, attribute) for attribute in attributes]
    counted = released.count(attributes)
    groups = counted.groups if counted else tuple(tuple(range(coding.size)) for coding in codings)
    expected = study.total_rows * _fold(shares.table(attributes), groups)
    axes = [_order_groups(coding, own) for coding, own in zip(codings, groups, strict=True)]
    labels = [_name_groups(coding, own) for coding, own in zip(codings, groups, strict=True)]
    cells = list(product(*axes))
    columns = {name: [labels[place][cell[place]] for cell in cells] for place, name in enumerate(names)}
    return pa.table(
        {
            **{name: pa.array(values, pa.string()) for name, values in columns.items()},
            **_numbers(counted, cells),
            MODEL: pa.array([float(expected[cell]) for cell in cells], pa.float64()),
        }
    )


def _numbers(counted: Counted | None, cells: Sequence[tuple[int, ...]]) -> dict[str, pa.Array]:
    tables = (None, None) if counted is None else (counted.counts, counted.deviations)
    named = zip((RELEASED, DEVIATION), tables, strict=True)
    return {
        name: pa.nulls(len(cells), pa.float64()) if own is None else pa.array([float(own[cell]) for cell in cells])
        for name, own in named
    }


def find_columns(study: Study, names: Sequence[str]) -> list[int]:
    """The places of columns in the schema, each named once."""
    known = [attribute.name for attribute in study.attributes]
    for name in names:
        if name not in known:
            raise invalid(f"there is no column {name!r}.", f"The columns are {', '.join(known)}.")
    if not names or len(set(names)) < len(names):
        raise invalid("a marginal is of one column or more, each named once.", "For example `marginal('age', 'sex')`.")
    return [known.index(name) for name in names]


def _coding_of(study: Study, attribute: int) -> Coding:
    """How a marginal shows an attribute: by its codes, or where these are fine levels, in the schema's bins."""
    coding = codings_of(study)[attribute]
    return coding if coding.levels is None else binned_codings(study)[attribute]


def _fold(shares: Floats, groups: Sequence[Groups]) -> Floats:
    """Shares of values as shares of their groups."""
    for axis, own in enumerate(groups):
        indicators = (np.arange(max(own) + 1)[:, None] == np.array(own)).astype(np.float64)
        shares = np.moveaxis(np.tensordot(indicators, shares, axes=(1, axis)), 0, axis)
    return shares


def _order_groups(coding: Coding, groups: Groups) -> list[int]:
    """Groups in the order of their values, a missing value last."""
    codes = list(range(coding.value_codes))
    if not isinstance(coding.attribute, CategoricalAttribute):
        codes = coding.in_order()
    return list(dict.fromkeys(groups[code] for code in [*codes, *range(coding.value_codes, coding.size)]))


def _name_groups(coding: Coding, groups: Groups) -> list[str | None]:
    """What each group stands for; None for a missing value alone."""
    names: list[str | None] = []
    for group in range(max(groups) + 1):
        codes = [code for code in _order_codes(coding) if groups[code] == group]
        is_missing = coding.attribute.nullable and codes == [coding.null_code]
        names.append(None if is_missing else name_codes(coding)[codes[0]] if len(codes) == 1 else _join(coding, codes))
    return names


def _order_codes(coding: Coding) -> list[int]:
    every = tuple(range(coding.size))
    return _order_groups(coding, every)


def _join(coding: Coding, codes: Sequence[int]) -> str:
    """Several values as one; a bin that has all of its spikes with it is one range."""
    attribute = coding.attribute
    if isinstance(attribute, CategoricalAttribute) or coding.is_constant:
        return " | ".join(name_runs(coding, codes))
    bins = sorted(code for code in codes if code < attribute.bins)
    inside = {attribute.bins + place for place, own in enumerate(find_spikes(coding)) if own in bins}
    if not inside <= set(codes):
        return " | ".join(name_runs(coding, codes))
    others = [name_codes(coding)[code] for code in codes if code >= attribute.bins and code not in inside]
    return " | ".join([*name_runs(Coding(attribute, None), bins), *others])
