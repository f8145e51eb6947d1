"""Runs `synod` so that it is killed, as by `kill -9`, at one named point; or so that its calls are written down.

    python crash_entry.py POINT synod's arguments...

A point is `module.Class.method:WHEN:N` or `module.function:WHEN:N`: the N-th call, WHEN it starts (`before`), has
returned (`after`), or is about to commit its transaction (`inside`). Further: `upload:N` and `download:N`, when the
first chunk of the N-th upload was handed over by the party, or taken by the curator; `trace:FILE`, which kills
nothing and appends each call of a store, ledger or client to the file; `refuse:module.function`, which makes a check
fail; and `run`, which does nothing. At every point ledgers have no salts and a study's secret is not drawn but fixed,
so that copies of one site give the same release. The product knows nothing of all this.
"""

import importlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from synod.common.runtime import wire
from synod.common.runtime.errors import refused
from synod.curator import party_store, rpc
from synod.curator import store as store_module
from synod.curator.uploads import Upload
from synod.deploy.cli.main import main
from synod.party import client as client_module
from synod.party import ledger as ledger_module

CHUNK_BYTES = 200  # so that small answers go in several chunks
STUDY_SECRET = bytes(range(32))
TRACED = (store_module.Store, ledger_module.Ledger, client_module.CuratorClient)
TRANSACTED = (party_store, ledger_module)


def die() -> NoReturn:
    """What `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def locate(name: str) -> tuple[Any, str]:
    """The object that holds a function, and the function's name there."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            holder: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:-1]:
            holder = getattr(holder, part)
        return holder, parts[-1]
    raise AssertionError(name)


def kill_at(name: str, when: str, number: int) -> None:
    """Kills the process around the n-th call of a function."""
    holder, attribute = locate(name)
    original = getattr(holder, attribute)
    calls = 0
    committing: list[bool] = []

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number and when == "before":
            die()
        if calls == number and when == "inside":
            committing.append(True)
        result = original(*args, **kwargs)
        if calls == number and when == "after":
            die()
        assert not committing, "the call had no transaction to die in"
        return result

    setattr(holder, attribute, wrapped)
    _wrap_transactions(lambda: die() if committing else None)


def _wrap_transactions(before_commit: Callable[[], None]) -> None:
    for module in TRANSACTED:
        original = getattr(module, "transaction")  # noqa: B009  (imported there, and not for others)

        @contextmanager
        def wrapped(connection: Any, original: Any = original) -> Iterator[None]:
            with original(connection):
                yield
                before_commit()

        setattr(module, "transaction", wrapped)  # noqa: B010


def kill_in_upload(number: int) -> None:
    """Kills the party when gRPC asks for what follows the first chunk of the n-th upload."""
    original = client_module.CuratorClient._parts
    uploads = 0

    def wrapped(*args: Any) -> Iterator[Any]:
        nonlocal uploads
        uploads += 1
        for index, part in enumerate(original(*args)):
            if uploads == number and index == 2:
                die()
            yield part

    client_module.CuratorClient._parts = wrapped  # type: ignore[method-assign,assignment]


def kill_in_download(number: int) -> None:
    """Kills the curator when it has taken the first chunk of the n-th upload."""
    original = rpc._receive
    uploads = 0

    async def wrapped(request: AsyncIterator[Any], upload: Upload) -> None:
        nonlocal uploads
        uploads += 1
        this = uploads

        async def until_first() -> AsyncIterator[Any]:
            async for message in request:
                if this == number:
                    die()
                yield message

        await original(until_first(), upload)

    rpc._receive = wrapped


def trace(path: Path) -> None:
    """Writes down every call of a store, ledger or client, and how many transactions it made."""
    calling = threading.local()  # the curator's checks call its store on worker threads

    def wrap(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            calling.transactions = 0
            try:
                return original(*args, **kwargs)
            finally:
                with path.open("a") as file:
                    file.write(f"{kind.__module__}.{kind.__name__}.{name} {calling.transactions}\n")
                calling.transactions = 0

        setattr(kind, name, wrapped)

    for kind in TRACED:
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and not isinstance(inspect.getattr_static(kind, name), staticmethod):
                assert function is getattr(kind, name)
                wrap(kind, name)

    def count() -> None:
        calling.transactions += 1

    _wrap_transactions(count)


def refuse(name: str) -> None:
    """Makes a function refuse."""
    holder, attribute = locate(name)

    def wrapped(*args: Any, **kwargs: Any) -> NoReturn:
        raise refused("the test says no.")

    setattr(holder, attribute, wrapped)


def arm(point: str) -> None:
    """Prepares what the point asks for."""
    match point.split(":"):
        case ["trace", file]:
            trace(Path(file))
        case ["refuse", name]:
            refuse(name)
        case ["run"]:
            pass
        case ["upload", number]:
            kill_in_upload(int(number))
        case ["download", number]:
            kill_in_download(int(number))
        case [name, ("before" | "inside" | "after") as when, number]:
            kill_at(name, when, int(number))
        case _:
            raise AssertionError(point)


if __name__ == "__main__":
    wire.CHUNK_BYTES = CHUNK_BYTES
    ledger_module.draw_study_secret = lambda: STUDY_SECRET
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    ledger_module._append = importlib.import_module("tests.support.salts").without_salt()
    arm(sys.argv.pop(1))
    main()
