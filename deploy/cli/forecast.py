"""What `synod study forecast` says: the rounds, ways to ask, and the method's remarks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from synod.common.protocol.plan import plan_study
from synod.common.study.promise import explain_delta, name_budget
from synod.common.study.study import Study
from synod.deploy.cli.terminal import say, show_table
from synod.deploy.study.columns import NOTE
from synod.deploy.study.forecast import ColumnsAlone, Forecast, compare_alternatives, forecast_columns, forecast_study

ALONE = (
    "Columns alone: the noise on a share of the rows if the whole budget went into one-way tables of all columns, in "
    "the schema's bins, and nothing were asked about how columns go together."
)


def forecast_document(study: Study, remarks: Sequence[str], *, of_rows: bool) -> dict[str, Any]:
    """The forecast for a machine; `note` says whether its remarks are private, where they come from rows."""
    alone = forecast_columns(study)
    document = {
        "rounds": [asdict(found) for found in forecast_study(study)],
        "columns_alone": asdict(alone) if alone else None,
        "alternatives": compare_alternatives(study),
        "remarks": list(remarks),
    }
    return document | ({"note": NOTE} if of_rows else {})


def show_forecast(study: Study, remarks: Sequence[str], *, of_rows: bool) -> None:
    """The forecast for people."""
    rounds, alone = forecast_study(study), forecast_columns(study)
    _show_rounds(study, rounds, alone)
    if alone is not None:
        say(ALONE)
    _show_cells(rounds)
    if study.delta is not None:
        say(f"All of it for {name_budget(study)}. {explain_delta(study)}")
    alternatives = compare_alternatives(study)
    if alternatives:
        show_table(list(alternatives[0]), [list(row.values()) for row in alternatives])
    if of_rows:
        say(NOTE)
        remarks = remarks or ["The method has no remarks on these rows."]
    for remark in remarks:
        say(f"- {remark}")


def _show_rounds(study: Study, rounds: Sequence[Forecast], alone: ColumnsAlone | None) -> None:
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
    if not found:
        return
    say(f"Rows of an average cell against its noise: {', '.join(f'{label} {x:.2g}' for label, x in found.items())}.")
    drowned = [label for label, ratio in found.items() if ratio < 1]
    if drowned:
        say(f"An average cell has fewer rows than its noise in {', '.join(drowned)}: such tables are mostly noise.")
