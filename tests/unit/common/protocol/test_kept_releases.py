"""Releases of older versions verify for ever, whatever defaults the code has now."""

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synod.common.methods import dp_subn
from synod.common.models import usefulness
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import Code, SynodError
from synod.common.study import schema
from synod.common.study.features import features_of
from synod.common.study.study import Method, Study, known_methods

DATA = Path(__file__).resolve().parents[3] / "data"
KEPT = sorted(path for path in DATA.glob("release-0.1-*"))
DIFFERENT: dict[str, Any] = {
    "theta": Decimal(1),
    "theta_frontier": Decimal(1),
    "max_candidates": 100,
    "max_view_cells": 64,
    "update": "joint",
    "beta": Decimal("0.7"),
    "split": (Decimal("0.1"), Decimal("0.9")),
    "max_numbers": 7,
    "contribution": Decimal("0.5"),
    "levels": 1024,
    "link": "linear",
    "encoding": "gray",
    "score": "R",
    "collusion": 0,
    "key_bits": 2048,
}


def change_default(model: type[Any], field: str, value: object) -> None:
    model.model_fields[field].default = value
    model.model_rebuild(force=True)


@pytest.fixture
def other_defaults(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A later version of the code, in which every default is another."""
    monkeypatch.setattr(dp_subn, "BEST_SPLITS", dict.fromkeys(dp_subn.BEST_SPLITS, (Decimal("0.1"),) * 4))
    monkeypatch.setattr(usefulness, "LARGEST_TABLE", 8)
    monkeypatch.setattr(schema, "DEFAULT_BINS", 5)
    changed = [
        (model, name, field.default)
        for model in known_methods().values()
        for name, field in model.model_fields.items()
        if name in DIFFERENT
    ] + [(Study, name, Study.model_fields[name].default) for name in ("collusion", "key_bits")]
    for model, name, _ in changed:
        paper = model is dp_subn.DpSubn and name == "split"
        change_default(model, name, "paper" if paper else DIFFERENT[name])
    forget_plans()
    yield
    for model, name, before in changed:
        change_default(model, name, before)
    forget_plans()


def forget_plans() -> None:
    plan_study.cache_clear()
    features_of.cache_clear()


def test_every_method_has_a_kept_release() -> None:
    assert {path.name.removeprefix("release-0.1-") for path in KEPT} == set(known_methods())


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_release_verifies(folder: Path) -> None:
    assert len(verify_release(folder, None).signers) == 4


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
@pytest.mark.usefixtures("other_defaults")
def test_a_kept_release_verifies_under_other_defaults(folder: Path) -> None:
    assert len(verify_release(folder, None).signers) == 4


@pytest.mark.usefixtures("other_defaults")
def test_the_defaults_are_really_others() -> None:
    """The plan of a study that leaves everything open does change, so the test above can fail."""
    subn: Method = known_methods()["dp-subn"].model_validate({"name": "dp-subn"})
    assert subn.model_dump()["theta"] == "1"
    assert subn.model_dump()["update"] == "joint"


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_release_that_was_altered_does_not_verify(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "release")
    with (tmp_path / "release" / "synthetic.csv").open("a") as file:
        file.write("F,30,a,0.5\n")
    with pytest.raises(SynodError):
        verify_release(tmp_path / "release", None)


def test_a_format_from_before_0_1_is_refused_in_one_sentence() -> None:
    with pytest.raises(SynodError) as caught:
        verify_release(DATA / "release-before-0.1", None)
    assert caught.value.code is Code.CHECK_FAILED
    assert "from before version 0.1" in str(caught.value)
    assert caught.value.sentence.count(".") == 2  # one in the version, one at the end
