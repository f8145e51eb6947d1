"""Synthetic rows from a public model: no row is read for it, so it is free."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.models.gaussian import GaussianModel, check_model, read_model
from synod.common.protocol.queries.base import ClearQuery, SharedQuery, parse_exactly, present_bytes
from synod.common.protocol.queries.moments import moment_design
from synod.common.protocol.queries.reading import read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid
from synod.common.study.encoding import Codes, Coding, codings_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

VARINT_BYTES = 10


def share_rows(study: Study, present: tuple[int, ...] = ()) -> tuple[int, ...]:
    """How many synthetic rows each party draws: in proportion to its public row count, by largest remainder; none where
    others are `present` and it is not.
    """
    assert study.rows is not None
    rows = [entry.rows if place in present or not present else 0 for place, entry in enumerate(study.roster)]
    total = sum(rows)
    shares = [study.rows * own // total for own in rows]
    remainders = [study.rows * own % total for own in rows]
    by_remainder = sorted(range(len(shares)), key=lambda i: (-remainders[i], i))
    for index in by_remainder[: study.rows - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


@dataclass(frozen=True)
class Synthesize(ClearQuery[list[Codes]], SharedQuery[list[Codes]]):
    """Each party present draws its share of rows from a model that is already private; free."""

    model: GaussianModel
    rows: tuple[int, ...]
    present: tuple[int, ...] = ()
    kind: ClassVar[QueryKind] = QueryKind.SYNTHESIZE

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        model, rows = self.model.to_json(), list(self.rows)
        return {"kind": self.kind.value, "model": model, "rows": rows, **self.present_json()}

    def asked_of(self, present: tuple[int, ...], study: Study) -> Self:
        """The same of these parties: the shares of those who are not there go to the others."""
        return replace(self, rows=share_rows(study, present), present=present)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        return cls(read_model(data["model"]), read_wholes(data["rows"]), read_wholes(data.get("present", ())))

    def to_proto(self) -> pb.Query:
        """The message."""
        grid: Any = self.model.to_json()
        model = pb.GaussianModel(
            loadings=[pb.Loadings(values=row) for row in grid["loadings"]],
            noise=grid["noise"],
            shift=grid["shift"],
            spread=grid["spread"],
        )
        return pb.Query(synthesize=pb.Synthesize(model=model, rows=self.rows, present=self.present))

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        model = message.synthesize.model
        grid = {
            "loadings": [list(row.values) for row in model.loadings],
            "noise": model.noise,
            "shift": list(model.shift),
            "spread": list(model.spread),
        }
        return cls(read_model(grid), tuple(message.synthesize.rows), tuple(message.synthesize.present))

    def check(self, study: Study) -> None:
        """The model fits the schema, who takes part is sound, and the rows are the shares that follow from both."""
        if study.method.number_levels is None:
            raise invalid("the query is of another method than the study's.")
        check_model(self.model, moment_design(study))
        self.check_present(study)
        if self.rows != share_rows(study, self.present):
            raise invalid("the query's rows are not the parties' shares.")

    def size(self, study: Study) -> Limit:
        """Nothing is counted."""
        del study
        return Limit(numbers=0, tables=0)

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """A model has at most as many components as columns."""
        del step
        width = moment_design(study).width
        return VARINT_BYTES * ((width + 3) * (width + 3) + len(study.roster) + 3) + present_bytes(study)

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """No row is read, so nothing is protected here."""
        del step, study
        return None

    def write_answer(self, answer: list[Codes]) -> bytes:
        """A SyntheticRows."""
        columns = [np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<")).tobytes() for column in answer]
        return pb.SyntheticRows(columns=columns).SerializeToString(deterministic=True)

    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> list[Codes]:
        """Reads a SyntheticRows; every code must be one of its attribute."""
        rows = sum(self.rows) if party is None else self.rows[study.index_of(party)]
        codings = codings_of(study)
        columns = parse_exactly(pb.SyntheticRows, payload).columns
        if len(columns) != len(codings):
            raise check_failed("an answer does not have one column for each attribute.")
        return [_read_column(column, coding, rows) for column, coding in zip(columns, codings, strict=True)]

    def answer_bytes(self, study: Study, party: str) -> range:
        """The codes of the party's share, and what says how long each column is."""
        codings = codings_of(study)
        codes = self.rows[study.index_of(party)] * sum(coding.dtype.itemsize for coding in codings)
        return range(codes, codes + len(codings) * (1 + VARINT_BYTES) + 1)


def _read_column(column: bytes, coding: Coding, rows: int) -> Codes:
    if len(column) != rows * coding.dtype.itemsize:
        raise check_failed(f"an answer's column {coding.attribute.name} has the wrong length.")
    codes: Codes = np.frombuffer(column, dtype=coding.dtype.newbyteorder("<")).astype(coding.dtype, copy=False)
    if rows and int(codes.max()) >= coding.size:
        raise check_failed(f"a row has a code outside of {coding.attribute.name}'s domain.")
    return codes


def stack_rows(parts: Sequence[Sequence[Codes]]) -> list[Codes]:
    """Tables of codes one below the other, in order."""
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]
