"""Mutual information against scikit-learn, and the networks that are read from a model file."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes
from synod.common.study.features import space_of
from synod.common.study.study import Study
from synod.deploy.evaluate.information import measure_information, mutual_information, read_networks
from tests.support.studies import categorical, integer, make_study

SCHEMA = (
    categorical("sex", ("F", "M")),
    integer("age", 0, 7, bins=8),
    categorical("ward", ("a", "b", "c"), nullable=True),
)
FEATURES = [[0, 2, 0], [1, 2, 2], [1, 2, 1], [1, 2, 0], [2, 2, 1], [2, 2, 0]]
NETWORK: list[tuple[int, list[int]]] = [(0, []), (3, [0]), (4, [0, 3]), (5, [4, 0, 3]), (1, []), (2, [1])]


def study_of(name: str = "dp-subn", **keys: str) -> Study:
    return make_study(schema=SCHEMA, method={"name": name, "encoding": "binary", **keys})


def write_model(path: Path, method: str = "dp-subn", **model: Any) -> Path:
    path.write_text(json.dumps({"method": method, "model": model}))
    return path


def score_bits(child: Codes, parents: list[Codes]) -> float:
    """By scikit-learn, in nats, over labels that name the parents' values."""
    labels = ["-".join(str(column[row]) for column in parents) for row in range(len(child))]
    return float(mutual_info_score(child, labels)) / math.log(2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 999), st.integers(1, 60), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_mutual_information_is_that_of_scikit_learn(seed: int, rows: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    parents: list[Codes] = [rng.integers(0, size, rows).astype(np.uint8) for size in sizes]
    child: Codes = ((parents[0] + rng.integers(0, 2, rows)) % 3).astype(np.uint8)
    assert mutual_information(child, parents) == pytest.approx(score_bits(child, parents), abs=1e-9)


def test_information_known_by_hand() -> None:
    fair = np.array([0, 0, 1, 1], dtype=np.uint8)
    other = np.array([0, 1, 0, 1], dtype=np.uint8)
    assert mutual_information(fair, [fair]) == 1
    assert mutual_information(fair, [other]) == 0
    assert mutual_information(fair ^ other, [fair, other]) == 1
    assert mutual_information(np.zeros(4, dtype=np.uint8), [fair]) == 0


@pytest.mark.parametrize("encoding", ["binary", "gray"])
def test_a_network_sums_over_its_pairs_on_both_tables(tmp_path: Path, encoding: str) -> None:
    study = study_of(encoding=encoding)
    networks = read_networks(write_model(tmp_path / "m.json", features=FEATURES, network=NETWORK), study)
    rng = np.random.default_rng(4)
    tables = [[rng.integers(0, s, rows).astype(np.uint8) for s in (2, 8, 4)] for rows in (50, 70)]
    found = measure_information(networks, study, *tables)
    sums = []
    for table in tables:
        bits = space_of(study).encode(table)
        sums.append(sum(score_bits(bits[x], [bits[p] for p in parents]) for x, parents in NETWORK if parents))
    assert found.networks == 1
    assert [found.real, found.synthetic] == pytest.approx(sums)
    assert sums[0] != pytest.approx(sums[1])


def test_networks_of_single_parties_are_averaged(tmp_path: Path) -> None:
    study = study_of("independent")
    parts = [{"party": "north", "network": [[0, []], [3, [0]]]}, {"party": "valley", "network": [[0, []], [1, [2]]]}]
    networks = read_networks(write_model(tmp_path / "m.json", "independent", networks=parts), study)
    rng = np.random.default_rng(4)
    table = [rng.integers(0, s, 40).astype(np.uint8) for s in (2, 8, 4)]
    bits = space_of(study).encode(table)
    expected = (score_bits(bits[3], [bits[0]]) + score_bits(bits[1], [bits[2]])) / 2
    found = measure_information(networks, study, table, table)
    assert found.networks == 2
    assert [found.real, found.synthetic] == pytest.approx([expected, expected])


def test_a_release_folder_stands_for_its_model(tmp_path: Path) -> None:
    write_model(tmp_path / "model.json", network=NETWORK)
    assert len(read_networks(tmp_path, study_of())[0]) == 6


def test_a_method_without_a_network_has_none(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.json", "hpdp-dp", components=3)
    assert read_networks(path, make_study(schema=SCHEMA)) == ()


def refusal(path: Path, study: Study) -> str:
    with pytest.raises(SynodError) as caught:
        read_networks(path, study)
    assert caught.value.code is Code.INVALID
    return str(caught.value)


def test_models_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    for text in ("", "[]", "{}", '{"method": "dp-subn"}', '{"method": "dp-subn", "model": {"network": [[0]]}}'):
        path.write_text(text)
        assert "cannot be read as the model" in refusal(path, study_of())
    for network in ([[-1, []]], [["0", []]], [[0, 1]]):
        assert "cannot be read as the model" in refusal(write_model(path, network=network), study_of())
    path.write_bytes(b"[" * 100)
    assert "m.json is nested more than 64 deep." in refusal(path, study_of())
    path.unlink()
    assert "cannot be read as the model" in refusal(path, study_of())


def test_models_of_another_study(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    told = "is not a model of this study"
    assert told in refusal(write_model(path, "dp-ccbn", network=NETWORK), study_of())
    assert told in refusal(write_model(path, features=FEATURES[1:], network=NETWORK), study_of())
    assert told in refusal(write_model(path, network=[[0, [6]]]), study_of())
    assert told in refusal(write_model(path, "hpdp-dp", network=NETWORK), make_study(schema=SCHEMA))
