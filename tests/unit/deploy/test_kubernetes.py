"""The Kubernetes manifests: rendered as `kubectl apply -k` would, held to the API's schemas and to one writer."""

import functools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from synod.common.runtime.settings import CuratorSettings, PartySettings, load_settings
from tests.support.parties import file_of

KUBERNETES = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
OVERLAYS = ("curator", "party", "party-init")
OLDEST, NEWEST = "1.29", "1.32"  # ReadWriteOncePod is stable since 1.29
CONFIG: dict[str, type[PartySettings | CuratorSettings]] = {"curator": CuratorSettings, "party": PartySettings}
CLOSED = {"podSelector", "policyTypes"}  # the keys of a policy that lets nothing through
Document = dict[str, Any]

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@functools.cache
def render(folder: str) -> tuple[Document, ...]:
    command = ["kubectl", "kustomize", str(KUBERNETES / folder)]
    shown = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    return tuple(yaml.safe_load_all(shown.stdout))


def of_kind(overlay: str, kind: str) -> list[Document]:
    return [document for document in render(f"overlays/{overlay}") if document["kind"] == kind]


def stateful_set(overlay: str) -> Document:
    (found,) = of_kind(overlay, "StatefulSet")
    return found


def pod(document: Document) -> Document:
    spec = document["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def container(document: Document) -> Document:
    (found,) = pod(document)["containers"]
    assert isinstance(found, dict)
    return found


def workloads() -> Iterator[tuple[str, Document]]:
    for overlay in OVERLAYS:
        yield from ((overlay, document) for kind in ("StatefulSet", "Job") for document in of_kind(overlay, kind))


def selects(selector: Document, labels: dict[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}
    wanted: dict[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


@pytest.mark.parametrize("folder", ["base", *(f"overlays/{name}" for name in OVERLAYS)])
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_every_document_fits_the_schema_of_its_kind(folder: str, version: str) -> None:
    assert len(render(folder)) >= 2
    for document in render(folder):
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_notice_an_unknown_key() -> None:
    wrong = {**stateful_set("party"), "spec": {**stateful_set("party")["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


@pytest.mark.parametrize("overlay", CONFIG)
def test_there_is_one_writer(overlay: str) -> None:
    spec = stateful_set(overlay)["spec"]
    assert spec["replicas"] == 1
    assert spec["updateStrategy"] == {"type": "OnDelete"}
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_workloads_are_closed() -> None:
    found = list(workloads())
    assert len(found) == 4
    for overlay, document in found:
        spec, only = pod(document), container(document)
        assert spec["automountServiceAccountToken"] is False
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True
        assert {context["runAsUser"], context["runAsGroup"], context["fsGroup"]} == {10001}
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, overlay
        assert only["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert only["resources"]["limits"].keys() >= {"cpu", "memory"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
        assert not any("hostPath" in volume for volume in spec["volumes"])
        assert all("hostPort" not in port for port in only.get("ports", []))


def test_namespaces_hold_pods_to_the_restricted_standard() -> None:
    for overlay in OVERLAYS:
        (namespace,) = of_kind(overlay, "Namespace")
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        others = [document for document in render(f"overlays/{overlay}") if document["kind"] != "Namespace"]
        assert {document["metadata"]["namespace"] for document in others} == {namespace["metadata"]["name"]}


def test_every_mount_has_its_volume() -> None:
    for overlay, document in workloads():
        claims = document["spec"].get("volumeClaimTemplates", [])
        volumes = {volume["name"] for volume in pod(document)["volumes"]} | {c["metadata"]["name"] for c in claims}
        assert {mount["name"] for mount in container(document)["volumeMounts"]} == volumes, overlay


def mounted_config(overlay: str, document: Document) -> Document:
    """The ConfigMap that a workload mounts, by the name that Kustomize gave it."""
    (etc,) = [volume["projected"] for volume in pod(document)["volumes"] if "projected" in volume]
    names = [source[kind]["name"] for source in etc["sources"] for kind in source]
    (config,) = [document for document in of_kind(overlay, "ConfigMap") if document["metadata"]["name"] in names]
    assert [name for name in names if name != config["metadata"]["name"]] == ["synod-tls"]
    return config


@pytest.mark.parametrize("overlay", CONFIG)
def test_the_configuration_agrees_with_mounts_probes_and_ports(overlay: str, tmp_path: Path) -> None:
    document = stateful_set(overlay)
    data = mounted_config(overlay, document)["data"]
    path = tmp_path / f"{overlay}.yaml"
    path.write_text(data[f"{overlay}.yaml"], encoding="utf-8")
    settings = load_settings(CONFIG[overlay], path)
    only = container(document)
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in only["volumeMounts"]}
    assert only["args"] == [overlay, "serve", "--stay"], "a pod that ends is started again for ever"
    assert mounts[only["workingDir"]] is True, "where the configuration is looked for"
    assert mounts[str(settings.state)] is False
    assert settings.health is not None
    assert mounts[str(settings.health.parent)] is False
    if isinstance(settings, PartySettings):
        assert mounts[str(file_of(settings).parent)] is True
    else:
        assert {port["containerPort"] for port in only["ports"]} == {int(settings.listen.rpartition(":")[2])}
    alive, ready = ["synod-health", str(settings.health)], ["--service", "synod.v1.PartyService"]
    assert only["startupProbe"]["exec"]["command"] == only["livenessProbe"]["exec"]["command"] == alive
    assert only["readinessProbe"]["exec"]["command"] == [alive[0], *ready, alive[1]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_policy_closes_every_pod_both_ways(overlay: str) -> None:
    closing = [policy["spec"] for policy in of_kind(overlay, "NetworkPolicy") if set(policy["spec"]) == CLOSED]
    for _, document in [found for found in workloads() if found[0] == overlay]:
        labels = document["spec"]["template"]["metadata"]["labels"]
        directions = [spec["policyTypes"] for spec in closing if selects(spec["podSelector"], labels)]
        assert ["Ingress", "Egress"] in directions


def opening(overlay: str) -> Document:
    """The one policy that lets something through, which is for the daemon's pod."""
    (spec,) = [policy["spec"] for policy in of_kind(overlay, "NetworkPolicy") if set(policy["spec"]) != CLOSED]
    assert selects(spec["podSelector"], stateful_set(overlay)["spec"]["template"]["metadata"]["labels"])
    assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == overlay
    assert isinstance(spec, dict)
    return spec


def test_the_curator_is_dialed_at_one_port_and_dials_nobody() -> None:
    spec = opening("curator")
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"ports": [{"port": 7443, "protocol": "TCP"}]}]
    (service,) = of_kind("curator", "Service")
    assert selects(
        {"matchLabels": service["spec"]["selector"]}, stateful_set("curator")["spec"]["template"]["metadata"]["labels"]
    )
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(7443, "grpc")]
    assert container(stateful_set("curator"))["ports"][0]["name"] == "grpc"
    assert stateful_set("curator")["spec"]["serviceName"] == service["metadata"]["name"]


@pytest.mark.parametrize("overlay", ["party", "party-init"])
def test_nothing_dials_a_party(overlay: str) -> None:
    assert of_kind(overlay, "Service") == []
    assert not any("ingress" in policy["spec"] for policy in of_kind(overlay, "NetworkPolicy"))
    assert all("ports" not in container(document) for found, document in workloads() if found == overlay)


def test_a_party_dials_dns_and_the_curator_only() -> None:
    spec = opening("party")
    dns, curator = spec["egress"]
    assert [(port["protocol"], port["port"]) for port in dns["ports"]] == [("UDP", 53), ("TCP", 53)]
    assert dns["to"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}]},
        }
    ]
    settings = load_settings(PartySettings, KUBERNETES / "overlays" / "party" / "party.yaml")
    assert curator["ports"] == [{"port": int(settings.address.rpartition(":")[2]), "protocol": "TCP"}]
    (to,) = curator["to"]
    assert to["ipBlock"]["cidr"].endswith("/32")


def test_the_first_day_makes_the_volume_that_the_daemon_takes() -> None:
    assert stateful_set("party-init")["spec"]["replicas"] == 0, "the job is the only writer"
    (job,), (claim,) = of_kind("party-init", "Job"), of_kind("party-init", "PersistentVolumeClaim")
    daemon = stateful_set("party")
    (template,) = daemon["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == f"{template['metadata']['name']}-{daemon['metadata']['name']}-0"
    assert claim["spec"] == template["spec"]
    assert {"claimName": claim["metadata"]["name"]} in [v.get("persistentVolumeClaim") for v in pod(job)["volumes"]]
    assert container(job)["args"] == ["party", "init"]
    assert container(job)["image"] == container(daemon)["image"]
    assert mounted_config("party-init", job) == mounted_config("party", daemon)
    assert not selects(daemon["spec"]["selector"], job["spec"]["template"]["metadata"]["labels"])


def test_no_overlay_makes_a_ledger_at_every_start() -> None:
    assert of_kind("party", "Job") == []
    assert "init" not in container(stateful_set("party"))["args"]


def test_no_secret_is_among_the_files() -> None:
    files = [path for path in KUBERNETES.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path.name for path in files if path.suffix in (".pem", ".key")]
    assert not [path.name for path in files if "PRIVATE KEY" in path.read_text(encoding="utf-8")]
    assert not any(of_kind(overlay, "Secret") for overlay in OVERLAYS)
