"""Drafts, forecasts and evaluations in Python: what the commands of the same names say, as values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synod.common.runtime.errors import invalid
from synod.common.runtime.yamltext import read_yaml
from synod.common.study.encoding import binned_codings
from synod.common.study.study import Study
from synod.deploy.api.frames import Tabular, as_file, encode_table
from synod.deploy.api.published import Published
from synod.deploy.api.studies import AnyStudy, read_study, with_parties
from synod.deploy.cli.forecast import forecast_document
from synod.deploy.evaluate.classifiers import parse_target, require_classifier
from synod.deploy.evaluate.measure import Request, to_json
from synod.deploy.evaluate.measure import evaluate as measure
from synod.deploy.evaluate.tables import make_table
from synod.deploy.study.draft import draft_study
from synod.deploy.study.forecast import remark_on


def draft(table: Tabular, *, unit: str | None = None) -> dict[str, Any]:
    """A first study out of a table's columns, as a mapping to edit and to hand to `simulate` or `forecast`.

    NOT private: the domains were read from real rows. Replace each by what is public knowledge before the study leaves
    the house. `unit` is the column that tells persons apart, which is not published.
    """
    with as_file(table, "table") as path:
        drafted: dict[str, Any] = read_yaml(draft_study([path], unit).encode(), "the draft")
    return drafted


def forecast(study: AnyStudy, *, rows: Sequence[int] | Mapping[str, int] | None = None) -> dict[str, Any]:
    """What a study will take and how exact it can be, from public numbers only: as `synod study forecast --json` says.

    `rows` are the row counts of parties, to be assumed where the study has no roster.
    """
    written = read_study(study)
    if rows is not None:
        counts = rows if isinstance(rows, Mapping) else {f"party-{i}": many for i, many in enumerate(rows, 1)}
        written = with_parties(written, counts)
    resolved = written.resolve()
    return forecast_document(resolved, remark_on(resolved, None), None)


def evaluate(
    real: Tabular | Sequence[Tabular],
    synthetic: Published | Tabular,
    *,
    study: AnyStudy | None = None,
    targets: Sequence[str] = (),
    queries: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """How near a synthetic table comes to real rows: as `synod evaluate --json` says, `tvd1`, `tvd2`, `tvd3` among it.

    NOT private: the figures are computed from real rows. Keep them where the rows are.

    Args:
        real: the real rows; a list of tables is taken as one.
        synthetic: a release, a simulation, or a table.
        study: whose schema both have; that of the release or simulation where it is left out.
        targets: columns that a classifier predicts, or `column=value|value`; needs scikit-learn.
        queries: how many random range queries.
        seed: of queries, samples and test rows.
    """
    chosen = _study_of(synthetic, study)
    table = synthetic.table() if isinstance(synthetic, Published) else synthetic
    codings, parts = binned_codings(chosen), real if isinstance(real, list | tuple) else [real]
    encoded = [encode_table(part, "the real table", codings) for part in parts]
    real_rows = [np.concatenate(columns) for columns in zip(*encoded, strict=True)]
    drawn = encode_table(table, "the synthetic table", codings)
    if not len(real_rows[0]) or not len(drawn[0]):
        raise invalid("a table has no rows.", "There is nothing to compare.")
    if targets:
        require_classifier()
    names = make_table(chosen, real_rows).names
    request = Request("bins", queries, tuple(parse_target(one, chosen, names) for one in targets), (), seed)
    return to_json(chosen, request, measure(chosen, real_rows, drawn, request, progress=lambda _: None))


def _study_of(synthetic: Any, study: AnyStudy | None) -> Study:
    if study is not None:
        return read_study(study)
    if isinstance(synthetic, Published):
        return synthetic.study
    raise invalid("a table alone does not say which values its columns may have.", "Give its `study`, or a release.")
