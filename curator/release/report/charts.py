"""Charts that are tables: a label with its bar, and the numbers beside it. They need no colour, no script, no ruler.

A solid bar is the synthetic rows'; a bracket with a stroke in it is the released number with its band.
"""

from collections.abc import Sequence

from synod.curator.release.report.margins import Gauge, Reading
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import measured, percent, percent_and_band, plural

FIRST_ROWS = 12
OUTSIDE = "outside its band"
UNIT = 1000.0  # of a bar's width, which the page stretches


def chart_table(caption: str, heads: Sequence[str], rows: Sequence[Html], more: str) -> Html:
    """Rows under one head; those after the first dozen are folded away."""
    if len(rows) <= FIRST_ROWS + 2:
        return _table(caption, heads, rows)
    rest = _table(f"{caption}, continued", heads, rows[FIRST_ROWS:])
    summary = tag("summary", plural(len(rows) - FIRST_ROWS, f"more {more}"))
    return join([_table(caption, heads, rows[:FIRST_ROWS]), tag("details", summary, rest)])


def _table(caption: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    titles = join(tag("th", head, scope="col") for head in heads)
    body = (tag("caption", caption, class_="unseen"), tag("thead", tag("tr", titles)), tag("tbody", *rows))
    return tag("table", *body, class_="chart")


def fold_table(caption: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    """A plain table that scrolls inside its box; rows after the first dozen are folded away."""
    if len(rows) <= FIRST_ROWS + 2:
        return scroll_table(caption, heads, rows)
    rest = scroll_table(f"{caption}, continued", heads, rows[FIRST_ROWS:])
    summary = tag("summary", plural(len(rows) - FIRST_ROWS, "more row"))
    return join([scroll_table(caption, heads, rows[:FIRST_ROWS]), tag("details", summary, rest)])


def scroll_table(caption: str, heads: Sequence[str], rows: Sequence[Html], kind: str | None = None) -> Html:
    """A plain table that scrolls inside its box."""
    titles = tag("tr", *(tag("th", head, scope="col") for head in heads))
    table = tag("table", tag("caption", caption), tag("thead", titles), tag("tbody", *rows), class_=kind)
    return tag("div", table, class_="scroll", tabindex=0, role="group", aria_label=caption)


def chart_row(label: Html, drawing: Html, *cells: str) -> Html:
    """A label above its drawing, and numbers."""
    head = tag("th", tag("span", label, class_="label"), drawing, scope="row")
    return tag("tr", head, *(tag("td", cell) for cell in cells))


def draw_strip(*shapes: str) -> Html:
    """A strip as wide as its cell. It says nothing that the numbers beside it do not say."""
    return tag("svg", *shapes, class_="strip", viewBox="0 0 1000 20", preserveAspectRatio="none", aria_hidden="true")


def bar(start: float, end: float, kind: str = "bar") -> Html:
    """A bar between two places from 0 to 1."""
    low, high = sorted((_inside(start), _inside(end)))
    return tag("rect", x=UNIT * low, y=4, width=UNIT * (high - low), height=12, class_=kind)


def bracket(low: float, middle: float, high: float) -> Html:
    """A released number with its band."""
    a, b, c = (UNIT * _inside(place) for place in (low, middle, high))
    ends = f"M{a:.1f} 3V17M{a:.1f} 10H{c:.1f}M{c:.1f} 3V17"
    return join([tag("path", d=ends, class_="band"), tag("path", d=f"M{b:.1f} 0V20", class_="stroke")])


def _inside(place: float) -> float:
    return min(1.0, max(0.0, place))


def share_rows(readings: Sequence[Reading], reach: float) -> list[Html]:
    """A row for each reading; the bars' full width stands for `reach`."""
    rows = []
    for reading in readings:
        shapes, numbers = [bar(0, reading.synthetic / reach)], [percent(reading.synthetic)]
        if reading.released is not None:
            ends = ((reading.released + sign * reading.band) / reach for sign in (-1, 0, 1))
            shapes.append(bracket(*ends))
            numbers.append(percent_and_band(reading.released, reading.band))
        rows.append(chart_row(_mark(reading), draw_strip(*shapes), *numbers))
    return rows


def _mark(reading: Reading) -> Html:
    """The label, with words where the bar ends outside of the band."""
    mark = join([" ", tag("em", OUTSIDE, class_="off")]) if reading.is_outside else Html()
    return join([outside(reading.label), mark])


def find_reach(readings: Sequence[Reading]) -> float:
    """How far bars must reach: the next full tenth, at least one."""
    most = max((max(r.synthetic, (r.released or 0.0) + r.band) for r in readings), default=0.0)
    return min(1.0, max(1, -int(-most * 10 // 1)) / 10)


def gauge_row(gauge: Gauge) -> Html:
    """A figure of a number, on the scale of all that it could be."""
    span = gauge.high - gauge.low

    def place(value: float) -> float:
        return (value - gauge.low) / span

    middle = place(gauge.synthetic)
    track = tag("path", d="M0 10H1000", class_="track")
    strip = draw_strip(
        track, bar(middle - 0.006, middle + 0.006), bracket(*map(place, (gauge.band[0], gauge.released, gauge.band[1])))
    )
    band = tag("small", f"{measured(gauge.band[0], span)} to {measured(gauge.band[1], span)}")
    released = join([measured(gauge.released, span), " ", band])
    mark = join([" ", tag("em", OUTSIDE, class_="off")]) if gauge.is_outside else Html()
    return chart_row(join([gauge.label, mark]), strip, measured(gauge.synthetic, span), released)


def draw_histogram(readings: Sequence[Reading], title: str, words: str, faint: int = 0) -> Html:
    """Columns side by side; the last `faint` of them are hatched."""
    most = max((reading.synthetic for reading in readings), default=0.0) or 1.0
    width = UNIT / max(1, len(readings))
    gap = min(6.0, width / 5)
    columns = []
    for place, reading in enumerate(readings):
        height = 100 * max(0.0, reading.synthetic) / most
        kind = "bar" if place < len(readings) - faint else "bar faint"
        shape = tag("rect", x=width * place, y=100 - height, width=width - gap, height=height, class_=kind)
        columns.append(tag("g", tag("title", f"{reading.label}: {percent(reading.synthetic)}"), shape))
    base = tag("path", d="M0 100H1000M0 0V100M0 0H1000M0 50H1000", class_="track")
    head = (tag("title", title), tag("desc", words))
    return tag(
        "svg", *head, base, *columns, role="img", class_="outline", viewBox="0 0 1000 101", preserveAspectRatio="none"
    )


def draw_axes(drawing: Html, most: float, marks: Sequence[str]) -> Html:
    """A histogram with shares on its left, up to its highest bar, and the marks of its bins below."""
    shares = tag("div", *(tag("span", percent(part * most)) for part in (1, 0.5, 0)), class_="shares")
    below = tag("div", *(tag("span", outside(mark)) for mark in marks), class_="ends")
    return tag("div", shares, drawing, below, class_="axes")
