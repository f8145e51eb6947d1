"""The map of relations: every two columns, as released below the diagonal, and in the synthetic rows above it."""

from collections.abc import Mapping, Sequence

from synod.common.study.study import Study
from synod.curator.release.report.charts import bar, bracket, chart_row, chart_table, draw_strip
from synod.curator.release.report.markup import Html, join, outside, plain, tag
from synod.curator.release.report.relations.released import Pair, Relation
from synod.curator.release.report.wording import plural, whole

CELL, LETTER, HEAD = 26, 6.4, 6
LONGEST_LABEL = 22
MOST_COLUMNS = 40
SHADES = 6
LISTED = 12
LEAST_REACH = 0.1
EXPLAINED = (
    "Every column is cut in two sides of about half of the rows. A relation is how much more often a row is on the "
    "same side of both columns than on different ones, less what unrelated columns would "
    "have: 0 for those, up to 1, or -1, where one column tells the other's side."
)
MOMENTS = (
    "Of a number its products with other columns were released, on average, which do not tell how many rows lie on "
    "which side of a cut."
)
NOTHING = "Nothing about two columns together was released by all parties in one number, so only the rows are shown."


def show_relations(study: Study, relations: Sequence[Relation], *, has_moments: bool = False) -> Html:
    """The map, what it says in words, and the strongest relations with their bands."""
    if not relations:
        return tag("p", "Fewer than two columns vary, so there is nothing to relate.")
    compared = [one for one in relations if one.released is not None]
    off = [one for one in compared if one.is_outside]
    nothing = f"{NOTHING} {MOMENTS}" if has_moments else NOTHING
    told = _describe(relations, compared, off, has_moments=has_moments) if compared else nothing
    words = [tag("p", EXPLAINED), tag("p", told)]
    return join([*words, _legend(is_compared=bool(compared)), _draw_map(study, relations), _list(study, relations)])


def _describe(
    relations: Sequence[Relation], compared: Sequence[Relation], off: Sequence[Relation], *, has_moments: bool
) -> str:
    told = (
        f"All parties together released such a number about {whole(len(compared))} of "
        f"{plural(len(relations), 'pair')} of columns."
    )
    if len(compared) < len(relations):
        told += " What the rows say of the others follows from the model alone."
        if has_moments:
            told += f" {MOMENTS}"
    if not off:
        return f"{told} In the synthetic rows every one of them is within the band of its noise."
    verb = "is" if len(off) == 1 else "are"
    return (
        f"{told} In the synthetic rows {whole(len(off))} of them {verb} outside of the band of the noise, where the "
        "model could not keep what was released; such cells have a frame."
    )


def _legend(*, is_compared: bool) -> Html:
    def swatch(kind: str, words: str) -> Html:
        cell = tag("rect", x=1, y=1, width=CELL - 2, height=CELL - 2, class_=kind)
        box = tag("svg", cell, viewBox=f"0 0 {CELL} {CELL}", class_="swatch", aria_hidden="true")
        return tag("li", box, words)

    entries = [
        swatch("more5", "on the same side more often"),
        swatch("less5", "on different sides more often"),
        swatch("none", "no relation"),
        *([swatch("unknown", "nothing released"), swatch("none framed", "outside of its band")] if is_compared else []),
    ]
    return tag("ul", *entries, class_="legend")


def _draw_map(study: Study, relations: Sequence[Relation]) -> Html:
    """Both triangles; of very many columns those with the strongest relations."""
    columns = _choose_columns(relations)
    places = {column: place for place, column in enumerate(columns)}
    names = [plain(study.attributes[column].name) for column in columns]
    shown = [one for one in relations if one.pair[0] in places and one.pair[1] in places]
    left = 12 + LETTER * (3 + min(LONGEST_LABEL, max(map(len, names))))
    size = CELL * len(columns)
    reach = max(LEAST_REACH, *(abs(one.synthetic) for one in shown))
    cells = [cell for one in shown for cell in _draw_pair(names, places, one, left, reach)]
    labels = [_draw_label(name, place, left) for place, name in enumerate(names)]
    drawing = tag(
        "svg", tag("title", "Relations between columns"),
        tag("desc", "Below the diagonal as released, above it in the synthetic rows; the table below has the numbers."),
        *cells, *labels, role="img", class_="map", viewBox=f"0 0 {left + size:.0f} {size:.0f}",
        style=f"min-width:{min(left + size, 700):.0f}px;max-width:{1.25 * (left + size):.0f}px",
    )  # fmt: skip
    box = tag("div", drawing, class_="scroll", tabindex=0, role="group", aria_label="Map of relations")
    rest = len({column for one in relations for column in one.pair}) - len(columns)
    note = [tag("p", f"{plural(rest, 'column')} with weaker relations would make this map too large.")] if rest else []
    return join([box, *note])


def _choose_columns(relations: Sequence[Relation]) -> list[int]:
    strongest: dict[int, float] = {}
    for one in relations:
        for column in one.pair:
            strongest[column] = max(strongest.get(column, 0.0), round(abs(one.synthetic), 9))
    ranked = sorted(strongest, key=lambda column: (-strongest[column], column))
    return sorted(ranked[:MOST_COLUMNS])


def _draw_pair(
    names: Sequence[str], places: Mapping[int, int], one: Relation, left: float, reach: float
) -> tuple[Html, Html]:
    """The released cell below the diagonal, and the synthetic one above it."""
    first, second = (places[column] for column in one.pair)
    label = f"{names[first]} with {names[second]}"
    frame = " framed" if one.is_outside else ""
    if one.released is None:
        below = _cell(first, second, left, "unknown", f"{label}: nothing released")
    else:
        told = f"{label}, released: {_number(one.released)} ± {one.band:.2f}"
        below = _cell(first, second, left, _shade(one.released, reach) + frame, told)
    told = f"{label}, synthetic rows: {_number(one.synthetic)}{', outside of its band' if frame else ''}"
    return below, _cell(second, first, left, _shade(one.synthetic, reach) + frame, told)


def _cell(column: int, row: int, left: float, kind: str, words: str) -> Html:
    x, y = left + CELL * column + 1, CELL * row + 1
    return tag("g", tag("title", words), tag("rect", x=x, y=y, width=CELL - 2, height=CELL - 2, class_=kind))


def _shade(value: float, reach: float) -> str:
    """One of six shades in either direction; rounded, so that no last bit decides."""
    level = round(round(abs(value) / reach, 6) * (SHADES - 1))
    return "none" if level == 0 else f"{'more' if value > 0 else 'less'}{min(level, SHADES - 1)}"


def _draw_label(name: str, place: int, left: float) -> Html:
    """The name and number of a row on the left, and the number on the diagonal, where its column begins."""
    short = name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
    middle = CELL * place + CELL / 2 + 4
    number = f"{place + 1}"
    row = tag("text", tag("title", name), f"{short} {number}", x=left - HEAD, y=middle, text_anchor="end")
    return join([row, tag("text", number, x=left + CELL * (place + 0.5), y=middle, text_anchor="middle")])


def _list(study: Study, relations: Sequence[Relation]) -> Html:
    """The strongest relations and those outside of their bands, in numbers."""
    ranked = sorted(relations, key=lambda one: (-round(abs(one.synthetic), 9), one.pair))
    listed = [one for place, one in enumerate(ranked) if place < LISTED or one.is_outside][: 4 * LISTED]
    rows = [_show(study, one) for one in listed]
    title = "The strongest relations, and those outside of their band"
    return chart_table(title, ("from -1 to 1", "synthetic", "released"), rows, "relation")


def _show(study: Study, one: Relation) -> Html:
    first, second = (outside(study.attributes[column].name) for column in one.pair)
    mark = tag("em", "outside its band", class_="off") if one.is_outside else Html()
    label = join([first, Html(" with "), second, Html(" "), mark])
    shapes = [bar(0.5, 0.5 + one.synthetic / 2)]
    told = "\u2013"
    if one.released is not None:
        shapes.append(bracket(*(0.5 + (one.released + sign * one.band) / 2 for sign in (-1, 0, 1))))
        told = f"{_number(one.released)}\u00a0±\u00a0{one.band:.2f}"
    return chart_row(label, draw_strip(*shapes), _number(one.synthetic), told)


def _number(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "\u2212")


def pairs_outside(relations: Sequence[Relation]) -> list[Pair]:
    """The pairs whose synthetic number is outside of its band."""
    return [one.pair for one in relations if one.is_outside]
