"""Studies that were handed to the console and not yet to the curator: checked, resolved and kept in memory, by hash."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.yamltext import read_yaml
from synod.common.study.promise import name_budget
from synod.common.study.study import Study, parse_study
from synod.deploy.cli.forecast import forecast_document
from synod.deploy.study.advice import Way, advise_on
from synod.deploy.study.forecast import remark_on
from synod.deploy.study.rehearsal import Rehearsal
from synod.deploy.study.wording import (
    CHANGES,
    FIGURES,
    METHODS,
    changes_beside,
    column_verdicts,
    figures_of,
    methods_beside,
    rehearsal_lines,
    time_line,
)
from synod.party.inbox.views import promises_of, view_column

ORIGIN = "the study"
MOST_DRAFTS = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """A study as it was written, and resolved: what its hash is of, and what would be submitted; with the advice on it,
    if that was asked for.
    """

    written: Study
    resolved: Study
    advice: dict[str, Any] | None = None

    @property
    def hash(self) -> str:
        """What the parties approve."""
        return self.resolved.digest().hex()


def read_draft(content: bytes) -> Draft:
    """Checks a study as `synod study check` does; the error names every rule that it breaks."""
    if not content.strip():
        raise invalid("there is no study.", "Choose a file, or write one into the field.")
    written = parse_study(read_yaml(content, ORIGIN), ORIGIN)
    if not written.roster:
        raise invalid("the study has no roster.", "List each party with its name, its fingerprint and its rows.")
    resolved = written.resolve()
    check_feasible(resolved)
    return Draft(written, resolved)


def describe_draft(draft: Draft) -> dict[str, Any]:
    """What the page shows: promises, columns, plan, and the forecast, with advice if there is some."""
    study = draft.resolved
    plan = plan_study(study)
    return {
        "study": study,
        "hash": draft.hash,
        "budget": name_budget(study),
        "promises": promises_of(study),
        "columns": [view_column(attribute) for attribute in study.attributes],
        "steps": [
            (step.label, step.phase, step.kind.value, len(step.answerers), step.cost.describe()) for step in plan.steps
        ],
        "advice": draft.advice,
        "forecast": forecast_document(study, remark_on(study, None), None),
    }


def describe_advice(draft: Draft) -> dict[str, Any]:
    """The rehearsal of the study, the other methods beside it, and one recommendation; takes seconds to minutes."""
    study, advice = draft.resolved, advise_on(draft.written, compare=True)
    own = advice.own.rehearsal
    return {
        "recommendation": advice.recommendation,
        "figures": FIGURES,
        "lines": list(rehearsal_lines(advice)),
        "columns": [] if own is None else _tell_columns(own),
        "tables": [
            (title, heading, [(name, *_tell_way(way)) for name, way in ways])
            for title, heading, ways in (
                (METHODS, "method", methods_beside(study, advice)),
                (CHANGES, "change", changes_beside(advice)),
            )
            if ways
        ],
        "time": "" if own is None else time_line(study, own),
    }


def _tell_columns(own: Rehearsal) -> list[tuple[str, str, str]]:
    """Each column, its verdict, and the part of its rows that noise puts into another bin."""
    found = zip(column_verdicts(own).items(), own.columns.tolist(), strict=True)
    return [(name, verdict.value, f"{misplaced:.1%}") for (name, verdict), misplaced in found]


def _tell_way(way: Way) -> tuple[list[str], str]:
    """The figures of a way, or why there are none."""
    return ([], way.refusal) if way.rehearsal is None else (figures_of(way, way.rehearsal), "")


class Drafts:
    """The last few drafts of this process."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, Draft] = OrderedDict()

    def keep(self, draft: Draft) -> None:
        """Keeps a draft; of many the oldest make room."""
        self._drafts[draft.hash] = draft
        while len(self._drafts) > MOST_DRAFTS:
            self._drafts.popitem(last=False)

    def find(self, study_hash: str) -> Draft:
        """The draft of this hash."""
        draft = self._drafts.get(study_hash)
        if draft is None:
            raise SynodError(Code.NOT_FOUND, "this draft is not kept any more.", "Hand the study in again.")
        return draft
