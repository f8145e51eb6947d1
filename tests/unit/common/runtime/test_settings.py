"""Configuration files: paths relative to the file, defaults of the policy, and every rule broken once."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.privacy.cost import FREE, Cost
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, PartySettings, RhoCap, load_settings
from tests.support.keys import pinned

TLS = {"ca": "certs/ca.pem", "certificate": "certs/north.pem", "key": "certs/north.key"}
PARTY: dict[str, Any] = {
    "name": "north",
    "address": "curator.example:7443",
    "tls": TLS,
    "state": "state",
    "curator": pinned(7),
    "dataset": "patients",
    "source": "/srv/patients.csv",
    "max_epsilon_total": 2,
}
CURATOR: dict[str, Any] = {"listen": "127.0.0.1:7443", "tls": TLS, "state": "state"}
OPERATOR: dict[str, Any] = {"address": "[::1]:7443", "tls": TLS}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "party": (PartySettings, PARTY),
    "curator": (CuratorSettings, CURATOR),
    "operator": (OperatorSettings, OPERATOR),
}


def load(folder: Path, kind: str, **changes: Any) -> Any:
    settings, document = KINDS[kind]
    path = folder / f"{kind}.yaml"
    merged = {key: value for key, value in (document | changes).items() if value is not ...}
    path.write_text(yaml.safe_dump(merged))
    return load_settings(settings, path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "party")
    assert settings.state == tmp_path / "state"
    assert settings.source == Path("/srv/patients.csv")
    assert settings.tls.ca == tmp_path / "certs" / "ca.pem"
    assert settings.tls.key == tmp_path / "certs" / "north.key"
    assert load(tmp_path, "curator").state == tmp_path / "state"
    assert load(tmp_path, "operator").tls.certificate == tmp_path / "certs" / "north.pem"


def test_the_policy_is_careful_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path, "party")
    assert isinstance(settings, PartySettings)
    assert (settings.min_collusion, settings.min_parties, settings.min_key_bits) == (1, 2, 3072)
    assert (settings.approve, settings.allow_local_queries) == ("ask", False)
    assert (settings.unit, settings.columns, settings.methods, settings.proxy) == (None, None, None, None)
    assert (settings.max_epsilon_per_study, settings.max_rho_total, settings.max_rho_per_study) == (None, None, None)
    assert settings.cap == Cost.pure(Fraction(2))
    assert load(tmp_path, "curator").operators is None


def test_the_whole_policy_is_read(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "party",
        unit="id",
        columns=["age", "sex"],
        methods=["hpdp-dp"],
        max_epsilon_per_study="0.30",
        min_collusion=0,
        min_key_bits=2048,
        approve="auto",
        proxy="http://proxy.example:3128",
        max_cells=5,
        workers=4,
    )
    assert (settings.columns, settings.methods, settings.unit) == (("age", "sex"), ("hpdp-dp",), "id")
    assert settings.max_epsilon_per_study == Decimal("0.3")
    assert (settings.min_collusion, settings.max_cells, settings.workers) == (0, 5, 4)


@pytest.mark.parametrize("delta", ["1e-9", "1e-09", "1.0e-9", "0.000000001", "'1e-9'"])
def test_a_cap_on_rho_is_written_as_epsilon_and_delta(tmp_path: Path, delta: str) -> None:
    """YAML readers take 1e-9 for text."""
    path = tmp_path / "party.yaml"
    pair = f"{{epsilon: 0.8, delta: {delta}}}"
    path.write_text(f"{yaml.safe_dump(PARTY)}max_rho_total: {pair}\nmax_rho_per_study: {pair}\n")
    settings = load_settings(PartySettings, path)
    rho = Fraction("0.00976032164611")
    assert settings.cap == Cost(Fraction(2), rho)
    assert settings.max_rho_per_study is not None
    assert settings.max_rho_per_study.cost == Cost.concentrated(rho)


def test_a_cap_that_no_rho_keeps_within_is_none_at_all() -> None:
    assert RhoCap.model_validate({"epsilon": "1e-30", "delta": "1e-30"}).cost == FREE


@pytest.mark.parametrize("place", ["127.0.0.1:9464", "127.1.2.3:0", "[::1]:9464", "unix:/run/synod/metrics.sock"])
def test_metrics_are_off_and_for_this_machine_alone(tmp_path: Path, place: str) -> None:
    for kind in ("party", "curator"):
        assert load(tmp_path, kind).metrics is None
        assert load(tmp_path, kind, metrics=place).metrics == place


@pytest.mark.parametrize(
    ("kind", "changes", "key", "rule"),
    [
        ("party", {"max_epsilon": 3}, "max_epsilon", "not known"),
        ("curator", {"port": 3}, "port", "not known"),
        ("operator", {"listen": "a:1"}, "listen", "not known"),
        ("party", {"tls": TLS | {"password": "x"}}, "tls.password", "not known"),
        *(("party", {key: ...}, key, "required") for key in PARTY),
        *(("curator", {key: ...}, key, "required") for key in CURATOR),
        *(("operator", {key: ...}, key, "required") for key in OPERATOR),
        ("party", {"tls": {"ca": "a", "key": "b"}}, "tls.certificate", "required"),
        ("party", {"tls": "certs"}, "tls", "mapping of keys"),
        ("party", {"tls": TLS | {"ca": 5}}, "tls.ca", "Path"),
        ("party", {"name": "North"}, "name", "small letters"),
        ("party", {"dataset": "../x"}, "dataset", "small letters"),
        ("party", {"address": "curator.example"}, "address", "HOST:PORT"),
        ("party", {"address": "https://curator:1"}, "address", "HOST:PORT"),
        ("party", {"address": "curator:"}, "address", "HOST:PORT"),
        ("party", {"address": "curator:123456"}, "address", "HOST:PORT"),
        ("party", {"address": "curator:65536"}, "address", "HOST:PORT"),
        ("party", {"address": 7443}, "address", "a text"),
        *(
            (kind, {"metrics": place}, "metrics", "must be an address of loopback, or a Unix socket")
            for kind in ("party", "curator")
            for place in ("0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "localhost:9464", "metrics.example:9464")
        ),
        ("party", {"metrics": "unix:relative.sock"}, "metrics", "HOST:PORT"),
        ("party", {"metrics": f"unix:/{'x' * 100}"}, "metrics", "HOST:PORT"),
        ("party", {"metrics": 9464}, "metrics", "a text"),
        ("operator", {"address": "::1:7443"}, "address", "HOST:PORT"),
        ("party", {"curator": "sha256:ab"}, "curator", "64 hexadecimal digits"),
        ("party", {"max_epsilon_total": -1}, "max_epsilon_total", "at least 0"),
        ("party", {"max_epsilon_total": "lots"}, "max_epsilon_total", "decimal number"),
        ("party", {"max_epsilon_total": True}, "max_epsilon_total", "decimal number"),
        ("party", {"max_epsilon_total": None}, "max_epsilon_total", "decimal number"),
        ("party", {"max_epsilon_per_study": -0.5}, "max_epsilon_per_study", "at least 0"),
        ("party", {"max_rho_total": "0.8"}, "max_rho_total", "must be {epsilon: ..., delta: ...}"),
        ("party", {"max_rho_per_study": 1}, "max_rho_per_study", "must be {epsilon: ..., delta: ...}"),
        ("party", {"max_rho_total": {"epsilon": 1}}, "max_rho_total.delta", "required"),
        ("party", {"max_rho_total": {"delta": "1e-9"}}, "max_rho_total.epsilon", "required"),
        ("party", {"max_rho_total": {"epsilon": 0, "delta": "1e-9"}}, "max_rho_total.epsilon", "greater than 0"),
        ("party", {"max_rho_total": {"epsilon": 1, "delta": 0}}, "max_rho_total.delta", "greater than 0"),
        ("party", {"max_rho_total": {"epsilon": 1, "delta": 1}}, "max_rho_total.delta", "less than 1"),
        ("party", {"max_rho_per_study": {"epsilon": 1, "delta": "x"}}, "max_rho_per_study.delta", "decimal number"),
        ("party", {"min_collusion": -1}, "min_collusion", "at least 0"),
        ("party", {"min_parties": 0}, "min_parties", "at least 1"),
        ("party", {"min_key_bits": 1024}, "min_key_bits", "at least 2048"),
        ("party", {"min_key_bits": "3072"}, "min_key_bits", "whole number"),
        ("party", {"max_cells": 0}, "max_cells", "at least 1"),
        ("party", {"methods": "hpdp-dp"}, "methods", "valid list"),
        ("party", {"columns": [1, 2]}, "columns.0", "a text"),
        ("party", {"columns": {"age": 1}}, "columns", "valid list"),
        ("party", {"approve": "yes"}, "approve", "'ask' or 'auto'"),
        ("party", {"allow_local_queries": "no"}, "allow_local_queries", "true or false"),
        ("party", {"unit": 5}, "unit", "a text"),
        ("party", {"source": ["a.csv"]}, "source", "a path"),
        ("party", {"workers": 0}, "workers", "at least 1"),
        ("curator", {"workers": 257}, "workers", "at most 256"),
        ("curator", {"operators": "root"}, "operators", "valid list"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_with_its_key(
    tmp_path: Path, kind: str, changes: dict[str, Any], key: str, rule: str
) -> None:
    with pytest.raises(SynodError) as caught:
        load(tmp_path, kind, **changes)
    assert caught.value.code is Code.INVALID
    assert f"{kind}.yaml: " in caught.value.sentence
    assert f" {key}" in caught.value.sentence
    assert rule in caught.value.sentence
    assert "\n" not in str(caught.value)


def test_what_is_not_a_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text("- name: north\n")
    with pytest.raises(SynodError, match=r"party\.yaml is not a configuration"):
        load_settings(PartySettings, path)


def test_a_cap_of_nothing_is_a_cap(tmp_path: Path) -> None:
    assert load(tmp_path, "party", max_epsilon_total=0).max_epsilon_total == 0
