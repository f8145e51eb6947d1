"""Every method publishes dates, booleans, logarithms and edges: in their domains, and as a release that verifies."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.privacy.coins import Coins
from synod.common.study.encoding import binned_codings, codings_of
from synod.common.study.study import Study, known_methods
from synod.curator.release.files import decode_table, write_csv
from synod.curator.release.redraw import _read_csv
from synod.curator.release.report.wording import describe_domain, name_codes
from synod.deploy.evaluate.tables import bin_table, cell_labels, read_columns
from synod.deploy.simulate import publish_in_process
from tests.support.recipes import check_publication, draw_tables
from tests.support.studies import make_study

SCHEMA = (
    {"name": "seen", "type": "date", "min": "2020-01-01", "max": "2021-12-31", "bins": "year"},
    {"name": "born", "type": "date", "min": "2020-11-15", "max": "2021-03-01", "nullable": True},
    {"name": "alive", "type": "boolean"},
    {"name": "smokes", "type": "boolean", "nullable": True},
    {"name": "cost", "type": "real", "min": "0.5", "max": 90_000, "bins": 4, "transform": "log"},
    {"name": "visits", "type": "integer", "edges": [0, 1, 5, 100], "nullable": True},
)
KEYS: dict[str, dict[str, Any]] = {
    "distdiffgen": {"target": "alive"},
    "hpdp-dp": {"link": "linear"},
}


def study_of(method: str) -> Study:
    return make_study(method={"name": method, **KEYS.get(method, {})}, schema=SCHEMA, epsilon="5")


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_every_method_publishes_them(method: str, tmp_path: Path) -> None:
    study = study_of(method)
    publication = publish_in_process(study, draw_tables(study), coins=Coins(bytes(32)), rng=np.random.default_rng(5))
    table = check_publication(study, publication)
    write_csv(table, tmp_path / "synthetic.csv")
    pa.parquet.write_table(table, tmp_path / "synthetic.parquet")
    assert _read_csv(tmp_path / "synthetic.csv", table.schema).equals(table), "what `synod verify` compares"
    expected = bin_table(study, publication.columns)
    for name in ("synthetic.csv", "synthetic.parquet"):
        again = read_columns([tmp_path / name], study)
        assert [column.tolist() for column in again] == [column.tolist() for column in expected.columns], name


def test_they_are_named_for_people() -> None:
    study = study_of("independent")
    codings = codings_of(study)
    assert [describe_domain(coding) for coding in codings] == [
        "date, 2020-01-01 to 2021-12-31",
        "date, 2020-11-15 to 2021-03-01, may be missing",
        "true or false",
        "true or false, may be missing",
        "number, 0.5 to 90,000",
        "whole number, 0 to 100, may be missing",
    ]
    names = [name_codes(coding) for coding in codings]
    assert names[0] == ["2020-01-01 to 2020-12-31", "2021-01-01 to 2021-12-31"]
    assert names[1][0] == "2020-11-15 to 2020-11-30"
    assert names[1][-2:] == ["2021-03-01", "missing"]
    assert names[2] == ["false", "true"]
    assert names[4] == ["0.5 to 10.2988", "10.2988 to 212.132", "212.132 to 4,369.43", "4,369.43 to 90,000"]
    assert names[5] == ["0", "1 to 4", "5 to 100", "missing"]
    assert cell_labels(study, "born")[:2] == ["≥ 2020-11-15", "≥ 2020-12-01"]
    assert cell_labels(study, "visits") == ["≥ 0", "≥ 1", "≥ 5", "(missing)"]


def test_the_cells_of_an_evaluation_are_the_bins() -> None:
    sizes = [coding.size for coding in binned_codings(study_of("hpdp-dp"))]
    assert sizes == [2, 6, 2, 3, 4, 4]


def test_values_go_out_as_they_came_in() -> None:
    study = study_of("independent")
    table = decode_table(study, list(draw_tables(study)[0]), coins=Coins.public(1, "values"))
    kinds = [pa.date32(), pa.date32(), pa.bool_(), pa.bool_(), pa.float64(), pa.int64()]
    assert table.schema.types == kinds
