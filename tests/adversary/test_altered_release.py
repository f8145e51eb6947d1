"""A curator that computes wrongly, or lies about what it computed, and seals that with its own key.

Whatever it publishes must follow from the answers, and answers that single parties gave are signed by them. Only the
sums are its word, and `synod verify` says so.
"""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.privacy.coins import Coins
from synod.common.protocol.answers import ANSWERS_FILE
from synod.common.protocol.manifest import MANIFEST_FILE, file_hash, seal_manifest
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study, known_methods
from synod.curator.methods import adaptive, dp_subn
from synod.curator.methods.base import publisher_of
from synod.curator.network.information import most_correlated
from synod.curator.release import redraw
from synod.curator.release.files import decode_table, write_csv
from synod.curator.release.redraw import CheckedRelease, check_release
from synod.curator.release.rerun import Found
from tests.support.keys import CURATOR, identity_of
from tests.support.releases import SEED, AnsweredStudy
from tests.support.studies import binary, categorical, integer, make_study

SCHEMA = [binary("sex"), categorical("ward", 3), integer("age", 0, 63, bins=4)]
METHODS: dict[str, dict[str, Any]] = {name: {} for name in known_methods()} | {"adaptive": {"rounds": 5}}
SEED_WORD = "that the seed was drawn at random, for which you trust the curator"
WORD = "that the sums are those of the encrypted answers, for which you trust the curator"


def study_of(method: str) -> Study:
    return make_study(schema=SCHEMA, method={"name": method, **METHODS[method]}, epsilon="20")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def published(method: str) -> Path:
        answered = AnsweredStudy(tmp_path_factory.mktemp(method), study_of(method))
        answered.write()
        return answered.target

    return published


@pytest.fixture
def released(releases: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a method's release, to alter."""
    return lambda method: Path(shutil.copytree(releases(method), tmp_path / method))


def seal_again(folder: Path, **changes: Any) -> None:
    """What the curator can do to any file: the manifest has its hash, and the curator's own signature."""
    manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    del manifest["signer"], manifest["signature"]
    for name in manifest["files"]:
        manifest["files"][name] = {"sha256": file_hash(folder / name), "bytes": (folder / name).stat().st_size}
    (folder / MANIFEST_FILE).write_bytes(seal_manifest({**manifest, **changes}, identity_of(CURATOR)))


def refusal(folder: Path) -> str:
    with pytest.raises(SynodError) as caught:
        check_release(folder, None)
    assert caught.value.code is Code.CHECK_FAILED
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


def outcome(folder: Path) -> str | CheckedRelease:
    try:
        return check_release(folder, None)
    except SynodError as error:
        return error.sentence


def alter_answers(folder: Path, alter: Callable[[dict[str, list[Any]]], Any]) -> None:
    """Other numbers in the file of answers, laid out as before."""
    path = folder / ANSWERS_FILE
    file = pa.parquet.ParquetFile(path)
    groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    columns = file.read().to_pydict()
    alter(columns)
    table, start = pa.table(columns, schema=file.schema_arrow), 0
    with pa.parquet.ParquetWriter(path, table.schema) as writer:
        for rows in groups:
            writer.write_table(table.slice(start, rows))
            start += rows
    seal_again(folder)


def add_to(columns: dict[str, list[Any]], *places: int) -> None:
    """Every number at one of these places is another, by 1, 2 or 3."""
    for place in places:
        columns["value"][place] += 1 + place % 3


def places_of(folder: Path, label: str) -> list[int]:
    rounds = pa.parquet.read_table(folder / ANSWERS_FILE)["round"].to_pylist()
    return [place for place, own in enumerate(rounds) if own == label]


def write_rows(folder: Path, study: Study, columns: Sequence[Any], seed: int = SEED) -> None:
    """Both tables from codes, as an honest curator writes them."""
    table = decode_table(study, list(columns), coins=Coins.public(seed, "values"))
    write_csv(table, folder / "synthetic.csv")
    pa.parquet.write_table(table, folder / "synthetic.parquet")


def without_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redraw, "rerun_recipe", lambda *_: Found())


# Honest releases


@pytest.mark.parametrize("method", METHODS)
def test_all_of_an_honest_release_is_computed_again(releases: Callable[[str], Path], method: str) -> None:
    checked = check_release(releases(method), None)
    again = [line for line in checked.lines if line.startswith("computed again from the released answers, bit for bit")]
    assert [line.split(": ")[1].split()[-1] for line in again if "rows" not in line] == [
        "queries", "model.json", "report.html",
    ]  # fmt: skip
    assert any(
        line.startswith(("all 150 rows are those", again[0].split(":")[0] + ": all 150")) for line in checked.lines
    )
    assert not any("follow" in line for line in checked.unproven)


# Sealed again with other content


def test_another_model_with_the_rows_that_it_gives(
    released: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, study = released("adaptive"), study_of("adaptive")
    document = json.loads((folder / "model.json").read_text())
    document["model"]["cliques"][0]["weights"][0] += 1 << 38
    (folder / "model.json").write_text(json.dumps(document))
    draw = publisher_of(study).draw
    assert draw is not None
    write_rows(folder, study, draw(study, document["model"], SEED))
    seal_again(folder)
    assert refusal(folder) == "model.json is not what adaptive gives for the released answers."
    without_recomputation(monkeypatch)
    assert check_release(folder, None), "rows and model agree with each other"


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent"])
def test_one_other_row_in_both_tables(
    released: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    folder = released(method)
    table = pa.parquet.read_table(folder / "synthetic.parquet")
    sexes = table["sex"].to_pylist()
    sexes[5] = "yes" if sexes[5] == "no" else "no"
    table = table.set_column(0, "sex", pa.array(sexes))
    write_csv(table, folder / "synthetic.csv")
    pa.parquet.write_table(table, folder / "synthetic.parquet")
    seal_again(folder)
    assert refusal(folder) == f"the rows of synthetic.csv are not those that {method} gives for the released answers."
    without_recomputation(monkeypatch)
    assert check_release(folder, None)


@pytest.mark.parametrize("method", ["dp-subn", "hpdp-dp", "adaptive"])
@pytest.mark.parametrize("name", ["synthetic.csv", "synthetic.parquet"])
def test_one_table_with_rows_in_another_order(released: Callable[[str], Path], method: str, name: str) -> None:
    folder = released(method)
    table = pa.parquet.read_table(folder / "synthetic.parquet")
    table = table.take(list(reversed(range(table.num_rows))))
    if name.endswith("csv"):
        write_csv(table, folder / name)
    else:
        pa.parquet.write_table(table, folder / name)
    seal_again(folder)
    told = refusal(folder)
    if method == "dp-subn":
        assert told == "synthetic.csv and synthetic.parquet do not hold the same rows."
    else:
        assert told.startswith(f"the rows of {name} are not those that ")


def test_other_rows_than_the_parties_drew(released: Callable[[str], Path]) -> None:
    folder, study = released("hpdp-dp"), study_of("hpdp-dp")
    codes = [np.zeros(150, np.uint16) for _ in SCHEMA]
    write_rows(folder, study, codes)
    seal_again(folder)
    assert refusal(folder) == "the rows of synthetic.csv are not those that the parties drew and signed."
    drawn = places_of(folder, "rows")
    alter_answers(
        folder, lambda columns: columns["value"].__setitem__(slice(drawn[0], drawn[-1] + 1), [0] * len(drawn))
    )
    assert refusal(folder) == "the released answer of north to rows is not the one that it signed."


def test_another_model_than_the_parties_drew_from(
    released: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = released("hpdp-dp")
    document = json.loads((folder / "model.json").read_text())
    document["model"]["noise"] += 1
    (folder / "model.json").write_text(json.dumps(document))
    seal_again(folder)
    without_recomputation(monkeypatch)
    assert refusal(folder) == "model.json is not the model of the query that the parties answered."


@pytest.mark.parametrize("method", METHODS)
def test_another_report(released: Callable[[str], Path], method: str) -> None:
    folder = released(method)
    page = (folder / "report.html").read_text()
    (folder / "report.html").write_text(page.replace("</body>", "<p>All true.</p></body>"))
    seal_again(folder)
    assert refusal(folder) == f"report.html is not what {method} gives for the released answers."


@pytest.mark.parametrize("method", ["privbayes", "histogram"])
def test_another_seed_after_the_fact(tmp_path: Path, method: str) -> None:
    """The study leaves the seed open. Where a method asks by it, it is as good as signed; elsewhere a curator can try
    seeds until it likes the rows, and that is said.
    """
    study = make_study(schema=SCHEMA, method={"name": method, **METHODS[method]}, epsilon="20", seed=None)
    answered = AnsweredStudy(tmp_path, study)
    answered.write()
    folder, draw = answered.target, publisher_of(study).draw
    assert SEED_WORD in check_release(folder, None).unproven
    assert draw is not None
    model = json.loads((folder / "model.json").read_text())["model"]
    first, *others = (int(np.random.default_rng(seed).integers(len(SCHEMA))) for seed in range(SEED, SEED + 20))
    other = SEED + 1 + next(place for place, own in enumerate(others) if own != first)
    write_rows(folder, study, draw(study, model, other), other)
    seal_again(folder, seed=other)
    if method == "privbayes":
        assert refusal(folder) == "the query of structure-harbour is not what privbayes gives for the released answers."
    else:
        assert refusal(folder) == "report.html is not what histogram gives for the released answers."


# Other numbers


@pytest.mark.parametrize("method", METHODS)
def test_no_number_of_the_answers_changes_unnoticed(released: Callable[[str], Path], method: str) -> None:
    """Of each answer one number is another. What a party signed is refused by its hash. Of a sum, either something that
    was published no longer follows, or nothing published depends on it; and the sums are said to be the curator's word.
    """
    folder, rng = released(method), random.Random(method)
    original = (folder / ANSWERS_FILE).read_bytes()
    table = pa.parquet.read_table(folder / ANSWERS_FILE)
    rounds, parties = table["round"].to_pylist(), table["party"].to_pylist()
    told: list[str] = []
    for label in dict.fromkeys(rounds):
        place = rng.choice([i for i, own in enumerate(rounds) if own == label])
        (folder / ANSWERS_FILE).write_bytes(original)
        alter_answers(folder, lambda columns, place=place: add_to(columns, place))  # type: ignore[misc]
        found = outcome(folder)
        if parties[place] is not None:
            assert isinstance(found, str)
            assert f"answer of {parties[place]} to {label} is not the one" in found or "is not sound" in found
        elif isinstance(found, CheckedRelease):
            assert WORD in found.unproven
        told.append(found if isinstance(found, str) else "")
    assert any(told), "something depends on some number"


@pytest.mark.parametrize("method", METHODS)
def test_a_sum_that_everything_depends_on(released: Callable[[str], Path], method: str) -> None:
    """Every number of the last sum is larger, so what follows from it is other: names what."""
    folder = released(method)
    labels = [label for label, party in _rounds(folder) if party is None]
    if not labels:
        assert method == "independent"
        return
    last = places_of(folder, labels[-1])
    alter_answers(folder, lambda columns: add_to(columns, *last))
    assert refusal(folder).endswith("for the released answers.")


def _rounds(folder: Path) -> list[tuple[str, str | None]]:
    table = pa.parquet.read_table(folder / ANSWERS_FILE)
    return list(dict.fromkeys(zip(table["round"].to_pylist(), table["party"].to_pylist(), strict=True)))


def test_numbers_that_cannot_be_true(released: Callable[[str], Path]) -> None:
    folder = released("histogram")
    alter_answers(folder, lambda columns: columns["value"].__setitem__(0, 1 << 40))
    assert "the released answer to histogram cannot be true: a released count is out of range" in refusal(folder)


def test_answers_of_two_parties_exchanged(released: Callable[[str], Path]) -> None:
    folder = released("dp-subn")
    one, other = places_of(folder, "update-north"), places_of(folder, "update-valley")
    assert len(one) == len(other)

    def exchange(columns: dict[str, list[Any]]) -> None:
        for a, b in zip(one, other, strict=True):
            columns["value"][a], columns["value"][b] = columns["value"][b], columns["value"][a]

    alter_answers(folder, exchange)
    assert refusal(folder) == "the released answer of north to update-north is not the one that it signed."


# Queries of the curator's own


def test_a_query_that_is_not_the_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan allows it, the parties answered it and signed for it, and the rest was computed honestly from there."""

    def choose(study: Study, known: Any, step: Any, *, last: bool) -> Any:
        del study, step, last
        return known.grouped.ask_tables([(0,)], [1.0]).to_json()

    with monkeypatch.context() as patch:
        patch.setattr(adaptive, "_choose_tables", choose)
        answered = AnsweredStudy(tmp_path, study_of("adaptive"))
        answered.write()
        assert check_release(answered.target, None), "whoever computes as this curator does sees nothing"
    assert refusal(answered.target) == "the query of tables-1 is not what adaptive gives for the released answers."


def test_candidates_that_the_curator_prefers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dp_subn, "most_correlated", lambda i, x, e, length: most_correlated(-i, x, e, min(1, length)))
        answered = AnsweredStudy(tmp_path, study_of("dp-subn"))
        answered.write()
    assert "is not what dp-subn gives for the released answers." in refusal(answered.target)
    assert refusal(answered.target).startswith("the query of initialize-")


def test_a_fit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(adaptive, "_final_iterations", lambda *_: 1)
        answered = AnsweredStudy(tmp_path, study_of("adaptive"))
        answered.write()
    assert refusal(answered.target) == "model.json is not what adaptive gives for the released answers."


# A release that claims to come from elsewhere


def test_other_versions_excuse_nothing_in_silence(released: Callable[[str], Path]) -> None:
    folder = released("dp-subn")
    document = json.loads((folder / "model.json").read_text())
    document["model"]["tables"][0][0] += 5_000
    (folder / "model.json").write_text(json.dumps(document))
    versions = json.loads((folder / MANIFEST_FILE).read_text())["versions"]
    seal_again(folder, versions={**versions, "numpy": "0.9"})
    checked = check_release(folder, None)
    (line,) = (line for line in checked.unproven if "follows" in line)
    assert line.startswith("that model.json follows from the released answers: it comes out otherwise here")
    assert line.endswith("(numpy was 0.9)")
    assert not any(line.endswith("model.json") for line in checked.lines)
    seal_again(folder, versions=versions)
    assert refusal(folder) == "model.json is not what dp-subn gives for the released answers."
