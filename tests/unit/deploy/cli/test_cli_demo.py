"""`synod demo`: its study comes with the package, unless another is named."""

from pathlib import Path

import pytest
import yaml

from tests.support.commands import complaint, synod

ROOT = Path(__file__).resolve().parents[4]
STUDY = ROOT / "examples" / "hospitals" / "study.yaml"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no clone."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def prepared(*arguments: str | Path) -> str:
    """The name of the study that containers are prepared for."""
    ending = synod("demo", "--prepare", "site", *arguments)
    assert ending.code == 0, ending.err
    return str(yaml.safe_load(Path("site/operator/given/study.yaml").read_text())["name"])


def test_the_study_comes_with_the_package() -> None:
    assert prepared() == yaml.safe_load(STUDY.read_text())["name"]


def test_another_study_may_be_named(here: Path) -> None:
    changed = {**yaml.safe_load(STUDY.read_text()), "name": "another"}
    (here / "mine.yaml").write_text(yaml.safe_dump(changed))
    assert prepared("--study", "mine.yaml") == "another"


def test_a_study_that_is_not_there_is_a_complaint(here: Path) -> None:
    assert "mine.yaml" in complaint(synod("demo", "--study", "mine.yaml"), 2)
    assert list(here.iterdir()) == []
