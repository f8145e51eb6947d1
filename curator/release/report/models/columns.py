"""A network seen from the columns: which two of them it joins, however many parts a method makes of a column.

A line joins two columns when a part of one is drawn from a part of the other; how many arrows it stands for is said
beside it. All of it is read off the published network.
"""

import math
from collections import Counter
from collections.abc import Mapping

from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.network.graph import Network
from synod.curator.release.report.markup import Html, join, outside, plain, tag
from synod.curator.release.report.wording import plural, whole

Pair = tuple[int, int]
ROW, LETTER, PAD = 22, 6.6, 10
LONGEST_LABEL = 24
DEEPEST = 150.0  # of a line, so that a name and all lines fit a phone
THINNEST, THICKEST = 1.2, 4.5
MOST_COLUMNS = 60


def joined_columns(study: Study, network: Network) -> dict[Pair, int]:
    """How many arrows of the network each two columns have between them, in either direction."""
    owner = [feature.attribute for feature in features_of(study)]
    arrows = Counter(tuple(sorted((owner[parent], owner[child]))) for parent, child in network.edges)
    return {(first, second): count for (first, second), count in sorted(arrows.items()) if first != second}


def order_columns(study: Study, network: Network) -> list[int]:
    """All columns of the network, each where its parts are drawn on average."""
    places: dict[int, list[int]] = {}
    for place, pair in enumerate(network.pairs):
        places.setdefault(features_of(study)[pair.feature].attribute, []).append(place)
    return sorted(places, key=lambda column: (round(sum(places[column]) / len(places[column]), 6), column))


def show_columns(study: Study, network: Network) -> Html:
    """The drawing of all columns, or of those with the most arrows."""
    joined, order = joined_columns(study, network), order_columns(study, network)
    shown = _choose(order, joined)
    rest = len(order) - len(shown)
    note = [tag("p", f"{plural(rest, 'column')} with fewer arrows would make this drawing too large.")] if rest else []
    return join([_draw(study, shown, joined), *note])


def _choose(order: list[int], joined: Mapping[Pair, int]) -> list[int]:
    """Columns in their order; of very many those with the most arrows."""
    arrows: Counter[int] = Counter()
    for pair, count in joined.items():
        arrows.update(dict.fromkeys(pair, count))
    kept = set(sorted(order, key=lambda column: (-arrows[column], column))[:MOST_COLUMNS])
    return [column for column in order if column in kept]


def _draw(study: Study, order: list[int], joined: Mapping[Pair, int]) -> Html:
    """Names below each other, and at their right a line for each two that are joined."""
    names = {column: plain(study.attributes[column].name) for column in order}
    left = PAD + LETTER * min(LONGEST_LABEL, max(map(len, names.values())))
    heights = {column: ROW * (place + 0.5) for place, column in enumerate(order)}
    shown = {pair: count for pair, count in joined.items() if pair[0] in heights and pair[1] in heights}
    most = max(shown.values(), default=1)
    lines = [
        _draw_line(names, pair, left + 2 * PAD, heights, len(order), (count, most)) for pair, count in shown.items()
    ]
    width, height = left + 3 * PAD + DEEPEST, ROW * len(order)
    labels = [_draw_name(names[column], left, heights[column], place) for place, column in enumerate(order)]
    return tag(
        "svg", tag("title", "Which columns the network joins"),
        tag("desc", "A line for each two columns that are joined; the list below the drawing says the same in words."),
        *labels, *lines,
        role="img", class_="network columns", viewBox=f"0 0 {width:.0f} {height:.0f}",
        style=f"max-width:{1.3 * width:.0f}px",
    )  # fmt: skip


def _draw_name(name: str, left: float, height: float, place: int) -> Html:
    short = name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
    width = left + 3 * PAD + DEEPEST
    stripe = tag("rect", x=0, y=ROW * place, width=width, height=ROW, class_="lane") if place % 2 == 0 else Html()
    dot = tag("circle", cx=left + 2 * PAD, cy=height, r=3)
    return tag(
        "g", stripe, tag("text", tag("title", name), short, x=left + PAD / 2, y=height + 4, text_anchor="end"), dot
    )


def _draw_line(
    names: Mapping[int, str], pair: Pair, x: float, heights: Mapping[int, float], columns: int, weight: tuple[int, int]
) -> Html:
    """A bow, the deeper the further apart the two names are and the thicker the more arrows it stands for."""
    top, bottom = sorted(heights[column] for column in pair)
    apart = (bottom - top) / (ROW * max(1, columns - 1))
    depth = DEEPEST * math.sqrt(apart)
    count, most = weight
    thick = THINNEST + (THICKEST - THINNEST) * (count - 1) / max(1, most - 1)
    bow = f"M{x:.1f} {top:.1f}A{depth:.1f} {(bottom - top) / 2:.1f} 0 0 1 {x:.1f} {bottom:.1f}"
    words = f"{names[pair[0]]} with {names[pair[1]]}: {plural(count, 'arrow')}"
    return tag(
        "g",
        tag("title", words),
        tag("path", d=bow, style=f"stroke-width:{thick:.1f}"),
        class_="arrow",
        data_pair=f"{pair[0]}-{pair[1]}",
        data_arrows=count,
    )


def list_columns(study: Study, network: Network) -> Html:
    """The same as a table: each column with those that it is joined with."""
    joined, order = joined_columns(study, network), order_columns(study, network)
    rows = []
    for column in order:
        others = [(count, *(one for one in pair if one != column)) for pair, count in joined.items() if column in pair]
        others.sort(key=lambda other: (-other[0], other[1]))
        told = [join([outside(study.attributes[other].name), Html(f" ({whole(count)})")]) for count, other in others]
        name = outside(study.attributes[column].name)
        rows.append(tag("tr", tag("th", name, scope="row"), tag("td", join(told, "; ") if told else "no other column")))
    head = tag("thead", tag("tr", tag("th", "column", scope="col"), tag("th", "joined with (arrows)", scope="col")))
    return tag("table", tag("caption", "Which columns the network joins"), head, tag("tbody", *rows))


def describe_columns(study: Study, network: Network) -> str:
    """In words: how many pairs are joined, and what a line stands for."""
    joined, columns = joined_columns(study, network), len(order_columns(study, network))
    every = columns * (columns - 1) // 2
    arrows = plural(sum(joined.values()), "arrow")
    words = f"It joins {whole(len(joined))} of {plural(every, 'pair')} of columns, by {arrows}."
    if not joined and columns > 1:
        return words + " So the columns are drawn independently of each other: the budget allowed no more."
    return words
