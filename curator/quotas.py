"""How many calls may be open at once: of everybody, of one name, and of all names that are on no roster.

A call over a quota is refused at once, before its method runs, so that whoever calls without end keeps nobody else
waiting. The name is that of the certificate. It holds for every service of the server, health and reflection included.
"""

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeAlias

import grpc

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import caller_name, fail

MOST_CALLS = 4096
MOST_CALLS_OF_A_NAME = 16  # a daemon has one; lost connections and an operator's commands add a few
MOST_CALLS_OF_STRANGERS = 256  # daemons that wait for their first study
STRANGERS = None

Details = grpc.HandlerCallDetails
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Found: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
_MAKERS: dict[tuple[bool, bool], tuple[str, Callable[..., Handler]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class Quotas:
    """The open calls, by name. `is_known` says whether a name is on a roster or an operator's."""

    def __init__(self, is_known: Callable[[str], bool]) -> None:
        self._is_known = is_known
        self._open: Counter[str | None] = Counter()

    @contextmanager
    def call_of(self, name: str) -> Iterator[None]:
        """Counts one call while it is open; refuses one too many."""
        quotas: dict[str | None, int] = {name: MOST_CALLS_OF_A_NAME}
        if not self._is_known(name):
            quotas[STRANGERS] = MOST_CALLS_OF_STRANGERS
        if any(self._open[counted] >= most for counted, most in quotas.items()):
            raise SynodError(
                Code.UNREACHABLE,
                f"the curator has as many calls open as it takes from {name or 'a caller without a name'}.",
                "Run one daemon for each name. If this name is on no roster yet, wait for its first study.",
            )
        self._open.update(quotas.keys())
        try:
            yield
        finally:
            self._open.subtract(quotas.keys())
            self._open += Counter()  # forgets names without an open call


class QuotaInterceptor(grpc.aio.ServerInterceptor):
    """Holds the quotas for every method of a server."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    async def intercept_service(
        self, continuation: Callable[[Details], Awaitable[Found]], handler_call_details: Details
    ) -> Found:
        """The method's handler, within the quotas."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind, make = _MAKERS[bool(handler.request_streaming), bool(handler.response_streaming)]
        return make(
            self._within(getattr(handler, kind)),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _within(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        async def reply(request: Any, call: Any) -> Any:
            try:
                with self._quotas.call_of(caller_name(call)):
                    return await method(request, call)
            except SynodError as error:
                await fail(call, error)

        @wraps(method)
        async def stream(request: Any, call: Any) -> AsyncIterator[Any]:
            try:
                with self._quotas.call_of(caller_name(call)):
                    async for part in method(request, call):
                        yield part
            except SynodError as error:
                await fail(call, error)

        return stream if inspect.isasyncgenfunction(method) else reply
