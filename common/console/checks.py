"""Which requests count: by their Host, their origin, and what the browser says about who caused them. Pure.

A page of somebody else's can make a browser send requests here, and a name of somebody else's can be made to lead here
(DNS rebinding). Neither can change these headers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a console is: the scheme, the host names that lead to it, and its port; None behind a Unix socket, where
    whoever forwards to it chooses the port.
    """

    scheme: str
    names: tuple[str, ...]
    port: int | None

    @property
    def base(self) -> str:
        """How links begin."""
        return f"{self.scheme}://{self.names[0]}" + ("" if self.port is None else f":{self.port}")


def is_own_host(address: Address, host: str) -> bool:
    """Whether a Host header names this console.

    Guarantee: a page under any other name, whatever it resolves to, is shown nothing.
    """
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, "443" if address.scheme == "https" else "80"
    return name in address.names and port.isascii() and port.isdigit() and address.port in (None, int(port))


def is_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Whether the browser says that another site, or another port of this machine, caused the request."""
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def is_own_origin(address: Address, headers: Mapping[str, str]) -> bool:
    """Whether a request that changes something comes from a page of this console. Browsers always say it."""
    return headers.get("origin") == f"{address.scheme}://{headers.get('host', '')}"
