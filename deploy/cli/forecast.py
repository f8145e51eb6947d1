"""What `synod study forecast` says: the rounds, ways to ask, and the method's remarks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from synod.common.protocol.plan import plan_study
from synod.common.study.promise import explain_delta, name_budget, name_unit
from synod.common.study.study import Study
from synod.deploy.cli.terminal import say, show_table
from synod.deploy.study.forecast import ColumnsNoise, Forecast, compare_alternatives, forecast_columns, forecast_study
from synod.deploy.study.numbers import NOTE

ALONE = (
    "Columns alone: the noise on a share of the rows if the whole budget went into one-way tables of all columns, in "
    "the schema's bins, and nothing were asked about how columns go together."
)


def forecast_document(study: Study, remarks: Sequence[str], of_rows: Sequence[str] | None) -> dict[str, Any]:
    """The forecast for a machine; remarks on real rows, where there are such, are apart, and `note` says that they are
    not private.
    """
    alone = forecast_columns(study)
    document = {
        "rounds": [asdict(found) for found in forecast_study(study)],
        "columns_alone": asdict(alone) if alone else None,
        "alternatives": compare_alternatives(study),
        "remarks": list(remarks),
    }
    return document if of_rows is None else document | {"remarks_on_rows": list(of_rows), "note": NOTE}


def show_forecast(study: Study, remarks: Sequence[str], of_rows: Sequence[str] | None) -> None:
    """The forecast for people: the method's remarks on the schema, and on real rows where there are such."""
    rounds, alone = forecast_study(study), forecast_columns(study)
    _show_rounds(study, rounds, alone)
    if alone is not None:
        say(ALONE)
    _show_cells(rounds)
    if study.delta is not None:
        say(f"All of it for {name_budget(study)}. {explain_delta(study)}")
    if study.max_rows_per_unit > 1:
        say(f"The noise is for each {name_unit(study)}: {study.max_rows_per_unit} times as large as for single rows.")
    alternatives = compare_alternatives(study)
    if alternatives:
        show_table(list(alternatives[0]), [list(row.values()) for row in alternatives])
    for remark in remarks:
        say(f"- {remark}")
    if of_rows is not None:
        say(NOTE)
        for remark in of_rows or ["The method has no remarks on these rows."]:
            say(f"- {remark}")


def _show_rounds(study: Study, rounds: Sequence[Forecast], alone: ColumnsNoise | None) -> None:
    rows = [
        [
            r.label,
            f"{r.numbers:,}",
            f"{r.ciphertexts:,}",
            f"{r.bytes_per_party / 1024:,.0f} KiB",
            f"{r.seconds_per_party:.1f} s",
            f"{r.memory_mib:.0f} MiB",
            f"±{r.error:.4f}",
        ]
        for r in rounds
    ]
    if alone is not None:
        rows.append(["columns alone", f"{alone.numbers:,}", "", "", "", "", f"±{alone.error:.4f}"])
    headings = ["round", "numbers", "ciphers", "sent", "work", "memory", "noise"]
    steps = len(plan_study(study).steps)
    show_table(headings, rows, title=f"{study.name}: {steps} rounds; of each encrypted one, for a party")


def _show_cells(rounds: Sequence[Forecast]) -> None:
    """How many rows an average cell of each round's tables has, in deviations of its noise."""
    found = {r.label: r.cell_to_noise for r in rounds if r.cell_to_noise is not None}
    if found:
        told = ", ".join(f"{label} {ratio:.2g}" for label, ratio in found.items())
        say(f"Rows of an average cell against its noise: {told}.")
