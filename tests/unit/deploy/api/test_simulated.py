"""Simulations, drafts, forecasts and evaluations in Python."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import yaml

import synod
from synod.common.study.study import known_methods
from synod.deploy.evaluate.measure import NOTE
from tests.support.keep_releases import SCHEMA, kept_folder, kept_study, write_invented_tables
from tests.support.studies import categorical, integer

STUDY: dict[str, Any] = {
    "name": "flu",
    "method": {"name": "histogram"},
    "epsilon": 1.5,
    "schema": [categorical("flu", ("no", "yes")), integer("age", 0, 99, bins=4)],
}


def frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    return pd.DataFrame({"flu": rng.choice(["no", "yes"], rows), "age": rng.integers(0, 100, rows), "other": 1})


def test_a_simulation_says_that_it_is_not_private() -> None:
    simulation = synod.simulate(STUDY, {"north": frame(300), "south": frame(200)}, seed=1)
    assert simulation.is_private is False
    assert "NOT PRIVATE" in repr(simulation)
    assert not hasattr(simulation, "manifest")
    assert simulation.table().num_rows == 500
    assert simulation.study.party_names == ("north", "south")


def test_the_seed_decides_noise_and_rows() -> None:
    tables = {"north": frame(300), "south": frame(200)}
    one, again, other = (synod.simulate(STUDY, tables, seed=seed) for seed in (1, 1, 2))
    assert one.table().equals(again.table())
    assert one.marginal("flu").equals(again.marginal("flu"))
    assert not one.marginal("flu").equals(other.marginal("flu"))
    fresh = [synod.simulate(STUDY, tables) for _ in range(2)]
    assert fresh[0].seed != fresh[1].seed


def test_tables_come_in_every_form(tmp_path: Path) -> None:
    north, south = frame(300), frame(200)
    pa.csv.write_csv(pa.Table.from_pandas(south, preserve_index=False), tmp_path / "south.csv")
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    forms: list[dict[str, Any]] = [
        {"north": north, "south": south},
        {"north": pa.Table.from_pandas(north), "south": tmp_path / "south.csv"},
        {"north": north.to_dict("list"), "south": str(tmp_path / "south.csv")},
        {"north": north.astype({"flu": "category", "age": "float"}), "south": south},
    ]
    first, *others = [synod.simulate(str(path), tables, seed=3).table() for tables in forms]
    assert all(table.equals(first) for table in others)


def test_a_simulation_runs_inside_of_an_event_loop() -> None:
    async def run() -> int:
        return int(synod.simulate(STUDY, {"north": frame(60), "south": frame(50)}, seed=1).table().num_rows)

    assert asyncio.run(run()) == 110


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_every_method_is_simulated_and_sampled(method: str, tmp_path: Path) -> None:
    tables = {path.stem: path for path in write_invented_tables(tmp_path)}
    simulation = synod.simulate(kept_study(method), tables, seed=1)
    assert simulation.sample(30, given={"ward": "b"}, seed=1)["ward"].unique().to_pylist() == ["b"]
    assert simulation.marginal("sex")["model"].to_numpy().sum() == pytest.approx(260, rel=1e-6)
    assert len(simulation.noise) > 0


def test_what_does_not_fit_is_named_without_a_value() -> None:
    secret = frame(50).replace({"age": {frame(50)["age"][3]: 123456}})
    with pytest.raises(synod.SynodError, match=r"south does not fit .* column age: outside the domain") as raised:
        synod.simulate(STUDY, {"north": frame(60), "south": secret})
    assert "123456" not in str(raised.value)
    mixed = pd.DataFrame({"flu": ["no", 77777], "age": [1, 2]})
    with pytest.raises(synod.SynodError, match="south is not a table") as raised:
        synod.simulate(STUDY, {"north": frame(60), "south": mixed})
    assert "77777" not in str(raised.value)
    with pytest.raises(synod.SynodError, match=r"south\.parquet has no column 'age'"):
        synod.simulate(STUDY, {"north": frame(60), "south": frame(50).drop(columns="age")})


def test_a_study_or_tables_that_are_none_are_refused() -> None:
    with pytest.raises(synod.SynodError, match="no table"):
        synod.simulate(STUDY, {})
    with pytest.raises(synod.SynodError, match="the path of a file"):
        synod.simulate(3, {"north": frame(60)})  # type: ignore[arg-type]
    with pytest.raises(synod.SynodError, match="collusion"):
        synod.simulate(STUDY, {"north": frame(60)})


def test_a_draft_is_a_study_to_simulate() -> None:
    drafted = synod.draft(frame(300).drop(columns="other"))
    assert [attribute["name"] for attribute in drafted["schema"]] == ["flu", "age"]
    drafted["epsilon"] = 2.0
    simulation = synod.simulate(drafted, {"north": frame(300), "south": frame(300)}, seed=1)
    assert simulation.columns == ["flu", "age"]


def test_a_forecast_takes_row_counts_where_there_is_no_roster() -> None:
    by_list = synod.forecast(STUDY, rows=[300, 200])
    assert by_list == synod.forecast(STUDY, rows={"a": 300, "b": 200})
    assert by_list["rounds"][0]["label"] == "histogram"
    with pytest.raises(synod.SynodError, match="roster"):
        synod.forecast(STUDY)


def test_a_release_is_evaluated_with_its_own_study(tmp_path: Path) -> None:
    tables = write_invented_tables(tmp_path)
    release = synod.load_release(kept_folder("histogram"), recompute=False)
    figures = synod.evaluate(list(tables), release, queries=50)
    assert figures["private"] is False
    assert figures["note"] == NOTE
    assert figures["rows"] == {"real": 260, "synthetic": 260}
    frames = [pd.read_csv(path) for path in tables]
    assert synod.evaluate(pd.concat(frames), release.table(), study=release.study, queries=50) == figures
    same = synod.evaluate(frames[0], frames[0], study={**STUDY, "schema": SCHEMA}, queries=0)
    assert same["tvd1"] == same["tvd2"] == 0
    with pytest.raises(synod.SynodError, match="study"):
        synod.evaluate(frames[0], frames[1])
    with pytest.raises(synod.SynodError, match="no rows"):
        synod.evaluate(frames[0][:0], release)
