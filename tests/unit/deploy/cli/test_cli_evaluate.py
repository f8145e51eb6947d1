"""`synod evaluate` as its user sees it: figures, a warning, a figure drawn, and readable refusals."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.study.study import load_study
from synod.deploy.cli.evaluate import PART, WORSE
from synod.deploy.evaluate import marginals
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import make_table, read_columns
from tests.support.commands import HEADER, complaint, synod, write_study
from tests.support.studies import categorical

NETWORK = [[0, []], [1, [0]], [2, [0, 1]]]


def write_rows(path: Path, rows: int, seed: int) -> Path:
    """Rows of `write_study`'s schema, in which age follows sex and income is missing now and then."""
    rng = np.random.default_rng(seed)
    lines = [HEADER]
    for _ in range(rows):
        male = int(rng.integers(2))
        income = "" if rng.random() < 0.1 else f"{rng.integers(0, 1001)}"
        lines.append(f"{'FM'[male]},{40 * male + rng.integers(61)},{income},{'abc'[rng.integers(3)]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A study, a real and a synthetic table."""
    study = write_study(tmp_path / "study.yaml")
    return study, write_rows(tmp_path / "real.csv", 300, 1), write_rows(tmp_path / "synthetic.csv", 200, 2)


def evaluate(tables: tuple[Path, Path, Path], *more: object) -> Any:
    study, real, synthetic = tables
    ending = synod("evaluate", real, synthetic, "--study", study, "--json", *more)
    assert (ending.code, ending.err) == (0, "")
    return json.loads(ending.out)


def write_release(folder: Path, synthetic: Path, model: dict[str, Any], method: str) -> Path:
    """A folder with what `evaluate` reads of a release."""
    import pyarrow.csv
    import pyarrow.parquet

    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(synthetic), folder / "synthetic.parquet")
    (folder / "model.json").write_text(json.dumps({"method": method, "model": model}))
    return folder


def test_the_figures_for_a_machine(tables: tuple[Path, Path, Path]) -> None:
    figures = evaluate(tables)
    assert figures["private"] is False
    assert "NOT private" in figures["note"]
    assert figures["rows"] == {"real": 300, "synthetic": 200}
    assert (figures["study"], figures["encoding"], figures["seed"]) == ("care-survey", "bins", 0)
    study = load_study(tables[0])
    real, synthetic = (make_table(study, read_columns([path], study)) for path in tables[1:])
    for order in (1, 2, 3):
        expected = measure_marginals(real, synthetic, order, rng=np.random.default_rng(0))
        assert figures[f"tvd{order}"] == expected.total_variation.mean()
        assert figures[f"hellinger{order}"] == expected.hellinger.mean()
        described = figures["marginals"][order - 1]
        assert (described["order"], described["all"], described["measured"]) == (order, *[len(expected.sets)] * 2)
        assert described["worst"][0]["tvd"] == expected.total_variation.max()
    assert figures["range_queries"]["queries"] == 1000
    assert 0 < figures["range_queries"]["absolute"] < 0.1
    assert figures["mutual_information"] is None
    assert figures["misclassification"] == {}


def test_a_table_against_itself(tables: tuple[Path, Path, Path]) -> None:
    figures = evaluate((tables[0], tables[1], tables[1]), "--encoding", "bits")
    zero = [figures[f"{name}{order}"] for name in ("tvd", "hellinger") for order in (1, 2, 3)]
    assert zero == [0] * 6
    assert figures["range_queries"]["relative"] == 0


def test_the_figures_for_people(tables: tuple[Path, Path, Path]) -> None:
    study, real, synthetic = tables
    ending = synod("evaluate", real, synthetic, "--study", study, "--target", "sex")
    assert (ending.code, ending.err) == (0, "")
    assert ending.out.startswith("These figures were computed from real rows. They are NOT private")
    figures = evaluate(tables, "--target", "sex")
    for key in ("tvd1", "tvd2", "tvd3", "hellinger1", "hellinger2"):
        assert f"{figures[key]:.4f}" in ending.out
    for value in figures["misclassification"]["sex"].values():
        assert f"{value:.4f}" in ending.out or f"{value:,}" in ending.out
    assert "Drawn" not in ending.out


def test_columns_alone_stand_beside_every_figure(tables: tuple[Path, Path, Path]) -> None:
    """Age follows sex, which columns alone cannot keep: they are good for one column and bad for two."""
    study, real, _ = tables
    tables = study, real, real
    keys = ["sha256:" + digit * 64 for digit in "12"]
    write_study(study, epsilon=200, roster={"north": (keys[0], 100), "valley": (keys[1], 200)})
    figures = evaluate(tables, "--target", "sex")
    alone = figures["columns_alone"]
    assert alone == evaluate(tables, "--target", "sex")["columns_alone"], "the same in every run"
    assert alone["tvd1"] < 0.02
    assert alone["tvd2"] > figures["tvd2"]
    assert alone["tvd3"] > figures["tvd3"]
    assert alone["misclassification"]["sex"] > figures["misclassification"]["sex"]["synthetic"]
    assert alone["mutual_information"] is None
    out = synod("evaluate", *tables[1:], "--study", study, "--target", "sex").out
    assert "Columns alone: what is left if each column is published by itself" in out
    assert out.count("columns alone") == 3, "in each table"
    for name in ("tvd", "hellinger"):
        for order in (1, 2, 3):
            assert f"{figures[f'{name}{order}']:.4f}" in out
            assert f"{alone[f'{name}{order}']:.4f}" in out
    for figure in (*alone["range_queries"].values(), alone["misclassification"]["sex"]):
        assert f"{figure:.4f}" in out
    assert "worse than columns alone" not in out


def test_a_table_that_is_worse_than_columns_alone_is_called_that(tables: tuple[Path, Path, Path]) -> None:
    study, real, synthetic = tables
    keys = ["sha256:" + digit * 64 for digit in "12"]
    for roster, rows in (({}, 300), ({"north": (keys[0], 100), "valley": (keys[1], 200)}, 50)):
        write_study(study, epsilon=200, roster=roster)
        synthetic.write_text(f"{HEADER}\n" + "F,0,0,a\n" * rows)
        out = synod("evaluate", real, synthetic, "--study", study).out
        assert WORSE in out
        assert PART not in out
        alone = evaluate(tables)["columns_alone"]
        assert evaluate(tables)["tvd2"] > alone["tvd2"]
        assert (alone["real_rows_are_all"], alone["is_better_for_pairs"]) == (True, True)


@pytest.mark.parametrize("roster", [{}, {"north": ("sha256:" + "1" * 64, 300), "valley": ("sha256:" + "2" * 64, 900)}])
def test_a_part_of_the_rows_gives_no_verdict(tables: tuple[Path, Path, Path], roster: dict[str, Any]) -> None:
    """A good release of 1,200 rows, on the rows of a party whose shares are others: columns alone knows these."""
    study, real, synthetic = tables
    write_study(study, epsilon=200, roster=roster)
    real.write_text(f"{HEADER}\n" + "F,30,500,a\n" * 300)
    write_rows(synthetic, 1_200, 2)
    out = synod("evaluate", real, synthetic, "--study", study).out
    assert PART in out
    assert WORSE not in out
    figures = evaluate(tables)
    alone = figures["columns_alone"]
    assert figures["tvd2"] > alone["tvd2"], "which says nothing about the release"
    assert (alone["real_rows_are_all"], alone["is_better_for_pairs"]) == (False, None)


def test_the_worst_marginals_have_columns_alone_beside_them(tables: tuple[Path, Path, Path]) -> None:
    figures = evaluate(tables)
    (all_four,) = [described["worst"] for described in figures["marginals"] if described["order"] == 1]
    assert len(all_four) == 4, "so their means are the averages"
    for key in ("tvd", "hellinger"):
        mean = np.mean([worst["columns_alone"][key] for worst in all_four])
        assert mean == pytest.approx(figures["columns_alone"][f"{key}1"])


def test_columns_alone_follow_the_budget(tables: tuple[Path, Path, Path]) -> None:
    """Less epsilon is more noise; a study with a delta need not be resolved."""
    figures = []
    for budget in ({"epsilon": "0.05"}, {"epsilon": "0.05", "delta": "1e-4"}, {"epsilon": "20"}):
        write_study(tables[0], roster={}, **budget)
        figures.append(evaluate(tables)["columns_alone"]["tvd1"])
    assert min(figures[:2]) > 10 * figures[2]


def test_bits_are_more_marginals(tables: tuple[Path, Path, Path]) -> None:
    figures = evaluate(tables, "--encoding", "bits")
    assert figures["encoding"] == "bits"
    assert [entry["all"] for entry in figures["marginals"]] == [12, 66, 220]
    assert figures["range_queries"] == evaluate(tables)["range_queries"], "queries are of attributes in any case"


def test_the_seed_decides_what_is_drawn(tables: tuple[Path, Path, Path]) -> None:
    first, again, other = (evaluate(tables, "--queries", 50, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["range_queries"] != other["range_queries"]
    assert first["tvd3"] == other["tvd3"]
    assert evaluate(tables, "--queries", 0)["range_queries"] is None


def test_a_sample_of_marginals_is_called_one(tables: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginals, "MOST_SETS", 5)
    study, real, synthetic = tables
    out = synod("evaluate", real, synthetic, "--study", study).out
    assert "5 of 6 marginals" in out
    assert "4 marginals" in out


def test_more_orders_than_attributes(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s.yaml", schema=[categorical("sex", ("F", "M"))])
    tables = study, write_rows(tmp_path / "a.csv", 30, 1), write_rows(tmp_path / "b.csv", 30, 2)
    figures = evaluate(tables, "--plot", tmp_path / "f.png")
    assert figures["tvd1"] is not None
    assert (figures["tvd2"], figures["tvd3"], figures["hellinger2"]) == (None, None, None)
    assert synod("evaluate", *tables[1:], "--study", study).code == 0


def test_a_study_without_a_roster_or_with_another_number_of_rows(tables: tuple[Path, Path, Path]) -> None:
    before = evaluate(tables)
    assert before["rows"]["real"] != 10, "the roster's"
    write_study(tables[0], roster={})
    after = evaluate(tables)
    assert after.pop("columns_alone") != before.pop("columns_alone"), "one party's noise, on as many rows as there are"
    for described in (*before["marginals"], *after["marginals"]):
        for worst in described["worst"]:
            worst.pop("columns_alone")
    assert after == before


def test_a_folder_of_real_tables_and_a_release(tables: tuple[Path, Path, Path], tmp_path: Path) -> None:
    study, real, synthetic = tables
    lines = real.read_text().splitlines()
    (tmp_path / "parts").mkdir()
    for name, part in (("a", lines[1:101]), ("b", lines[101:])):
        (tmp_path / "parts" / f"{name}.csv").write_text("\n".join([lines[0], *part]) + "\n")
    release = write_release(tmp_path / "release", synthetic, {"components": 3}, "hpdp-dp")
    assert evaluate((study, tmp_path / "parts", release)) == evaluate(tables)


def test_mutual_information_of_a_release(tables: tuple[Path, Path, Path], tmp_path: Path) -> None:
    study, real, synthetic = tables
    write_study(study, method={"name": "dp-subn", "encoding": "vanilla"})
    release = write_release(tmp_path / "release", synthetic, {"network": NETWORK}, "dp-subn")
    held = evaluate((study, real, release))["mutual_information"]
    assert held["networks"] == 1
    assert held["real"] > 0.5, "age follows sex"
    assert held["real"] != held["synthetic"]
    assert evaluate(tables)["mutual_information"] is None
    for network in (release, release / "model.json"):
        assert evaluate(tables, "--network", network)["mutual_information"] == held
    text = synod("evaluate", real, release, "--study", study).out
    assert f"{held['real']:.3f} bits in the real rows" in text
    alone = evaluate((study, real, release))["columns_alone"]["mutual_information"]
    assert alone < held["real"] / 2, "what one column tells about another is lost"
    assert f"{alone:.3f} with columns alone" in text


def test_misclassification_of_targets(tables: tuple[Path, Path, Path]) -> None:
    found = evaluate(tables, "--target", "sex", "--target", "ward=a|b")["misclassification"]
    assert list(found) == ["sex", "ward=a|b"]
    assert found["sex"]["tested_rows"] == 60
    assert found["sex"]["real"] < found["sex"]["majority"], "sex follows from age"


def test_a_figure_is_drawn(tables: tuple[Path, Path, Path], tmp_path: Path) -> None:
    study, real, synthetic = tables
    path = tmp_path / "out.png"
    ending = synod("evaluate", real, synthetic, "--study", study, "--plot", path)
    assert (ending.code, ending.err) == (0, "")
    assert f"Drawn: {path}" in ending.out
    from matplotlib.image import imread

    pixels = imread(path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert pixels.shape[0] > 800
    assert pixels.shape[1] > 1200
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50, "it is not blank"


def test_without_the_optional_packages(tables: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = evaluate(tables)
    for name in [*sys.modules, "sklearn", "sklearn.svm", "matplotlib", "matplotlib.figure", "scipy", "scipy.sparse"]:
        if name.split(".")[0] in ("sklearn", "matplotlib", "scipy"):
            monkeypatch.setitem(sys.modules, name, None)
    assert evaluate(tables) == plain
    study, real, synthetic = tables
    arguments = ("evaluate", real, synthetic, "--study", study)
    told = complaint(synod(*arguments, "--target", "sex"), 2)
    assert told.startswith("--target needs scikit-learn, which is not installed. Install")
    told = complaint(synod(*arguments, "--plot", real.with_suffix(".png")), 2)
    assert told.startswith("--plot needs matplotlib, which is not installed. Install")


def test_other_commands_do_not_wait_for_the_optional_packages() -> None:
    code = (
        "import synod.deploy.cli.main, sys; print([m for m in ('sklearn', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


BROKEN: dict[str, tuple[str, str, str]] = {
    "no real table": ("none.csv", "synthetic.csv", "there is no table at"),
    "no synthetic table": ("real.csv", "none.csv", "there is no table at"),
    "a folder without tables": ("empty", "synthetic.csv", "holds no table"),
    "a folder that is no release": ("real.csv", "empty", "holds no synthetic.parquet"),
    "another kind of file": ("study.yaml", "synthetic.csv", "study.yaml is neither .csv nor .parquet"),
    "half a parquet file": ("real.csv", "half.parquet", "half.parquet cannot be read as a PARQUET table"),
    "other columns": ("other.csv", "synthetic.csv", "other.csv has no column 'income' and 1 others"),
    "a misfit": (
        "real.csv",
        "misfit.csv",
        "misfit.csv does not fit the study's schema: column age: outside the domain",
    ),
    "no rows": ("real.csv", "header.csv", "has no rows"),
}


@pytest.mark.parametrize(("real", "synthetic", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_inputs(tables: tuple[Path, Path, Path], tmp_path: Path, real: str, synthetic: str, told: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "half.parquet").write_bytes(b"PAR1")
    (tmp_path / "other.csv").write_text("sex,age\nF,3\n")
    (tmp_path / "misfit.csv").write_text(f"{HEADER}\nF,3141,5,a\n")
    (tmp_path / "header.csv").write_text(f"{HEADER}\n")
    ending = synod("evaluate", tmp_path / real, tmp_path / synthetic, "--study", tables[0])
    sentence = complaint(ending, 2)
    assert told in sentence
    assert "3141" not in sentence, "no value of a row"
    assert ending.out == ""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--study", "none.yaml"), "none.yaml"),
        (("--target", "size"), "'size' names no attribute"),
        (("--target", "ward=z"), "'ward' has no category 'z'"),
        (("--network", "none.json"), "none.json cannot be read as the model of a release"),
        (("--plot", "out.jpg"), "out.jpg is not the name of a .png file"),
        (("--plot", "nowhere/out.png"), "there is no folder nowhere"),
    ],
)
def test_broken_options(tables: tuple[Path, Path, Path], more: tuple[str, ...], told: str) -> None:
    study, real, synthetic = tables
    ending = synod("evaluate", real, synthetic, "--study", study, *more)
    assert told in complaint(ending, 2)
    assert ending.out == ""


def test_a_model_without_a_network_when_one_is_asked_for(tables: tuple[Path, Path, Path], tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"method": "hpdp-dp", "model": {}}))
    ending = synod("evaluate", tables[1], tables[2], "--study", tables[0], "--network", model)
    assert "has no network. hpdp-dp learns none" in complaint(ending, 2)


@pytest.mark.parametrize("more", [("--queries", "-1"), ("--seed", "x"), ("--encoding", "gray")])
def test_usage_errors(tables: tuple[Path, Path, Path], more: tuple[str, ...]) -> None:
    study, real, synthetic = tables
    ending = synod("evaluate", real, synthetic, "--study", study, *more)
    assert ending.code == 2
    assert "Usage:" in ending.err


def test_the_study_is_the_releases_where_none_is_named(tables: tuple[Path, Path, Path], tmp_path: Path) -> None:
    study, real, synthetic = tables
    release = write_release(tmp_path / "release", synthetic, {"networks": []}, "hpdp-dp")
    assert "--study" in complaint(synod("evaluate", real, release), 2)
    (release / "manifest.json").write_text(json.dumps({"study": load_study(study).to_json()}))
    told = synod("evaluate", real, release, "--json")
    assert (told.code, told.err) == (0, "")
    assert told.out == synod("evaluate", real, release, "--study", study, "--json").out
    assert "--study" in complaint(synod("evaluate", real, synthetic), 2)
