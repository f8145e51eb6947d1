"""The page: a useful first screen, then sections in the order in which questions come up.

Guarantee: a function of the study, the log of answered queries, the synthetic rows and the model. All of them are
released or public, so the page costs nothing; the same log gives the same bytes. It loads nothing and runs nothing.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from synod.common.protocol.losses import LostParty
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.promise import name_unit, write_delta
from synod.common.study.schema import write_decimal
from synod.common.study.study import RosterEntry, Study
from synod.curator.methods.base import CountError, Publication, publisher_of
from synod.curator.release.report.accuracy import count_varying, value_error
from synod.curator.release.report.alone import Baseline, measure_baseline
from synod.curator.release.report.figures import show_margins
from synod.curator.release.report.margins import Margin, read_margins
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.missing import describe_losses, list_members
from synod.curator.release.report.relations.map import show_relations
from synod.curator.release.report.relations.released import Relation, read_relations
from synod.curator.release.report.rows import show_rows
from synod.curator.release.report.sections import (
    Imprint,
    name_error,
    show_citation,
    show_conclusions,
    show_error,
    show_parties,
    show_verification,
)
from synod.curator.release.report.spending import name_adversary, show_budget
from synod.curator.release.report.style import STYLE
from synod.curator.release.report.wording import listed, name_parties, percent_about, plural, whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_NAMES = 6
PREVIEW_ROWS = 8


def write_report(
    study: Study,
    publication: Publication,
    queries: Mapping[str, AnyQuery],
    imprint: Imprint,
    lost: Sequence[LostParty] = (),
    *,
    answers: Mapping[str, Any] | None = None,
    preview: Sequence[Sequence[str]] = (),
) -> str:
    """The whole page; `answers` are the released ones of the queries, `preview` the first rows of the table."""
    publisher, members = publisher_of(study), list_members(study, queries, lost)
    error, model = publisher.expected_error(study, publication), publisher.describe(study, publication)
    one_value, baseline = value_error(study, publication), measure_baseline(study, publication)
    margins = read_margins(study, publication)
    relations = read_relations(study, publication, queries, answers or {})
    checked = count_outside(margins, relations)
    sections = {
        "rows": ("The table", show_rows(study, preview)),
        "caveats": ("What you may conclude, and what not", show_conclusions(study, *checked)),
        "error": ("How far off a count is", show_error(study, error, one_value, baseline)),
        "columns": ("Column by column", join([_introduce_columns(study), show_margins(margins)])),
        "relations": (
            "How columns go together",
            show_relations(study, relations, has_moments=publication.moments is not None),
        ),
        "model": (model.title, Html.escape(model.content)),
        "budget": ("The privacy budget", show_budget(study, queries)),
        "parties": ("Who published what", show_parties(study, imprint, members)),
        "verify": ("How to verify", show_verification(study)),
        "cite": ("How to cite", show_citation(study, imprint, members)),
    }
    error_tile = _error_tile(study, error, one_value, baseline)
    body = tag(
        "body",
        _opening(
            study,
            members,
            [error_tile, _checked_tile(*checked)],
            imprint,
            describe_losses(study, queries, lost),
        ),
        _contents({key: title for key, (title, _) in sections.items()}),
        tag("main", *(_section(key, title, content) for key, (title, content) in sections.items())),
        tag("footer", _closing(imprint)),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(study), body, lang='en')}\n"


def _head(study: Study) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{study.name}: a synthetic table"),
        tag("style", Html(STYLE)),
    )


def _opening(
    study: Study,
    members: Sequence[RosterEntry],
    error_tiles: Sequence[Html],
    imprint: Imprint,
    losses: Sequence[str],
) -> Html:
    names = [entry.name for entry in members]
    shown = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    lead = (
        f"{plural(study.rows or 0, 'synthetic row')} with {plural(len(study.attributes), 'column')}, published "
        f"{'together ' if len(names) > 1 else ''}by {listed(shown)}. No row is a person. "
        "This page says how far the table can be trusted, and what protects the people behind it."
    )
    return tag(
        "header",
        tag("p", f"Report of a release of {imprint.published} · Synod {imprint.version}", class_="kind"),
        tag("h1", study.name),
        tag("p", lead, class_="lead"),
        *(tag("p", sentence) for sentence in losses),
        tag("dl", *_tiles(study, members), *error_tiles, class_="tiles"),
    )


def _checked_tile(off: int, compared: int) -> Html:
    """How many figures of the rows are outside of the band of what was released."""
    if not compared:
        return _tile("Figures outside their band", "\u2013", "nothing was released to compare the rows with")
    note = f"of {whole(compared)} compared; {'each is marked below' if off else 'the rows keep what was released'}"
    return _tile("Figures outside their band", whole(off), note)


def _tiles(study: Study, members: Sequence[RosterEntry]) -> list[Html]:
    is_one, real = len(members) == 1, sum(entry.rows for entry in members)
    holds = "holds its own rows, and shows them to nobody"
    return [
        _tile("Synthetic rows", whole(study.rows or 0), f"from {whole(real)} real ones"),
        _tile("Parties", whole(len(members)), holds if is_one else f"each {holds}"),
        _tile("Privacy budget", _name_budget(study), f"for each {name_unit(study)}; {name_adversary(study)}"),
    ]


def _error_tile(study: Study, error: CountError, one_value: float | None, baseline: Baseline | None) -> Html:
    """The error of a count of two values; of one where only one column varies."""
    is_pair = count_varying(study) > 1
    size = error.deviation if is_pair else one_value
    note = _without_error(error) if size is None else f"rows of {whole(study.total_rows)}, typically, from noise"
    compared = "" if baseline is None else _compare(error.deviation, one_value, baseline)
    name = "Error of a 2-way count" if is_pair else "Error of a count"
    return _tile(name, "\u2013" if size is None else name_error(size), note + compared)


def _compare(two_values: float | None, one_value: float | None, baseline: Baseline) -> str:
    """Two values, and one value, here and with columns published alone."""
    two = "" if two_values is None else "; not told with columns alone"
    one = "not told" if one_value is None else name_error(one_value)
    return f"{two}. One value: {one} here, {name_error(baseline.deviation)} with columns alone"


def _name_budget(study: Study) -> str:
    epsilon = f"ε = {write_decimal(study.epsilon)}"
    return epsilon if study.delta is None else f"{epsilon}, δ = {write_delta(study.delta)}"


def _without_error(error: CountError) -> str:
    return "none was released by all parties" if error.partial else "none was released"


def _tile(name: str, figure: str, note: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", figure, class_="figure"), tag("dd", note, class_="note"))


def count_outside(margins: Sequence[Margin], relations: Sequence[Relation]) -> tuple[int, int]:
    """How many figures of the rows are outside of the band of a released number, and how many were compared."""
    singles = [reading for margin in margins for reading in margin.compared]
    pairs = [one for one in relations if one.released is not None]
    off = sum(one.is_outside for one in singles) + sum(one.is_outside for one in pairs)
    return off, len(singles) + len(pairs)


def _contents(titles: Mapping[str, str]) -> Html:
    entries = (tag("li", tag("a", title, href=f"#{key}")) for key, title in titles.items())
    return tag("nav", tag("ul", *entries), aria_label="Sections")


def _section(key: str, title: str, content: Html) -> Html:
    return tag("section", tag("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title")


def _introduce_columns(study: Study) -> Html:
    """The draw moves a share of one half the most: by two standard deviations, sqrt(1/4n) each, in 19 of 20 cases."""
    rows = study.rows or 1
    return tag(
        "p",
        f"Each column of the synthetic table beside what {name_parties(study)} released about it. A released number is "
        "the true one plus noise. Its band reaches 2.12 standard deviations of that noise to each side, and holds the "
        "true number in at least 95 of 100 cases. Where a bar ends outside of the band, that comes from the model, or "
        f"from the chance in the draw of the rows: {whole(rows)} of them move a share by up to "
        f"{percent_about(1 / math.sqrt(rows))}.",
    )


def _closing(imprint: Imprint) -> str:
    return (
        f"Written by Synod {imprint.version} from released statistics and public input only; making it cost no "
        "privacy. It loads nothing from elsewhere and runs no script."
    )
