"""Releases of older versions verify for ever, whatever defaults the code has now."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Method, known_methods
from tests.support import defaults

DATA = Path(__file__).resolve().parents[3] / "data"
KEPT = sorted(path for path in DATA.glob("release-0.1-*"))


@pytest.fixture
def other_defaults() -> Iterator[None]:
    with defaults.other_defaults():
        yield


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
