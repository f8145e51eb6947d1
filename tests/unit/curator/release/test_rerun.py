"""A method run again: on the machine that made the release and on others, and what counts as rounding."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.models.gaussian import parse_model
from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import MANIFEST_FILE, verify_release
from synod.common.protocol.plan import plan_study
from synod.curator.methods import hpdp_dp
from synod.curator.methods.base import publish as run_recipe
from synod.curator.release import rerun, versions
from synod.curator.release.redraw import check_release
from synod.curator.release.rerun import is_close
from synod.curator.release.versions import current_versions, describe_versions, find_differences
from tests.support.commands import synod
from tests.support.curators import approve_everywhere, copy_parties, make_context, run_study
from tests.support.keep_releases import DATA
from tests.support.studies import binary, categorical, integer, make_study

KEPT = sorted(DATA.glob("release-0.1-*"))
SCHEMA = [binary("sex"), categorical("ward", 3), integer("age", 0, 63, bins=4)]
AGAIN = "computed again from the released answers"
EXPLAINED = "and the release was computed otherwise"


# Kept releases


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_release_is_computed_again(folder: Path) -> None:
    """Bit for bit on the machine that made it. Elsewhere too, as far as the tests have seen, and if not it is said."""
    checked = check_release(folder, None)
    if not find_differences(checked.verdict.versions):
        assert [line for line in checked.lines if line.startswith(AGAIN) and "bit for bit" not in line] == []
    explained = [line for line in checked.unproven if EXPLAINED in line]
    for name in ("queries", "model.json", "report.html"):
        assert any(line.startswith(AGAIN) and line.endswith(name) for line in checked.lines) or explained


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_recomputation_that_was_left_out_is_said(folder: Path) -> None:
    ending = synod("verify", folder, "--no-recompute")
    assert (ending.code, ending.err) == (0, "")
    assert AGAIN not in ending.out
    assert "follow from the released answers, which was not computed again\n" in ending.out
    assert "ok  synthetic.csv and synthetic.parquet hold the same rows\n" in ending.out


def test_kept_releases_on_another_processor() -> None:
    """Without what this processor has beyond the oldest of its kind, and with other linear algebra: floats are rounded
    otherwise. No release is refused, and what comes out otherwise is said.
    """
    own: Any = import_module("numpy._core._multiarray_umath")
    features = " ".join(name for name in own.__cpu_dispatch__ if own.__cpu_features__.get(name))
    script = (
        "import sys; from pathlib import Path; from synod.curator.release.redraw import check_release\n"
        "from synod.curator.release.versions import hash_arithmetic; print(hash_arithmetic())\n"
        "for name in sys.argv[1:]:\n"
        "    checked = check_release(Path(name), None)\n"
        "    print(*checked.lines, *checked.unproven, sep='\\n')\n"
    )
    others = {"NPY_DISABLE_CPU_FEATURES": features, "OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script, *map(str, KEPT)],
        env={**os.environ, **others}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    fingerprint, *lines = ran.stdout.splitlines()
    if features:
        assert fingerprint != versions.hash_arithmetic(), "it does round otherwise"
    proven = sum(line.startswith(AGAIN) and line.endswith("model.json") for line in lines)
    explained = sum(EXPLAINED in line and ("query" in line or "model.json" in line) for line in lines)
    assert proven + explained == len(KEPT)
    assert explained <= 1, "hpdp-dp alone fits by simulation, which rounding may tip"


def test_how_many_cores_there_are_changes_no_bit() -> None:
    """A recipe that needs eigenvectors came out otherwise on two threads, and its release was refused."""
    script = (
        "import hashlib, numpy; from synod.curator.release.versions import hash_arithmetic, use_one_thread\n"
        "use_one_thread(); print(hash_arithmetic())\n"
        "signs = numpy.modf(numpy.arange(1, 150 * 150 + 1) * 2**0.5)[0].reshape(150, 150) - 0.5\n"
        "print(hashlib.sha256(numpy.linalg.eigh(signs.T @ signs)[1].tobytes()).hexdigest())\n"
    )

    def told(threads: int) -> str:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
        command = [sys.executable, "-c", script]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout

    assert told(1) == told(2)


# The log


@pytest.mark.parametrize("method", ["adaptive", "dp-subn", "hpdp-dp"])
def test_the_released_answers_are_those_of_the_log(method: str, tmp_path: Path) -> None:
    study = make_study(schema=SCHEMA, method={"name": method}, epsilon="20")
    ledgers = approve_everywhere(tmp_path / "ledgers", study)
    run_study(tmp_path / "curator", study, copy_parties(study, ledgers, tmp_path / "parties"), stops=(4,))
    folder = tmp_path / "curator" / "releases" / study.digest().hex()
    verdict = verify_release(folder, None)
    answers = ReleasedAnswers(folder / ANSWERS_FILE, study, verdict.queries)
    store = make_context(tmp_path / "curator").store
    for step in plan_study(study).steps:
        query = verdict.queries[step.label]
        assert query.write_answer(answers.read(step.label)) == store.answer(study.digest(), step.label)
    store.close()
    assert verdict.versions == current_versions()
    assert not any(EXPLAINED in line for line in check_release(folder, None).unproven)


# Rounding and versions


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [1, 3]}, False),
        ({"a": [1, 2]}, {"b": [1, 2]}, False),
        ([1, 2], [1, 2, 3], False),
        ([1, 2], (1, 2), True),
        ([[0, [1]], [2, [0]]], [[0, [1]], [2, [1]]], False),
        ([0, 1 << 40], [1 << 20, 1 << 40], True),
        ([0, 1 << 40], [1 << 21, 1 << 40], False),
        ([5, 60_000], [6, 60_000], True),
        ([5, 60_000], [7, 60_000], False),
        ([5, 9_000], [6, 9_000], False),
        (1 << 40, (1 << 40) + 7, True),
        ("ab", "ac", False),
        (1, True, False),
        (True, False, False),
        (None, None, True),
    ],
)
def test_what_rounding_can_do(one: Any, other: Any, close: bool) -> None:
    assert is_close(one, other) is close
    assert is_close(other, one) is close


def test_versions_that_changed_on_the_way_are_both_told() -> None:
    begun = {"numpy": "1", "python": "3.11", "gone": "1"}
    assert describe_versions(begun, {"numpy": "2", "python": "3.11", "new": "5"}) == {
        "numpy": "1, then 2", "python": "3.11", "new": "5",
    }  # fmt: skip
    assert describe_versions(None, {"numpy": "2"}) == {"numpy": "2"}


def test_what_differs_is_named() -> None:
    assert find_differences(current_versions()) == []
    assert find_differences({**current_versions(), "grpcio": "0"}) == [], "it computes nothing"
    assert find_differences({**current_versions(), "numpy": "1", "arithmetic": "x"}) == [
        "numpy was 1",
        "floats were rounded by another machine's rules",
    ]
    assert len(find_differences({})) == 4


def test_the_arithmetic_of_a_machine_is_one() -> None:
    first = versions.hash_arithmetic()
    versions.hash_arithmetic.cache_clear()
    assert versions.hash_arithmetic() == first


def publish(tmp_path: Path, method: str) -> Path:
    study = make_study(schema=SCHEMA, method={"name": method}, epsilon="20")
    ledgers = approve_everywhere(tmp_path / "ledgers", study)
    run_study(tmp_path / "curator", study, copy_parties(study, ledgers, tmp_path / "parties"))
    return tmp_path / "curator" / "releases" / study.digest().hex()


def test_a_model_that_another_machine_rounded_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The true model is off by a last digit here: refused where nothing explains it, and said where something does."""
    folder = publish(tmp_path, "adaptive")

    async def nudged(*args: Any, **kwargs: Any) -> Any:
        publication: Any = await run_recipe(*args, **kwargs)
        publication.model["cliques"][0]["weights"][0] += 1
        return publication

    monkeypatch.setattr(rerun, "publish", nudged)
    ending = synod("verify", folder)
    assert ending.code == 5
    assert "model.json is not what adaptive gives for the released answers." in ending.err
    monkeypatch.setattr(rerun, "find_differences", lambda _: ["numpy was 1"])
    lines = check_release(folder, None).lines
    assert f"{AGAIN}, up to rounding: model.json" in lines
    assert f"{AGAIN}, bit for bit: all 3 queries" in lines


def test_a_query_that_another_machine_rounded_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that parties drew from is part of a query, which they signed."""
    folder = publish(tmp_path, "hpdp-dp")

    def nudged(fitted: Any, design: Any) -> Any:
        first, *others = fitted["shift"]
        return parse_model({**fitted, "shift": [first + 1, *others]}, design)

    monkeypatch.setattr(hpdp_dp, "parse_model", nudged)
    assert "the query of rows is not what hpdp-dp gives for the released answers." in synod("verify", folder).err
    monkeypatch.setattr(rerun, "find_differences", lambda _: ["numpy was 1"])
    lines = check_release(folder, None).lines
    assert f"{AGAIN}, up to rounding: all 2 queries" in lines
    assert f"{AGAIN}, up to rounding: model.json" in lines
    assert "model.json is the model of the query that the parties answered" in lines


def test_a_recipe_that_ends_in_a_defect_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(tmp_path, "histogram")

    async def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(rerun, "publish", broken)
    assert "model.json is not what histogram gives" in synod("verify", folder).err
    monkeypatch.setattr(rerun, "find_differences", lambda _: ["numpy was 1"])
    checked = check_release(folder, None)
    assert any(line.startswith("that model.json and all that depends on it follows") for line in checked.unproven)
    assert not any(line.startswith(AGAIN) for line in checked.lines)


def test_rows_that_come_out_otherwise_elsewhere_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(tmp_path, "dp-ccbn")
    verdict = verify_release(folder, None)

    async def reversed_rows(*args: Any, **kwargs: Any) -> Any:
        publication: Any = await run_recipe(*args, **kwargs)
        publication.columns[:] = [column[::-1] for column in publication.columns]
        return publication

    monkeypatch.setattr(rerun, "publish", reversed_rows)
    assert "the rows of synthetic.csv are not those that dp-ccbn gives" in synod("verify", folder).err
    monkeypatch.setattr(rerun, "find_differences", lambda _: ["numpy was 1"])
    checked = check_release(folder, None)
    assert any("the table of rows" in line and EXPLAINED in line for line in checked.unproven)
    assert verdict.lines == checked.verdict.lines


def test_a_query_that_is_never_asked_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that asks less than the release states has not made it."""
    folder = publish(tmp_path, "histogram")
    verdict = verify_release(folder, None)
    more = {**verdict.queries, "second": next(iter(verdict.queries.values()))}
    monkeypatch.setattr(rerun, "ReleasedAnswers", lambda path, study, _: ReleasedAnswers(path, study, verdict.queries))
    object.__setattr__(verdict, "queries", more)
    with pytest.raises(Exception, match="the query of second is not what histogram gives"):
        rerun.rerun_recipe(folder, verdict, {}, lambda _: None)


def test_a_release_without_answers_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(KEPT[0], tmp_path / "release"))
    (folder / ANSWERS_FILE).unlink()
    ending = synod("verify", folder)
    assert ending.code == 5
    assert "the file answers.parquet is missing from the release." in ending.err
    assert json.loads((folder / MANIFEST_FILE).read_text())["files"][ANSWERS_FILE]
