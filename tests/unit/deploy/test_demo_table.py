"""The demo's tables fit the demo's study, hold the dependencies that the docs tell of, and repeat by seed."""

import re
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from synod.common.study.attributes import plain
from synod.common.study.schema import CategoricalAttribute, PlainAttribute
from synod.common.study.study import Study, load_study
from synod.deploy.demo import make_tables, write_tables

ROOT = Path(__file__).parents[3]
SEED = 1
TYPES = {"categorical": pa.string(), "integer": pa.int64(), "real": pa.float64()}

# Mutual information in bits. With 24,000 rows and at most 480 cells, independent columns stay below 0.015.
DEPENDENT = [
    ("age", "diagnosis", 0.10),
    ("diagnosis", "severity", 0.10),
    ("comorbidities", "severity", 0.08),
    ("severity", "length_of_stay", 0.20),
    ("length_of_stay", "cost", 0.25),
    ("diagnosis", "cost", 0.25),
    ("diagnosis", "admission_type", 0.20),
    ("age", "insurance", 0.10),
    ("age", "smoker", 0.04),
    ("sex", "smoker", 0.004),
    ("bmi", "diabetes", 0.03),
    ("diabetes", "comorbidities", 0.04),
    ("diabetes", "diagnosis", 0.02),
    ("smoker", "diagnosis", 0.015),
    ("severity", "discharge_to", 0.08),
    ("age", "discharge_to", 0.08),
    ("severity", "readmitted_30d", 0.02),
]
# Pairs that no arrow of the docs' graph joins, nor a common cause other than the hospital.
NEARLY_INDEPENDENT = [("sex", "diabetes"), ("sex", "insurance"), ("sex", "comorbidities")]


@pytest.fixture(scope="module")
def study() -> Study:
    return load_study(ROOT / "examples" / "hospitals" / "study.yaml")


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return make_tables(SEED)


@pytest.fixture(scope="module")
def codes(study: Study, tables: dict[str, pa.Table]) -> dict[str, dict[str, NDArray[np.int64]]]:
    pooled = {**tables, "all": pa.concat_tables(tables.values())}
    return {
        name: {
            attribute.name: encode(plain(attribute), table[attribute.name].to_pylist())
            for attribute in study.attributes
        }
        for name, table in pooled.items()
    }


def encode(attribute: PlainAttribute, values: list[Any]) -> NDArray[np.int64]:
    """A category's index or a number's bin; one more code for null."""
    if isinstance(attribute, CategoricalAttribute):
        return np.array([attribute.categories.index(value) for value in values])
    least, most = float(attribute.min), float(attribute.max)
    width = (most - least + (attribute.type == "integer")) / attribute.bins
    return np.array([attribute.bins if value is None else int((value - least) / width) for value in values])


def mutual_information(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    joint = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(joint, (left, right), 1 / len(left))
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / apart[seen])).sum())


def distance(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Total variation distance of two columns' shares."""
    size = int(max(left.max(), right.max())) + 1
    shares = [np.bincount(column, minlength=size) / len(column) for column in (left, right)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def test_sizes_columns_and_types(study: Study, tables: dict[str, pa.Table]) -> None:
    assert {name: table.num_rows for name, table in tables.items()} == {
        "north": 12_000,
        "harbour": 8_000,
        "valley": 4_000,
    }
    expected = [(attribute.name, TYPES[attribute.type]) for attribute in study.attributes]
    for table in tables.values():
        assert [(column.name, column.type) for column in table.schema] == expected


@pytest.mark.parametrize("seed", [0, SEED, 2**40])
def test_every_value_is_in_its_public_domain(study: Study, seed: int) -> None:
    for table in make_tables(seed).values():
        for attribute in map(plain, study.attributes):
            column = table[attribute.name]
            assert attribute.nullable or column.null_count == 0, attribute.name
            values = column.drop_null().to_pylist()
            if isinstance(attribute, CategoricalAttribute):
                assert set(values) <= set(attribute.categories), attribute.name
            else:
                assert attribute.min <= min(values), attribute.name
                assert max(values) <= attribute.max, attribute.name


def test_every_category_occurs_and_bounds_are_no_pile(study: Study, tables: dict[str, pa.Table]) -> None:
    pooled = pa.concat_tables(tables.values())
    for attribute in study.attributes:
        values = pooled[attribute.name].drop_null().to_pylist()
        if isinstance(attribute, CategoricalAttribute):
            assert min(values.count(category) for category in attribute.categories) > 400, attribute.name
        elif attribute.name in {"age", "bmi", "systolic_bp", "cost"}:
            assert values.count(min(values)) + values.count(max(values)) < 0.005 * len(values), attribute.name


def test_money_has_two_decimals(tables: dict[str, pa.Table]) -> None:
    for table in tables.values():
        cost = table["cost"].to_numpy()
        assert (cost == np.round(cost, 2)).all()
        assert (cost != np.round(cost, 1)).any()


@pytest.mark.parametrize(("left", "right", "bits"), DEPENDENT)
def test_named_pairs_depend(codes: dict[str, dict[str, NDArray[np.int64]]], left: str, right: str, bits: float) -> None:
    assert mutual_information(codes["all"][left], codes["all"][right]) > bits


@pytest.mark.parametrize(("left", "right"), NEARLY_INDEPENDENT)
def test_mutual_information_is_not_a_rubber_stamp(
    codes: dict[str, dict[str, NDArray[np.int64]]], left: str, right: str
) -> None:
    assert mutual_information(codes["all"][left], codes["all"][right]) < 0.002


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("age", "comorbidities"),
        ("severity", "length_of_stay"),
        ("length_of_stay", "cost"),
        ("age", "systolic_bp"),
    ],
)
def test_numbers_rise_together(tables: dict[str, pa.Table], left: str, right: str) -> None:
    pooled = pa.concat_tables(tables.values())
    assert np.corrcoef(pooled[left].to_numpy(), pooled[right].to_numpy())[0, 1] > 0.35


def test_smoking_and_fractures_bend_with_age(tables: dict[str, pa.Table]) -> None:
    pooled = pa.concat_tables(tables.values())
    band = np.digitize(pooled["age"].to_numpy(), (35, 50, 60, 80))
    smokes, broken = np.array(pooled["smoker"]) == "yes", np.array(pooled["diagnosis"]) == "fracture"
    assert smokes[band == 1].mean() > 1.05 * smokes[band == 0].mean()
    assert smokes[band == 1].mean() > 2 * smokes[band == 3].mean()
    assert min(broken[band == 0].mean(), broken[band == 4].mean()) > 1.3 * broken[band == 2].mean()


def test_bmi_is_missing_mostly_in_emergencies(tables: dict[str, pa.Table]) -> None:
    for table in tables.values():
        missing = np.array(table["bmi"].is_null())
        admission = np.array(table["admission_type"])
        assert 0.02 < missing.mean() < 0.15
        assert missing[admission == "emergency"].mean() > 2 * missing[admission == "planned"].mean()


def test_hospitals_differ_in_case_mix_but_moderately(codes: dict[str, dict[str, NDArray[np.int64]]]) -> None:
    for left, right in combinations(("north", "harbour", "valley"), 2):
        for attribute, least in {"diagnosis": 0.10, "age": 0.12, "insurance": 0.06, "region": 0.30}.items():
            assert least < distance(codes[left][attribute], codes[right][attribute]), attribute
        assert distance(codes[left]["diagnosis"], codes[right]["diagnosis"]) < 0.35
        assert distance(codes[left]["severity"], codes[right]["severity"]) < 0.25


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    first, again = write_tables(tmp_path / "a", SEED), write_tables(tmp_path / "b", SEED)
    assert {path.name for path in first.values()} == {"north.csv", "harbour.csv", "valley.parquet"}
    other = write_tables(tmp_path / "c", SEED + 1)
    for name, path in first.items():
        assert path.read_bytes() == again[name].read_bytes()
        assert path.read_bytes() != other[name].read_bytes()


def test_hospitals_draw_from_streams_of_their_own(codes: dict[str, dict[str, NDArray[np.int64]]]) -> None:
    regions = [codes[name]["region"][:4_000] for name in ("north", "harbour", "valley")]
    assert all(mutual_information(left, right) < 0.01 for left, right in combinations(regions, 2))


def test_files_read_back_as_the_tables(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    paths = write_tables(tmp_path, SEED)
    assert pa.csv.read_csv(paths["north"]).equals(tables["north"])
    assert pa.csv.read_csv(paths["harbour"]).equals(tables["harbour"])
    assert pa.parquet.read_table(paths["valley"]).equals(tables["valley"])


def test_a_null_is_an_empty_field(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    lines = write_tables(tmp_path, SEED)["north"].read_text().splitlines()
    position = tables["north"].column_names.index("bmi")
    fields = [line.split(",")[position] for line in lines[1:]]
    assert fields.count("") == tables["north"]["bmi"].null_count > 0


def test_the_study_is_what_the_demo_promises(study: Study) -> None:
    assert (study.method.name, str(study.epsilon), study.delta) == ("adaptive", "1.0", Decimal("1e-9"))
    assert (study.collusion, study.key_bits) == (1, 3072)
    assert study.roster == ()
    assert [a.name for a in study.attributes if a.nullable] == ["bmi"]
    categorical = [a for a in study.attributes if isinstance(a, CategoricalAttribute)]
    assert [a.name for a in categorical if a.taxonomy] == ["diagnosis"]
    assert sum(len(a.categories) >= 3 for a in categorical) <= 6


def test_docs_list_the_attributes_and_categories_in_order(study: Study) -> None:
    page = (ROOT / "docs" / "demo-table.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, flags=re.MULTILINE))
    assert list(rows) == [attribute.name for attribute in study.attributes]
    for attribute in study.attributes:
        if isinstance(attribute, CategoricalAttribute):
            domain = rows[attribute.name].split(" | ")[1]
            assert re.findall(r"[\w-]+", domain) == list(attribute.categories)
