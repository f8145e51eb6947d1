"""`synod certs`: an authority and certificates that are good for what they are made for, and never replaced."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from synod.common.crypto.certificates import Role, check_own_certificate
from synod.common.runtime.settings import TlsFiles
from tests.support.commands import complaint, synod, write_party


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    folder = tmp_path / "certs"
    assert synod("certs", "init", folder).code == 0
    return folder


def test_init_and_issue(certs: Path) -> None:
    ending = synod("certs", "issue", certs, "curator", "--host", "127.0.0.1", "--host", "curator.example.org")
    assert (ending.code, ending.err) == (0, "")
    assert f"{certs}/curator.pem" in ending.out
    files = TlsFiles(ca=certs / "ca.pem", certificate=certs / "curator.pem", key=certs / "curator.key")
    check_own_certificate(files, Role.CURATOR, "curator", now=datetime.now(UTC))
    certificate = x509.load_pem_x509_certificate((certs / "curator.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["curator.example.org"]
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["synod:curator:curator"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_keys_are_for_their_owner_alone(certs: Path) -> None:
    synod("certs", "issue", certs, "north")
    for name in ("ca.key", "north.key"):
        assert (certs / name).stat().st_mode & 0o077 == 0


def test_nothing_is_replaced(certs: Path) -> None:
    synod("certs", "issue", certs, "north")
    before = {path.name: path.read_bytes() for path in certs.iterdir()}
    assert "there already" in complaint(synod("certs", "init", certs), 2)
    assert "there already" in complaint(synod("certs", "issue", certs, "north"), 2)
    assert {path.name: path.read_bytes() for path in certs.iterdir()} == before


def test_an_authority_whose_key_is_elsewhere_is_not_replaced(certs: Path) -> None:
    before = (certs / "ca.pem").read_bytes()
    (certs / "ca.key").unlink()
    assert "there already" in complaint(synod("certs", "init", certs), 2)
    assert (certs / "ca.pem").read_bytes() == before
    assert not (certs / "ca.key").exists()


def test_issue_without_an_authority(tmp_path: Path) -> None:
    told = complaint(synod("certs", "issue", tmp_path, "north"), 2)
    assert "synod certs init" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "Nord", "../north", "a b", "x" * 64])
def test_issue_for_a_name_that_is_none(certs: Path, name: str) -> None:
    assert "is not a name" in complaint(synod("certs", "issue", certs, name), 2)


def test_issue_for_a_host_that_is_none(certs: Path) -> None:
    assert "is not a host name" in complaint(synod("certs", "issue", certs, "curator", "--host", "bücher.example"), 2)


@pytest.mark.parametrize(
    ("arguments", "uri"),
    [
        (("north",), "synod:party:north"),
        (("operator",), "synod:operator:operator"),
        (("operator", "--role", "party"), "synod:party:operator"),
        (("alice", "--role", "operator"), "synod:operator:alice"),
        (("curator", "--host", "localhost"), "synod:curator:curator"),
        (("main", "--role", "curator", "--host", "localhost"), "synod:curator:main"),
    ],
)
def test_issue_says_and_writes_the_role(certs: Path, arguments: tuple[str, ...], uri: str) -> None:
    ending = synod("certs", "issue", certs, *arguments)
    assert ending.code == 0, ending.err
    _, role, name = uri.split(":")
    assert f"go to the {role} {name}." in ending.out
    certificate = x509.load_pem_x509_certificate((certs / f"{name}.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [uri]


def test_a_curator_needs_a_host_and_leaves_nothing_without(certs: Path) -> None:
    assert "must name a host" in complaint(synod("certs", "issue", certs, "curator"), 2)
    assert {path.name for path in certs.iterdir()} == {"ca.pem", "ca.key", "revoked.pem"}


# Requests


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_party(tmp_path / "north")


def test_a_request_is_made_shown_and_signed(certs: Path, config: Path) -> None:
    asked = synod("party", "request-certificate", "--config", config)
    assert (asked.code, asked.err) == (0, "")
    assert "north.key, which stays here." in asked.out
    request = config.parent / "north.csr"
    refused = synod("certs", "sign", certs, request, stdin="y\n")
    assert "Nothing was signed." in complaint(refused, 3)
    assert not (certs / "north.pem").exists()
    ending = synod("certs", "sign", certs, request, "--yes")
    assert (ending.code, ending.err) == (0, "")
    (fingerprint,) = [line for line in asked.out.splitlines() if line.startswith("sha256:")]
    shown = dict(line.split(maxsplit=1) for line in refused.out.splitlines())
    assert shown == {"Role": "party", "Name": "north", "Fingerprint": fingerprint}
    assert "north.pem goes to the party north" in ending.out
    files = TlsFiles(ca=certs / "ca.pem", certificate=certs / "north.pem", key=config.parent / "north.key")
    check_own_certificate(files, Role.PARTY, "north", now=datetime.now(UTC))


def test_a_renewal_is_told_from_another_key(certs: Path, config: Path) -> None:
    request, key = config.parent / "north.csr", config.parent / "north.key"
    for told in ("goes to", "A renewal: the key is the one", "ANOTHER KEY than the one"):
        if told.startswith("ANOTHER"):
            key.unlink()
        assert synod("party", "request-certificate", "--config", config).code == 0
        ending = synod("certs", "sign", certs, request, "--yes")
        assert told in ending.out
        assert ("A renewal" in ending.out) == ("renewal" in told)
        assert ("ANOTHER KEY" in ending.out) == ("KEY" in told)


def test_a_revoked_key_is_not_taken_for_a_renewal(certs: Path, config: Path) -> None:
    request, key = config.parent / "north.csr", config.parent / "north.key"
    synod("party", "request-certificate", "--config", config)
    synod("certs", "sign", certs, request, "--yes")
    synod("certs", "revoke", certs, "north")
    assert synod("party", "request-certificate", "--config", config).code == 0
    ending = synod("certs", "sign", certs, request, "--yes")
    assert "was revoked. Its holder moves the old key away" in complaint(ending, 3)
    assert "renewal" not in ending.out
    key.unlink()
    assert synod("party", "request-certificate", "--config", config).code == 0
    assert "ANOTHER KEY" in synod("certs", "sign", certs, request, "--yes").out


def test_the_hosts_of_a_curator_are_shown(certs: Path, tmp_path: Path) -> None:
    config = tmp_path / "curator.yaml"
    tls = {"ca": "ca.pem", "certificate": "main.pem", "key": "main.key"}
    config.write_text(yaml.safe_dump({"listen": "127.0.0.1:0", "state": "state", "tls": tls}))
    hosts = ("--host", "curator.example.org", "--host", "10.0.0.1")
    assert synod("curator", "request-certificate", "--config", config, *hosts).code == 0
    ending = synod("certs", "sign", certs, tmp_path / "main.csr", "--yes")
    assert "Role         curator" in ending.out
    assert "Hosts        curator.example.org, 10.0.0.1" in ending.out


def test_an_operator_asks_for_a_certificate(certs: Path, tmp_path: Path) -> None:
    config = tmp_path / "operator.yaml"
    tls = {"ca": "ca.pem", "certificate": "alice.pem", "key": "alice.key"}
    config.write_text(yaml.safe_dump({"address": "127.0.0.1:1", "tls": tls}))
    assert synod("study", "request-certificate", "alice", "--config", config).code == 0
    assert "goes to the operator alice" in synod("certs", "sign", certs, tmp_path / "alice.csr", "--yes").out


def test_revoke_says_what_it_did(certs: Path) -> None:
    assert "no certificate for the party north" in complaint(synod("certs", "revoke", certs, "north"), 1)
    synod("certs", "issue", certs, "north")
    assert "Revoked, of the party north: 1." in synod("certs", "revoke", certs, "north").out
    assert "were revoked before" in synod("certs", "revoke", certs, "north").out
