"""Rows drawn again: an honest release is accepted, and one changed cell, another seed or another model is not."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.curator.release import redraw
from synod.curator.release.files import write_csv
from synod.curator.release.redraw import check_release, redraw_rows
from synod.deploy.cli.progress import show_release
from synod.deploy.cli.study import held_release
from tests.support.commands import complaint, synod
from tests.support.curators import approve_everywhere, copy_parties, run_study
from tests.support.studies import binary, categorical, integer, make_study, real

SEED = 7
SCHEMA = [
    categorical("ward", ("plain", "a, b", 'say "x"', "two\nlines", "NA"), nullable=True),
    integer("age", 0, 100, bins=6, nullable=True),
    real("pay", "-1.5", "9", bins=5, nullable=True),
    integer("year", 2020, 2020),
]


def publish(folder: Path, study: Study) -> Path:
    run_study(folder / "curator", study, copy_parties(study, approve_everywhere(folder / "l", study), folder / "p"))
    return folder / "curator" / "releases" / study.digest().hex()


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study(schema=SCHEMA, method={"name": "adaptive", "rounds": 5}, epsilon="5", delta="1e-9")


@pytest.fixture(scope="module")
def released(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("study"), study)


@pytest.fixture
def release(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "release"))


def refusal(folder: Path, study: Study, seed: int = SEED) -> str:
    with pytest.raises(SynodError) as caught:
        redraw_rows(folder, study, seed)
    assert caught.value.code is Code.CHECK_FAILED
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


def test_an_honest_release(release: Path, study: Study) -> None:
    assert redraw_rows(release, study, SEED) == "all 150 rows are those that the model and the seed give"


@pytest.mark.parametrize("schema", [[categorical("a", 3, nullable=True)], [integer("a", 0, 200, nullable=True)]])
def test_a_single_column_with_missing_values(schema: list[dict[str, Any]], tmp_path: Path) -> None:
    """A row of one missing value is an empty line."""
    study = make_study(schema=schema, method={"name": "adaptive"}, epsilon="50")
    folder = publish(tmp_path, study)
    assert b"\n\n" in (folder / "synthetic.csv").read_bytes()
    assert redraw_rows(folder, study, SEED)


def test_line_breaks_in_texts_of_a_table_larger_than_a_block(tmp_path: Path) -> None:
    """Arrow reads a CSV file in blocks of a megabyte, and must not end one inside of a text."""
    table = pa.table({"a": ["two\nlines"] * 200_000, "b": list(range(200_000))})
    write_csv(table, tmp_path / "t.csv")
    assert redraw._read_csv(tmp_path / "t.csv", table.schema).equals(table)


def test_another_seed(release: Path, study: Study) -> None:
    assert refusal(release, study, SEED + 1) == (
        "the rows of synthetic.csv are not those that the model and the seed give."
    )


@pytest.mark.parametrize(("column", "value"), [(0, "plain"), (0, ""), (1, "55"), (1, ""), (2, "1.2345"), (3, "2020")])
def test_one_changed_cell_of_the_csv(release: Path, study: Study, column: int, value: str) -> None:
    path = release / "synthetic.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    changed = next((row for row in rows[1:] if row[column] != value), None)
    if changed is None:
        changed = rows[1]
        value = ""
    changed[column] = value
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    assert "synthetic.csv are not those" in refusal(release, study)


@pytest.mark.parametrize("text", ["x", "1e400", "2.5", "99999999999999999999"])
def test_a_cell_of_the_csv_that_is_no_number(release: Path, study: Study, text: str) -> None:
    path = release / "synthetic.csv"
    lines = path.read_text(encoding="utf-8").replace(",2020\n", f",{text}\n", 1)
    path.write_text(lines, encoding="utf-8")
    assert refusal(release, study).startswith("synthetic.csv cannot be read")


def test_one_changed_cell_of_the_parquet_file(release: Path, study: Study) -> None:
    path = release / "synthetic.parquet"
    table = pa.parquet.read_table(path)
    ages = table["age"].to_pylist()
    ages[3] = 1 if ages[3] != 1 else 2
    pa.parquet.write_table(table.set_column(1, "age", pa.array(ages, pa.int64())), path)
    assert "synthetic.parquet are not those" in refusal(release, study)


@pytest.mark.parametrize("rows", [0, 149, 151])
def test_rows_that_are_missing_or_too_many(release: Path, study: Study, rows: int) -> None:
    path = release / "synthetic.parquet"
    table = pa.parquet.read_table(path)
    pa.parquet.write_table(pa.concat_tables([table, table]).slice(0, rows), path)
    assert "synthetic.parquet are not those" in refusal(release, study)


@pytest.mark.parametrize("name", ["synthetic.csv", "synthetic.parquet"])
def test_tables_that_cannot_be_read(release: Path, study: Study, name: str) -> None:
    (release / name).write_bytes(b"\xff\x00")
    assert refusal(release, study).startswith((f"{name} cannot be read", f"the rows of {name} are not"))
    (release / name).unlink()
    assert refusal(release, study).startswith(f"{name} cannot be read")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "model.json is not JSON"),
        (b"{", "model.json is not JSON"),
        (b"\xff", "model.json is not UTF-8 text"),
        (b"[" * 100_000, "model.json is nested more than 64 deep"),
        (b'{"method": "adaptive", "model": ' + b"9" * 5_000 + b"}", "model.json has a number of more than 40 digits"),
        (b"[]", "does not hold a model of adaptive"),
        (b"{}", "does not hold a model of adaptive"),
        (b'{"method": "dp-subn", "model": {}}', "does not hold a model of adaptive"),
        (b'{"method": "adaptive"}', "does not hold a model of adaptive"),
        (b'{"method": "adaptive", "model": 5}', "not a model that rows can be drawn from: the model is not a mapping"),
    ],
)
def test_a_model_that_is_none(release: Path, study: Study, content: bytes, why: str) -> None:
    (release / "model.json").write_bytes(content)
    assert why in refusal(release, study)


def test_a_model_that_gives_other_rows(release: Path, study: Study) -> None:
    document = json.loads((release / "model.json").read_text())
    document["model"]["cliques"][0]["weights"][0] = 1 << 40
    (release / "model.json").write_text(json.dumps(document))
    assert "are not those that the model and the seed give" in refusal(release, study)


def test_verify_draws_the_rows_again(release: Path) -> None:
    ending = synod("verify", release)
    assert (ending.code, ending.err) == (0, "")
    assert "ok  all 150 rows are those that the model and the seed give\n" in ending.out
    assert "not checked" not in ending.out


def test_every_command_does_the_same_checks(release: Path, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    proven = [line for line in synod("verify", release).out.splitlines() if line.startswith("ok")]
    show_release(release)
    assert f"Published and verified ({len(proven)} checks): {release}/\n" in capsys.readouterr().out
    assert len(proven) == len(check_release(release, None).lines) == 13
    assert held_release(release) == study.digest().hex()


def test_no_command_is_content_with_rows_that_were_chosen(
    release: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signed and whole, but with another seed's rows."""
    verdict = verify_release(release, None)
    monkeypatch.setattr(redraw, "verify_release", lambda *_: replace(verdict, seed=SEED + 1))
    for check in (check_release, lambda folder, _: show_release(folder)):
        with pytest.raises(SynodError, match="are not those that the model and the seed give"):
            check(release, None)
    assert held_release(release) is None
    complaint(synod("verify", release), 5)


def test_verify_does_not_claim_what_it_did_not_check(tmp_path: Path) -> None:
    study = make_study(schema=[binary("a"), binary("b")], method={"name": "dp-ccbn"}, epsilon="50")
    folder = publish(tmp_path, study)
    assert redraw_rows(folder, study, SEED) is None
    ending = synod("verify", folder, "--no-recompute")
    assert (ending.code, ending.err) == (0, "")
    skipped = "that queries, model, rows and report follow from the released answers, which was not computed again"
    assert f"--  not proven: {skipped}\n" in ending.out
    proven = [line for line in ending.out.splitlines() if line.startswith("ok")]
    assert len(proven) == 9
    assert [line for line in proven if "rows" in line] == ["ok  synthetic.csv and synthetic.parquet hold the same rows"]
    again = synod("verify", folder).out
    assert "ok  computed again from the released answers, bit for bit: all 150 rows\n" in again
    assert "not computed again" not in again


def test_verify_fails_where_files_are_missing(release: Path) -> None:
    (release / "model.json").unlink()
    assert "model.json is missing" in complaint(synod("verify", release), 5)
