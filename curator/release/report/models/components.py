"""The principal components of HPDP-DP's model, read off the published loadings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synod.common.models.gaussian import parse_model
from synod.common.protocol.queries.moments import moment_design
from synod.common.study.attributes import plain
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.release.report.charts import bar, chart_row, chart_table, draw_histogram, draw_strip
from synod.curator.release.report.margins import Reading
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import MISSING, percent, plural, whole

MOST_LOADINGS = 60


@dataclass(frozen=True, slots=True)
class Loading:
    """How strongly one column goes with a component, from -1 to 1."""

    attribute: str
    value: str
    weight: float


@dataclass(frozen=True, slots=True)
class Components:
    """The share of variance of each kept component, how many were left out, their mean share, and the loadings of
    the first component, the heaviest first.
    """

    kept: tuple[float, ...]
    dropped: int
    dropped_share: float
    first: tuple[Loading, ...]


def read_components(study: Study, publication: Publication) -> Components:
    """With W's columns w_j and sigma, the variances are |w_j|^2 + sigma^2 for the kept ones and sigma^2 for others."""
    model = parse_model(publication.model, moment_design(study))
    width, rank = model.loadings.shape
    noise = model.noise**2
    variances = (model.loadings**2).sum(axis=0) + noise
    total = float(variances.sum() + (width - rank) * noise) or 1.0
    spread = np.sqrt((model.loadings**2).sum(axis=1) + noise)
    weights = model.loadings[:, 0] / np.where(spread > 0, spread, 1.0)
    loadings = [Loading(*name, float(weight)) for name, weight in zip(name_columns(study), weights, strict=True)]
    loadings.sort(key=lambda loading: -round(abs(loading.weight), 6))
    kept = tuple(float(variance) / total for variance in variances)
    return Components(kept, width - rank, noise / total if width > rank else 0.0, tuple(loadings))


def name_columns(study: Study) -> list[tuple[str, str]]:
    """The attribute and the value, if it is of one, of each column of the design after the constant."""
    design = moment_design(study)
    names = []
    for column in design.signed:
        coding = design.codings[column.attribute]
        values = {"number": "", "missing": MISSING, "binary": _value(column.attribute, 1, study)}
        names.append((coding.attribute.name, values[column.role]))
    for block in design.blocks:
        name = design.codings[block.attribute].attribute.name
        names.extend((name, _value(block.attribute, code, study)) for code in range(block.size))
    return names


def _value(attribute: int, code: int, study: Study) -> str:
    categories = getattr(plain(study.attributes[attribute]), "categories", ())
    return categories[code] if code < len(categories) else MISSING


def show_components(study: Study, publication: Publication, *, asked: str) -> Html:
    """The components with their shares of variance, and the first one's loadings; `asked`: what the study wanted."""
    found = read_components(study, publication)
    columns = len(found.kept) + found.dropped
    words = (
        f"The {plural(columns, 'column')} that the model works with move together along "
        f"{plural(len(found.kept), 'direction')}, which carry {percent(sum(found.kept))} of the variance; "
        f"{asked}."
    )
    if found.dropped:
        words += f" The other {whole(found.dropped)} are replaced by plain noise of the same size."
    loadings = _card_of(
        "The first component", "How strongly each column goes with it, from \u22121 to 1.", _loadings(found.first)
    )
    return join([tag("p", words), tag("div", _scree(found), loadings, class_="cards")])


def _scree(found: Components) -> Html:
    kept = [Reading(f"component {place}", share) for place, share in enumerate(found.kept, 1)]
    rest = [Reading("a component that was left out, on average", found.dropped_share)] * found.dropped
    words = f"The first carries {percent(found.kept[0])}, the last kept one {percent(found.kept[-1])}."
    drawing = draw_histogram([*kept, *rest], "Share of variance of each component", words, faint=len(rest))
    ends = (tag("span", "component 1"), tag("span", f"component {len(kept) + len(rest)}"))
    if rest:
        words += " Pale ones were left out; only their mean is known."
    return _card_of("Share of variance", words, drawing, tag("div", *ends, class_="ends"), _steps(found.kept))


def _card_of(title: str, words: str, *parts: Html) -> Html:
    return tag("article", tag("h3", title), tag("p", words), *parts, class_="card")


def _steps(shares: Sequence[float]) -> Html:
    """Each component's bar begins where the one before has ended."""
    rows, reached = [], 0.0
    for place, share in enumerate(shares, 1):
        strip = draw_strip(bar(0, reached, "bar faint"), bar(reached, reached + share))
        reached += share
        rows.append(chart_row(Html(f"component {place}"), strip, percent(share), percent(reached)))
    return chart_table(
        "Contribution of the components", ("a full bar is 100\u00a0%", "by itself", "all so far"), rows, "component"
    )


def _loadings(loadings: Sequence[Loading]) -> Html:
    rows = []
    for loading in loadings[:MOST_LOADINGS]:
        value = [Html(" is "), outside(loading.value)] if loading.value else []
        axis = tag("path", d="M500 0V20", class_="track")
        strip = draw_strip(axis, bar(0.5, 0.5 + loading.weight / 2))
        weight = f"{loading.weight:+.2f}".replace("-", "\u2212")
        rows.append(chart_row(join([outside(loading.attribute), *value]), strip, weight))
    return chart_table("Loadings of the first component", ("the middle is 0", "loading"), rows, "column")
