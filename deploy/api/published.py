"""What a release and a simulation have in common: a table, a model to draw more rows from, and released numbers."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.protocol.answers import lay_out
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.drawing.base import Allowed, RowModel
from synod.curator.methods.base import publisher_of
from synod.curator.release.counts import ReleasedCounts
from synod.curator.release.files import decode_table
from synod.deploy.api.conditions import allow_codes, read_conditions, select_rows
from synod.deploy.api.frames import Kind, convert_table
from synod.deploy.api.marginals import ModelShares, marginal_table

MOST_DRAWN, DRAWN_PER_ROW = 1 << 22, 100
SMALLEST_BATCH, LARGEST_BATCH = 1 << 10, 1 << 16


class Published(ABC):
    """A published table, the model that it was drawn from, and the noisy numbers that the model was made of."""

    def __init__(self, study: Study, model: Json) -> None:
        self.study: Study = study
        self._model = model

    @property
    @abstractmethod
    def queries(self) -> Mapping[str, AnyQuery]:
        """What was asked, by the label of the round."""

    @abstractmethod
    def _answer(self, label: str) -> Any:
        """The released answer to a round's query."""

    @abstractmethod
    def _rows(self) -> pa.Table:
        """The published rows."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [attribute.name for attribute in self.study.attributes]

    def table(self, to: Kind = "arrow") -> Any:
        """The published rows, as an Arrow table, a pandas DataFrame or a polars DataFrame."""
        return convert_table(self._rows(), to)

    def sample(
        self, n: int, given: Mapping[str, Any] | None = None, seed: int | None = None, to: Kind = "arrow"
    ) -> Any:
        """`n` new rows of the published model that satisfy all conditions.

        Rows are independent draws of the model's law given the conditions, for every method. It is exact, up to the
        rounding of floats: where the model can be conditioned, rare rows are drawn as quickly as frequent ones; where
        it cannot (a Gaussian model; a range that cuts through bins, inside of the bin; a model whose tables would be
        too large together) rows that do not satisfy the conditions are drawn and left out, and where these are nearly
        all, this is refused. New rows add no information, and cost no privacy.

        Args:
            n: how many rows.
            given: for each column that has a condition a value; a list of values; for numbers a tuple of two bounds,
                which both belong to the range, and None for no bound. A missing value is None.
            seed: the same seed gives the same rows, with the same versions; without one rows are new each time.
            to: "arrow", "pandas" or "polars".

        Raises:
            SynodError: a column or a value is not in the schema, the model gives such rows no chance, or too few of
                the rows that were drawn satisfy the conditions.
        """
        if n < 0:
            raise invalid("the number of rows is negative.", "Ask for 0 or more.")
        conditions = read_conditions(self.study, given or {})
        allowed = allow_codes(self.study, conditions)
        rng = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
        coins = Coins.public(int(rng.integers(2**53)), "sample")
        most = MOST_DRAWN + DRAWN_PER_ROW * n
        found, kept, drawn, batch = list[pa.Table](), 0, 0, min(n, LARGEST_BATCH)
        while not found or kept < n:
            codes = self._row_model.draw(batch, allowed, rng=rng)
            table = decode_table(self.study, _keep_allowed(codes, allowed), coins=coins)
            found.append(select_rows(table, conditions))
            kept, drawn = kept + found[-1].num_rows, drawn + batch
            if kept < n and drawn >= most:
                raise _too_rare(kept, drawn)
            batch = _next_batch(n - kept, kept, drawn)
        return convert_table(pa.concat_tables(found).slice(0, n), to)

    def marginal(self, *names: str, to: Kind = "arrow") -> Any:
        """What was released about these columns together, beside the model: a row for each combination of values.

        `released` is the noisy count of rows, unbiased and not cut at zero; where several released tables tell it,
        their average by precision, and where single parties told it, their sum. `deviation` is the standard deviation
        of its noise. Both are null where it was not counted. Values that were counted together are one row, their
        names separated by ` | `. `model` is the count that the model expects: computed, or, where that would take too
        much memory and for Gaussian models, from 2^18 rows of it. All counts are of the study's rows. A number's values
        are the schema's bins, and spikes; a missing value is null.
        """
        return convert_table(marginal_table(self.study, self._counts, self._shares, names), to)

    @property
    def noise(self) -> pa.Table:
        """The noise on what was released, as an Arrow table: for each round and table what it is of, how many numbers
        it has, and the standard deviation of the noise on one, in the unit of the numbers (rows, but for moments).
        """
        parts = []
        for step in plan_study(self.study).steps:
            if step.label in self.queries:
                answer = lay_out(step, self.queries[step.label], self.study, self._answer(step.label))
                if answer["deviation"].null_count < len(answer):
                    parts.append(_sum_up(answer))
        return pa.concat_tables(parts)

    def sdv_metadata(self, name: str = "table") -> dict[str, Any]:
        """The columns in SDV's metadata format, version V1, of one table: for `Metadata.load_from_dict`."""
        nothing = [np.zeros(0, dtype=coding.dtype) for coding in codings_of(self.study)]
        schema = decode_table(self.study, nothing, coins=Coins.public(0, "values")).schema
        columns = {field.name: _describe_type(field.type) for field in schema}
        return {"METADATA_SPEC_VERSION": "V1", "tables": {name: {"columns": columns}}, "relationships": []}

    @cached_property
    def _row_model(self) -> RowModel:
        open_model = publisher_of(self.study).open_model
        if open_model is None:
            raise invalid(f"{self.study.method.name} publishes no model to draw from.", "Use the table.")
        return open_model(self.study, self._model, self._answer)

    @cached_property
    def _shares(self) -> ModelShares:
        return ModelShares(self.study, self._row_model)

    @cached_property
    def _counts(self) -> ReleasedCounts:
        return ReleasedCounts(self.study, self.queries, self._answer)


def _keep_allowed(codes: list[Codes], allowed: Allowed) -> list[Codes]:
    """The rows that have allowed codes only; values decide later."""
    keep = np.ones(len(codes[0]), dtype=bool)
    for column, own in zip(codes, allowed, strict=True):
        if own is not None:
            keep &= own[column]
    return codes if keep.all() else [column[keep] for column in codes]


def _next_batch(missing: int, kept: int, drawn: int) -> int:
    """A little more than is likely to be needed."""
    wanted = 1.1 * missing * drawn / kept if kept else LARGEST_BATCH
    return int(min(max(wanted, SMALLEST_BATCH), LARGEST_BATCH))


def _too_rare(kept: int, drawn: int) -> SynodError:
    return invalid(
        f"only {kept:,} of {drawn:,} rows of the model satisfy the conditions.",
        "Loosen a condition, or ask for fewer rows.",
    )


def _sum_up(answer: pa.Table) -> pa.Table:
    """An answer's tables, a row for each and for each deviation in it."""
    texts = [answer[name].cast(pa.string()) for name in ("round", "of")]
    plain = pa.table({"round": texts[0], "table": answer["table"], "of": texts[1], "deviation": answer["deviation"]})
    grouped = plain.group_by(["round", "table", "of", "deviation"], use_threads=False)
    counted = grouped.aggregate([([], "count_all")])
    return counted.rename_columns([{"count_all": "numbers"}.get(name, name) for name in counted.column_names]).select(
        ["round", "table", "of", "numbers", "deviation"]
    )


def _describe_type(kind: pa.DataType) -> dict[str, str]:
    """A column's type as SDV names it."""
    if pa.types.is_boolean(kind):
        return {"sdtype": "boolean"}
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    if pa.types.is_integer(kind):
        return {"sdtype": "numerical", "computer_representation": "Int64"}
    if pa.types.is_floating(kind):
        return {"sdtype": "numerical", "computer_representation": "Float"}
    return {"sdtype": "categorical"}
