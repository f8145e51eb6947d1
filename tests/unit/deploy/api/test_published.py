"""Releases and simulations in Python: rows, conditions, marginals, noise, metadata."""

import json
import shutil
import subprocess
import sys
from datetime import date, timedelta
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

import synod
from synod.common.study.study import known_methods
from synod.deploy.api import published
from tests.support.keep_releases import kept_folder
from tests.support.studies import binary, categorical, integer, real

BINARY = {
    "name": "flags",
    "method": {"name": "adaptive"},
    "epsilon": 2.0,
    "schema": [binary("a"), binary("b"), binary("c")],
}
SURVEY: dict[str, Any] = {
    "name": "survey",
    "method": {"name": "adaptive"},
    "epsilon": 3.0,
    "delta": 1e-9,
    "schema": [
        categorical("sex", ("F", "M")),
        integer("age", 0, 99, bins=10),
        real("income", "0", "1000", bins=8, nullable=True, spikes=["0"]),
    ],
}


@cache
def kept(method: str) -> synod.Release:
    return synod.load_release(kept_folder(method), recompute=False)


def draw_frame(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    income = np.where(rng.random(rows) < 0.2, 0.0, rng.uniform(0, 10 * age + 5))
    return pd.DataFrame(
        {
            "sex": np.where(rng.random(rows) < 0.3 + age / 250, "F", "M"),
            "age": age,
            "income": np.where(rng.random(rows) < 0.1, np.nan, income.round(1)),
        }
    )


@cache
def survey() -> synod.Simulation:
    return synod.simulate(SURVEY, {"north": draw_frame(3000, 1), "south": draw_frame(2000, 2)}, seed=5)


def draw_flags(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.random(rows) < 0.3
    b = np.where(a, rng.random(rows) < 0.9, rng.random(rows) < 0.2)
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(rows) < 0.5}).map(lambda flag: "yes" if flag else "no")


# The package


def test_importing_synod_loads_nothing_heavy() -> None:
    code = "import synod, sys; print(sorted({'numpy', 'pyarrow', 'pandas', 'grpc', 'pydantic'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_the_public_names_are_there_and_no_others() -> None:
    assert set(dir(synod)) == set(synod.__all__)
    assert all(getattr(synod, name).__doc__ for name in synod.__all__)
    assert not [name for name in [*dir(synod), *dir(synod.Release), *dir(synod.Simulation)] if "fit" in name]
    with pytest.raises(AttributeError, match="fit"):
        synod.fit  # noqa: B018


# Loading


@pytest.mark.parametrize("method", ["adaptive", "hpdp-dp"])
def test_a_release_is_verified_when_it_is_loaded(method: str) -> None:
    release = synod.load_release(str(kept_folder(method)))
    assert any("computed again" in line for line in release.proven)
    assert any("who the curator and the parties are" in line for line in release.unproven)
    assert release.manifest["study"]["name"] == release.study.name == f"kept-{method}"
    assert release.table().equals(pa.parquet.read_table(kept_folder(method) / "synthetic.parquet"))


def test_an_altered_release_is_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(kept_folder("histogram"), folder)
    rows = (folder / "synthetic.csv").read_text().splitlines()
    (folder / "synthetic.csv").write_text("\n".join([*rows[:-1], rows[1]]) + "\n")
    with pytest.raises(synod.SynodError, match=r"synthetic\.csv is not the one that was released"):
        synod.load_release(folder)
    with pytest.raises(synod.SynodError, match="no manifest"):
        synod.load_release(tmp_path)


def test_trust_is_a_file_or_a_mapping(tmp_path: Path) -> None:
    folder = kept_folder("histogram")
    manifest = json.loads((folder / "manifest.json").read_text())
    keys = {entry["name"]: entry["key"] for entry in manifest["study"]["roster"]}
    transcript = synod.load_release(folder, recompute=False)
    signed = {**keys, "curator": curator_of(folder)}
    assert any("trust file names" in line for line in synod.load_release(folder, signed, recompute=False).proven)
    assert transcript.unproven
    path = tmp_path / "trusted.txt"
    path.write_text("".join(f"{name} {key}\n" for name, key in signed.items()))
    assert any("trust file names" in line for line in synod.load_release(folder, path, recompute=False).proven)
    with pytest.raises(synod.SynodError, match="the key of north is not the one"):
        synod.load_release(folder, {**signed, "north": signed["curator"]}, recompute=False)


def curator_of(folder: Path) -> str:
    from synod.common.protocol.manifest import verify_release

    return verify_release(folder, None).signers["curator"]


# Tables


def test_a_table_comes_as_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    release = kept("adaptive")
    assert isinstance(release.table(), pa.Table)
    assert isinstance(release.table("pandas"), pd.DataFrame)
    assert len(release.table("pandas")) == 260
    with pytest.raises(synod.SynodError, match="no 'excel'"):
        release.table("excel")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(synod.SynodError, match="polars is not installed"):
        release.table("polars")


# Rows under conditions


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_rows_satisfy_their_conditions_with_every_method(method: str) -> None:
    given = {"sex": "F", "age": (30, 41), "ward": ["a", "b"]}
    rows = kept(method).sample(200, given=given, seed=3, to="pandas")
    assert len(rows) == 200
    assert (rows["sex"] == "F").all()
    assert rows["age"].between(30, 41).all()
    assert set(rows["age"]) >= {30, 41}
    assert rows["ward"].isin(["a", "b"]).all()
    again = kept(method).sample(200, given=given, seed=3, to="pandas")
    assert rows.equals(again)
    assert not rows.equals(kept(method).sample(200, given=given, seed=4, to="pandas"))


def test_without_a_seed_rows_are_new_each_time() -> None:
    one, other = (kept("histogram").sample(50) for _ in range(2))
    assert not one.equals(other)


def test_a_range_that_cuts_through_a_bin_keeps_the_law_of_the_values() -> None:
    """Ages are uniform in bins of ten; given 25 to 34 the two halves have the shares of the two bins."""
    simulation = survey()
    expected = simulation.marginal("age", to="pandas").set_index("age")["model"]
    second, third = (float(expected[name]) for name in ("20 to 29", "30 to 39"))
    rows = simulation.sample(20_000, given={"age": (25, 34)}, seed=1, to="pandas")["age"]
    counts = rows.value_counts().reindex(range(25, 35), fill_value=0)
    shares = np.array([second] * 5 + [third] * 5)
    assert stats.chisquare(counts, shares / shares.sum() * len(rows)).pvalue > 1e-6


def test_missing_values_spikes_and_open_ranges_are_conditions_too() -> None:
    simulation = survey()
    assert simulation.sample(20, given={"income": None}, seed=1)["income"].null_count == 20
    assert set(simulation.sample(20, given={"income": 0}, seed=1)["income"].to_pylist()) == {0.0}
    some = simulation.sample(400, given={"income": [None, 0.0]}, seed=1)["income"].to_pylist()
    assert set(some) == {None, 0.0}
    above = simulation.sample(300, given={"income": (900, None)}, seed=1, to="pandas")["income"]
    assert above.min() >= 900
    below = simulation.sample(300, given={"age": (None, 4.5)}, seed=1, to="pandas")["age"]
    assert set(below) == {0, 1, 2, 3, 4}


def test_rare_rows_are_drawn_directly_where_the_model_can_be_conditioned() -> None:
    rows = survey().sample(5, given={"sex": "F", "age": (0, 0), "income": (999, 1000)}, seed=2)
    assert rows.num_rows == 5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ages": 3}, "no column 'ages'"),
        ({"sex": "X"}, "none of its categories"),
        ({"sex": ("F", "M")}, "a tuple"),
        ({"sex": []}, "no value"),
        ({"age": "old"}, "not a number"),
        ({"age": (200, 300)}, "no value of age"),
        ({"age": None}, "no value of age"),
        ({"age": (40, 30)}, "no value of age"),
    ],
)
def test_a_condition_that_is_none_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(synod.SynodError, match=sentence):
        survey().sample(5, given=given)


STAYS: dict[str, Any] = {
    "name": "stays",
    "collusion": 0,
    "method": {"name": "independent"},
    "epsilon": 5.0,
    "schema": [
        {"name": "urgent", "type": "boolean"},
        {"name": "day", "type": "date", "min": "2026-01-01", "max": "2026-12-31", "bins": "month"},
    ],
}


@cache
def stays() -> synod.Simulation:
    days = [date(2026, 1, 1) + timedelta(days=row % 365) for row in range(400)]
    return synod.simulate(STAYS, {"ward": pd.DataFrame({"urgent": [row % 3 == 0 for row in range(400)], "day": days})})


@pytest.mark.parametrize("wanted", [True, "true", np.True_, [True]])
def test_a_condition_on_a_boolean(wanted: Any) -> None:
    assert stays().sample(20, given={"urgent": wanted}, seed=1)["urgent"].unique().to_pylist() == [True]


@pytest.mark.parametrize("wanted", [date(2026, 3, 5), "2026-03-05", pd.Timestamp("2026-03-05 09:00")])
def test_a_condition_on_a_date(wanted: Any) -> None:
    assert stays().sample(20, given={"day": wanted}, seed=1)["day"].unique().to_pylist() == [date(2026, 3, 5)]
    days = stays().sample(300, given={"day": (wanted, "2026-03-31")}, seed=1)["day"].to_pylist()
    assert (min(days), max(days)) == (date(2026, 3, 5), date(2026, 3, 31))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"urgent": "yes"}, "is no boolean. Write True or False"),
        ({"urgent": (False, True)}, "a tuple"),
        ({"day": 5}, "is no date"),
        ({"day": "March"}, "is no date"),
        ({"day": "2027-01-01"}, "no value of day"),
    ],
)
def test_a_condition_that_is_no_boolean_or_date_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(synod.SynodError, match=sentence):
        stays().sample(5, given=given)


def test_drawing_ends_where_too_few_rows_satisfy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "MOST_DRAWN", 1 << 14)
    monkeypatch.setattr(published, "DRAWN_PER_ROW", 0)
    with pytest.raises(synod.SynodError, match=r"only [0-9] of .* rows of the model satisfy"):
        kept("hpdp-dp").sample(50, given={"age": 18, "score": (0.9999, 1), "ward": "a"}, seed=1)


def test_no_rows_are_a_table_too() -> None:
    assert kept("histogram").sample(0).num_rows == 0
    assert kept("histogram").sample(0, given={"sex": "F"}).column_names == ["sex", "age", "ward", "score"]
    with pytest.raises(synod.SynodError, match="negative"):
        kept("histogram").sample(-1)


# Marginals


def released_numbers(method: str, round_: str, of: str) -> pd.DataFrame:
    """What answers.parquet has of one table."""
    answers = pd.read_parquet(kept_folder(method) / "answers.parquet")
    return answers[(answers["round"] == round_) & (answers["of"] == of)]


def test_a_marginal_has_the_released_numbers_where_one_table_tells_it() -> None:
    marginal = kept("histogram").marginal("ward", "sex", to="pandas")
    cells = released_numbers("histogram", "histogram", "sex x age x ward x score")
    cube = cells["value"].to_numpy().reshape(2, 8, 3, 10)
    assert marginal["released"].tolist() == cube.sum(axis=(1, 3)).T.ravel().tolist()
    assert np.allclose(marginal["deviation"], cells["deviation"].iloc[0] * sqrt(80))
    assert marginal["ward"].tolist() == ["a", "a", "b", "b", "c", "c"]
    assert marginal["model"].sum() == pytest.approx(260, rel=1e-9)


def test_several_tables_that_tell_the_same_are_averaged_by_their_precision() -> None:
    answers = pd.read_parquet(kept_folder("adaptive") / "answers.parquet")
    total, precision = np.zeros(3), 0.0
    for (_, of), own in answers[answers["value"].notna()].groupby(["round", "of"], observed=True, sort=False):
        entries = str(of).split(" x ")
        if "ward" in entries:
            shape = [-1 if len(entries) == 1 or (entries.index("ward") == 1) != (axis == 1) else 3 for axis in range(2)]
            cube = own["value"].to_numpy().reshape(shape if len(entries) == 2 else [3])
            margin = cube.sum(axis=1 - entries.index("ward")) if len(entries) == 2 else cube
            variance = float(own["deviation"].iloc[0]) ** 2 * (cube.size / 3)
            total, precision = total + margin / variance, precision + 1 / variance
    marginal = kept("adaptive").marginal("ward", to="pandas")
    assert np.allclose(marginal["released"], total / precision)
    assert np.allclose(marginal["deviation"], 1 / sqrt(precision))


def test_groups_of_values_are_one_row_where_they_were_counted_as_one() -> None:
    query = kept("adaptive").manifest["queries"]["tables-1"]
    marginal = kept("adaptive").marginal("age", "ward", to="pandas")
    cells = [own for own in query["sets"] if len(own) == 2]
    assert cells
    assert marginal["released"].notna().all()
    assert str(marginal["age"].unique()[0]).startswith("18 to ")  # with the spike at 18, counted with its bin
    assert len(marginal) < 10 * 3
    assert marginal["model"].sum() == pytest.approx(260, rel=1e-6)


def test_parties_that_count_apart_are_added_up() -> None:
    marginal = kept("independent").marginal("ward", to="pandas")
    assert marginal["released"].sum() == pytest.approx(260, abs=30)
    assert (marginal["deviation"] > 0).all()


def test_moments_tell_counts_of_categories_and_not_of_numbers() -> None:
    release = kept("hpdp-dp")
    (row,) = released_numbers("hpdp-dp", "moments", "ward (code 1) * ward (code 1)").to_dict("records")
    levels = release.study.method.number_levels
    assert levels is not None
    ward = release.marginal("ward", to="pandas")
    assert ward["released"][1] == pytest.approx(row["value"] / (4 * levels**2))
    assert ward["deviation"][1] == pytest.approx(row["deviation"] / (4 * levels**2))
    pair = release.marginal("sex", "ward", to="pandas")
    assert pair.groupby("ward")["released"].sum().to_numpy() == pytest.approx(ward["released"].to_numpy())
    assert release.marginal("age", to="pandas")["released"].isna().all()
    assert release.marginal("age", to="pandas")["model"].sum() == pytest.approx(260)


def test_a_study_of_two_valued_columns_tells_its_pairs() -> None:
    tables = {"north": draw_flags(2000, 1), "south": draw_flags(1500, 2)}
    simulation = synod.simulate(BINARY, tables, seed=1)
    assert list(simulation.queries) == ["agreements"]
    true = pd.concat(tables.values()).groupby(["c", "a"]).size().to_numpy()
    marginal = simulation.marginal("c", "a", to="pandas")
    assert (abs(marginal["released"] - true) < 7 * marginal["deviation"]).all()
    assert marginal["released"].sum() == pytest.approx(3500)


def test_a_marginal_is_of_columns_that_there_are_each_once() -> None:
    for names in (["wards"], [], ["ward", "ward"]):
        with pytest.raises(synod.SynodError):
            kept("histogram").marginal(*names)


# Noise and metadata


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_noise_is_what_the_released_answers_state(method: str) -> None:
    noise = kept(method).noise.to_pandas()
    answers = pd.read_parquet(kept_folder(method) / "answers.parquet").dropna(subset=["deviation"])
    assert noise["numbers"].sum() == len(answers)
    assert float((noise["numbers"] * noise["deviation"]).sum()) == pytest.approx(float(answers["deviation"].sum()))
    assert list(noise.columns) == ["round", "table", "of", "numbers", "deviation"]


def test_metadata_are_sdvs() -> None:
    assert kept("adaptive").sdv_metadata("patients") == {
        "METADATA_SPEC_VERSION": "V1",
        "tables": {
            "patients": {
                "columns": {
                    "sex": {"sdtype": "categorical"},
                    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
                    "ward": {"sdtype": "categorical"},
                    "score": {"sdtype": "numerical", "computer_representation": "Float"},
                }
            }
        },
        "relationships": [],
    }
