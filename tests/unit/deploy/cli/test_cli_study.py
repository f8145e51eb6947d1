"""`synod study check`, `draft` and `forecast`, and the verbs that need a curator when there is none."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.protocol.queries.moments import moment_design
from synod.common.study.study import load_study
from synod.deploy.launch.operator import OperatorClient
from synod.v1 import study_pb2 as pb
from tests.support.commands import complaint, synod, write_study
from tests.support.studies import binary, categorical, integer, make_study


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study.yaml")


# check


def test_check_prints_the_resolved_study_its_hash_and_its_plan(study: Path) -> None:
    resolved = load_study(study).resolve()
    ending = synod("study", "check", study)
    assert (ending.code, ending.err) == (0, "")
    assert f"Hash: {resolved.digest().hex()}" in ending.out
    assert "sum-moments" in ending.out
    as_json = synod("study", "check", study, "--json")
    document = json.loads(as_json.out)
    assert document["hash"] == resolved.digest().hex()
    assert document["study"] == resolved.to_json()
    assert document["study"]["rows"] == 10
    assert [(step["label"], step["cost"]) for step in document["plan"]] == [
        ("moments", "epsilon:1"),
        ("rows", "epsilon:0"),
    ]


def test_check_without_a_roster(tmp_path: Path) -> None:
    ending = synod("study", "check", write_study(tmp_path / "study.yaml", roster={}))
    assert ending.code == 0
    assert "without a roster" in ending.out


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"epsilons": 1}, "epsilons is not known"),
    "unknown method": ({"method": {"name": "magic"}}, "method"),
    "a later method": ({"method": {"name": "priview"}}, "name must be one of adaptive, distdiffgen, dp-ccbn"),
    "a list of methods": ({"method": {"name": ["hpdp-dp"]}}, "name must be one of adaptive, distdiffgen, dp-ccbn"),
    "a method without keys": ({"method": "hpdp-dp"}, "is a mapping with a name, one of adaptive, distdiffgen, dp-ccbn"),
    "epsilon of text": ({"epsilon": "much"}, "epsilon"),
    "epsilon of nothing": ({"epsilon": 0}, "epsilon"),
    "rows of a fraction": ({"rows": 1.5}, "rows"),
    "weak key": ({"key_bits": 1024}, "key_bits"),
    "too much collusion": ({"collusion": 2}, "collusion"),
    "no schema": ({"schema": []}, "schema"),
    "a name with a slash": ({"name": "../x"}, "name"),
    "a number for a category": (
        {"schema": [{"name": "a", "type": "categorical", "categories": [0, 1]}]},
        "Put it in quotes",
    ),
    "twice the same attribute": (
        {"schema": [{"name": "a", "type": "integer", "min": 0, "max": 1} for _ in range(2)]},
        "the attribute a appears twice",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_check_refuses_what_is_no_study(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = write_study(tmp_path / "study.yaml", **change)
    told = complaint(synod("study", "check", path), 2)
    assert sentence in told
    assert str(path) in told


CANDIDATES = {"name": "dp-ccbn", "parameter_cells": 8, "max_numbers": 500}


@pytest.mark.parametrize(("attributes", "code"), [(8, 0), (12, 3)])
def test_check_refuses_iterations_that_are_too_large(tmp_path: Path, attributes: int, code: int) -> None:
    """Before anybody has approved or enrolled."""
    schema = [binary(f"a{place}") for place in range(attributes)]
    ending = synod("study", "check", write_study(tmp_path / "study.yaml", method=CANDIDATES, schema=schema))
    assert ending.code == code
    if code:
        told = complaint(ending, code)
        assert "DP-CCBN would ask for more than 500 numbers in one iteration of care-survey" in told


def test_check_and_forecast_say_what_delta_means(tmp_path: Path) -> None:
    path = write_study(tmp_path / "study.yaml", epsilon="0.5", delta="1e-9")
    for verb in ("check", "forecast"):
        ending = synod("study", verb, path, *(["--quick"] if verb == "forecast" else []))
        assert (ending.code, ending.err) == (0, "")
        assert "(epsilon, delta) = (0.5, 1e-9)" in ending.out
        assert "and by 1e-9, which is delta, beside that" in ending.out
    study = json.loads(synod("study", "check", path, "--json").out)["study"]
    assert (study["delta"], study["rho"]) == ("0.000000001", str(make_study(epsilon="0.5", delta="1e-9").rho))
    assert "delta" not in synod("study", "forecast", write_study(tmp_path / "pure.yaml"), "--quick").out


def test_check_refuses_too_little_epsilon_for_the_noise(tmp_path: Path) -> None:
    path = write_study(tmp_path / "study.yaml", epsilon="0.0000000000001")
    assert "too little of the study's epsilon" in complaint(synod("study", "check", path), 2)


FILES: dict[str, bytes] = {
    "empty": b"",
    "a list": b"- a\n",
    "no YAML": b"a: [1\n",
    "not UTF-8": b"name: \xff\n",
    "a key twice": b"name: a\nname: b\n",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_check_refuses_what_is_no_file_of_a_study(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    complaint(synod("study", "check", path), 2)


@pytest.mark.parametrize("command", ["check", "forecast", "submit"])
def test_a_file_that_is_not_there(tmp_path: Path, command: str) -> None:
    complaint(synod("study", command, tmp_path / "none.yaml"), 2)
    complaint(synod("study", command, tmp_path), 2)


# forecast


def forecast(study: Path) -> list[dict[str, Any]]:
    """The rounds of a study that has one way to ask."""
    found = json.loads(synod("study", "forecast", study, "--json", "--quick").out)
    assert set(found) == {"rounds", "columns_alone", "alternatives", "remarks"}
    assert found["alternatives"] == []
    rounds: list[dict[str, Any]] = found["rounds"]
    return rounds


def test_forecast(study: Path) -> None:
    ending = synod("study", "forecast", study, "--quick")
    assert (ending.code, ending.err) == (0, "")
    assert "care-survey: 2 rounds" in ending.out
    (round_,) = forecast(study)
    assert round_["label"] == "moments"
    assert round_["numbers"] > round_["ciphertexts"] >= 1
    assert round_["bytes_per_party"] == round_["ciphertexts"] * 512
    assert min(round_["seconds_per_party"], round_["memory_mib"], round_["error"]) > 0


def test_forecast_errors_shrink_with_epsilon_and_rows(tmp_path: Path) -> None:
    def error(**changes: Any) -> float:
        (found,) = forecast(write_study(tmp_path / "s.yaml", **changes))
        return float(found["error"])

    keys = ["sha256:" + digit * 64 for digit in "12"]
    base = error()
    assert error(epsilon=10) == pytest.approx(base / 10, rel=0.01)
    assert error(roster={"a": (keys[0], 30), "b": (keys[1], 70)}) == pytest.approx(base / 10, rel=0.01)


def test_the_forecast_error_is_that_of_the_released_sum(study: Path) -> None:
    """K/(K-t) times the variance of a discrete Laplace variable, on a count in units of 4 L^2 per row."""
    resolved = load_study(study).resolve()
    design = moment_design(resolved)
    scale = design.sensitivity / 1
    (found,) = forecast(study)
    deviation = math.sqrt(2 / (2 - 1) * 2 * scale**2)
    assert found["error"] == pytest.approx(deviation / (4 * design.unit**2 * 10), rel=1e-6)


def columns_alone(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(synod("study", "forecast", path, "--json", "--quick").out)["columns_alone"]
    return found


@pytest.mark.parametrize(
    "method",
    ["hpdp-dp", "dp-subn", "dp-ccbn", "independent", "adaptive", "histogram", "dpcocgen", "privbayes", "hpprivbayes"],
)
def test_every_forecast_tells_the_noise_of_columns_alone(tmp_path: Path, method: str) -> None:
    """Three columns of two values: a third of epsilon each, and K/(K-t) times the variance of the scale 2 / (1/3)."""
    schema = [binary(name) for name in "abc"]
    path = write_study(tmp_path / "s.yaml", method={"name": method}, schema=schema)
    found = columns_alone(path)
    assert found["numbers"] == 6
    assert found["error"] == pytest.approx(math.sqrt(2 * 2 * 6**2) / 10, rel=0.01)
    out = synod("study", "forecast", path, "--quick").out
    assert "Columns alone: the noise on a share of the rows if the whole budget went into one-way tables" in out
    (line,) = [line for line in out.splitlines() if "│ columns alone" in line]
    assert f"±{found['error']:.4f}" in line


def test_columns_alone_of_a_schema_with_one_bin_are_nothing(tmp_path: Path) -> None:
    path = write_study(tmp_path / "s.yaml", schema=[integer("age", 0, 100, bins=1)])
    assert columns_alone(path) is None
    assert "olumns alone" not in synod("study", "forecast", path, "--quick").out


def wide_study(path: Path, rows: int, **method: object) -> Path:
    keys = ["sha256:" + digit * 64 for digit in "12"]
    roster = {"a": (keys[0], rows), "b": (keys[1], rows)}
    schema = [categorical(f"x{i}", 8) for i in range(6)]
    return write_study(path, method={"name": "adaptive", **method}, roster=roster, schema=schema)


def test_a_forecast_tells_what_an_average_cell_has_against_its_noise(tmp_path: Path) -> None:
    """Five tables of 64 cells with a fifth of 26 % of epsilon each; two shares of noise of which one is enough."""
    path = wide_study(tmp_path / "s.yaml", 50_000, rounds=5)
    rounds = {found["label"]: found for found in forecast(path)}
    sigma = math.sqrt(2 * 2) * 2 * 5 / 0.26
    assert rounds["tables-1"]["cell_to_noise"] == pytest.approx(100_000 / (64 * sigma), rel=0.01)
    assert rounds["tables-1"]["cell_to_noise"] * 64 * rounds["tables-1"]["error"] == pytest.approx(1)
    assert rounds["agreements-1"]["cell_to_noise"] is None
    out = synod("study", "forecast", path, "--quick").out
    named = ", ".join(f"{label} {rounds[label]['cell_to_noise']:.2g}" for label in ("ones", "tables-1", "tables-2"))
    assert f"Rows of an average cell against its noise: {named}.\n" in out
    assert "mostly noise" not in out


def test_few_rows_are_told_to_be_too_few_for_pairs(tmp_path: Path) -> None:
    path = wide_study(tmp_path / "s.yaml", 300, rounds=5)
    out = synod("study", "forecast", path, "--quick").out
    assert "Rows of an average cell against its noise: ones 0.94, tables-1 0.12, tables-2 0.13.\n" in out
    assert out.count("mostly noise") == 1
    (remark,) = json.loads(synod("study", "forecast", path, "--json", "--quick").out)["remarks"]
    assert remark.startswith("Tables of two columns would be mostly noise: even in single columns")
    assert "noise would misplace 13% of the rows" in remark, "0.4 * 8 cells * sqrt(2) * 2 * 6 * sqrt(2) of 600 rows"
    assert "Publish columns alone with `rounds: 1`" in remark
    assert f"- {remark}\n" in out
    for keys in ({"rounds": 1}, {}):
        alone = synod("study", "forecast", wide_study(path, 300, **keys), "--quick").out
        assert "of two columns" not in alone, "that is what it would do already"
        assert "- Only single columns are counted" in alone


def test_forecast_needs_a_roster_or_row_counts(tmp_path: Path) -> None:
    path = write_study(tmp_path / "study.yaml", roster={})
    told = complaint(synod("study", "forecast", path), 2)
    assert "has no roster" in told
    assert "--rows 12000,8000,4000" in told
    assumed = json.loads(synod("study", "forecast", path, "--rows", "3,7", "--quick", "--json").out)
    assert assumed["rounds"] == forecast(write_study(tmp_path / "with.yaml"))
    for wrong in ("", "a", "3,-1", "0,5", "3;4"):
        assert "positive whole numbers" in complaint(synod("study", "forecast", path, "--rows", wrong), 2)


def test_every_broken_rule_is_told_at_once_and_the_hash_comes_first(study: Path, tmp_path: Path) -> None:
    ending = synod("study", "check", write_study(tmp_path / "wrong.yaml", key_bits=7, rows=0))
    assert ending.code == 2
    assert [line.rpartition(": ")[0].rpartition(": ")[2] for line in ending.err.splitlines()] == ["rows", "key_bits"]
    assert synod("study", "check", study).out.startswith("Hash: ")


# draft


@pytest.mark.parametrize("content", [b"", b"a,b\n1\n", b"\x00\xff\xfe"], ids=["empty", "broken", "binary"])
def test_draft_of_what_is_no_table(tmp_path: Path, content: bytes) -> None:
    for name in ("t.csv", "t.parquet"):
        (tmp_path / name).write_bytes(content)
        told = complaint(synod("study", "draft", tmp_path / name), 2)
        assert f"{name} cannot be read as a {name[2:].upper()} table" in told


def test_draft_of_no_file(tmp_path: Path) -> None:
    ending = synod("study", "draft", tmp_path / "none.csv")
    assert ending.code == 2
    assert "there is no table at" in ending.err


# The verbs that talk to a curator


def write_operator(folder: Path) -> Path:
    synod("certs", "init", folder / "certs")
    synod("certs", "issue", folder / "certs", "operator")
    config = folder / "operator.yaml"
    tls = {"ca": "certs/ca.pem", "certificate": "certs/operator.pem", "key": "certs/operator.key"}
    config.write_text(yaml.safe_dump({"address": "127.0.0.1:1", "tls": tls}))
    return config


def test_a_curator_that_is_not_there(tmp_path: Path, study: Path) -> None:
    config = write_operator(tmp_path)
    for arguments in (
        ("submit", study),
        ("status",),
        ("status", "care-survey", "--json"),
        ("abort", "care-survey"),
        ("fetch", "care-survey", "--out", tmp_path / "out"),
    ):
        told = complaint(synod("study", *arguments, "--config", config), 4)
        assert "127.0.0.1:1 cannot be reached" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("told", "remark"),
    [
        ({"waiting": "the disk is full."}, " (waits and tries again: the disk is full.)"),
        (
            {"halted": "its session ended by a defect (KeyError)."},
            " (halted: its session ended by a defect (KeyError).)",
        ),
        ({}, ""),
    ],
)
def test_status_says_why_the_curator_waits(
    tmp_path: Path, told: dict[str, str], remark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = pb.StudyStatus(name="care-survey", state=pb.STUDY_STATE_ENROLLING, **told)  # type: ignore[arg-type]
    monkeypatch.setattr(OperatorClient, "status", lambda *_: [standing])
    monkeypatch.setattr(OperatorClient, "newest", lambda *_: ([standing], 0))
    config = write_operator(tmp_path)
    assert synod("study", "status", "--config", config).out == f"care-survey: enrolling{remark}\n"
    (described,) = json.loads(synod("study", "status", "--json", "--config", config).out)
    assert {key: described[key] for key in ("waiting", "halted")} == {"waiting": "", "halted": "", **told}


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    complaint(synod("study", "status", "--config", tmp_path / "none.yaml"), 2)


def test_fetch_writes_over_nothing(tmp_path: Path) -> None:
    config = write_operator(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    told = complaint(synod("study", "fetch", "care-survey", "--out", tmp_path / "out", "--config", config), 2)
    assert "not an empty folder" in told


# Persons with several rows


def test_check_says_what_is_protected(tmp_path: Path) -> None:
    assert "It is per row" in synod("study", "check", write_study(tmp_path / "rows.yaml")).out
    ending = synod("study", "check", write_study(tmp_path / "persons.yaml", max_rows_per_unit=3))
    assert "It is per person with up to 3 rows at a party" in ending.out
    assert '"max_rows_per_unit": 3' in ending.out


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_the_noise_of_a_forecast_grows_with_the_rows_of_a_person(tmp_path: Path, delta: str | None) -> None:
    documents = []
    for rows in (1, 4):
        study = write_study(tmp_path / "study.yaml", delta=delta, max_rows_per_unit=rows)
        documents.append(json.loads(synod("study", "forecast", study, "--json", "--quick").out))
    one, four = documents
    assert four["rounds"][0]["error"] == pytest.approx(4 * one["rounds"][0]["error"], rel=1e-3)
    assert four["columns_alone"]["error"] == pytest.approx(4 * one["columns_alone"]["error"], rel=1e-3)
    told = synod("study", "forecast", tmp_path / "study.yaml", "--quick").out
    assert "for each person with up to 4 rows at a party: 4 times as large" in " ".join(told.split())
