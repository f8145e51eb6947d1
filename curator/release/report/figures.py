"""The margins: a card for each attribute, with what the synthetic rows have of it beside what was released."""

from collections.abc import Sequence

from synod.curator.release.report.charts import (
    bar,
    bracket,
    chart_row,
    chart_table,
    draw_axes,
    draw_histogram,
    draw_strip,
    find_reach,
    gauge_row,
    share_rows,
)
from synod.curator.release.report.margins import Margin, Reading
from synod.curator.release.report.markup import Html, join, outside, plain, tag
from synod.curator.release.report.wording import percent, plural, whole

MOST_CARDS = 200
MOST_ROWS = 2_400
FEWEST_ROWS = 12


def show_margins(margins: Sequence[Margin]) -> Html:
    """A card for each attribute, with a legend before them."""
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
        parts.append(tag("p", "Released were counts of rows that have one of some values:", class_="part"))
        parts.append(_shares(f"Parts of {name}", margin.groups, len(margin.groups)))
    return tag("article", *parts, class_="card", data_attribute=name)


def _histogram(margin: Margin) -> Html:
    readings = margin.histogram
    peak = max(readings, key=lambda reading: reading.synthetic)
    most = f"{peak.label}, with {percent(peak.synthetic)} of the synthetic rows"
    words = f"{plural(len(readings), 'bin')}; the largest is {most}."
    drawing = draw_histogram(readings, f"Synthetic rows by {plain(margin.name)}", words)
    places = sorted({0, len(readings) // 2, len(readings) - 1})
    return draw_axes(drawing, peak.synthetic, [readings[place].label for place in places])


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
