"""The page: a useful first screen, then sections in the order in which questions come up.

Guarantee: a function of the study, the log of answered queries, the synthetic rows and the model. All of them are
released or public, so the page costs nothing; the same log gives the same bytes. It loads nothing and runs nothing.
"""

import math
from collections.abc import Mapping, Sequence

from synod.common.protocol.losses import LostParty
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.study.promise import name_unit, write_delta
from synod.common.study.schema import write_decimal
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, Publication, publisher_of
from synod.curator.release.report.accuracy import count_varying, value_error
from synod.curator.release.report.alone import Baseline, measure_baseline
from synod.curator.release.report.figures import show_margins
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.missing import describe_losses
from synod.curator.release.report.sections import (
    Imprint,
    name_error,
    show_caveats,
    show_citation,
    show_error,
    show_parties,
    show_verification,
)
from synod.curator.release.report.spending import name_adversary, show_budget
from synod.curator.release.report.style import STYLE
from synod.curator.release.report.wording import listed, name_parties, percent_about, plural, whole

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_NAMES = 6


def write_report(
    study: Study,
    publication: Publication,
    queries: Mapping[str, AnyQuery],
    imprint: Imprint,
    lost: Sequence[LostParty] = (),
) -> str:
    """The whole page."""
    publisher = publisher_of(study)
    error, model = publisher.expected_error(study, publication), publisher.describe(study, publication)
    one_value, baseline = value_error(study, publication), measure_baseline(study, publication)
    sections = {
        "parties": ("Who published what", show_parties(study, imprint)),
        "budget": ("The privacy budget", show_budget(study, queries)),
        "error": ("How far off a count is", show_error(study, error, one_value, baseline)),
        "columns": ("Column by column", join([_introduce_columns(study), show_margins(study, publication)])),
        "model": (model.title, Html.escape(model.content)),
        "caveats": ("What not to do with it", show_caveats(study)),
        "verify": ("How to verify", show_verification(study)),
        "cite": ("How to cite", show_citation(study, imprint)),
    }
    body = tag(
        "body",
        _opening(study, _error_tile(study, error, one_value, baseline), imprint, describe_losses(study, queries, lost)),
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


def _opening(study: Study, error_tile: Html, imprint: Imprint, losses: Sequence[str]) -> Html:
    names = [entry.name for entry in study.roster]
    shown = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    lead = (
        f"{plural(study.rows or 0, 'synthetic row')} with {plural(len(study.attributes), 'column')}, published "
        f"{'together ' if len(names) > 1 else ''}by {listed(shown)}. No row is a person. "
        "This page says how far the table can be trusted, and what protects the people behind it."
    )
    return tag(
        "header",
        tag("p", f"Report of a release · Synod {imprint.version}", class_="kind"),
        tag("h1", study.name),
        tag("p", lead, class_="lead"),
        *(tag("p", sentence) for sentence in losses),
        tag("dl", *_tiles(study), error_tile, class_="tiles"),
    )


def _tiles(study: Study) -> list[Html]:
    is_one = len(study.roster) == 1
    holds = "holds its own rows, and shows them to nobody"
    return [
        _tile("Synthetic rows", whole(study.rows or 0), f"from {whole(study.total_rows)} real ones"),
        _tile("Parties", whole(len(study.roster)), holds if is_one else f"each {holds}"),
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
