"""The drawing of a network: every arrow of the model, each to the right, and every column in a lane of its own; or
which columns are joined, where there are more than arrows can show.
"""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from synod.common.study.study import Study
from synod.curator.network.graph import Network, Pair
from synod.curator.release.report.models.columns import (
    describe_columns,
    joined_columns,
    list_columns,
    order_columns,
    show_columns,
)
from synod.curator.release.report.models.graph import arrange_lanes, draw_network, layer_features, list_parents
from tests.support.reports import edges, render_report, section, text_of
from tests.support.studies import categorical, make_study


def bits_study(*sizes: int, encoding: str = "binary") -> Study:
    schema: list[dict[str, Any]] = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    return make_study(schema=schema, method={"name": "dp-subn", "encoding": encoding})


def random_network(features: int, seed: int) -> Network:
    rng = np.random.default_rng(seed)
    order = [int(i) for i in rng.permutation(features)]
    pairs = []
    for place, feature in enumerate(order):
        parents = rng.permutation(order[:place])[: int(rng.integers(0, 4))]
        pairs.append(Pair(feature, tuple(sorted(int(p) for p in parents))))
    return Network(tuple(pairs))


@pytest.mark.parametrize("seed", range(5))
def test_every_arrow_of_a_network_is_drawn_once_and_points_to_the_right(seed: int) -> None:
    study = bits_study(*[16] * 52, encoding="vanilla")
    network = random_network(52, seed)
    tree = ElementTree.fromstring(draw_network(study, network, "all"))
    assert sorted(edges(tree)) == sorted(network.edges)
    paths = [path.attrib["d"] for path in tree.iter("path") if "marker-end" in path.attrib]
    assert len(paths) == len(network.edges)
    for path in paths:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
        assert numbers[0] < numbers[6]
    nodes = [element for element in tree.iter("g") if "data-feature" in element.attrib]
    assert sorted(int(node.attrib["data-feature"]) for node in nodes) == list(range(52))
    circles = [(circle.attrib["cx"], circle.attrib["cy"]) for circle in tree.iter("circle")]
    assert len(set(circles)) == 52, "no column hides another"


def test_columns_stand_in_lanes_of_their_own_after_their_parents() -> None:
    study = bits_study(8, 3, 2, 4, 5, 6, encoding="vanilla")
    network = random_network(6, 3)
    layers = layer_features(network)
    assert all(layers[parent] < layers[child] for parent, child in network.edges)
    lanes = arrange_lanes(study, network)
    assert sorted(lane.feature for lane in lanes) == list(range(6))
    assert [lane.label for lane in lanes] == [f"x{lane.feature}" for lane in lanes]
    assert {lane.feature: lane.layer for lane in lanes} == layers
    assert len({lane.top for lane in lanes}) == 6
    network = Network((Pair(2, ()), Pair(0, (2,))))
    assert list_parents(study, network) == [("x2", []), ("x0", ["x2"])]


# x0 has the features 0, 1 and 2, x1 has 3 and 4, and x2 has 5.
SPLIT = Network((Pair(5, ()), Pair(0, (5,)), Pair(3, (0, 5)), Pair(1, (0, 3)), Pair(4, (1, 3)), Pair(2, (5,))))
JOINED = {(0, 1): 3, (0, 2): 2, (1, 2): 1}


def test_two_columns_are_joined_by_all_arrows_between_their_parts_in_either_direction() -> None:
    study = bits_study(8, 3, 2)
    assert joined_columns(study, SPLIT) == JOINED
    assert order_columns(study, SPLIT) == [2, 0, 1]


def test_split_columns_are_drawn_whole() -> None:
    study = bits_study(8, 3, 2)
    tree = ElementTree.fromstring(f"<div>{show_columns(study, SPLIT)}{list_columns(study, SPLIT)}</div>")
    lines = {g.attrib["data-pair"]: int(g.attrib["data-arrows"]) for g in tree.iter("g") if "data-pair" in g.attrib}
    assert lines == {f"{first}-{second}": count for (first, second), count in JOINED.items()}
    heights = dict(zip(["x2", "x0", "x1"], (11.0, 33.0, 55.0), strict=True))
    for line in (g for g in tree.iter("g") if "data-pair" in g.attrib):
        path = line.find("path")
        assert path is not None
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
        names = [f"x{column}" for column in line.attrib["data-pair"].split("-")]
        assert sorted((numbers[1], numbers[-1])) == sorted(heights[name] for name in names)
    assert [text_of(row) for row in tree.iter("tr")] == [
        "columnjoined with (arrows)", "x2x0 (2); x1 (1)", "x0x1 (3); x2 (2)", "x1x0 (3); x2 (1)",
    ]  # fmt: skip
    assert describe_columns(study, SPLIT) == "It joins 3 of 3 pairs of columns, by 6 arrows."


def test_of_very_many_columns_those_with_the_most_arrows_are_drawn_and_all_are_listed() -> None:
    study = bits_study(*[2] * 70)
    star = Network((Pair(0, ()), *(Pair(i, (0,)) for i in range(1, 60)), *(Pair(i, ()) for i in range(60, 70))))
    tree = ElementTree.fromstring(f"<div>{show_columns(study, star)}{list_columns(study, star)}</div>")
    drawn = [text_of(text).removeprefix(text_of(text.find("title"))) for text in tree.iter("text")]
    assert sorted(drawn, key=lambda name: int(name[1:])) == [f"x{i}" for i in range(60)]
    assert "10 columns with fewer arrows" in text_of(tree)
    assert len(list(tree.iter("tr"))) == 71
    assert "x69no other column" in text_of(tree)


def test_a_network_without_arrows_says_what_that_means() -> None:
    study = bits_study(4, 4)
    words = describe_columns(study, Network(tuple(Pair(i, ()) for i in range(4))))
    assert words.startswith("It joins 0 of 1 pair of columns, by 0 arrows.")
    assert "independently of each other" in words


def test_no_report_speaks_of_bits() -> None:
    schema = [categorical("ward", 6), categorical("diet", 9), categorical("sex", 2)]
    report = render_report(make_study(schema=schema, epsilon="5", method={"name": "dp-subn", "encoding": "binary"}))
    assert not re.search(r"\bbits?\b", text_of(report.tree))
    assert "data-pair" in report.page


def test_each_party_of_independent_has_its_own_drawing() -> None:
    schema = [categorical(f"x{i}", ("a", "b")) for i in range(4)]
    study = make_study(schema=schema, rows=(4000, 5000, 6000), epsilon="5", method={"name": "independent"})
    report = render_report(study)
    model: Any = report.publication.model
    words = section(report.tree, "model")
    folds = [fold for fold in words.findall("details") if fold.find("summary") is not None]
    assert [text_of(fold.find("summary")) for fold in folds] == [
        f"The network of {n}" for n in ("north", "harbour", "valley")
    ]
    for fold, own in zip(folds, model["networks"], strict=True):
        assert sorted(edges(fold)) == sorted((parent, child) for child, parents in own["network"] for parent in parents)
    assert ["open" in fold.attrib for fold in folds] == [True, False, False]


def test_a_network_of_hundreds_is_drawn_by_columns() -> None:
    study = make_study(
        schema=[categorical(f"x{i}", ("a", "b")) for i in range(210)],
        epsilon="0.01",
        method={"name": "dp-subn"},
    )
    report = render_report(study)
    words = text_of(section(report.tree, "model"))
    assert "It has 210 columns" in words
    assert "x209" in words
    assert "150 columns with fewer arrows" in words
    assert not list(edges(report.tree))
