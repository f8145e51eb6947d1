"""The files that an organization installs by: samples load, containers and units are closed, and all agree on paths."""

import configparser
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.runtime.errors import OUTCOMES, Code
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, PartySettings, load_settings
from synod.common.runtime.yamltext import load_yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
STATE, HEALTH, ETC, TABLE = "/var/lib/synod", "/run/synod/health.sock", "/etc/synod", "/data"
ROLES = ("party", "curator")
Settings = PartySettings | CuratorSettings | OperatorSettings
KINDS: dict[str, type[Settings]] = {"party": PartySettings, "curator": CuratorSettings}
ISOLATION = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "MemoryDenyWriteExecute": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
}


# Samples


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("size", ["basic", "full"])
def test_samples_load_and_use_the_paths_of_container_and_unit(role: str, size: str) -> None:
    path = DEPLOY / role / f"{role}.{size}.yaml"
    load_settings(KINDS[role], path)
    written = load_yaml(path)
    assert written["state"] == STATE
    assert written["health"] == HEALTH
    assert role == "curator" or str(Path(written["source"]).parent) == TABLE
    assert all(Path(name).name == name for name in written["tls"].values()), "certificates are beside the configuration"


@pytest.mark.parametrize("role", ROLES)
def test_the_full_sample_names_every_key_and_the_basic_one_every_needed_key(role: str) -> None:
    fields = KINDS[role].model_fields
    full, basic = (load_yaml(DEPLOY / role / f"{role}.{size}.yaml") for size in ("full", "basic"))
    assert set(full) == set(fields)
    needed = {name for name, field in fields.items() if field.is_required()}
    assert needed < set(basic) < set(full)


@pytest.mark.parametrize("role", ROLES)
def test_what_the_basic_sample_leaves_out_is_no_weaker_than_the_full_one_says(role: str) -> None:
    full, basic = (load_settings(KINDS[role], DEPLOY / role / f"{role}.{size}.yaml") for size in ("full", "basic"))
    careful = {"min_collusion", "min_key_bits", "allow_local_queries", "approve", "proxy", "operators", "max_cells"}
    for name in careful & set(KINDS[role].model_fields):
        assert getattr(basic, name) == getattr(full, name), name


def test_the_operators_sample_dials_the_port_that_the_curators_listens_at() -> None:
    operator = load_settings(OperatorSettings, DEPLOY / "curator" / "operator.yaml")
    curator = load_settings(CuratorSettings, DEPLOY / "curator" / "curator.basic.yaml")
    party = load_settings(PartySettings, DEPLOY / "party" / "party.basic.yaml")
    assert operator.address == party.address
    assert operator.address.rpartition(":")[2] == curator.listen.rpartition(":")[2] == "7443"


# Containers


def compose(role: str) -> dict[str, Any]:
    loaded = yaml.safe_load((DEPLOY / role / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def services() -> list[tuple[str, str, dict[str, Any]]]:
    return [(role, name, service) for role in ROLES for name, service in compose(role)["services"].items()]


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Where each volume is mounted: target -> (source, is it read-only)."""
    parts = [volume.split(":") for volume in service["volumes"]]
    return {part[1]: (part[0], part[2:] == ["ro"]) for part in parts}


def test_the_services_are_these() -> None:
    assert [(role, name) for role, name, _ in services()] == [
        ("party", "party"),
        ("curator", "curator"),
        ("curator", "operator"),
    ]


@pytest.mark.parametrize(("role", "name", "service"), services())
def test_containers_are_closed(role: str, name: str, service: dict[str, Any]) -> None:
    assert service["image"] == f"synod:{version('synod-dp')}"
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
    opened = {
        "privileged",
        "cap_add",
        "devices",
        "network_mode",
        "pid",
        "ipc",
        "userns_mode",
        "env_file",
        "extra_hosts",
    }
    assert not opened & set(service)
    assert service.get("ports", []) == (["7443:7443"] if name == "curator" else [])


@pytest.mark.parametrize(("role", "name", "service"), services())
def test_containers_mount_what_the_samples_name(role: str, name: str, service: dict[str, Any]) -> None:
    mounted = mounts(service)
    assert mounted[ETC][1], "configuration is read-only"
    assert service["working_dir"] == ETC
    scratch = [line.split(":")[0] for line in service["tmpfs"]]
    assert scratch == ["/tmp", str(Path(HEALTH).parent)]
    if name == "operator":
        assert set(mounted) == {ETC, "/releases"}
        assert service["profiles"] == ["operator"], "not started by `up`"
        return
    assert service["command"] == [name, "serve", "--stay"]
    assert service["restart"] == "on-failure:5", "not for ever"
    assert mounted[STATE] == ("state", False), "a named volume"
    assert (mounted.get(TABLE) == ("./data", True)) == (name == "party")
    assert "state" in compose(role)["volumes"]


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
@pytest.mark.parametrize("role", ROLES)
def test_docker_compose_reads_the_file(role: str) -> None:
    command = ["docker-compose", "-f", str(DEPLOY / role / "docker-compose.yml"), "config"]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "WARN" not in shown.stderr
    assert role in yaml.safe_load(shown.stdout)["services"]


# systemd


def unit_path(role: str) -> Path:
    return DEPLOY / role / f"synod-{role}.service"


def directives(role: str, section: str = "Service") -> dict[str, str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit_path(role).read_text(encoding="utf-8"))
    return dict(parser[section])


@pytest.mark.parametrize("role", ROLES)
def test_units_are_closed(role: str) -> None:
    service = directives(role)
    assert {name: service.get(name) for name in ISOLATION} == ISOLATION
    assert service["User"] == service["Group"] == f"synod-{role}"
    assert not {"ReadWritePaths", "AmbientCapabilities"} & {name for name, value in service.items() if value}
    assert "SystemCallFilter=@system-service\n" in unit_path(role).read_text(encoding="utf-8")


@pytest.mark.parametrize("role", ROLES)
def test_units_use_the_paths_of_the_samples(role: str) -> None:
    service = directives(role)
    assert service["ExecStart"] == f"/opt/synod/bin/synod {role} serve --config {ETC}/{role}.yaml"
    assert f"/var/lib/{service['StateDirectory']}" == STATE
    assert f"/run/{service['RuntimeDirectory']}" == str(Path(HEALTH).parent)
    assert service["StateDirectoryMode"] == service["RuntimeDirectoryMode"] == "0700"
    assert service["Restart"] == "on-failure"


@pytest.mark.parametrize("role", ROLES)
def test_a_daemon_that_a_person_has_to_look_at_is_not_restarted_and_no_other_for_ever(role: str) -> None:
    refusals = {OUTCOMES[code].exit_code for code in (Code.INVALID, Code.REFUSED, Code.CHECK_FAILED)}
    assert directives(role)["RestartPreventExitStatus"] == " ".join(map(str, sorted(refusals))) == "2 3 5"
    unit = directives(role, "Unit")
    assert (unit["StartLimitIntervalSec"], unit["StartLimitBurst"]) == ("3600", "10")
    spent_on_waiting = int(unit["StartLimitBurst"]) * int(directives(role)["RestartSec"])
    assert spent_on_waiting < int(unit["StartLimitIntervalSec"]), "or the limit would never be met"


def test_units_wait_for_the_daemons_own_word() -> None:
    assert {directives(role)["Type"] for role in ROLES} == {"notify"}
    assert directives("party")["TimeoutStartSec"] == "infinity", "the curator may be away when a party starts"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("role", ROLES)
def test_systemd_reads_the_unit(role: str) -> None:
    command = ["systemd-analyze", "verify", "--man=no", str(unit_path(role))]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    complaints = [
        line for line in shown.stderr.splitlines() if line.startswith((f"synod-{role}", str(unit_path(role))))
    ]
    not_here = "Command /opt/synod/bin/synod is not executable: No such file or directory"
    assert [line for line in complaints if not_here not in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("role", ROLES)
def test_systemd_finds_little_exposure(role: str) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", str(unit_path(role))]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stdout[-200:] + shown.stderr
