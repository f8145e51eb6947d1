"""Draws a Bayesian network over whole columns: a lane for each, from left to right in the order in which they depend.

A column is in the layer after that of its last parent, so every arrow points to the right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.network.evidence import network_from_json
from synod.curator.network.graph import Network
from synod.curator.release.report.markup import Html, plain, tag
from synod.curator.release.report.wording import plural

LAYER, ROW, RADIUS = 68, 32, 9
LETTER = 6.6
LONGEST_LABEL = 24


@dataclass(frozen=True, slots=True)
class Lane:
    """A column of the table with its layer, from `top` on."""

    label: str
    feature: int
    layer: int
    top: float


def read_networks(study: Study, publication: Publication) -> dict[str, Network]:
    """The networks of a model: one that everybody shares, named by an empty text, or one for each party."""
    model: Any = publication.model
    if "network" in model:
        return {"": network_from_json(model["network"], study)}
    return {own["party"]: network_from_json(own["network"], study) for own in model["networks"]}


def has_bits(study: Study) -> bool:
    """Whether some attribute is more than one feature, its levels aside."""
    owners = [feature.attribute for feature in features_of(study) if not feature.level]
    return len(set(owners)) < len(owners)


def name_feature(study: Study, feature: int) -> str:
    """A column's name, with the number of groups if it is a coarser level."""
    one = features_of(study)[feature]
    name = plain(study.attributes[one.attribute].name)
    return f"{name}, in {one.size} groups" if one.level else name


def layer_features(network: Network) -> dict[int, int]:
    """The layer of each feature: one more than the last of its parents."""
    layers: dict[int, int] = {}
    for pair in network.pairs:
        parents = (network.levels.base(parent) for parent in pair.parents)
        layers[pair.feature] = 1 + max((layers[parent] for parent in parents), default=-1)
    return layers


def arrange_lanes(study: Study, network: Network) -> list[Lane]:
    """Lanes from top to bottom: columns that are drawn early first."""
    layers = layer_features(network)
    order = sorted(layers, key=lambda feature: (layers[feature], feature))
    return [
        Lane(name_feature(study, feature), feature, layers[feature], float(ROW * place))
        for place, feature in enumerate(order)
    ]


def draw_network(study: Study, network: Network, key: str) -> Html:
    """The drawing; `key` tells its marker from those of other drawings on the page."""
    lanes = arrange_lanes(study, network)
    left = 16 + LETTER * min(LONGEST_LABEL, max(len(lane.label) for lane in lanes))
    places = {lane.feature: (left + 16 + LAYER * lane.layer, lane.top + ROW / 2) for lane in lanes}
    width = max(x for x, _ in places.values()) + 24
    height = float(ROW * len(lanes))
    arrows = [_draw_arrow(study, places, *edge, key) for edge in sorted(network.edges)]
    words = (
        f"{plural(len(places), 'column')} and {plural(len(arrows), 'arrow')}, from a parent to what is drawn from it."
    )
    return tag(
        "svg",
        tag("title", "Bayesian network"),
        tag("desc", words + " The list below the drawing says the same in words."),
        tag("defs", _arrow_head(key)),
        *(_draw_lane(lane, width, place) for place, lane in enumerate(lanes)),
        *arrows,
        *(_draw_node(study, i, *places[i]) for i in sorted(places)),
        role="img",
        class_="network",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        style=f"min-width:{width:.0f}px;max-width:{1.3 * width:.0f}px",
    )


def _arrow_head(key: str) -> Html:
    head = tag("path", d="M0 0L7 3.5L0 7z")
    return tag(
        "marker",
        head,
        id=f"head-{key}",
        viewBox="0 0 7 7",
        refX=6,
        refY=3.5,
        markerWidth=6,
        markerHeight=6,
        orient="auto",
    )


def _draw_lane(lane: Lane, width: float, place: int) -> Html:
    label = lane.label if len(lane.label) <= LONGEST_LABEL else lane.label[: LONGEST_LABEL - 1] + "…"
    stripe = tag("rect", x=0, y=lane.top, width=width, height=ROW, class_="lane") if place % 2 == 0 else Html()
    text = tag("text", tag("title", lane.label), label, x=8, y=lane.top + ROW / 2 + 4)
    return tag("g", stripe, text)


def _draw_arrow(study: Study, places: dict[int, tuple[float, float]], parent: int, child: int, key: str) -> Html:
    (x1, y1), (x2, y2) = places[parent], places[child]
    start, end = x1 + RADIUS, x2 - RADIUS - 1
    bend = max(14.0, (end - start) * 0.45)
    path = f"M{start:.1f} {y1:.1f}C{start + bend:.1f} {y1:.1f} {end - bend:.1f} {y2:.1f} {end:.1f} {y2:.1f}"
    words = f"{name_feature(study, parent)} → {name_feature(study, child)}"
    return tag(
        "g",
        tag("title", words),
        tag("path", d=path, marker_end=f"url(#head-{key})"),
        class_="arrow",
        data_edge=f"{parent}-{child}",
    )


def _draw_node(study: Study, feature: int, x: float, y: float) -> Html:
    name = tag("title", name_feature(study, feature))
    return tag("g", name, tag("circle", cx=x, cy=y, r=RADIUS), class_="node", data_feature=feature)


def list_parents(study: Study, network: Network) -> Sequence[tuple[str, list[str]]]:
    """Each column with the names of its parents, in the order of drawing."""
    return [
        (name_feature(study, pair.feature), [name_feature(study, parent) for parent in pair.parents])
        for pair in network.pairs
    ]
