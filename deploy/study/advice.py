"""Advice before anything is spent: what of a study is usable, other methods beside it, and what would help.

All of it comes from rehearsals over invented rows, hence from public numbers. Where the words begin and end was
measured over thirty studies with `python -m bench.forecast`, and is in docs/choosing-a-method.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.study import LARGEST_ROSTER, Study, known_methods, parse_study
from synod.deploy.study.rehearsal import Rehearsal
from synod.deploy.study.rehearsals import rehearse_all

OWN = "as it is"
SECONDS = 60
OWN_SECONDS = 600
COLUMN_USABLE, COLUMN_COARSE = 0.05, 0.2  # the part of the rows that noise puts into another bin, at most
PAIR_USABLE, PAIR_COARSE = 0.5, 0.15  # the part of a relation that is kept, at least
PAIR_MARGIN, COLUMN_MARGIN = 0.1, 1.5  # so far, or so many times, what comes may be from what was rehearsed
CLEARLY = 0.8  # a method is clearly better whose distance is below this part of another's
ROWS_HINT = "Write --rows 12000,8000,4000."
FEWER_BINS, FEWEST_BINS = 4, 4


class Verdict(Enum):
    """How much of a column or of a relation the noise leaves."""

    USABLE = "usable"
    COARSE = "coarse"
    DROWNED = "drowned in noise"


def judge_column(misplaced: float, misplaced_coarsely: float) -> Verdict:
    """Of a column in which noise puts these parts of the rows into another bin: as the schema has it, and with a number
    in at most eight bins.
    """
    if misplaced <= COLUMN_USABLE:
        return Verdict.USABLE
    return Verdict.COARSE if misplaced_coarsely <= COLUMN_COARSE else Verdict.DROWNED


def judge_pair(kept: float) -> Verdict:
    """Of two columns, or all of them, of whose relations this part is kept."""
    if kept >= PAIR_USABLE:
        return Verdict.USABLE
    return Verdict.COARSE if kept >= PAIR_COARSE else Verdict.DROWNED


def near_pair(kept: float) -> list[Verdict]:
    """What relations may as well come out as, because what is kept is near the border of two words."""
    return _near(judge_pair(kept), [judge_pair(kept + sign * PAIR_MARGIN) for sign in (-1, 1)])


def near_column(misplaced: float) -> list[Verdict]:
    """The same of columns in at most eight bins."""
    others = [misplaced / COLUMN_MARGIN, misplaced * COLUMN_MARGIN]
    return _near(judge_column(misplaced, misplaced), [judge_column(other, other) for other in others])


def _near(said: Verdict, others: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in Verdict if verdict in others and verdict is not said]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to publish: what it is, what came of its rehearsal, or why there is none."""

    name: str
    rehearsal: Rehearsal | None
    refusal: str = ""
    asks_each_party: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """The study's own rehearsal, the other methods, and the study with more epsilon, more rows or fewer bins."""

    own: Way
    methods: tuple[Way, ...]
    changes: tuple[Way, ...]

    @property
    def recommendation(self) -> str:
        """One sentence: what to do."""
        return _recommend(self)


def read_row_counts(text: str) -> list[int]:
    """Row counts as a command line has them."""
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise invalid("row counts are positive whole numbers, one for each party.", ROWS_HINT)
    return [int(part) for part in parts]


def assume_roster(written: Study, rows: Sequence[int]) -> Study:
    """A study as written, with parties of so many rows in place of its roster, which nobody could submit."""
    if not 1 <= len(rows) <= LARGEST_ROSTER or min(rows) < 1:
        raise invalid("row counts are positive whole numbers, one for each party.", ROWS_HINT)
    entries = [
        {"name": f"party-{place}", "key": f"sha256:{place:064x}", "rows": own} for place, own in enumerate(rows, 1)
    ]
    return parse_study({**_as_written(written), "roster": entries}, written.name)


def advise_on(written: Study, *, compare: bool, tell: Callable[[str], None] = lambda _: None) -> Advice:
    """Rehearses a study with a roster; with `compare` also by other methods and with more or less of what it has."""
    asked = {OWN: _as_written(written)}
    if compare:
        asked |= {f"method {name}": data for name, data in _other_methods(written).items()}
        asked |= _changes(written)
    studies, refusals = _resolve_all(asked)
    tell("the study")
    found = rehearse_all({OWN: studies[OWN]} if OWN in studies else {}, OWN_SECONDS)
    found |= rehearse_all({name: study for name, study in studies.items() if name != OWN}, SECONDS, tell=tell)
    ways = {name: _way(name, studies, found, refusals) for name in asked}
    methods = tuple(way for name, way in ways.items() if name.startswith("method "))
    changes = tuple(way for name, way in ways.items() if name != OWN and not name.startswith("method "))
    return Advice(ways[OWN], methods, changes)


def _way(
    name: str, studies: Mapping[str, Study], found: Mapping[str, Rehearsal | None], refusals: Mapping[str, str]
) -> Way:
    shown = name.removeprefix("method ")
    if name in refusals:
        return Way(shown, None, refusals[name])
    is_local = any(step.kind.is_local for step in plan_study(studies[name]).steps)
    late = f"its rehearsal took longer than {OWN_SECONDS if name == OWN else SECONDS} s of one core"
    return Way(shown, found[name], "" if found[name] else late, is_local)


def _as_written(study: Study) -> dict[str, Any]:
    return {key: value for key, value in study.to_json().items() if value is not None}


def _other_methods(written: Study) -> dict[str, dict[str, Any]]:
    """The study with each other method and that method's defaults; what only this one has of a column is left out."""
    schema = [{key: v for key, v in _attribute(one).items() if key != "spikes"} for one in _schema(written)]
    others = sorted(name for name in known_methods() if name != written.method.name)
    return {name: {**_as_written(written), "schema": schema, "method": {"name": name}} for name in others}


def _changes(written: Study) -> dict[str, dict[str, Any]]:
    data = _as_written(written)
    roster = [{**_attribute(entry), "rows": 2 * entry["rows"]} for entry in data["roster"]]
    bins = [_with_fewer_bins(_attribute(one)) for one in _schema(written)]
    changes = {
        "twice the epsilon": {**data, "epsilon": str(2 * Decimal(str(data["epsilon"])))},
        "twice the rows": {**{key: value for key, value in data.items() if key != "rows"}, "roster": roster},
    }
    return changes | ({"a quarter of the bins": {**data, "schema": bins}} if bins != _schema(written) else {})


def _with_fewer_bins(attribute: dict[str, Any]) -> dict[str, Any]:
    bins = attribute.get("bins", 1)
    return attribute if bins <= FEWEST_BINS else {**attribute, "bins": max(FEWEST_BINS, bins // FEWER_BINS)}


def _schema(written: Study) -> list[Any]:
    schema: Any = written.to_json()["schema"]
    return list(schema)


def _attribute(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return {key: own for key, own in value.items() if own is not None}


def _resolve_all(asked: Mapping[str, dict[str, Any]]) -> tuple[dict[str, Study], dict[str, str]]:
    """The resolved studies, and why the others are refused; the study itself has to be sound."""
    studies, refusals = dict[str, Study](), dict[str, str]()
    for name, data in asked.items():
        try:
            studies[name] = parse_study(data, "the study").resolve()
            check_feasible(studies[name])
        except SynodError as error:
            if name == OWN:
                raise
            studies.pop(name, None)
            refusals[name] = error.sentence.removeprefix("the study: ").split(". ")[0].split("; ")[0].rstrip(".")
    return studies, refusals


def _recommend(advice: Advice) -> str:
    own = advice.own.rehearsal
    if own is None:
        return "The study was not rehearsed, so there is no recommendation: see the noise of each round above."
    if own.kept is None or own.distance is None:
        return ONE_COLUMN if own.coarse_columns.max() <= COLUMN_COARSE else MORE.format("")
    verdict, better = judge_pair(own.kept), _clearly_better(advice, own.distance)
    if better is not None:
        return f"Try `{better}`: its tables of two columns came out clearly nearer to the invented rows."
    if verdict is Verdict.USABLE:
        return "Run it as it is: single columns and relations between columns come through."
    return _recommend_change(advice, own.kept, verdict)


def _recommend_change(advice: Advice, kept: float, verdict: Verdict) -> str:
    """What would raise the verdict, or what to make of it as it is."""
    found = [(way.name, way.rehearsal.kept) for way in advice.changes if way.rehearsal is not None]
    helpful = [name for name, own in found if own is not None and own > kept and judge_pair(own) is not verdict]
    if helpful:
        return f"Give it {' or '.join(helpful)}: relations between columns are {verdict.value} as it is."
    if verdict is Verdict.COARSE:
        return "Run it for single columns and the strongest relations, and do not rely on the weaker ones."
    return MORE.format(" relations between columns")


ONE_COLUMN = "Run it as it is: there are no two columns to relate."
MORE = (
    "Do not run it for{} as it is: even twice the epsilon or the rows would not do. Ask for fewer columns, or for "
    "single columns alone."
)


def _clearly_better(advice: Advice, distance: float) -> str | None:
    """The method that came out nearest, if it is clearly nearer than the study's, and asks for sums as that does."""
    found = [
        (way.rehearsal.distance, way.name)
        for way in advice.methods
        if way.rehearsal is not None and way.rehearsal.distance is not None
        and (advice.own.asks_each_party or not way.asks_each_party)
    ]  # fmt: skip
    nearest, name = min(found, default=(distance, ""))
    return name if nearest < CLEARLY * distance else None
