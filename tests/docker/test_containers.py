"""What a run in containers looks like from outside: who may do what, who can reach whom, and what the logs say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from synod.deploy.launch.docker import docker
from tests.support.containers import Fleet

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

DIAL = """
import errno, socket, sys
try:
    socket.create_connection((sys.argv[1], 7443), 5).close()
    print("open")
except OSError as error:
    print("refused" if error.errno == errno.ECONNREFUSED else "unreachable")
"""
STANDARD_FIELDS = ("time", "level", "logger", "event")
PUBLIC_FIELDS = (
    "address", "bytes", "fingerprint", "hash", "outcome", "parties", "port", "retry_seconds", "round", "seconds",
    "study", "why",
)  # fmt: skip
COUNT_PORTS = "print(sum(line.split()[3] == '0A' for line in open('/proc/net/tcp').readlines()[1:]))"


def dial(fleet: Fleet, caller: str, host: str) -> str:
    """What a party meets at the curator's port of a host: `refused` means that packets get there."""
    return fleet.run_inside(caller, "python", "-c", DIAL, host)


def address_on(container: str, network: str) -> str:
    return docker("inspect", "--format", f'{{{{(index .NetworkSettings.Networks "{network}").IPAddress}}}}', container)


def test_five_containers_publish_and_cannot_reach_each_other(fleets: Callable[..., Fleet], tmp_path: Path) -> None:
    fleet = fleets(5)
    fleet.start()
    fleet.check_end(tmp_path / "release")

    for name in ("curator", *fleet.parties):
        check_confined(fleet, name)
    check_networks(fleet)
    check_logs(fleet)


def check_confined(fleet: Fleet, name: str) -> None:
    """No root, not even to become; nothing to write to but the volume and memory."""
    (container,) = json.loads(docker("inspect", fleet.daemons.container(name)))
    assert container["Config"]["User"] == "10001:10001"
    assert container["HostConfig"]["ReadonlyRootfs"]
    assert container["HostConfig"]["CapDrop"] == ["ALL"]
    assert not container["HostConfig"]["Privileged"]
    assert container["HostConfig"]["Memory"] == 4 << 30
    assert container["HostConfig"]["LogConfig"] == {
        "Type": "json-file",
        "Config": {"max-file": "3", "max-size": "10m"},
    }
    assert [mount["Destination"] for mount in container["Mounts"] if mount["RW"]] == ["/var/lib/synod"]
    users = docker("top", fleet.daemons.container(name), "-eo", "pid,uid").splitlines()[1:]
    assert {line.split()[1] for line in users} == {"10001"}
    status = fleet.run_inside(name, "python", "-c", "print(open('/proc/self/status').read())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (int(fields["CapBnd"], 16), fields["NoNewPrivs"].strip()) == (0, "1")


def check_networks(fleet: Fleet) -> None:
    """A party reaches the curator and no other party; it listens nowhere. One more cable, and the test would see it."""
    first, second, *_ = fleet.parties
    there = address_on(fleet.daemons.container(second), fleet.daemons.container(second))
    assert dial(fleet, first, "curator") == "open"
    assert dial(fleet, first, there) == "unreachable"
    assert dial(fleet, first, second) == "unreachable"  # its name is not known either
    assert fleet.run_inside(second, "python", "-c", COUNT_PORTS) in ("0", "1")  # Docker's own resolver
    docker("network", "connect", fleet.daemons.container(second), fleet.daemons.container(first))
    assert dial(fleet, first, there) == "refused"


def check_logs(fleet: Fleet) -> None:
    """The story of the study, without a value of anybody's: every line is JSON, with fields that are known."""
    for party in fleet.parties:
        events = fleet.events(party)
        assert events[0] == "connected"
        for event in ("enrolled", "answered", "study ended"):
            assert event in events
    for name in ("curator", *fleet.parties):
        assert {field for line in fleet.log(name) for field in line} <= {*STANDARD_FIELDS, *PUBLIC_FIELDS}


def test_the_engine_sees_who_is_well(fleets: Callable[..., Fleet]) -> None:
    fleet = fleets(2, method={"name": "hpdp-dp"})
    fleet.start()
    probe = ("synod-health", "--service", "synod.v1.PartyService", "/run/synod/health.sock")
    configured = json.loads(
        docker("inspect", "--format", "{{json .Config.Healthcheck.Test}}", fleet.daemons.container("curator"))
    )
    assert tuple(configured[1:]) == probe
    fleet.await_published()
    for name in ("curator", *fleet.parties):
        assert fleet.run_inside(name, *probe) == "well"
