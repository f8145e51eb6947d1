"""Open calls are counted by name, refused beyond the quota, and forgotten when they end, however they end."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from synod.common.crypto.certificates import Holder, Role
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import explain, open_server
from synod.curator.callers import admission
from synod.curator.callers.quotas import MOST_CALLS_OF_A_NAME, MOST_CALLS_OF_STRANGERS, Quotas
from tests.support.curators import CallOf

SECONDS = 30.0
WORK: Any = SimpleNamespace(method="/test/Work")


def party(name: str) -> Holder:
    return Holder(Role.PARTY, name)


def make_quotas() -> Quotas:
    return Quotas({party("north"), party("harbour")}.__contains__)


def fill(quotas: Quotas, open_calls: ExitStack, *names: str) -> None:
    for name in names:
        open_calls.enter_context(quotas.call_of(party(name)))


def is_refused(quotas: Quotas, name: str) -> bool:
    try:
        with quotas.call_of(party(name)):
            return False
    except SynodError as error:
        return error.code is Code.UNREACHABLE


def test_a_name_has_its_quota_and_takes_from_nobody_else() -> None:
    quotas = make_quotas()
    with ExitStack() as calls:
        fill(quotas, calls, *["north"] * (MOST_CALLS_OF_A_NAME - 1))
        assert not is_refused(quotas, "north")
        fill(quotas, calls, "north")
        for _ in range(3):
            assert is_refused(quotas, "north")
        assert not is_refused(quotas, "harbour")
        assert not is_refused(quotas, "ghost")
    assert not is_refused(quotas, "north")


def test_names_on_no_roster_share_a_quota() -> None:
    quotas = make_quotas()
    with ExitStack() as calls:
        fill(quotas, calls, *["spirit", "ghost"] * MOST_CALLS_OF_A_NAME)
        assert is_refused(quotas, "ghost")
        assert is_refused(quotas, "spirit")
        assert not is_refused(quotas, "ghost-0")
        fill(
            quotas, calls, *(f"ghost-{number}" for number in range(MOST_CALLS_OF_STRANGERS - 2 * MOST_CALLS_OF_A_NAME))
        )
        assert is_refused(quotas, "ghost-x")
        assert not is_refused(quotas, "north")
    assert not is_refused(quotas, "ghost-x")


def test_a_call_that_fails_is_counted_no_more_and_names_without_a_call_are_forgotten() -> None:
    quotas = make_quotas()
    for name in ["north", "ghost"] * 2 * MOST_CALLS_OF_STRANGERS:
        with pytest.raises(ZeroDivisionError), quotas.call_of(party(name)):
            raise ZeroDivisionError
    assert not quotas._open


# Every kind of method


class Refused(Exception):  # noqa: N818
    """A call that was ended with a status."""


class Call(CallOf):
    """A call that can be refused."""

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: object) -> None:
        raise Refused(code.name)


async def reply(request: Any, call: Any) -> str:
    return f"{request} for {call.name}"


async def stream(request: Any, call: Any) -> AsyncIterator[str]:
    yield f"{request} for {call.name}"


async def reply_to_stream(messages: AsyncIterator[Any], call: Any) -> str:
    return f"{await anext(messages)} for {call.name}"


async def stream_to_stream(messages: AsyncIterator[Any], call: Any) -> AsyncIterator[str]:
    yield f"{await anext(messages)} for {call.name}"


HANDLERS: list[tuple[Callable[..., Any], str, Callable[..., Any]]] = [
    (grpc.unary_unary_rpc_method_handler, "unary_unary", reply),
    (grpc.unary_stream_rpc_method_handler, "unary_stream", stream),
    (grpc.unary_stream_rpc_method_handler, "unary_stream", reply),
    (grpc.stream_unary_rpc_method_handler, "stream_unary", reply_to_stream),
    (grpc.stream_stream_rpc_method_handler, "stream_stream", stream_to_stream),
]


async def one_message() -> AsyncIterator[str]:
    yield "work"


async def carry_out(method: Callable[..., Any], name: str) -> Any:
    answer = method(one_message(), Call(name))
    return await answer if isinstance(answer, Awaitable) else [part async for part in answer]


@pytest.mark.parametrize(("make", "kind", "method"), HANDLERS)
def test_every_kind_of_method_is_within_the_quotas(
    make: Callable[..., Any], kind: str, method: Callable[..., Any]
) -> None:
    quotas = make_quotas()
    served = "stream_" + kind.split("_")[1]
    handler = make(method, request_deserializer=bytes.fromhex, response_serializer=bytes.hex)

    async def found(details: Any) -> Any:
        return handler

    async def scene() -> None:
        within: Any = await quotas.intercept_service(found, WORK)
        assert (within.request_deserializer, within.response_serializer) == (bytes.fromhex, bytes.hex)
        for _ in range(2 * MOST_CALLS_OF_A_NAME):
            assert await carry_out(getattr(within, served), "north") in ("work for north", ["work for north"])
        with ExitStack() as calls:
            fill(quotas, calls, *["north"] * MOST_CALLS_OF_A_NAME)
            with pytest.raises(Refused, match="UNAVAILABLE"):
                await carry_out(getattr(within, served), "north")
        assert not quotas._open

    asyncio.run(scene())


def test_a_method_that_does_not_exist_stays_missing() -> None:
    async def missing(details: Any) -> None:
        return None

    handler = make_quotas().intercept_service(missing, WORK)
    assert asyncio.run(handler) is None


# Everybody's calls


def test_a_server_with_as_many_calls_as_it_takes_says_try_again() -> None:
    """As gRPC itself refuses, and as a daemon understands it."""

    async def wait(request: bytes, call: Any) -> bytes:
        await asyncio.sleep(SECONDS)
        return request

    async def scene(address: str) -> None:
        server = open_server(most_calls=2, most_calls_of_a_connection=9, interceptors=[])
        methods: dict[str, Any] = {"Wait": grpc.unary_unary_rpc_method_handler(wait)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
        server.add_insecure_port(address)
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            ask: Any = channel.unary_unary("/test/Wait")
            calls = [asyncio.ensure_future(ask(b"")) for _ in range(3)]
            done, waiting = await asyncio.wait(calls, timeout=SECONDS / 2, return_when=asyncio.FIRST_COMPLETED)
            assert (len(done), len(waiting)) == (1, 2)
            error = done.pop().exception()
            assert isinstance(error, grpc.RpcError)
            assert explain(error, "curator:1").code is Code.UNREACHABLE
            for call in waiting:
                call.cancel()
        await server.stop(None)

    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        asyncio.run(scene(f"unix:{Path(folder) / 'socket'}"))


def test_a_call_without_its_message_is_admitted_first_and_ended_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """GRPC would wait for the message before anybody is asked, and such calls would fill the server."""
    monkeypatch.setattr(admission, "MESSAGE_SECONDS", 0.5)
    admitted: list[str] = []

    class Counting(admission.Admission):
        @contextmanager
        def admit(self, service: str, call: Any) -> Iterator[None]:
            admitted.append(service)
            yield

    async def echo(request: bytes, call: Any) -> bytes:
        return request

    async def repeat(request: bytes, call: Any) -> AsyncIterator[bytes]:
        yield request

    async def silence() -> AsyncIterator[bytes]:
        await asyncio.sleep(SECONDS)
        yield b""

    async def nothing() -> AsyncIterator[bytes]:
        for part in list[bytes]():
            yield part

    async def scene(address: str) -> None:
        server = open_server(most_calls=9, most_calls_of_a_connection=9, interceptors=[Counting(), Counting()])
        methods: dict[str, Any] = {
            "Echo": grpc.unary_unary_rpc_method_handler(echo),
            "Repeat": grpc.unary_stream_rpc_method_handler(repeat),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", methods),))
        server.add_insecure_port(address)
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            ask: Any = channel.unary_unary("/test/Echo")
            begin: Any = channel.stream_unary("/test/Echo")
            assert await ask(b"hello") == b"hello"
            with pytest.raises(grpc.RpcError, match="did not come in time"):
                await asyncio.wait_for(begin(silence()), SECONDS / 2)
            with pytest.raises(grpc.RpcError, match="came without its message"):
                await asyncio.wait_for(begin(nothing()), SECONDS / 2)
            assert admitted == ["test"] * 6
            listen: Any = channel.stream_stream("/test/Repeat")
            with pytest.raises(grpc.RpcError, match="did not come in time"):
                await asyncio.wait_for(listen(silence()).read(), SECONDS / 2)
            assert admitted == ["test"] * 8
        await server.stop(None)

    with tempfile.TemporaryDirectory(prefix="synod-") as folder:
        asyncio.run(scene(f"unix:{Path(folder) / 'socket'}"))
