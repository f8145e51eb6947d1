"""The release: types and domains come back, nulls and quotes survive, and it is there whole or not at all."""

import csv
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.crypto.identity import fingerprint
from synod.common.privacy.coins import Coins
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study
from synod.curator.release import files as release
from synod.curator.release.files import decode_table, write_csv
from tests.support.releases import AnsweredStudy
from tests.support.studies import categorical, integer, make_study, real

QUOTED: list[dict[str, Any]] = [
    categorical('a, "quoted" name', ("x,y", 'say "x"', "two\nlines", "plain", " ")),
    integer("n", 1, 3, nullable=True),
]
TYPED: list[dict[str, Any]] = [
    categorical("text", ("01", "NA", "é"), nullable=True),
    integer("whole", -5, 5, nullable=True),
    real("real", "-0.5", "0.5", nullable=True),
    integer("constant", 7, 7),
]


def columns_of(study: Study, *codes: list[int]) -> list[Codes]:
    return [np.array(c, dtype=coding.dtype) for c, coding in zip(codes, codings_of(study), strict=True)]


def read_csv(path: Path) -> list[list[str]]:
    """Python's own reader: not the one that wrote it."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


# Tables


def test_types_and_nulls_come_back(tmp_path: Path) -> None:
    study = make_study(schema=TYPED)
    columns = columns_of(study, [0, 1, 2, 3], [0, 128, 256, 257], [0, 128, 256, 257], [0, 0, 0, 0])
    table = decode_table(study, columns, coins=Coins.public(0, "values"))
    assert [str(kind) for kind in table.schema.types] == ["string", "int64", "double", "int64"]
    expected = {
        "text": ["01", "NA", "é", None],
        "whole": [-5, 0, 5, None],
        "real": [-0.5, 0.0, 0.5, None],
        "constant": [7, 7, 7, 7],
    }
    assert table.to_pydict() == expected
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert pa.parquet.read_table(tmp_path / "t.parquet").to_pydict() == expected
    write_csv(table, tmp_path / "t.csv")
    assert read_csv(tmp_path / "t.csv") == [
        ["text", "whole", "real", "constant"],
        ["01", "-5", "-0.5", "7"],
        ["NA", "0", "0", "7"],
        ["é", "5", "0.5", "7"],
        ["", "", "", "7"],
    ]
    assert '"' not in (tmp_path / "t.csv").read_text(encoding="utf-8"), "nothing here needs quotes"


def test_every_number_stays_in_its_domain() -> None:
    study = make_study(schema=[TYPED[1], TYPED[2]])
    levels = list(range(257))
    table = decode_table(study, columns_of(study, levels, levels), coins=Coins.public(0, "values")).to_pydict()
    assert set(table["whole"]) == set(range(-5, 6))
    assert all(isinstance(value, int) for value in table["whole"])
    assert (min(table["real"]), max(table["real"])) == (-0.5, 0.5)
    assert len(set(table["real"])) == 257


def test_texts_that_need_quotes_get_them(tmp_path: Path) -> None:
    study = make_study(schema=QUOTED)
    table = decode_table(
        study, columns_of(study, [0, 1, 2, 3, 4, 3], [0, 128, 256, 257, 0, 0]), coins=Coins.public(0, "values")
    )
    write_csv(table, tmp_path / "t.csv")
    assert read_csv(tmp_path / "t.csv") == [
        ['a, "quoted" name', "n"],
        ["x,y", "1"],
        ['say "x"', "2"],
        ["two\nlines", "3"],
        ["plain", ""],
        [" ", "1"],
        ["plain", "1"],
    ]


def test_only_a_name_needs_quotes(tmp_path: Path) -> None:
    study = make_study(schema=[categorical("a,b", ("x", "y"))])
    write_csv(decode_table(study, columns_of(study, [0, 1]), coins=Coins.public(0, "values")), tmp_path / "t.csv")
    assert read_csv(tmp_path / "t.csv") == [["a,b"], ["x"], ["y"]]


# The folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> AnsweredStudy:
    return AnsweredStudy(tmp_path_factory.mktemp("study"), make_study(schema=[*TYPED, *QUOTED]))


@pytest.fixture
def answered(made: AnsweredStudy) -> AnsweredStudy:
    """The same study for every test, without a release."""
    shutil.rmtree(made.folder / "releases", ignore_errors=True)
    return made


def test_a_release_verifies_and_holds_what_it_should(answered: AnsweredStudy) -> None:
    files = answered.write()
    assert set(files) == {
        "synthetic.csv",
        "synthetic.parquet",
        "model.json",
        "report.html",
        "answers.parquet",
        "manifest.json",
    }
    verify_release(answered.target, None)
    manifest = json.loads(files["manifest.json"])
    assert manifest["study_hash"] == answered.study.digest().hex()
    assert {name: account["spent"] for name, account in manifest["parties"].items()} == dict.fromkeys(
        ("north", "harbour", "valley"), "epsilon:1"
    )
    assert json.loads(files["model.json"])["method"] == "hpdp-dp"
    rows = read_csv(answered.target / "synthetic.csv")
    assert len(rows) == 151
    parquet = pa.parquet.read_table(answered.target / "synthetic.parquet").to_pydict()
    as_text = [["" if value is None else value for value in column] for column in parquet.values()]
    assert [row[0] for row in rows[1:]] == as_text[0]
    assert [float(row[2]) if row[2] else "" for row in rows[1:]] == as_text[2]


def test_the_report_belongs_to_the_release(answered: AnsweredStudy) -> None:
    files = answered.write()
    manifest, page = json.loads(files["manifest.json"]), files["report.html"].decode()
    assert manifest["files"]["report.html"]["sha256"] == hashlib.sha256(files["report.html"]).hexdigest()
    assert manifest["study_hash"] in page
    assert manifest["transcript_hash"] in page
    assert fingerprint(bytes.fromhex(manifest["signer"])) in page
    assert f"Synod {manifest['versions']['synod-dp']}" in page
    (answered.target / "report.html").write_text(page.replace("care-survey", "another"))
    with pytest.raises(SynodError, match=r"report\.html is not the one that was released"):
        verify_release(answered.target, None)
    (answered.target / "report.html").unlink()
    with pytest.raises(SynodError, match=r"report\.html is missing"):
        verify_release(answered.target, None)


def test_the_same_log_gives_the_same_bytes(answered: AnsweredStudy) -> None:
    first = answered.write()
    shutil.rmtree(answered.target)
    assert answered.write() == first


def test_a_release_is_never_written_over(answered: AnsweredStudy) -> None:
    first = answered.write()
    (answered.target / "synthetic.csv").write_bytes(b"kept")
    assert answered.write() == {**first, "synthetic.csv": b"kept"}


@pytest.mark.parametrize(
    "stop",
    ["write_csv", "_write_json", "write_answers", "write_report", "describe_release", "seal_manifest", "sync_files"],
)
def test_a_crash_in_the_middle_leaves_no_release(
    answered: AnsweredStudy, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    class Crash(BaseException):
        """What no code handles, like a kill."""

    def crash(*args: Any, **kwargs: Any) -> Any:
        raise Crash

    whole = answered.write()
    shutil.rmtree(answered.target)
    with monkeypatch.context() as patch:
        patch.setattr(release, stop, crash)
        with pytest.raises(Crash):
            answered.write()
    assert not answered.target.exists()
    for junk in ("manifest.json", "old.csv"):
        (answered.target.with_suffix(".draft") / junk).write_text("left by a crash")
    assert answered.write() == whole
    assert not answered.target.with_suffix(".draft").exists()


def test_a_full_disk_ends_in_a_sentence(answered: AnsweredStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(release, "write_csv", full)
        with pytest.raises(SynodError, match="free disk space") as caught:
            answered.write()
    assert caught.value.code is Code.STORAGE
    assert not answered.target.exists()
    answered.write()
