"""A server on loopback that takes a curator's events, and answers as a test says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_SECONDS = 30.0


@contextmanager
def listening(*answers: int, hold: threading.Event | None = None) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A server that gives these answers, then 200; yields its address and what was posted, by path."""
    posted: list[tuple[str, Any]] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, json.loads(body)))
            if hold is not None:
                hold.wait(WAIT_SECONDS)
            status = left.pop(0) if left else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook?token=hidden", posted
    finally:
        server.shutdown()
        server.server_close()
