"""The wire: errors in both directions, chunks, and no way to open a plaintext port."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from synod.common.crypto.certificates import Holder, Role
from synod.common.runtime import wire
from synod.common.runtime.errors import OUTCOMES, Code, SynodError
from synod.common.runtime.wire import (
    CHUNK_BYTES,
    MESSAGE_BYTES,
    caller,
    caller_name,
    chunks_of,
    explain,
    fail,
    replies,
    streams,
)


class FailedCall(grpc.RpcError):
    """What a client sees of a call that failed."""

    def __init__(self, status: grpc.StatusCode, details: str | None = "", trailers: Any = ()) -> None:
        super().__init__()
        self._seen = (status, details, trailers)

    def code(self) -> grpc.StatusCode:
        return self._seen[0]

    def details(self) -> str | None:
        return self._seen[1]

    def trailing_metadata(self) -> Any:
        return self._seen[2]


class Context:
    """What a servicer sees of a call."""

    def __init__(self, names: list[bytes] | None = None) -> None:
        self._names = names

    async def abort(self, status: grpc.StatusCode, details: str, trailing_metadata: Any = ()) -> None:
        raise FailedCall(status, details, trailing_metadata)

    def auth_context(self) -> dict[str, Any] | None:
        return None if self._names is None else {"peer_uri": self._names}


def failed_call(error: SynodError) -> FailedCall:
    with pytest.raises(FailedCall) as caught:
        asyncio.run(fail(Context(), error))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("code", Code)
@pytest.mark.parametrize("hint", ["", "Ask M\u00fcller \u2014 twice."])
def test_an_error_reaches_the_other_side_unchanged(code: Code, hint: str) -> None:
    call = failed_call(SynodError(code, "It failed.", hint))
    assert call.code() is grpc.StatusCode[OUTCOMES[code].status]
    found = explain(call, "curator:1")
    assert (found.code, found.sentence, found.hint) == (code, "It failed.", hint)


def test_a_code_of_a_later_version_and_a_bad_hint_do_no_harm() -> None:
    call = FailedCall(
        grpc.StatusCode.ABORTED, "It failed.", (("synod-code", "melted"), ("synod-hint-bin", b"\xff\xfeAsk."))
    )
    found = explain(call, "curator:1")
    assert (found.code, found.sentence) == (Code.INTERNAL, "It failed.")
    assert found.hint.endswith("Ask.")


UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("call", "code", "sentence"),
    [
        (
            FailedCall(grpc.StatusCode.RESOURCE_EXHAUSTED, "SERVER: Received message larger than max (2 vs. 1)"),
            Code.INVALID,
            "over the limit of 1 MiB",
        ),
        (
            FailedCall(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!"),
            Code.UNREACHABLE,
            "curator:1 has as many calls open as it takes",
        ),
        (FailedCall(grpc.StatusCode.DEADLINE_EXCEEDED), Code.UNREACHABLE, "curator:1 did not answer in time"),
        (FailedCall(grpc.StatusCode.INTERNAL, "boom"), Code.INTERNAL, "the call to curator:1 failed (INTERNAL)"),
        (FailedCall(grpc.StatusCode.UNKNOWN, None), Code.INTERNAL, "the call to curator:1 failed (UNKNOWN)"),
        (FailedCall(grpc.StatusCode.UNIMPLEMENTED), Code.INTERNAL, "failed (UNIMPLEMENTED)"),
        (grpc.RpcError(), Code.INTERNAL, "the call to curator:1 failed (UNKNOWN)"),
        (
            FailedCall(UNAVAILABLE, "failed to connect: Connection refused"),
            Code.UNREACHABLE,
            "curator:1 cannot be reached",
        ),
        (FailedCall(UNAVAILABLE, None, None), Code.UNREACHABLE, "curator:1 cannot be reached"),
        (FailedCall(UNAVAILABLE, "DNS resolution failed"), Code.UNREACHABLE, "curator:1 cannot be reached"),
        (
            FailedCall(UNAVAILABLE, "Ssl handshake failed: SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: expired"),
            Code.UNAUTHENTICATED,
            "the certificate of curator:1 is not from the authority in `ca`",
        ),
        (
            FailedCall(UNAVAILABLE, "Peer name curator is not in peer certificate"),
            Code.UNAUTHENTICATED,
            "is for another host",
        ),
        (FailedCall(UNAVAILABLE, "Socket closed"), Code.UNAUTHENTICATED, "in the TLS handshake"),
        (FailedCall(UNAVAILABLE, "recvmsg:Connection reset by peer"), Code.UNAUTHENTICATED, "in the TLS handshake"),
        (FailedCall(UNAVAILABLE, "Ssl handshake failed"), Code.UNAUTHENTICATED, "in the TLS handshake"),
    ],
)
def test_what_a_failed_call_means(call: grpc.RpcError, code: Code, sentence: str) -> None:
    found = explain(call, "curator:1")
    assert found.code is code
    assert sentence in found.sentence
    assert "boom" not in str(found)


class Servicer:
    """Methods as a service has them."""

    @replies
    async def reply(self, request: Any, context: Any) -> Any:
        if isinstance(request, Exception):
            raise request
        return request + 1

    @streams
    async def stream(self, request: Any, context: Any) -> AsyncIterator[int]:
        for number in request:
            if isinstance(number, Exception):
                raise number
            yield number


async def collect(request: list[Any], into: list[int]) -> None:
    async for number in Servicer().stream(request, Context()):
        into.append(number)  # noqa: PERF401  (what came before an error counts)


def test_servicer_methods_end_with_the_errors_status() -> None:
    refusal = SynodError(Code.REFUSED, "No.", "Stop.")
    assert asyncio.run(Servicer().reply(4, Context())) == 5  # type: ignore[arg-type]
    with pytest.raises(FailedCall) as caught:
        asyncio.run(Servicer().reply(refusal, Context()))  # type: ignore[arg-type]
    assert explain(caught.value, "x").code is Code.REFUSED
    received: list[int] = []
    with pytest.raises(FailedCall) as caught:
        asyncio.run(collect([1, 2, refusal, 3], received))
    assert received == [1, 2]
    assert explain(caught.value, "x").sentence == "No."


def test_other_exceptions_are_left_to_grpc_which_shows_no_text() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Servicer().reply(ZeroDivisionError(), Context()))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_chunks_fit_a_message_and_add_up(size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    chunks = list(chunks_of(data))
    assert b"".join(chunks) == data
    assert len(chunks) == max(1, -(-size // CHUNK_BYTES))
    assert all(len(chunk) <= CHUNK_BYTES < MESSAGE_BYTES for chunk in chunks)


def test_the_caller_is_known_by_its_certificate() -> None:
    call: Any = Context([b"synod:party:north"])
    assert caller(call) == Holder(Role.PARTY, "north")
    assert caller_name(call) == "north"


@pytest.mark.parametrize(
    "uris", [None, [], [b"north"], [b"\xff"], [b"synod:party:north", b"synod:party:south"], [b"synod:party:\xff"]]
)
def test_a_caller_without_one_role_and_one_name_is_nobody(uris: list[bytes] | None) -> None:
    with pytest.raises(SynodError, match="does not say whether") as caught:
        caller_name(Context(uris))  # type: ignore[arg-type]
    assert caught.value.code is Code.UNAUTHENTICATED


def test_there_is_no_plaintext_port() -> None:
    source = inspect.getsource(wire)
    assert "insecure" not in source
    assert "require_client_authentication=True" in source
