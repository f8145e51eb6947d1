"""`synod party console` and `synod curator console`: what they refuse before they serve."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.support.commands import complaint, synod
from tests.support.consoles import House, make_house

KINDS = ("party", "curator")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return make_house(tmp_path_factory.mktemp("house"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("package", ["jinja2", "python_multipart", "starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(
    kind: str, package: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    told = complaint(synod(kind, "console", "--config", house.config), 2)
    assert told == f"the console needs {package}, which is not installed. Install Synod's extra `console`."


@pytest.fixture(scope="module")
def configs(house: House, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A configuration for each kind of console."""
    tls = {"ca": "ca.pem", "certificate": "operator.pem", "key": "operator.key"}
    operator = tmp_path_factory.mktemp("operator") / "operator.yaml"
    operator.write_text(yaml.safe_dump({"address": "127.0.0.1:1", "tls": tls}))
    return {"party": house.config, "curator": operator}


@pytest.mark.parametrize("kind", KINDS)
def test_other_machines_are_refused(kind: str, configs: dict[str, Path]) -> None:
    command = (kind, "console", "--config", configs[kind], "--listen", "0.0.0.0:0")
    assert "can be reached from other machines" in complaint(synod(*command), 3)
    assert "needs TLS" in complaint(synod(*command, "--beyond-loopback"), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_that_is_not_there(kind: str, tmp_path: Path) -> None:
    command = (kind, "console", "--config", tmp_path / "no.yaml", "--socket", tmp_path / "c.sock")
    assert "cannot be read" in complaint(synod(*command), 2)
    assert list(tmp_path.iterdir()) == [], "it took no place"


@pytest.mark.parametrize("kind", KINDS)
def test_a_socket_and_a_port_contradict_each_other(kind: str, configs: dict[str, Path], tmp_path: Path) -> None:
    command = (kind, "console", "--config", configs[kind], "--socket", tmp_path / "c.sock", "--listen", "127.0.0.1:0")
    assert "`--listen` does not go with it" in complaint(synod(*command), 2)


def test_daemons_and_other_commands_need_none_of_it(monkeypatch: pytest.MonkeyPatch, house: House) -> None:
    for package in ("jinja2", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, package, None)
    assert synod("party", "studies", "--config", house.config).code == 0
