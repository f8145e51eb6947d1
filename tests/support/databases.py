"""A real PostgreSQL server of this test run, and tables in it and in files of DuckDB."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import adbc_driver_postgresql.dbapi
import duckdb
import pytest

from synod.common.runtime.settings import Database

PASSWORD = "p@ss/w?rd #1"  # every sign that an address could trip over
OWNER, READER = "owner", "reader"
READY_SECONDS = 60.0
NUMBERS = count()
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Server:
    """A running server, on a Unix socket in `folder`; `READER` may read what `OWNER` makes in the schema `public`."""

    folder: Path

    def url(self, user: str = READER, database: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder), safe='')}"

    def run(self, *statements: str, database: str = "postgres") -> None:
        address = f"{self.url(OWNER, database)}&client_encoding=UTF8&password={quote(PASSWORD, safe='')}"
        with (
            adbc_driver_postgresql.dbapi.connect(address, autocommit=True) as connection,
            closing(connection.cursor()) as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)

    def source(self, user: str = READER, database: str = "postgres", **asked: str) -> Database:
        return Database(url=self.url(user, database), password_file=self.folder / "password", **asked)

    def table(self, columns: str, values: Sequence[str]) -> Database:
        """A new table of these columns, whose rows are written as SQL writes them."""
        name = f"t{next(NUMBERS)}"
        self.run(f"CREATE TABLE {name} ({columns})")
        if values:
            self.run(f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in values)}")
        self.run(f"GRANT SELECT ON {name} TO {READER}")
        return self.source(table=f"public.{name}")


def find_server_programs() -> Path | None:
    """Where Debian puts the newest server, or another system its only one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    other = shutil.which("initdb")
    return found[-1].parent if found else Path(other).parent if other else None


@contextmanager
def running_server() -> Iterator[Server]:
    """Starts a server as a user who is not root, which it would refuse, and ends it."""
    programs = find_server_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server here (Debian: postgresql)")
    own: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    if own and "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="synod-pg-", dir="/tmp"))
    data, secret = folder / "data", folder / "password"
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    if own:
        for path in (folder, secret):
            shutil.chown(path, "postgres", "postgres")
    making: list[str | Path] = [
        "-D",
        data,
        "-U",
        OWNER,
        "-A",
        "scram-sha-256",
        f"--pwfile={secret}",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    subprocess.run(
        [str(programs / "initdb"), *map(str, making), "--locale=C"],
        check=True,
        capture_output=True,
        cwd=folder,
        timeout=120,
        **own,
    )
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "timezone": "Asia/Tokyo",
    }
    flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(programs / "postgres"), "-D", str(data), *flags], stderr=log, cwd=folder, **own)
    try:
        server = Server(folder)
        wait_until_ready(server, process)
        server.run(f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_SECONDS
    while True:
        try:
            server.run("SELECT 1")
        except adbc_driver_postgresql.dbapi.Error:
            assert process.poll() is None, "the server ended by itself"
            assert time.monotonic() < until, "the server does not get ready"
            time.sleep(0.05)
        else:
            return


def duckdb_file(path: Path, *statements: str) -> Path:
    """A file of DuckDB in which these statements were run."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def duckdb_table(folder: Path, columns: str, values: Sequence[str]) -> Database:
    """The same as `Server.table`, in a file."""
    inserted = [f"INSERT INTO stays VALUES {', '.join(f'({row})' for row in values)}"] if values else []
    path = duckdb_file(folder / f"table{next(NUMBERS)}.duckdb", f"CREATE TABLE stays ({columns})", *inserted)
    return Database(url=f"duckdb:{path}", table="stays")
