"""Tells systemd how a daemon is: lines in a datagram to the socket that `NOTIFY_SOCKET` names; elsewhere, nothing.

The watchdog's ping comes from a thread in a party, whose loop may compute an answer for minutes, and from the event
loop in a curator. So in a party it says that the process runs, and in a curator that its loop does.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread

PING = "WATCHDOG=1"


def notify(*lines: str) -> None:
    """Sends lines such as `READY=1`; a supervisor that does not listen stops nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto("\n".join(lines).encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


def ping_seconds(environment: Mapping[str, str] = os.environ) -> float | None:
    """How often this process is to ping: twice in the time after which systemd takes it for dead. None: never."""
    microseconds, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or int(microseconds) == 0 or process not in ("", str(os.getpid())):
        return None
    return int(microseconds) / 2_000_000


@contextmanager
def pinging() -> Iterator[None]:
    """Pings from a thread while the block runs, if systemd asks for it; says at its end that the daemon stops."""
    ended, seconds = Event(), ping_seconds()

    def ping(every: float) -> None:
        while not ended.wait(every):
            notify(PING)

    if seconds is not None:
        Thread(target=ping, args=(seconds,), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        notify("STOPPING=1")
