"""What `synod study forecast` says of a rehearsal: verdicts, methods side by side, what would help, and the time."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from synod.common.study.study import Study
from synod.deploy.cli.terminal import say, show_table
from synod.deploy.study.advice import Advice, Verdict, Way, judge_column, judge_pair, near_column, near_pair
from synod.deploy.study.forecast import forecast_duration
from synod.deploy.study.rehearsal import Rehearsal

MOST_NAMED = 12
WORST_FIRST = (Verdict.DROWNED, Verdict.COARSE, Verdict.USABLE)
REHEARSED = (
    "Rehearsed on invented rows: this schema, these row counts, every two columns related alike (a correlation of one "
    "half). Nobody's rows were read. Weaker relations than these drown earlier, stronger ones later."
)
COLUMN_WORDS = {
    Verdict.USABLE: "at most 1 row in 20 is in another bin",
    Verdict.COARSE: "bins are blurred; numbers in eight bins, and frequent categories, still hold",
    Verdict.DROWNED: "even in eight bins more than 1 row in 5 is in another one",
}
PAIR_WORDS = {
    Verdict.USABLE: "at least half of a relation is kept",
    Verdict.COARSE: "its direction is kept, and a part of its strength",
    Verdict.DROWNED: "next to nothing of a relation is kept",
}


def column_verdicts(rehearsal: Rehearsal) -> dict[str, Verdict]:
    """The verdict on each column."""
    found = zip(rehearsal.names, rehearsal.columns.tolist(), rehearsal.coarse_columns.tolist(), strict=True)
    return {name: judge_column(misplaced, coarse) for name, misplaced, coarse in found}


def pair_verdicts(rehearsal: Rehearsal) -> dict[tuple[str, str], Verdict]:
    """The verdict on each two columns."""
    names = rehearsal.names
    return {(names[a], names[b]): judge_pair(kept) for (a, b), kept in rehearsal.pairs.items()}


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
    own = advice.own.rehearsal
    if own is None:
        say(f"How good it will be is not known: {advice.own.refusal}.")
    else:
        say(REHEARSED)
        _show_verdicts("Single columns", column_verdicts(own), COLUMN_WORDS)
        named = {f"{first} with {second}": verdict for (first, second), verdict in pair_verdicts(own).items()}
        if named:
            _show_verdicts("Pairs of columns", named, PAIR_WORDS)
        for line in near_lines(own):
            say(line)
    if advice.methods:
        ways = [(f"{study.method.name}, this study", advice.own), *((way.name, way) for way in advice.methods)]
        _show_ways("method", _best_first(ways), "Methods side by side, each with its defaults")
    if advice.changes:
        ways = [(advice.own.name, advice.own), *((way.name, way) for way in advice.changes)]
        _show_ways("change", ways, "What would help")
    if own is not None:
        _show_duration(study, own)
    say(f"Recommendation: {advice.recommendation}")


def _show_verdicts(title: str, verdicts: dict[str, Verdict], words: dict[Verdict, str]) -> None:
    ordered = sorted(verdicts.items(), key=lambda one: WORST_FIRST.index(one[1]))
    for verdict, group in groupby(ordered, key=lambda one: one[1]):
        names = [name for name, _ in group]
        told = "" if verdict is Verdict.USABLE and len(names) > MOST_NAMED else f": {_name_some(names)}"
        say(f"{title}, {verdict.value} ({words[verdict]}): {len(names)} of {len(verdicts)}{told}.")


def near_lines(own: Rehearsal) -> list[str]:
    """Where the figures are so near the border of two words that the other one may come."""
    misplaced = float(own.coarse_columns.mean())
    found = [("single columns", f"{misplaced:.1%} of the rows in another of eight bins", near_column(misplaced))]
    if own.kept is not None:
        found.append(("relations", f"{max(0.0, own.kept):.0%} kept", near_pair(own.kept)))
    return [
        f"Near a border: {what} on average have {figure}, and may as well come out "
        f"{' or '.join(verdict.value for verdict in near)}."
        for what, figure, near in found
        if near
    ]


def _name_some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _best_first(ways: Iterable[tuple[str, Way]]) -> list[tuple[str, Way]]:
    """By what is kept of relations; those that were not rehearsed come last."""

    def place(one: tuple[str, Way]) -> tuple[bool, float]:
        found = one[1].rehearsal
        return (True, 0.0) if found is None or found.kept is None else (False, -found.kept)

    return sorted(ways, key=place)


def _show_ways(what: str, ways: Sequence[tuple[str, Way]], title: str) -> None:
    """The rehearsed ones as a table, and why there is nothing to say of the others."""
    headings = [what, "misplaced", "kept", "pairs are", "work", "asks for"]
    rows = [[name, *_figures(way, way.rehearsal)] for name, way in ways if way.rehearsal is not None]
    show_table(headings, rows, title=title)
    for name, way in ways:
        if way.rehearsal is None:
            say(f"- {name}: {way.refusal}.")


def _figures(way: Way, found: Rehearsal) -> list[str]:
    kept = "" if found.kept is None else f"{max(0.0, found.kept):.0%}"
    verdict = "" if found.kept is None else judge_pair(found.kept).value
    asked = "each party's own numbers" if way.asks_each_party else "sums"
    return [f"{found.columns.mean():.1%}", kept, verdict, f"{found.seconds:.1f} s", asked]


def _show_duration(study: Study, own: Rehearsal) -> None:
    found = forecast_duration(study, own.seconds)
    say(
        f"Time: about {_name_time(found.seconds)} once every party has approved and is online: "
        f"{_name_time(found.encryption)} of encryption at a party, {_name_time(found.decryption)} of decryption and "
        f"{_name_time(found.fit)} of fitting and drawing at the curator (measured here), and "
        f"{_name_time(found.waiting)} between rounds. A party sends {found.bytes_per_party / 2**20:,.1f} MiB."
    )


def _name_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
