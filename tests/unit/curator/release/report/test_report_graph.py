"""The drawing of a network: every arrow of the model, each to the right, and every feature in its attribute's lane."""

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.network.graph import Network, Pair
from synod.curator.release.report.models.graph import (
    arrange_lanes,
    draw_network,
    layer_features,
    list_parents,
    name_feature,
)
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
    study = bits_study(*[16] * 13)
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
    assert len(set(circles)) == 52, "no feature hides another"


def test_features_stand_in_the_lane_of_their_attribute_after_their_parents() -> None:
    study = bits_study(8, 3, 2)
    network = random_network(6, 3)
    layers = layer_features(network)
    assert all(layers[parent] < layers[child] for parent, child in network.edges)
    lanes = arrange_lanes(study, network)
    assert sorted(i for lane in lanes for i in lane.places) == list(range(6))
    for lane in lanes:
        assert {study.attributes[features_of(study)[i].attribute].name for i in lane.places} == {lane.label}
    tops = [(lane.top, lane.top + lane.height) for lane in lanes]
    assert all(one[1] == other[0] for one, other in pairwise(tops))


def test_names_of_features() -> None:
    study = bits_study(8, 3, 2)
    assert [name_feature(study, i) for i in range(6)] == [
        "x0, bit 1",
        "x0, bit 2",
        "x0, bit 3",
        "x1, bit 1",
        "x1, bit 2",
        "x2",
    ]
    assert [name_feature(bits_study(8, 3, encoding="vanilla"), i) for i in range(2)] == ["x0", "x1"]
    network = Network((Pair(5, ()), Pair(0, (5,))))
    assert list_parents(study, network) == [("x2", []), ("x0, bit 1", ["x2"])]


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


def test_a_network_of_hundreds_is_not_drawn() -> None:
    study = make_study(
        schema=[categorical(f"x{i}", ("a", "b")) for i in range(210)],
        epsilon="0.01",
        method={"name": "dp-subn"},
    )
    report = render_report(study)
    assert "too large to draw" in text_of(section(report.tree, "model"))
    assert not list(edges(report.tree))
