"""The parts of the page that are looked at: margins, and the model as a network or as components."""

from collections.abc import Mapping, Sequence

from synod.common.methods.base import HpdpDp
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.network.graph import Network
from synod.curator.release.report.charts import (
    bar,
    bracket,
    chart_row,
    chart_table,
    draw_histogram,
    draw_strip,
    find_reach,
    gauge_row,
    share_rows,
)
from synod.curator.release.report.components import Components, Loading, read_components
from synod.curator.release.report.graph import MOST_FEATURES, draw_network, has_bits, list_parents, read_networks
from synod.curator.release.report.margins import Margin, Reading, read_margins
from synod.curator.release.report.markup import Html, join, outside, plain, tag
from synod.curator.release.report.wording import percent, plural, whole

MOST_CARDS = 200
MOST_ROWS = 2_400
FEWEST_ROWS = 12
MOST_NETWORKS = 10
MOST_LOADINGS = 60


def show_margins(study: Study, publication: Publication) -> Html:
    """A card for each attribute, with a legend before them."""
    margins = read_margins(study, publication)
    shown = margins[:MOST_CARDS]
    rows = max(FEWEST_ROWS, MOST_ROWS // len(shown))
    parts = [_legend(), tag("div", *(_card(margin, rows) for margin in shown), class_="cards")]
    if len(margins) > len(shown):
        parts.append(tag("p", f"{plural(len(margins) - len(shown), 'more column')} would make this page too long."))
    return join(parts)


def _legend() -> Html:
    drawn = tag("li", draw_strip(bar(0, 0.8)), "synthetic rows")
    released = tag("li", draw_strip(bracket(0.15, 0.5, 0.85)), "released number, with the band of its noise")
    return tag("ul", drawn, released, class_="legend")


def _card(margin: Margin, most: int) -> Html:
    name, parts = plain(margin.name), [tag("h3", outside(margin.name)), tag("p", margin.domain)]
    if margin.is_constant:
        parts.append(tag("p", "Its only value is public: ", outside(margin.shares[0].label), "."))
        return tag("article", *parts, class_="card", data_attribute=name)
    if margin.histogram:
        parts.append(_histogram(margin))
    if margin.shares:
        parts.append(_shares(f"Shares of {name}", margin.shares, most))
    if margin.gauges:
        if margin.shares:
            parts.append(tag("p", "In these figures a missing value counts as the middle of the range:", class_="part"))
        heads = ("figure", "synthetic", "released")
        parts.append(chart_table(f"Figures of {name}", heads, [gauge_row(gauge) for gauge in margin.gauges], "figure"))
    if margin.groups:
        parts.append(tag("p", "Released were counts of parts of it, one for each bit of its code:", class_="part"))
        parts.append(_shares(f"Parts of {name}", margin.groups, len(margin.groups)))
    return tag("article", *parts, class_="card", data_attribute=name)


def _histogram(margin: Margin) -> Html:
    readings = margin.histogram
    peak = max(readings, key=lambda reading: reading.synthetic)
    most = f"{peak.label}, with {percent(peak.synthetic)} of the synthetic rows"
    words = f"{plural(len(readings), 'bin')}; the largest is {most}."
    drawing = draw_histogram(readings, f"Synthetic rows by {plain(margin.name)}", words)
    ends = (tag("span", readings[0].label), tag("span", readings[-1].label))
    return join([drawing, tag("div", *(ends if len(readings) > 1 else ends[:1]), class_="ends")])


def _shares(caption: str, readings: Sequence[Reading], most: int) -> Html:
    """The bars; of more values than there is room for, those that most rows have, and the rest together."""
    reach = find_reach(readings)
    shown = sorted(range(len(readings)), key=lambda i: (-round(readings[i].synthetic, 9), i))[:most]
    rows = share_rows([readings[i] for i in sorted(shown)], reach)
    rest = sum(reading.synthetic for reading in readings) - sum(readings[i].synthetic for i in shown)
    heads = [f"a full bar is {round(100 * reach)}\u00a0%", "synthetic"]
    compared = [] if readings[0].released is None else ["released"]
    if len(shown) < len(readings):
        label = Html(f"the other {whole(len(readings) - len(shown))} together")
        rows.append(chart_row(label, draw_strip(bar(0, rest / reach)), percent(rest), *["\u2013" for _ in compared]))
    return chart_table(caption, [*heads, *compared], rows, "value")


# The model


def show_model(study: Study, publication: Publication) -> Html:
    """The network or the components."""
    if isinstance(study.method, HpdpDp):
        return _show_components(study, publication)
    networks = read_networks(publication)
    if "" in networks:
        return _show_network(study, networks[""], "all")
    return _show_own_networks(study, networks)


def _show_own_networks(study: Study, networks: Mapping[str, Network]) -> Html:
    """One network for each party, each made from its own rows; the first one is unfolded. A party alone has the only
    one.
    """
    if len(networks) == 1:
        (network,) = networks.values()
        return _show_network(study, network, "all")
    parts = [tag("p", "Each party has a network of its own, and its part of the rows was drawn from that.")]
    for place, (party, network) in enumerate(networks.items()):
        if place < MOST_NETWORKS:
            drawing = _show_network(study, network, party)
            unfolded = None if place else ""
            parts.append(tag("details", tag("summary", f"The network of {party}"), drawing, open=unfolded))
    if len(networks) > MOST_NETWORKS:
        rest = plural(len(networks) - MOST_NETWORKS, "more network")
        parts.append(tag("p", f"{rest}: see ", tag("code", "model.json"), "."))
    return join(parts)


def _show_network(study: Study, network: Network, key: str) -> Html:
    words = [tag("p", _describe_network(study, network))]
    if len(network.pairs) > MOST_FEATURES:
        return join([*words, tag("p", "That is too large to draw; ", tag("code", "model.json"), " has it.")])
    label = "Bayesian network, scrolls sideways"
    drawing = tag("div", draw_network(study, network, key), class_="scroll", tabindex=0, role="group", aria_label=label)
    rows = [
        tag("tr", tag("th", tag("bdi", name), scope="row"), tag("td", _name_all(parents)))
        for name, parents in list_parents(study, network)
    ]
    head = tag("thead", tag("tr", tag("th", "feature", scope="col"), tag("th", "drawn from", scope="col")))
    table = tag("table", tag("caption", "In the order of drawing"), head, tag("tbody", *rows))
    return join([*words, drawing, tag("details", tag("summary", "The network as a list"), table)])


def _describe_network(study: Study, network: Network) -> str:
    features, arrows = plural(len(network.pairs), "feature"), plural(len(network.edges), "arrow")
    words = f"It has {features} and {arrows}; no feature has more than {plural(network.degree, 'parent')}."
    if has_bits(study):
        words += " A feature is a column, or one bit of its code, 1 being the highest."
    if not network.edges:
        words += " Without arrows the columns are drawn independently of each other: the budget allowed no more."
    return words


def _name_all(names: Sequence[str]) -> Html:
    return join((tag("bdi", name) for name in names), "; ") if names else Html("nothing")


def _show_components(study: Study, publication: Publication) -> Html:
    assert isinstance(study.method, HpdpDp)
    found = read_components(study, publication)
    columns = len(found.kept) + found.dropped
    words = (
        f"The {plural(columns, 'column')} that the model works with move together along "
        f"{plural(len(found.kept), 'direction')}, which carry {percent(sum(found.kept))} of the variance; "
        f"{percent(float(study.method.contribution))} were asked for."
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


def name_drawing(study: Study) -> str:
    """What the section about the model is called."""
    return "Principal components" if isinstance(study.method, HpdpDp) else "The network"
