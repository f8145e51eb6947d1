"""Every file of a package is loaded, once, in order, and nothing that is no package."""

import sys
from pathlib import Path

import pytest

from synod.common.runtime.discovery import load_modules

PACKAGE = "made_up_package"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package, which is forgotten after the test."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("LOADED: list[str] = []\n")
    for name in ("b", "a", "c"):
        (folder / f"{name}.py").write_text(f"from {PACKAGE} import LOADED\n\nLOADED.append(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in (PACKAGE, *(f"{PACKAGE}.{name}" for name in "abc")):
        monkeypatch.delitem(sys.modules, name, raising=False)
    load_modules.cache_clear()
    return folder


def loaded() -> list[str]:
    found: list[str] = sys.modules[PACKAGE].LOADED
    return found


def test_modules_are_loaded_in_the_order_of_their_names(package: Path) -> None:
    (package / "notes.txt").write_text("no module")
    assert load_modules(PACKAGE) == ("a", "b", "c")
    assert loaded() == [f"{PACKAGE}.{name}" for name in "abc"]


def test_modules_are_loaded_once(package: Path) -> None:
    assert package.is_dir()
    load_modules(PACKAGE)
    load_modules.cache_clear()
    assert load_modules(PACKAGE) == ("a", "b", "c")
    assert len(loaded()) == 3


def test_a_module_that_fails_is_not_passed_over(package: Path) -> None:
    (package / "b.py").write_text("raise RuntimeError('broken')\n")
    with pytest.raises(RuntimeError, match="broken"):
        load_modules(PACKAGE)


@pytest.mark.parametrize("name", ["no_such_package", "synod.common.no_such_room", "json.decoder"])
def test_what_is_no_package_is_an_error(name: str) -> None:
    with pytest.raises((ModuleNotFoundError, AttributeError)):
        load_modules(name)


def test_methods_are_found_on_both_sides() -> None:
    common, curator = (set(load_modules(f"synod.{side}.methods")) for side in ("common", "curator"))
    assert {"dp_ccbn", "dp_subn", "hpdp_dp", "independent"} <= common & curator
    assert common - curator == {"cells", "networks"}
    assert curator - common == {"base"}
