"""What stands before every method of a server, whatever its kind: a call is admitted or refused before it runs."""

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeAlias

import grpc

from synod.common.runtime.errors import SynodError
from synod.common.runtime.wire import fail

Call = grpc.aio.ServicerContext[Any, Any]
Details = grpc.HandlerCallDetails
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"  # grpc's own class takes no parameters when it runs
Found: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
_MAKERS: dict[tuple[bool, bool], tuple[str, Callable[..., Handler]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class Admission(grpc.aio.ServerInterceptor):
    """Admits calls to every service of a server, health and reflection included."""

    @abstractmethod
    def admit(self, service: str, call: Call) -> AbstractContextManager[None]:
        """Entered before the call's method runs and left when it ends; raises a `SynodError` to refuse it."""

    async def intercept_service(
        self, continuation: Callable[[Details], Awaitable[Found]], handler_call_details: Details
    ) -> Found:
        """The method's handler, for admitted calls."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        service = str(handler_call_details.method).split("/")[1]
        kind, make = _MAKERS[bool(handler.request_streaming), bool(handler.response_streaming)]
        return make(
            self._guard(getattr(handler, kind), service),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _guard(self, method: Callable[..., Any], service: str) -> Callable[..., Any]:
        @wraps(method)
        async def reply(request: Any, call: Call) -> Any:
            try:
                with self.admit(service, call):
                    return await method(request, call)
            except SynodError as error:
                await fail(call, error)

        @wraps(method)
        async def stream(request: Any, call: Call) -> AsyncIterator[Any]:
            try:
                with self.admit(service, call):
                    async for part in method(request, call):
                        yield part
            except SynodError as error:
                await fail(call, error)

        return stream if inspect.isasyncgenfunction(method) else reply
