"""The engine's command line, replaced by a script: what is asked of it, and what its failures become."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.deploy.launch.docker import create_network, docker, remove_labelled, require_image, stopped_among
from synod.deploy.launch.site import ended_early

FakeDocker = Callable[..., Path]
SCRIPT = """#!/bin/sh
echo "$*" >> "{log}"
case "$*" in
{cases}
esac
"""


@pytest.fixture
def fake_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """A `docker` that answers as it is told; returns what it was asked."""

    def make(*cases: str) -> Path:
        log, script = tmp_path / "asked", tmp_path / "docker"
        log.touch()
        script.write_text(SCRIPT.format(log=log, cases="\n".join(f"{case} ;;" for case in cases)))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return log

    return make


def test_without_docker_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SynodError, match="there is no `docker` command") as caught:
        docker("version")
    assert caught.value.code is Code.UNREACHABLE


def test_a_failure_is_one_sentence_with_what_the_engine_said(fake_docker: FakeDocker) -> None:
    fake_docker('version*) echo first >&2; echo "Cannot connect to the daemon" >&2; exit 1')
    with pytest.raises(SynodError, match=r"`docker version` failed: Cannot connect to the daemon"):
        require_image("synod:1")


def test_an_image_that_is_missing(fake_docker: FakeDocker) -> None:
    fake_docker("version*) echo 20.10", '"image inspect"*) echo "No such image" >&2; exit 1')
    with pytest.raises(SynodError, match=r"no image synod:1\. Build it with `make image`") as caught:
        require_image("synod:1")
    assert caught.value.code is Code.INVALID


def test_when_the_pools_are_used_up_a_free_range_is_named(fake_docker: FakeDocker) -> None:
    asked = fake_docker(
        "*--subnet*) echo made",
        '"network create"*) echo "could not find an available, non-overlapping IPv4 address pool" >&2; exit 1',
        '"network ls"*) echo one; echo two',
        '"network inspect"*) echo "172.17.0.0/16 10.201.0.0/27 fd00::/64 "; echo "10.201.0.48/28 "',
    )
    create_network("new", ["--label", "a=b"], internal=True)
    last = asked.read_text().splitlines()[-1]
    assert last == "network create --label a=b --internal --subnet 10.201.0.32/28 new"


def test_another_failure_of_a_network_is_told(fake_docker: FakeDocker) -> None:
    asked = fake_docker('"network create"*) echo "permission denied" >&2; exit 1')
    with pytest.raises(SynodError, match="permission denied"):
        create_network("new", [], internal=False)
    assert asked.read_text() == "network create new\n"


def test_who_has_stopped(fake_docker: FakeDocker) -> None:
    fake_docker("inspect*) echo true; echo false; echo true")
    assert stopped_among(["a", "b", "c"]) == ["b"]


def test_only_what_carries_the_label_is_removed(fake_docker: FakeDocker) -> None:
    asked = fake_docker('"container ls"*) echo c1; echo c2', '"network ls"*) echo n1', '"volume ls"*) true')
    remove_labelled("synod.launch=x")
    lines = asked.read_text().splitlines()
    assert [line for line in lines if " rm " in line] == ["container rm --force --volumes c1 c2", "network rm n1"]
    assert all("label=synod.launch=x" in line for line in lines if " ls " in line)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ('{"event": "serving"}\n{"event": "ended", "why": "the disk is full."}\n', "the disk is full."),
        ("synod: there is no ledger.\n", "synod: there is no ledger."),
        ("", "it said nothing"),
        ('{"event": "answered"}\n', '{"event": "answered"}'),
        ("[1]\n", "[1]"),
    ],
)
def test_what_a_daemon_said_last(log: str, told: str) -> None:
    assert ended_early("north", log, "See it.").sentence == f"north ended by itself: {told}"
