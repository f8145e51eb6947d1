"""Releases of older versions verify for ever, whatever defaults the code has now."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from synod.common.protocol.manifest import MANIFEST_FILE, verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Method, known_methods
from tests.support import defaults
from tests.support.alterations import alterations, places

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


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "release"))


def refusal(folder: Path) -> str:
    with pytest.raises(SynodError) as caught:
        verify_release(folder, None)
    assert caught.value.code is Code.CHECK_FAILED
    return caught.value.sentence


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_release_with_any_file_altered_is_refused_by_its_name(folder: Path, copy: Path) -> None:
    names = {path.name for path in folder.iterdir()} - {MANIFEST_FILE}
    assert names == set(json.loads((folder / MANIFEST_FILE).read_bytes())["files"])
    for name in names:
        content = (copy / name).read_bytes()
        middle = len(content) // 2
        flipped = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in (0, middle, -2)]
        for other in (*flipped, content[middle:] + content[:middle], content[:-1], content + b"\n", b""):
            (copy / name).write_bytes(other)
            assert refusal(copy) == f"the file {name} is not the one that was released."
        (copy / name).unlink()
        assert refusal(copy) == f"the file {name} is missing from the release."
        (copy / name).write_bytes(content)
    assert verify_release(copy, None)


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_release_with_any_place_of_its_manifest_altered_is_refused(folder: Path, copy: Path) -> None:
    """Each of its keys, and some of the numbers, texts, signatures and orders below them."""
    manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    below = random.Random(folder.name).sample([place for place in places(manifest) if len(place) > 1], 15)
    for place in [*((key,) for key in manifest), *below]:
        for altered in alterations(manifest, place):
            (copy / MANIFEST_FILE).write_text(json.dumps(altered))
            assert refusal(copy), place
    (copy / MANIFEST_FILE).write_text(json.dumps(manifest))
    assert verify_release(copy, None), "written anew, but with nothing altered"


def test_a_format_from_before_0_1_is_refused_in_one_sentence() -> None:
    with pytest.raises(SynodError) as caught:
        verify_release(DATA / "release-before-0.1", None)
    assert caught.value.code is Code.CHECK_FAILED
    assert "from before version 0.1" in str(caught.value)
    assert caught.value.sentence.count(".") == 2  # one in the version, one at the end
