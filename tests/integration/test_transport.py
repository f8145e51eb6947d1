"""Mutual TLS and nothing else: who gets in, what each side is told, and what happens while the curator is away."""

import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from synod.common.crypto.authority import issue_certificate, make_authority
from synod.common.crypto.certificates import Holder, Role, read_tls
from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import StatedHeads
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, TlsFiles
from synod.common.runtime.wire import MESSAGE_BYTES, open_channel
from synod.deploy.launch.operator import OperatorClient
from synod.party.answer import Secrets
from synod.party.approval import identity_path
from synod.party.client import CuratorClient
from synod.party.ledger import Ledger
from synod.v1 import party_pb2, study_pb2
from synod.v1 import party_pb2_grpc as party_rpc
from synod.v1 import study_pb2_grpc as study_rpc
from tests.support.daemons import Site, check_charges, make_site, run_synod
from tests.support.studies import NAMES

CALL_SECONDS = 10.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A curator that serves one study; no party runs."""
    site = make_site(tmp_path_factory.mktemp("served"))
    try:
        site.start_curator()
        site.submit()
        yield site
    finally:
        site.stop_all()


def address_of(site: Site) -> str:
    return site.settings("north").address


def tls_of(site: Site, name: str) -> TlsFiles:
    certs = site.paths.certs
    return TlsFiles(ca=certs / "ca.pem", certificate=certs / f"{name}.pem", key=certs / f"{name}.key")


@contextmanager
def channel_of(site: Site, name: str) -> Iterator[grpc.Channel]:
    with closing(open_channel(address_of(site), read_tls(tls_of(site, name)), proxy=None)) as channel:
        yield channel


def handshake(site: Site, context: ssl.SSLContext) -> tuple[str, str]:
    """Connects, speaks the first bytes of HTTP/2, and returns the TLS version and suite if the server replies."""
    host, port = address_of(site).split(":")
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), CALL_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        if not secure.recv(1):
            raise ssl.SSLEOFError("closed")
        cipher = secure.cipher()
        assert cipher is not None
        return str(secure.version()), cipher[0]


def client_context(site: Site, name: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=site.paths.certs / "ca.pem")
    if name is not None:
        files = tls_of(site, name)
        context.load_cert_chain(files.certificate, files.key)
    return context


# No way in without a certificate


def test_a_plaintext_channel_gets_no_answer(served: Site) -> None:
    with grpc.insecure_channel(address_of(served)) as channel:
        stub = party_rpc.PartyServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Greet(party_pb2.GreetRequest(protocol="synod/v1"), timeout=CALL_SECONDS)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_plain_http_gets_no_answer(served: Site) -> None:
    host, port = address_of(served).split(":")
    with socket.create_connection((host, int(port)), CALL_SECONDS) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.settimeout(CALL_SECONDS)
        try:
            reply = plain.recv(1000)
        except ConnectionError:
            reply = b""
    assert b"HTTP" not in reply


def test_a_client_without_a_certificate_is_shut_out(served: Site) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(served, client_context(served, None))
    assert handshake(served, client_context(served, "north"))[0] == "TLSv1.3"


def test_tls_1_2_is_kept_to_forward_secret_aead_suites(served: Site) -> None:
    def context_with(suites: str) -> ssl.SSLContext:
        context = client_context(served, "north")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suites)
        return context

    for suites in ("ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0", "AES128-GCM-SHA256:AES128-SHA"):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(served, context_with(suites))
    assert handshake(served, context_with("ECDHE-ECDSA-AES128-GCM-SHA256"))[0] == "TLSv1.2"


def test_tls_1_1_is_refused(served: Site) -> None:
    context = client_context(served, "north")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(served, context)


# Certificates and identities, and what the operator is told


def reissue(site: Site, name: str, *, now: datetime | None = None, days: float = 1.0, ca: Path | None = None) -> Path:
    """Another certificate for a party, in a folder of its own; from the site's authority if no other is given."""
    folder = site.paths.folder / f"other-{name}-{len(list(site.paths.folder.iterdir()))}"
    shutil.copytree(ca or site.paths.certs, folder, ignore=lambda _, names: [n for n in names if n[:3] != "ca."])
    issue_certificate(folder, Holder(Role.PARTY, name), [], now=now or datetime.now(UTC), days=days)
    return folder


def use(site: Site, party: str, folder: Path, *, ca: Path | None = None) -> Path:
    """A copy of a party's configuration with other TLS files; its state is the party's own."""
    config = site.config(party).with_name(f"{folder.name}.yaml")
    shutil.copy(site.config(party), config)
    files = {"ca": str((ca or folder) / "ca.pem")}
    files |= {"certificate": str(folder / f"{party}.pem"), "key": str(folder / f"{party}.key")}
    site.change(config, tls=files)
    return config


def serve_and_doctor(config: Path) -> Iterator[str]:
    """What the operator reads from both commands, each of which must fail to authenticate."""
    for command in ("serve", "doctor"):
        ran = run_synod("party", command, "--config", config)
        assert ran.returncode == 4, (command, ran.stdout, ran.stderr)
        yield ran.stdout + ran.stderr


def test_an_expired_certificate_is_named_before_dialing(served: Site) -> None:
    config = use(served, "north", reissue(served, "north", days=-1))
    for told in serve_and_doctor(config):
        assert "north.pem expired on 20" in told
        assert "Ask for a new one." in told


def test_a_certificate_of_tomorrow_points_to_the_clock(served: Site) -> None:
    config = use(served, "north", reissue(served, "north", now=datetime.now(UTC) + timedelta(days=1)))
    for told in serve_and_doctor(config):
        assert "north.pem is valid only from 20" in told
        assert "Check the clock." in told


def test_a_certificate_from_another_authority_is_named(served: Site, tmp_path: Path) -> None:
    make_authority(tmp_path / "stranger", now=datetime.now(UTC))
    folder = reissue(served, "north", ca=tmp_path / "stranger")
    for told in serve_and_doctor(use(served, "north", folder, ca=served.paths.certs)):
        assert "north.pem is from another authority than " in told
    # With that authority as its own, the party cannot know beforehand; it is told when it meets the curator.
    examined = run_synod("party", "doctor", "--config", use(served, "north", folder))
    assert examined.returncode == 4
    assert f"the certificate of {address_of(served)} is not from the authority in `ca`" in examined.stdout


@pytest.mark.parametrize("days", [-1.0, 1.0])
def test_the_curator_shuts_out_what_a_party_should_not_have_sent(served: Site, tmp_path: Path, days: float) -> None:
    """Expired, or from another authority: also when the party's own check is passed over."""
    make_authority(tmp_path / "stranger", now=datetime.now(UTC))
    folder = reissue(served, "north", days=days, ca=tmp_path / "stranger" if days > 0 else None)
    files = TlsFiles(ca=served.paths.certs / "ca.pem", certificate=folder / "north.pem", key=folder / "north.key")
    settings = served.settings("north").model_copy(update={"tls": files})
    client = CuratorClient(settings, Identity.load(identity_path(settings)))
    ledger = Ledger.open(settings.state)
    with closing(client), closing(ledger), pytest.raises(SynodError) as caught:
        client.pull(ledger.head(), [], 0)
    assert caught.value.code is Code.UNAUTHENTICATED
    assert "does not accept this certificate" in caught.value.sentence


def test_a_name_that_is_not_on_the_roster_is_told_so(served: Site) -> None:
    issue_certificate(served.paths.certs, Holder(Role.PARTY, "stranger"), [], now=datetime.now(UTC))
    settings = served.settings("north").model_copy(update={"tls": tls_of(served, "stranger")})
    client = CuratorClient(settings, Identity.load(identity_path(settings)))
    with closing(client), pytest.raises(SynodError) as caught:
        client.document(served.study.digest(), party_pb2.DOCUMENT_KIND_STUDY)
    assert caught.value.code is Code.NOT_ON_ROSTER
    assert "stranger is not on the roster of survey." in str(caught.value)

    config = served.config("north").with_name("stranger.yaml")
    shutil.copy(served.config("north"), config)
    served.change(
        config, name="stranger", state="stranger", tls={k: str(v) for k, v in tls_of(served, "stranger") if v}
    )
    assert run_synod("party", "init", "--config", config).returncode == 0
    approved = run_synod("party", "doctor", "--study", served.paths.study_file, "--config", config)
    assert approved.returncode == 3
    assert "stranger is not on the roster of survey. Ask the curator's operator to add it." in approved.stdout


def test_another_identity_than_the_roster_s_is_told_so(served: Site) -> None:
    config = served.config("north").with_name("impostor.yaml")
    shutil.copy(served.config("north"), config)
    served.change(config, state="impostor")
    assert run_synod("party", "init", "--config", config).returncode == 0
    approved = run_synod("party", "approve", served.paths.study_file, "--yes", "--config", config)
    assert approved.returncode == 3
    assert "the roster of survey pins another key for north." in approved.stderr

    impostor = Identity.load(config.parent / "impostor" / "identity.pem")
    ledger = Ledger.open(config.parent / "impostor")
    secrets = Secrets(ledger.secret(), served.study.digest(), bytes(32))
    client = CuratorClient(served.settings("north"), impostor)
    enrolment = secrets.enrolment("north", impostor, StatedHeads(ledger.head()))
    with closing(client), closing(ledger), pytest.raises(SynodError) as caught:
        client.enrol(served.study.digest(), enrolment, ledger.head())
    assert "the identity key of north is not the one on the roster of survey." in str(caught.value)
    assert not served.status().parties[0].enrolled


def test_a_certificate_of_another_party_is_refused_before_dialing(served: Site) -> None:
    config = served.config("north").with_name("borrowed.yaml")
    shutil.copy(served.config("north"), config)
    served.change(config, tls={key: str(path) for key, path in tls_of(served, "valley") if path})
    for told in serve_and_doctor(config):
        assert "is for the party valley, not for the party north." in told


def test_only_operators_may_submit_look_fetch_and_abort(served: Site) -> None:
    client = OperatorClient(OperatorSettings(address=address_of(served), tls=tls_of(served, "north")))
    other = served.another_study("theirs")
    calls: list[Callable[[], object]] = [
        lambda: client.submit(other),
        client.status,
        lambda: client.abort(served.study.name),
        lambda: client.fetch(served.study.name, served.paths.folder / "stolen"),
    ]
    with closing(client):
        for call in calls:
            with pytest.raises(SynodError) as caught:
                call()
            assert caught.value.code is Code.NOT_ON_ROSTER
            assert "the party north may not do this:" in caught.value.sentence
            assert "a certificate with the role operator." in caught.value.sentence
    with served.operator() as operator:
        assert [status.name for status in operator.status()] == [served.study.name]
        assert operator.status()[0].state == study_pb2.STUDY_STATE_ENROLLING
    assert not (served.paths.folder / "stolen").exists()


# The doctor


def doctor(site: Site, **changes: Any) -> tuple[int, str]:
    config = site.config("valley").with_name("patient.yaml")
    shutil.copy(site.config("valley"), config)
    site.change(config, **changes)
    ran = run_synod("party", "doctor", "--config", config, "--study", site.paths.study_file)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def test_the_doctor_finds_all_well(served: Site) -> None:
    code, told = doctor(served)
    assert code == 0
    assert "FAIL" not in told
    examined = [line[5:].split(":")[0] for line in told.splitlines()]
    assert examined[:8] == ["certificate", "keys", "table", "name", "port", "identity", "ledger", "curator"]
    assert examined[8:] == ["ledger's age", "clock", "roster", "study"]
    assert "more days; its authority's for " in told
    assert "to do: survey" in told
    assert "it would cost epsilon 0.8" in told


def test_the_doctor_finds_an_unknown_host(served: Site) -> None:
    code, told = doctor(served, address="curator.invalid:443")
    assert code == 4
    assert "FAIL name: the name curator.invalid cannot be looked up." in told


def test_the_doctor_finds_a_closed_port(served: Site) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and not listening
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        code, told = doctor(served, address=address)
    assert code == 4
    assert f"FAIL port: {address} does not accept connections." in told


def test_the_doctor_finds_another_curator_than_the_pinned_one(served: Site) -> None:
    code, told = doctor(served, curator="sha256:" + "0" * 64)
    assert code == 5
    assert "FAIL curator: the curator's key is not the one that `curator` pins." in told


def test_the_doctor_finds_a_missing_ledger(served: Site) -> None:
    state = served.settings("valley").state
    (state.parent / "bare").mkdir()
    shutil.copy(state / "identity.pem", state.parent / "bare" / "identity.pem")
    code, told = doctor(served, state="bare")
    assert code == 2
    assert "FAIL ledger: there is no ledger at " in told
    assert "Run `synod party init` first" in told
    refused = run_synod("party", "serve", "--config", served.config("valley").with_name("patient.yaml"))
    assert refused.returncode == 2
    assert not (state.parent / "bare" / "ledger.sqlite").exists()


def test_a_daemon_ends_when_the_curator_is_not_the_pinned_one(served: Site) -> None:
    config = served.config("valley").with_name("pinned.yaml")
    shutil.copy(served.config("valley"), config)
    served.change(config, curator="sha256:" + "0" * 64)
    ran = run_synod("party", "serve", "--config", config)
    assert ran.returncode == 3
    assert "the curator's key is not the one that `curator` pins." in ran.stderr


# Messages and services


def test_a_message_over_the_limit_is_refused(served: Site) -> None:
    with channel_of(served, "operator") as channel:
        files = tls_of(served, "operator")
        credentials = grpc.ssl_channel_credentials(
            files.ca.read_bytes(), files.key.read_bytes(), files.certificate.read_bytes()
        )
        unlimited = grpc.secure_channel(address_of(served), credentials)  # without Synod's own limit on sending
        request = study_pb2.SubmitStudyRequest(study=bytes(MESSAGE_BYTES + 1))
        for sender in (channel, unlimited):
            with pytest.raises(grpc.RpcError) as caught:
                study_rpc.StudyServiceStub(sender).SubmitStudy(request, timeout=CALL_SECONDS)
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        unlimited.close()
    assert served.status().state == study_pb2.STUDY_STATE_ENROLLING


def test_a_study_over_its_own_limit_is_refused(served: Site) -> None:
    request = study_pb2.SubmitStudyRequest(study=b" " * (900 * 1024 + 1))
    with channel_of(served, "operator") as channel, pytest.raises(grpc.RpcError) as caught:
        study_rpc.StudyServiceStub(channel).SubmitStudy(request, timeout=CALL_SECONDS)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "the study is larger than 900 KiB."


def test_health_and_reflection_answer_those_who_have_a_certificate(served: Site) -> None:
    with channel_of(served, "north") as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", "synod.v1.PartyService", "synod.v1.StudyService"):
            reply = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=CALL_SECONDS)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        (listed,) = reflection.ServerReflectionInfo(iter([request]), timeout=CALL_SECONDS)
    services = {service.name for service in listed.list_services_response.service}
    assert {"synod.v1.PartyService", "synod.v1.StudyService", "grpc.health.v1.Health"} <= services
    with grpc.insecure_channel(address_of(served)) as plain:
        unheard: Any = health_pb2_grpc.HealthStub(plain)
        with pytest.raises(grpc.RpcError):
            unheard.Check(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)


# The curator away


def test_daemons_reconnect_with_backoff_and_go_on_when_the_curator_is_back(site: Site) -> None:
    site.start_curator()
    site.submit()
    site.start_parties("north", "harbour")
    for name in ("north", "harbour"):
        site.await_event(name, "enrolled")
    site.kill("curator")
    site.start_parties("valley")  # starts while there is no curator at all

    def retries(name: str) -> list[float]:
        return [line["retry_seconds"] for line in site.log(name) if line["event"] == "waiting for the curator"]

    for name in NAMES:
        site.await_event(name, "waiting for the curator", times=3)
        first, second, third = retries(name)[:3]
        assert 0.5 <= first <= 1.0
        assert 1.0 <= second <= 2.0
        assert 2.0 <= third <= 4.0
        assert all(started.process.poll() is None for n, started in site.processes.items() if n == name)
    site.start_curator()
    site.await_state(study_pb2.STUDY_STATE_PUBLISHED)
    site.await_closed()
    check_charges(site)


class ConnectProxy(threading.Thread):
    """A small HTTP proxy that knows CONNECT and nothing else, and notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.asked: list[str] = []

    def run(self) -> None:
        """Serves until closed."""
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _tunnel(self, client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < 10_000:
                head += client.recv(1000)
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.asked.append(f"{method} {target}")
            host, port = target.split(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def test_a_party_goes_through_its_proxy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(variable, raising=False)
    proxy = ConnectProxy()
    proxy.start()
    with closing(proxy):
        site.start_curator()
        site.change(site.config("north"), proxy=f"http://{proxy.address}")
        site.submit()
        site.start_parties()
        site.await_state(study_pb2.STUDY_STATE_PUBLISHED)
        site.await_closed()
        check_charges(site)
        assert proxy.asked == [f"CONNECT {address_of(site)}"]
        examined = run_synod("party", "doctor", "--config", site.config("north"))
        assert examined.returncode == 0, examined.stdout
        assert len(proxy.asked) == 2
        site.stop("north")


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "https://127.0.0.1:3128", "http://127.0.0.1"])
def test_a_proxy_that_grpc_would_pass_by_is_refused(served: Site, proxy: str) -> None:
    config = served.config("valley").with_name("proxied.yaml")
    shutil.copy(served.config("valley"), config)
    served.change(config, proxy=proxy)
    ran = run_synod("party", "serve", "--config", config, seconds=30)
    assert ran.returncode == 2
    assert "proxied.yaml: proxy: " in ran.stderr
