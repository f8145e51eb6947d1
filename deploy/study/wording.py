"""Advice in words, the same for every screen: verdicts, methods side by side, what would help, and the time. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from synod.common.study.study import Study
from synod.deploy.study.advice import Advice, Verdict, Way, judge_column, judge_pair, near_column, near_pair
from synod.deploy.study.forecast import forecast_duration
from synod.deploy.study.rehearsal import Rehearsal

MOST_NAMED = 12
WORST_FIRST = (Verdict.DROWNED, Verdict.COARSE, Verdict.USABLE)
REHEARSED = (
    "Rehearsed on invented rows: this schema, these row counts, every two columns related alike (a correlation of one "
    "half). Nobody's rows were read. Weaker relations than these drown earlier, stronger ones later."
)
METHODS, CHANGES = "Methods side by side, each with its defaults", "What would help"
FIGURES = ("misplaced", "kept", "pairs are", "work", "asks for")
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


def rehearsal_lines(advice: Advice) -> Iterator[str]:
    """What came of the study's own rehearsal, or why there is nothing to say of it."""
    own = advice.own.rehearsal
    if own is None:
        yield f"How good it will be is not known: {advice.own.refusal}."
        return
    yield REHEARSED
    yield from _verdict_lines("Single columns", column_verdicts(own), COLUMN_WORDS)
    named = {f"{first} with {second}": verdict for (first, second), verdict in pair_verdicts(own).items()}
    yield from _verdict_lines("Pairs of columns", named, PAIR_WORDS)
    yield from near_lines(own)


def _verdict_lines(title: str, verdicts: Mapping[str, Verdict], words: Mapping[Verdict, str]) -> Iterator[str]:
    ordered = sorted(verdicts.items(), key=lambda one: WORST_FIRST.index(one[1]))
    for verdict, group in groupby(ordered, key=lambda one: one[1]):
        names = [name for name, _ in group]
        told = "" if verdict is Verdict.USABLE and len(names) > MOST_NAMED else f": {_name_some(names)}"
        yield f"{title}, {verdict.value} ({words[verdict]}): {len(names)} of {len(verdicts)}{told}."


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


def methods_beside(study: Study, advice: Advice) -> list[tuple[str, Way]]:
    """The study's own method and the others, the best first; none where no other was tried."""
    own = (f"{study.method.name}, this study", advice.own)
    return _best_first([own, *((way.name, way) for way in advice.methods)]) if advice.methods else []


def changes_beside(advice: Advice) -> list[tuple[str, Way]]:
    """The study as it is, and changed."""
    ways = (advice.own, *advice.changes) if advice.changes else ()
    return [(way.name, way) for way in ways]


def _best_first(ways: Iterable[tuple[str, Way]]) -> list[tuple[str, Way]]:
    """By what is kept of relations; those that were not rehearsed come last."""

    def place(one: tuple[str, Way]) -> tuple[bool, float]:
        found = one[1].rehearsal
        return (True, 0.0) if found is None or found.kept is None else (False, -found.kept)

    return sorted(ways, key=place)


def figures_of(way: Way, found: Rehearsal) -> list[str]:
    """One figure for each of `FIGURES`; empty where there are no two columns."""
    kept = "" if found.kept is None else f"{max(0.0, found.kept):.0%}"
    verdict = "" if found.kept is None else judge_pair(found.kept).value
    asked = "each party's own numbers" if way.asks_each_party else "sums"
    return [f"{found.columns.mean():.1%}", kept, verdict, f"{found.seconds:.1f} s", asked]


def time_line(study: Study, own: Rehearsal) -> str:
    """How long the study takes, and where."""
    found = forecast_duration(study, own.seconds)
    return (
        f"Time: about {_name_time(found.seconds)} once every party has approved and is online: "
        f"{_name_time(found.encryption)} of encryption at a party, {_name_time(found.decryption)} of decryption and "
        f"{_name_time(found.fit)} of fitting and drawing at the curator (measured here), and "
        f"{_name_time(found.waiting)} between rounds. A party sends {found.bytes_per_party / 2**20:,.1f} MiB."
    )


def _name_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
