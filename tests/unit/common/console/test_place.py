"""Where a console may listen, and under which names it is served."""

import socket
import stat
from pathlib import Path

import pytest

from synod.common.console.checks import Address, is_own_host
from synod.common.console.place import Wanted, take_place
from synod.common.runtime.errors import Code, SynodError
from tests.support.commands import synod


def refusal(wanted: Wanted) -> SynodError:
    with pytest.raises(SynodError) as caught:
        take_place(wanted).close()
    return caught.value


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for a host name, and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    assert synod("certs", "init", folder / "ca").code == 0
    issued = synod("certs", "issue", folder / "ca", "curator", "--role", "curator", "--host", "console.example.org")
    assert issued.code == 0, issued.err
    return folder / "ca" / "curator.pem", folder / "ca" / "curator.key"


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.org:80"])
def test_other_machines_need_the_flag_and_tls(listen: str) -> None:
    assert "can be reached from other machines" in refusal(Wanted(listen)).sentence
    error = refusal(Wanted(listen, beyond=True))
    assert (error.code, "needs TLS" in error.sentence) == (Code.REFUSED, True)


@pytest.mark.parametrize("listen", ["", "127.0.0.1", ":80", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"])
def test_what_is_no_address(listen: str) -> None:
    assert refusal(Wanted(listen)).code is Code.INVALID


def test_loopback_takes_a_free_port() -> None:
    place = take_place(Wanted())
    port = place.socket.getsockname()[1]
    place.socket.close()
    assert place.address == Address("http", ("127.0.0.1", "localhost", "[::1]"), port)
    assert place.tls is None


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot be listened on" in refusal(Wanted(f"127.0.0.1:{taken.getsockname()[1]}")).sentence


def test_a_unix_socket_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    for _ in range(2):  # one that a killed console left behind is replaced
        place = take_place(Wanted(path=path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        place.socket.close()
    place.close()
    assert not path.exists()
    assert place.address == Address("http", ("localhost", "127.0.0.1"), None)
    (tmp_path / "file").write_text("kept")
    assert "cannot be made" in refusal(Wanted(path=tmp_path / "file")).sentence
    assert (tmp_path / "file").read_text() == "kept"


def test_a_socket_on_which_somebody_listens_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = take_place(Wanted(path=Path("c.sock")))
    assert first.path == tmp_path.resolve() / "c.sock", "what is printed can be used from anywhere"
    error = refusal(Wanted(path=tmp_path / "c.sock"))
    assert (error.code, "somebody listens on" in error.sentence) == (Code.CONFLICT, True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect(str(tmp_path / "c.sock"))
    first.close()


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("127.0.0.1:0", path=Path("c.sock")),
        Wanted(path=Path("c.sock"), certificate=Path("c.pem"), key=Path("c.key")),
        Wanted(path=Path("c.sock"), beyond=True),
        Wanted(beyond=True),
        Wanted("[::1]:0", beyond=True),
    ],
)
def test_what_contradicts_itself(wanted: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = refusal(wanted)
    assert (error.code, "Leave out" in error.hint) == (Code.INVALID, True)
    assert list(tmp_path.iterdir()) == []


def test_with_tls_the_names_are_those_of_the_certificate(pair: tuple[Path, Path]) -> None:
    place = take_place(Wanted("0.0.0.0:0", certificate=pair[0], key=pair[1], beyond=True))
    place.socket.close()
    assert place.address.scheme == "https"
    assert place.tls is not None
    assert "console.example.org" in place.address.names
    assert not is_own_host(place.address, f"127.0.0.2:{place.address.port}")


def test_half_of_a_pair_and_a_broken_one(pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert "a certificate and its key" in refusal(Wanted(certificate=pair[0])).sentence
    (tmp_path / "x.pem").write_text("nothing")
    broken = refusal(Wanted(certificate=tmp_path / "x.pem", key=pair[1]))
    assert "cannot be used for TLS" in broken.sentence


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost:8080", True),
        ("127.0.0.1:1", True),
        ("localhost", True),
        ("evil.example:8080", False),
        ("localhost.evil.example", False),
        ("localhost:", False),
        ("localhost:x", False),
        ("[::1]", False),
        ("", False),
    ],
)
def test_behind_a_socket_any_port_of_loopback_may_lead_here(host: str, is_own: bool) -> None:
    assert is_own_host(Address("http", ("localhost", "127.0.0.1"), None), host) is is_own


def test_the_usual_port_may_be_left_out() -> None:
    assert is_own_host(Address("https", ("x.example",), 443), "x.example")
    assert not is_own_host(Address("https", ("x.example",), 8443), "x.example")
    assert is_own_host(Address("http", ("[::1]",), 80), "[::1]")
