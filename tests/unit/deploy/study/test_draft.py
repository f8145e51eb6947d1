"""`synod study draft`: what it proposes, what it leaves out, and what it leaves to a person."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import CsvFormat
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import codings_of
from synod.common.study.study import load_study
from synod.deploy.study.draft import draft_study
from synod.party.table.detect import detect_format
from synod.party.table.encode import read_table
from tests.support.commands import complaint, synod
from tests.support.messy import CANARY, DIAGNOSES, write_messy

TABLE = """\
id,sex,age,weight,flag,born,note
1,F,30,60.5,True,2001-02-03,
2,M,41,,false,2001-02-04,x
3,F,,71.25,True,2001-02-03,yes
"""


def draft(*paths: Path) -> dict[str, dict[str, Any]]:
    ending = synod("study", "draft", *paths)
    assert (ending.code, ending.err) == (0, "")
    assert "NOT PRIVATE" in ending.out
    return {attribute["name"]: attribute for attribute in yaml.safe_load(ending.out)["schema"]}


def write_column(folder: Path, values: list[Any], name: str = "x") -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join([f"{name},y", *(f"{value},1" for value in values)]) + "\n")
    return path


def propose(folder: Path, values: list[Any], name: str = "x") -> dict[str, Any]:
    return draft(write_column(folder, values, name))[name]


def test_types_and_domains(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    found = draft(tmp_path / "t.csv")
    assert list(found) == ["id", "sex", "age", "weight", "flag", "born", "note"], "three rows do not tell an identifier"
    assert found["sex"] == {"name": "sex", "type": "categorical", "categories": ["F", "M"]}
    assert found["age"] == {"name": "age", "type": "integer", "min": 30, "max": 41, "nullable": True}
    assert found["weight"] == {"name": "weight", "type": "real", "min": 60.5, "max": 71.25, "nullable": True}
    assert found["flag"] == {"name": "flag", "type": "boolean"}
    assert found["born"]["type"] == "date"
    assert found["note"] == {"name": "note", "type": "categorical", "categories": ["x", "yes"], "nullable": True}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_draft_is_a_study_that_its_table_fits(tmp_path: Path, suffix: str) -> None:
    """What is drafted is what the party's reader will meet."""
    path = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        path.write_text(TABLE)
    else:
        columns = {"sex": ["F", "M", "F"], "flag": [True, False, None], "age": [1, 2, 3], "x": [0.5, None, 0.25]}
        pa.parquet.write_table(pa.table(columns), path)
    (tmp_path / "draft.yaml").write_text(synod("study", "draft", path).out)
    study = load_study(tmp_path / "draft.yaml")
    read_table(path, codings_of(study), unit=None, expected_rows=3)


def test_numbers_stay_exact(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n0.00001,1\n0.3,1\n")
    (tmp_path / "draft.yaml").write_text(synod("study", "draft", tmp_path / "t.csv").out)
    attribute = load_yaml(tmp_path / "draft.yaml")["schema"][0]
    assert (str(attribute["min"]), str(attribute["max"])) == ("0.00001", "0.3")


def test_a_unit_is_left_out_and_its_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("person,age\np1,1\np2,2\np1,3\n,4\n,5\n,6\n")
    drafted = yaml.safe_load(synod("study", "draft", tmp_path / "t.csv", "--unit", "person").out)
    assert drafted["max_rows_per_unit"] == 2
    assert [attribute["name"] for attribute in drafted["schema"]] == ["age"]
    assert "no column 'patient'" in complaint(synod("study", "draft", tmp_path / "t.csv", "--unit", "patient"), 2)


# One column


def test_bounds_are_round_and_outside_of_all_values(tmp_path: Path) -> None:
    found = propose(tmp_path, [17 + i % 77 for i in range(400)])
    assert (found["min"], found["max"]) == (16, 94)
    assert "out_of_domain" not in found


def test_a_code_for_a_missing_value_becomes_one(tmp_path: Path) -> None:
    found = propose(tmp_path, [20 + i % 60 if i % 200 else 999 for i in range(1000)])
    assert found["max"] < 100
    assert (found["nullable"], found["out_of_domain"]) == (True, "null")


def test_outliers_are_taken_as_the_bound(tmp_path: Path) -> None:
    found = propose(tmp_path, [150 + i % 40 + 0.5 if i % 300 else 17_500 for i in range(1000)])
    assert found["max"] < 300
    assert found["out_of_domain"] == "clip"


def test_a_long_tail_gets_a_logarithm(tmp_path: Path) -> None:
    found = propose(tmp_path, [round(1.02**i) for i in range(600)])
    assert found["transform"] == "log"
    assert found["max"] >= round(1.02**599)


def test_codes_with_leading_zeros_are_no_numbers(tmp_path: Path) -> None:
    assert propose(tmp_path, [f"0{i % 5}123" for i in range(100)])["type"] == "categorical"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1000 + i for i in range(200)], "identifier"),
        ([f"P-{i:05}" for i in range(200)], "identifier, or free text"),
        ([f"came in at {i} with a cough" for i in range(200)], "free text"),
        ([""] * 30, "no values"),
    ],
)
def test_what_should_not_be_published_is_left_out(tmp_path: Path, values: list[Any], why: str) -> None:
    drafted = draft_study([write_column(tmp_path, values)])
    assert [attribute["name"] for attribute in yaml.safe_load(drafted)["schema"]] == ["y"]
    assert f"# left out: x, because it {'has' if 'no values' in why else 'looks like'}" in drafted
    assert why in drafted


def test_unique_measurements_are_no_identifier(tmp_path: Path) -> None:
    assert propose(tmp_path, [7 * i * i for i in range(200)], "income")["type"] == "integer"
    assert propose(tmp_path, [i + 0.5 for i in range(200)])["type"] == "real"


def test_what_is_not_decided_is_invalid(tmp_path: Path) -> None:
    """Never a category of its own making; the lines to take instead make it valid."""
    (tmp_path / "study.yaml").write_text(draft_study([write_column(tmp_path, [f"c{i % 90}" for i in range(1000)])]))
    with pytest.raises(SynodError, match=r"\(x\): has no categories"):
        load_study(tmp_path / "study.yaml")
    text = (tmp_path / "study.yaml").read_text()
    lines = [line.replace("    #", "    ") for line in text.splitlines() if "UNDECIDED, see above" not in line]
    (tmp_path / "study.yaml").write_text("\n".join(lines))
    assert len(load_study(tmp_path / "study.yaml").attributes[0].categories) == 40  # type: ignore[union-attr]


def test_dates_of_an_open_order_are_not_decided(tmp_path: Path) -> None:
    path = write_column(tmp_path, [f"0{i % 9 + 1}/0{i % 5 + 1}/2020" for i in range(100)])
    drafted = draft_study([path])
    assert "the day or the month first" in drafted
    (tmp_path / "study.yaml").write_text(drafted)
    with pytest.raises(SynodError, match="must be a date"):
        load_study(tmp_path / "study.yaml")


@pytest.mark.parametrize(("days", "bins"), [(40, "day"), (900, "month"), (9000, "year")])
def test_dates_are_binned_by_how_long_they_are(tmp_path: Path, days: int, bins: str) -> None:
    values = [f"{1990 + i * days // 100 // 372}-{i * days // 100 // 31 % 12 + 1:02}-{i * days // 100 % 28 + 1:02}"
              for i in range(100)]  # fmt: skip
    assert propose(tmp_path, values)["bins"] == bins


# Several tables


def test_the_messy_tables(tmp_path: Path) -> None:
    paths = write_messy(tmp_path, 700)
    drafted = draft_study(paths)
    document = yaml.safe_load(drafted)
    found = {attribute["name"]: attribute for attribute in document["schema"]}
    assert {name: attribute["type"] for name, attribute in found.items()} == {
        "aufnahme": "date", "geschlecht": "categorical", "alter": "integer", "kosten": "real",
        "diagnose": "categorical", "notfall": "boolean", "größe_cm": "real",
    }  # fmt: skip
    assert "left out: patient_id" in drafted
    assert "left out: bemerkung" in drafted
    assert found["alter"] | {"min": 0, "max": 100} == found["alter"] | {"out_of_domain": "null", "nullable": True}
    assert found["kosten"]["transform"] == "log"
    assert found["kosten"]["out_of_domain"] in ("clip", "null")
    assert found["diagnose"]["categories"] == []
    assert f"{len(DIAGNOSES)} different values" in drafted
    assert document["collusion"] == 1
    assert drafted.count('key: "sha256:..."') == 3
    assert drafted.count("read from rows") >= 8
    assert CANARY not in drafted, "what is left out is not quoted either"


def test_tables_written_differently_are_one_study(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;d;c\n" + "".join(f"{i},5;{i % 28 + 1}.1.2020;k{i % 3}\n" for i in range(100)))
    (tmp_path / "b.csv").write_text("d,x,c,e\n" + "".join(f"2020-02-{i % 28 + 1:02},{-i}.5,k4,1\n" for i in range(100)))
    drafted = draft_study([tmp_path / "a.csv", tmp_path / "b.csv"])
    (tmp_path / "study.yaml").write_text(drafted)
    study = load_study(tmp_path / "study.yaml")
    assert [attribute.type for attribute in study.attributes] == ["real", "date", "categorical"]
    assert study.attributes[2].categories == ("k0", "k1", "k2", "k4")  # type: ignore[union-attr]
    assert "left out: e, because not every table has it" in drafted
    for path in (tmp_path / "a.csv", tmp_path / "b.csv"):
        read_table(path, codings_of(study), unit=None, expected_rows=100, layout=detect_format(path))


def test_tables_without_a_common_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("v,w\n1,2\n")
    assert "no column in common" in complaint(synod("study", "draft", tmp_path / "a.csv", tmp_path / "b.csv"), 2)


# The configuration


def test_the_format_is_written_into_the_configuration(tmp_path: Path) -> None:
    path, config = write_messy(tmp_path, 60)[0], tmp_path / "party.yaml"
    config.write_text("# ours\nname: nord")
    for told in ("has a new last line", "has this `format` already"):
        ending = synod("study", "draft", path, "--config", config)
        assert ending.code == 0
        assert told in ending.err
    content = load_yaml(config)
    assert CsvFormat.model_validate(content["format"]) == detect_format(path)
    assert config.read_text().startswith("# ours\nname: nord\nformat: ")
    config.write_text("format: {separator: '|'}\n")
    assert "another `format` already" in complaint(synod("study", "draft", path, "--config", config), 2)


def test_a_configuration_is_of_one_table(tmp_path: Path) -> None:
    paths = write_messy(tmp_path, 30)
    assert "one table" in complaint(synod("study", "draft", *paths, "--config", tmp_path / "party.yaml"), 2)
