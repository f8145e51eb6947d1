"""What stands before every method of a server, whatever its kind: a call is admitted or refused before it runs.

gRPC reads the message of a method with a single one before it calls the method, for as long as that takes. So all
methods are served as if they took a stream: a call is admitted first, and its message read then, within a time.
"""

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeAlias

import grpc

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import fail

Call = grpc.aio.ServicerContext[Any, Any]
Details = grpc.HandlerCallDetails
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"  # grpc's own class takes no parameters when it runs
Found: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
MESSAGE_SECONDS = 30.0


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
        found: Any = handler
        if handler.response_streaming:
            method, make = found.stream_stream or found.unary_stream, grpc.stream_stream_rpc_method_handler
        else:
            method, make = found.stream_unary or found.unary_unary, grpc.stream_unary_rpc_method_handler
        return make(
            self._guard(method, service, takes_stream=bool(handler.request_streaming)),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _guard(self, method: Callable[..., Any], service: str, *, takes_stream: bool) -> Callable[..., Any]:
        @wraps(method)
        async def reply(messages: AsyncIterator[Any], call: Call) -> Any:
            try:
                with self.admit(service, call):
                    return await method(messages if takes_stream else await _read_one(messages), call)
            except SynodError as error:
                await fail(call, error)

        @wraps(method)
        async def stream(messages: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
            try:
                with self.admit(service, call):
                    async for part in method(messages if takes_stream else await _read_one(messages), call):
                        yield part
            except SynodError as error:
                await fail(call, error)

        return stream if inspect.isasyncgenfunction(method) else reply


async def _read_one(messages: AsyncIterator[Any]) -> Any:
    try:
        return await asyncio.wait_for(anext(messages), MESSAGE_SECONDS)
    except StopAsyncIteration:
        raise SynodError(Code.INVALID, "the call came without its message.") from None
    except TimeoutError:
        raise SynodError(Code.UNREACHABLE, "the call's message did not come in time.") from None
