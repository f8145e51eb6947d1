"""`synod certs`: an authority and certificates that are good for what they are made for, and never replaced."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from synod.common.crypto.certificates import Role, check_own_certificate
from synod.common.runtime.settings import TlsFiles
from tests.support.commands import complaint, synod


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
