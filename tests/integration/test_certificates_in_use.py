"""Certificates under running daemons: requested, signed, renewed, expired, revoked; roles; keys with a passphrase."""

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from synod.common.crypto.authority import issue_certificate, make_authority, revoke_certificates, sign_request
from synod.common.crypto.certificates import Holder, Role, TlsPair, read_tls
from synod.common.crypto.identity import Identity
from synod.common.crypto.requests import make_request, read_request
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import write_public_file
from synod.common.runtime.settings import OperatorSettings, PartySettings, TlsFiles
from synod.common.runtime.wire import open_channel, server_credentials
from synod.deploy.launch.operator import OperatorClient
from synod.party.approval import identity_path
from synod.party.client import CuratorClient
from synod.party.ledger import Ledger
from tests.support.commands import complaint, synod
from tests.support.daemons import Site, make_site, run_synod, until

pytestmark = pytest.mark.timeout(180)

NORTH = Holder(Role.PARTY, "north")
SHORT_SECONDS = 12  # how long a certificate is good that is to expire under a daemon, which looks every two seconds
RENEWED, WAITING, CONNECTED = "the certificate was renewed", "waiting for the curator", "connected"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose parties wait for a person's approval, and whose curator reads the authority's list."""
    site = make_site(tmp_path)
    site.change(site.paths.curator_config, revoked="certs/revoked.pem", operators=["operator"])
    for member in site.paths.members:
        site.change(member.config, approve="ask")
    try:
        yield site
    finally:
        site.stop_all()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A curator that serves; no party runs."""
    site = make_site(tmp_path_factory.mktemp("served"))
    site.change(site.paths.curator_config, operators=["operator"])
    try:
        site.start_curator()
        yield site
    finally:
        site.stop_all()


def address_of(site: Site) -> str:
    return site.settings("north").address


def own_files(site: Site, party: str) -> TlsFiles:
    """Where a party keeps its own certificate, once it has one that it asked for itself."""
    folder = site.config(party).parent
    files = {"ca": "../certs/ca.pem", "certificate": "own.pem", "key": "own.key"}
    site.change(site.config(party), tls=files)
    return TlsFiles(ca=site.paths.certs / "ca.pem", certificate=folder / "own.pem", key=folder / "own.key")


def sign(site: Site, party: str, *, seconds: float | None = None) -> None:
    """A new certificate for a party's key, put in place as a person would."""
    folder = site.config(party).parent
    holder = Holder(Role.PARTY, party)
    make_request(folder / "own.csr", holder, (), key_path=folder / "own.key", passphrase=None)
    days = {} if seconds is None else {"days": seconds / 86_400}
    path = sign_request(site.paths.certs, read_request(folder / "own.csr"), now=datetime.now(UTC), **days)
    shutil.copy(path, folder / "own.pem")


def whys(site: Site, name: str, event: str) -> list[str]:
    return [str(line["why"]) for line in site.log(name) if line["event"] == event]


# Requested, signed, revoked


def test_requested_signed_revoked_and_signed_again_under_one_daemon(site: Site) -> None:
    files = own_files(site, "north")
    site.start_curator()
    asked = run_synod("party", "request-certificate", "--config", site.config("north"))
    assert asked.returncode == 0, asked.stderr
    key, request = files.key.read_bytes(), files.certificate.with_suffix(".csr")
    unsure = synod("certs", "sign", site.paths.certs, request)
    assert (unsure.code, "Nothing was signed." in unsure.err) == (3, True)
    signed = run_synod("certs", "sign", site.paths.certs, request, "--yes")
    assert signed.returncode == 0, signed.stderr
    (fingerprint,) = [line for line in asked.stdout.splitlines() if line.startswith("sha256:")]
    assert f"Fingerprint  {fingerprint}" in signed.stdout
    shutil.copy(site.paths.certs / "north.pem", files.certificate)

    site.submit()
    north = site.start_party("north")
    site.await_event("north", CONNECTED)
    assert synod("certs", "revoke", site.paths.certs, "north").code == 0
    site.await_event("north", WAITING)
    assert "the certificate of the party north was revoked. Ask whoever" in whys(site, "north", WAITING)[0]
    examined = synod("party", "doctor", "--config", site.config("north"))
    assert examined.code == 4
    assert "FAIL curator: the certificate of the party north was revoked." in examined.out

    assert synod("party", "request-certificate", "--config", site.config("north")).code == 0
    assert "was revoked" in complaint(synod("certs", "sign", site.paths.certs, request, "--yes"), 3)
    assert files.key.read_bytes() == key
    files.key.rename(files.key.with_suffix(".stolen"))
    assert synod("party", "request-certificate", "--config", site.config("north")).code == 0
    assert "ANOTHER KEY" in synod("certs", "sign", site.paths.certs, request, "--yes").out
    shutil.copy(site.paths.certs / "north.pem", files.certificate)
    site.await_event("north", CONNECTED, times=2)
    assert north.process.poll() is None, "nobody restarted it"
    with site.operator() as operator:
        assert operator.status(), "nobody else was shut out"


def test_a_revoked_certificate_is_refused_at_every_service(site: Site) -> None:
    site.start_curator()
    files = site.settings("north").tls
    with closing(open_channel(address_of(site), read_tls(files), proxy=None)) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its type stubs know no methods
        check = partial(stub.Check, health_pb2.HealthCheckRequest(), timeout=10)
        assert check().status == health_pb2.HealthCheckResponse.SERVING
        revoke_certificates(site.paths.certs, NORTH, now=datetime.now(UTC))
        with pytest.raises(grpc.RpcError) as caught:
            check()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as caught:
            next(iter(stub.Watch(health_pb2.HealthCheckRequest(), timeout=10)))
        assert caught.value.details() == "the certificate of the party north was revoked."


def test_a_list_that_cannot_be_used_changes_nothing(site: Site) -> None:
    revoke_certificates(site.paths.certs, NORTH, now=datetime.now(UTC))
    site.start_curator()
    (site.paths.certs / "revoked.pem").write_bytes(b"half a fi")
    examined = synod("party", "doctor", "--config", site.config("north"))
    assert "was revoked" in examined.out
    assert "cannot be read as a list of revoked" in whys(site, "curator", "a changed file is not used")[0]


def test_a_curator_does_not_start_without_its_list(site: Site) -> None:
    (site.paths.certs / "revoked.pem").unlink()
    ran = run_synod("curator", "serve", "--config", site.paths.curator_config, seconds=60)
    assert ran.returncode == 2
    assert "cannot be read as a list of revoked certificates" in ran.stderr


# Another authority

HOSTS = ["127.0.0.1", "localhost"]


def health_over(channel: grpc.Channel) -> Callable[[], Any]:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # its type stubs know no methods
    return partial(stub.Check, health_pb2.HealthCheckRequest(), timeout=10)


def test_an_authority_is_replaced_under_a_running_curator(site: Site) -> None:
    """With both in force nobody is shut out; when the old one is taken away its open connections are refused, and the
    first list of the new one is used, although its number is smaller.
    """
    certs, new = site.paths.certs, site.paths.folder / "new"
    revoke_certificates(certs, Holder(Role.PARTY, "valley"), now=datetime.now(UTC))
    make_authority(new, now=datetime.now(UTC))
    issue_certificate(new, NORTH, [], now=datetime.now(UTC))
    issue_certificate(new, Holder(Role.CURATOR, "curator"), HOSTS, now=datetime.now(UTC))
    both = site.paths.folder / "both.pem"
    both.write_bytes((certs / "ca.pem").read_bytes() + (new / "ca.pem").read_bytes())
    before = TlsFiles(ca=both, certificate=certs / "north.pem", key=certs / "north.key")
    after = TlsFiles(ca=both, certificate=new / "north.pem", key=new / "north.key")
    (certs / "revoked.pem").rename(certs / "old.pem")
    shutil.copy(certs / "old.pem", certs / "revoked.pem")
    curator = site.start_curator()
    with (
        closing(open_channel(address_of(site), read_tls(before), proxy=None)) as old_channel,
        closing(open_channel(address_of(site), read_tls(after), proxy=None)) as new_channel,
    ):
        ask_old, ask_new = health_over(old_channel), health_over(new_channel)
        assert ask_old().status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError):
            ask_new()
        write_public_file(certs / "ca.pem", both.read_bytes())
        lists = (certs / "old.pem").read_bytes() + (new / "revoked.pem").read_bytes()
        write_public_file(certs / "revoked.pem", lists)
        until("the new authority is in force", lambda: answers(ask_new))
        assert ask_old().status == health_pb2.HealthCheckResponse.SERVING

        for name in ("curator.key", "curator.pem", "ca.pem", "revoked.pem"):
            write_public_file(certs / name, (new / name).read_bytes())
        with pytest.raises(grpc.RpcError) as caught:
            ask_old()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "not from an authority that is in force now" in str(caught.value.details())
        assert ask_new().status == health_pb2.HealthCheckResponse.SERVING
        revoke_certificates(new, NORTH, now=datetime.now(UTC))
        write_public_file(certs / "revoked.pem", (new / "revoked.pem").read_bytes())
        with pytest.raises(grpc.RpcError, match="was revoked"):
            ask_new()
    assert "older than the one read before" not in (site.paths.folder / "curator.log").read_text()
    assert curator.process.poll() is None


def answers(ask: Callable[[], Any]) -> bool:
    try:
        return bool(ask().status)
    except grpc.RpcError:
        return False


# Renewed and expired


def test_renewed_before_and_after_it_expires(site: Site) -> None:
    """North renews in time and never loses the curator; harbour does not, waits, and comes back without a restart."""
    site.start_curator()
    site.submit()
    for party in ("north", "harbour"):
        own_files(site, party)
        sign(site, party)
    site.start_parties("north", "harbour")
    for party in ("north", "harbour"):
        site.await_event(party, CONNECTED)
    for party in ("north", "harbour"):
        sign(site, party, seconds=SHORT_SECONDS)
    expires = datetime.now(UTC) + timedelta(seconds=SHORT_SECONDS)
    for party in ("north", "harbour"):
        site.await_event(party, RENEWED)
    sign(site, "north")
    site.await_event("north", RENEWED, times=2)
    assert datetime.now(UTC) < expires, "this machine is too slow for this test"

    site.await_event("harbour", WAITING, times=2)
    assert datetime.now(UTC) > expires - timedelta(seconds=2)
    told = whys(site, "harbour", WAITING)
    assert "the certificate of the party harbour is not valid now" in told[0] or "own.pem expired on" in told[0]
    assert "own.pem expired on" in told[1]
    sign(site, "harbour")
    site.await_event("harbour", CONNECTED, times=2)
    assert site.events("north").count(WAITING) == 0
    assert site.events("north").count(CONNECTED) == 1
    assert {name: started.process.poll() for name, started in site.processes.items() if name != "curator"} == {
        "north": None,
        "harbour": None,
    }


def serial_served(site: Site) -> int:
    """The serial number of the certificate that the curator shows to a new connection."""
    host, port = address_of(site).split(":")
    context = ssl.create_default_context(cafile=site.paths.certs / "ca.pem")
    files = site.settings("north").tls
    context.load_cert_chain(files.certificate, files.key)
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number


def test_the_curator_uses_a_renewed_certificate_without_a_restart(site: Site) -> None:
    curator = site.start_curator()
    before = serial_served(site)
    renewed = site.paths.folder / "renewed"
    shutil.copytree(site.paths.certs, renewed, ignore=lambda _, names: [n for n in names if n.startswith("curator")])
    issue_certificate(renewed, Holder(Role.CURATOR, "curator"), ["127.0.0.1", "localhost"], now=datetime.now(UTC))
    shutil.copy(renewed / "curator.pem", site.paths.certs)
    assert serial_served(site) == before, "a certificate without its key is not used"
    (told,) = whys(site, "curator", "a changed file is not used")
    assert "does not belong to the certificate" in told
    shutil.copy(renewed / "curator.key", site.paths.certs)
    assert serial_served(site) != before
    assert curator.process.poll() is None
    with site.operator() as operator:
        operator.status()


def test_what_expires_soon_is_said_once_in_the_log_and_by_the_doctor(site: Site) -> None:
    soon = site.paths.folder / "soon"
    shutil.copytree(site.paths.certs, soon, ignore=lambda _, names: [n for n in names if not n.startswith("ca.")])
    for holder, hosts in ((NORTH, ()), (Holder(Role.CURATOR, "curator"), ("127.0.0.1", "localhost"))):
        issue_certificate(soon, holder, hosts, now=datetime.now(UTC), days=20.5)
        for suffix in ("pem", "key"):
            shutil.copy(soon / f"{holder.name}.{suffix}", site.paths.certs)
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    for name in ("curator", "north"):
        site.await_event(name, "a certificate expires")
    until("north has looked several times", lambda: "move not made" in site.events("north"))
    for name in ("curator", "north"):
        (told,) = whys(site, name, "a certificate expires")
        assert f"{name}.pem expires on 20" in told
        assert "in 20 days. Renew it." in told
    assert "a certificate expires" not in site.events("harbour")
    examined = synod("party", "doctor", "--config", site.config("north"))
    assert examined.code == 0, examined.out
    assert "ok   certificate: valid, for north" in examined.out
    assert "WARN certificate: the certificate " in examined.out
    assert "WARN" not in synod("party", "doctor", "--config", site.config("harbour")).out


# Roles


def issued(site: Site, holder: Holder) -> TlsFiles:
    """A certificate of the site's authority, in a folder of its own."""
    folder = site.paths.folder / f"{holder.role.value}-called-{holder.name}"
    if not folder.exists():
        shutil.copytree(site.paths.certs, folder, ignore=lambda _, names: [n for n in names if n[:3] != "ca."])
        issue_certificate(folder, holder, [], now=datetime.now(UTC))
    return TlsFiles(ca=folder / "ca.pem", certificate=folder / f"{holder.name}.pem", key=folder / f"{holder.name}.key")


def refusal_of_operator(site: Site, files: TlsFiles) -> SynodError:
    client = OperatorClient(OperatorSettings(address=address_of(site), tls=files))
    with closing(client), pytest.raises(SynodError) as caught:
        client.status()
    return caught.value


def refusal_of_party(site: Site, files: TlsFiles) -> SynodError:
    settings: PartySettings = site.settings("north").model_copy(update={"tls": files})
    client = CuratorClient(settings, Identity.load(identity_path(settings)))
    ledger = Ledger.open(settings.state)
    with closing(client), closing(ledger), pytest.raises(SynodError) as caught:
        client.pull(ledger.head(), [], 0)
    return caught.value


def test_a_party_called_operator_is_no_operator(served: Site) -> None:
    refused = refusal_of_operator(served, issued(served, Holder(Role.PARTY, "operator")))
    assert refused.code is Code.NOT_ON_ROSTER
    assert "the party operator may not do this: it takes a certificate with the role operator." in str(refused)


def test_an_operator_that_is_not_listed_is_refused(served: Site) -> None:
    refused = refusal_of_operator(served, issued(served, Holder(Role.OPERATOR, "deputy")))
    assert "deputy is not an operator of this curator." in str(refused)


def test_every_operator_is_welcome_where_none_is_listed(site: Site) -> None:
    site.change(site.paths.curator_config, operators=None)
    site.start_curator()
    files = issued(site, Holder(Role.OPERATOR, "deputy"))
    with closing(OperatorClient(OperatorSettings(address=address_of(site), tls=files))) as client:
        assert client.status() == []
    assert refusal_of_operator(site, site.settings("north").tls).code is Code.NOT_ON_ROSTER


def test_an_operator_called_like_a_party_is_no_party(served: Site) -> None:
    refused = refusal_of_party(served, issued(served, Holder(Role.OPERATOR, "north")))
    assert refused.code is Code.NOT_ON_ROSTER
    assert "the operator north may not do this: it takes a certificate with the role party." in str(refused)


def test_a_curators_certificate_dials_nobody(served: Site) -> None:
    certs = served.paths.certs
    files = TlsFiles(ca=certs / "ca.pem", certificate=certs / "curator.pem", key=certs / "curator.key")
    for refused in (refusal_of_party(served, files), refusal_of_operator(served, files)):
        assert refused.code is Code.UNAUTHENTICATED
        assert "does not accept this certificate" in refused.sentence


def test_a_partys_certificate_does_not_serve(served: Site) -> None:
    config = served.paths.folder / "impostor.yaml"
    shutil.copy(served.paths.curator_config, config)
    files = {key: str(path) for key, path in issued(served, NORTH) if path}
    served.change(config, tls=files, state="impostor", listen="127.0.0.1:0")
    ran = run_synod("curator", "serve", "--config", config, seconds=60)
    assert ran.returncode == 4
    assert "north.pem is for the party north, not for a curator." in ran.stderr


def hand_made(site: Site, usage: x509.ObjectIdentifier) -> TlsPair:
    """A certificate for this host with any usage: the authority itself would not sign all of them."""
    certs, now = site.paths.certs, datetime.now(UTC)
    authority = x509.load_pem_x509_certificate((certs / "ca.pem").read_bytes())
    authority_key = serialization.load_pem_private_key((certs / "ca.key").read_bytes(), None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key, form = ec.generate_private_key(ec.SECP256R1()), serialization.Encoding.PEM
    names = [x509.UniformResourceIdentifier(NORTH.uri), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "north")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    clear = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return TlsPair(authority.public_bytes(form), certificate.public_bytes(form), clear)


@contextmanager
def impostor(tls: TlsPair) -> Iterator[str]:
    """A server under any certificate; it knows gRPC's health service alone."""
    server = grpc.server(ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    port = server.add_secure_port("localhost:0", server_credentials(lambda: tls))
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait(10)


@pytest.mark.parametrize(
    ("usage", "is_believed"), [(ExtendedKeyUsageOID.CLIENT_AUTH, False), (ExtendedKeyUsageOID.SERVER_AUTH, True)]
)
def test_a_party_does_not_talk_to_another_partys_certificate(
    served: Site, usage: x509.ObjectIdentifier, is_believed: bool
) -> None:
    """Even one that names the curator's host, and passes by the check that its own holder makes."""
    own = read_tls(served.settings("north").tls)
    with impostor(hand_made(served, usage)) as address, closing(open_channel(address, own, proxy=None)) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its type stubs know no methods
        if is_believed:
            assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status
        else:
            with pytest.raises(grpc.RpcError) as caught:
                stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
            assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value.details())


# Keys with a passphrase


def test_a_party_and_a_curator_whose_keys_are_encrypted(site: Site) -> None:
    """From the identity to a connection: the ledger is new, and no key is in the clear on disk."""
    north, folder = site.config("north"), site.config("north").parent
    for place in (folder, site.paths.folder):
        (place / "passphrase").write_text("correct horse\n")
    shutil.rmtree(folder / "state")
    files = {"ca": "../certs/ca.pem", "certificate": "own.pem", "key": "own.key", "passphrase_file": "passphrase"}
    site.change(north, tls=files, passphrase_file="passphrase")
    for arguments in (("party", "init"), ("party", "request-certificate")):
        assert synod(*arguments, "--config", north).code == 0
    assert synod("certs", "sign", site.paths.certs, folder / "own.csr", "--yes").code == 0
    shutil.copy(site.paths.certs / "north.pem", folder / "own.pem")

    (site.paths.folder / "curator" / "identity.pem").unlink()
    tls = {"ca": "certs/ca.pem", "certificate": "own.pem", "key": "own.key", "passphrase_file": "passphrase"}
    site.change(site.paths.curator_config, tls=tls, passphrase_file="passphrase")
    hosts = ("--host", "127.0.0.1", "--host", "localhost")
    asked = synod("curator", "request-certificate", "--config", site.paths.curator_config, *hosts)
    assert asked.code == 0, asked.err
    assert synod("certs", "sign", site.paths.certs, site.paths.folder / "own.csr", "--yes").code == 0
    shutil.copy(site.paths.certs / "curator.pem", site.paths.folder / "own.pem")
    pin = synod("curator", "fingerprint", "--config", site.paths.curator_config).out.strip()
    site.change(north, curator=pin)

    keys = [site.paths.folder / "own.key", site.paths.folder / "curator" / "identity.pem"]
    for key in (*keys, folder / "own.key", folder / "state" / "identity.pem"):
        assert "ENCRYPTED" in key.read_text(), key
    site.start_curator()
    site.start_party("north")
    site.await_event("north", CONNECTED)
    (folder / "passphrase").write_text("wrong\n")
    examined = synod("party", "doctor", "--config", north)
    assert examined.code == 4
    assert "own.key does not open with the passphrase" in examined.out
    assert "wrong" not in examined.out
