"""What `synod study forecast` says of a rehearsal, for a machine and on a terminal."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from synod.common.study.study import Study
from synod.deploy.cli.terminal import say, show_table
from synod.deploy.study.advice import Advice, Way, judge_pair
from synod.deploy.study.forecast import forecast_duration
from synod.deploy.study.rehearsal import Rehearsal
from synod.deploy.study.wording import (
    CHANGES,
    FIGURES,
    METHODS,
    changes_beside,
    column_verdicts,
    figures_of,
    methods_beside,
    near_lines,
    pair_verdicts,
    rehearsal_lines,
    time_line,
)


def advice_document(study: Study, advice: Advice) -> dict[str, Any]:
    """The advice for a machine."""
    own = advice.own.rehearsal
    return {
        "rehearsal": None if own is None else _describe_own(own),
        "duration": None if own is None else _describe_duration(study, own),
        "methods": [_describe_way(way) for way in advice.methods],
        "changes": [_describe_way(way) for way in advice.changes],
        "recommendation": advice.recommendation,
    }


def _describe_own(own: Rehearsal) -> dict[str, Any]:
    columns, pairs = column_verdicts(own), pair_verdicts(own)
    misplaced = zip(columns.items(), own.columns.tolist(), own.coarse_columns.tolist(), strict=True)
    return {
        "kept": own.kept,
        "near_a_border": near_lines(own),
        "columns": [
            {"column": name, "misplaced": fine, "misplaced_in_eight_bins": coarse, "verdict": verdict.value}
            for (name, verdict), fine, coarse in misplaced
        ],
        "pairs": [
            {"columns": list(names), "kept": kept, "verdict": verdict.value}
            for (names, verdict), kept in zip(pairs.items(), own.pairs.values(), strict=True)
        ],
    }


def _describe_duration(study: Study, own: Rehearsal) -> dict[str, Any]:
    duration = forecast_duration(study, own.seconds)
    return {**asdict(duration), "seconds": duration.seconds}


def _describe_way(way: Way) -> dict[str, Any]:
    found = way.rehearsal
    return {
        "name": way.name,
        "kept": found.kept if found else None,
        "misplaced": float(found.columns.mean()) if found else None,
        "verdict": judge_pair(found.kept).value if found and found.kept is not None else None,
        "seconds": found.seconds if found else None,
        "asks_each_party": way.asks_each_party,
        "refusal": way.refusal,
    }


def show_advice(study: Study, advice: Advice) -> None:
    """The advice for people."""
    for line in rehearsal_lines(advice):
        say(line)
    _show_ways("method", methods_beside(study, advice), METHODS)
    _show_ways("change", changes_beside(advice), CHANGES)
    if advice.own.rehearsal is not None:
        say(time_line(study, advice.own.rehearsal))
    say(f"Recommendation: {advice.recommendation}")


def _show_ways(what: str, ways: Sequence[tuple[str, Way]], title: str) -> None:
    """The rehearsed ones as a table, and why there is nothing to say of the others."""
    if not ways:
        return
    rows = [[name, *figures_of(way, way.rehearsal)] for name, way in ways if way.rehearsal is not None]
    show_table([what, *FIGURES], rows, title=title)
    for name, way in ways:
        if way.rehearsal is None:
            say(f"- {name}: {way.refusal}.")
