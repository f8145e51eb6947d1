"""A console over a Unix socket, and over TLS: it is entered there as it is on a port of loopback."""

import re
import socket
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from synod.common.console.place import Wanted, take_place
from synod.party.console.routes import PartyConsole, make_pages
from tests.support.commands import synod
from tests.support.consoles import make_house, read_answer, serving


def over_socket(path: Path, target: str, *headers: str) -> str:
    """One request over a Unix socket; the whole answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        client.connect(str(path))
        lines = [f"GET {target} HTTP/1.1", "Connection: close", *headers, "", ""]
        client.sendall("\r\n".join(lines).encode())
        return b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()


def test_over_a_unix_socket(tmp_path: Path) -> None:
    house, path = make_house(tmp_path), tmp_path / "c.sock"
    pages = make_pages(house.settings)
    routes = PartyConsole(lambda: house.settings, pages, clock=lambda: 0.0).routes()
    with serving("party", pages, routes, take_place(Wanted(path=path))) as served:
        link = urlsplit(served.links[0])
        assert link.netloc == "localhost"
        refused = over_socket(path, f"{link.path}?{link.query}", "Host: evil.example:8080")
        assert refused.startswith("HTTP/1.1 421 ")
        entered = over_socket(path, f"{link.path}?{link.query}", "Host: localhost:8080")
        assert entered.startswith("HTTP/1.1 200 ")
        cookie = entered.partition("set-cookie: ")[2].partition(";")[0]
        assert re.match(r"synod-party-socket-[0-9a-f]{8}=", cookie)
        assert "Inbox" in over_socket(path, "/", "Host: localhost:8080", f"Cookie: {cookie}")


def test_under_tls(tmp_path: Path) -> None:
    house = make_house(tmp_path)
    assert synod("certs", "init", tmp_path / "ca").code == 0
    issued = synod("certs", "issue", tmp_path / "ca", "curator", "--role", "curator", "--host", "127.0.0.1")
    assert issued.code == 0, issued.err
    pages = make_pages(house.settings)
    routes = PartyConsole(lambda: house.settings, pages, clock=lambda: 0.0).routes()
    wanted = Wanted(certificate=tmp_path / "ca" / "curator.pem", key=tmp_path / "ca" / "curator.key")
    with serving("party", pages, routes, take_place(wanted)) as served:
        link = urlsplit(served.links[0])
        assert link.scheme == "https"
        trusted = ssl.create_default_context(cafile=tmp_path / "ca" / "ca.pem")
        connection = HTTPSConnection("127.0.0.1", link.port, timeout=30, context=trusted)
        connection.request("GET", f"{link.path}?{link.query}")
        with connection.getresponse() as response:
            entered = read_answer(response)
        connection.close()
        assert entered.status == 200
        assert "Secure" in entered.headers["set-cookie"]
