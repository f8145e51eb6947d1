"""Who may call what: every call, of every service, passes here before its servicer sees it.

TLS has checked that the caller's certificate is a client's and from the authority. gRPC looks at it once, when a
connection is made; here it is looked at again at every call, because connections last for weeks.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

import grpc
from cryptography import x509

from synod.common.crypto.certificates import Role, rejected
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import caller, caller_certificate, fail

Call = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"  # grpc's own class takes no parameters when it runs
AnyHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
MOST_CERTIFICATES = 1024


@lru_cache(MOST_CERTIFICATES)
def _parse(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


class Access(grpc.aio.ServerInterceptor):
    """Refuses calls; `roles` says who may call a service, and nobody may call one that it does not name."""

    def __init__(
        self,
        roles: Mapping[str, frozenset[Role]],
        *,
        revoked: Callable[[], frozenset[int]],
        clock: Callable[[], datetime],
    ) -> None:
        self._roles = roles
        self._revoked = revoked
        self._clock = clock

    def check(self, service: str, call: Call) -> None:
        """1. the certificate names one role and one name; 2. it is valid now; 3. it is not revoked; 4. its role may
        call this service.
        """
        # 1
        holder = caller(call)
        certificate = _parse(caller_certificate(call))
        # 2
        until = certificate.not_valid_after_utc
        if not certificate.not_valid_before_utc <= self._clock() <= until:
            raise rejected(
                f"the certificate of {holder} is not valid now; it expires on {until:%Y-%m-%d %H:%M} UTC.",
                "Renew it, or check the clocks.",
            )
        # 3
        if certificate.serial_number in self._revoked():
            raise rejected(
                f"the certificate of {holder} was revoked.", "Ask whoever runs the transport authority for a new one."
            )
        # 4
        allowed = self._roles.get(service, frozenset())
        if holder.role not in allowed:
            takes = " or ".join(sorted(role.value for role in allowed)) or "that nobody has"
            raise SynodError(
                Code.NOT_ON_ROSTER,
                f"{holder} may not do this: it takes a certificate with the role {takes}.",
                "Ask whoever runs the transport authority for one.",
            )

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[AnyHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> AnyHandler:
        """The handler of a call, with the checks before it."""
        handler = await continuation(handler_call_details)
        service = str(handler_call_details.method).split("/")[1]
        return None if handler is None else self._guard(handler, service)

    def _guard(self, handler: Any, service: str) -> Handler:
        kinds: dict[tuple[bool, bool], tuple[Any, Any]] = {
            (False, False): (handler.unary_unary, grpc.unary_unary_rpc_method_handler),
            (False, True): (handler.unary_stream, grpc.unary_stream_rpc_method_handler),
            (True, False): (handler.stream_unary, grpc.stream_unary_rpc_method_handler),
            (True, True): (handler.stream_stream, grpc.stream_stream_rpc_method_handler),
        }
        inner, rebuild = kinds[handler.request_streaming, handler.response_streaming]
        guarded = self._guard_stream if inspect.isasyncgenfunction(inner) else self._guard_reply
        rebuilt: Handler = rebuild(guarded(inner, service), handler.request_deserializer, handler.response_serializer)
        return rebuilt

    def _guard_reply(self, inner: Any, service: str) -> Any:
        async def checked(request: Any, call: Call) -> Any:
            await self._admit(service, call)
            return await inner(request, call)

        return checked

    def _guard_stream(self, inner: Any, service: str) -> Any:
        async def checked(request: Any, call: Call) -> Any:
            await self._admit(service, call)
            async for reply in inner(request, call):
                yield reply

        return checked

    async def _admit(self, service: str, call: Call) -> None:
        try:
            self.check(service, call)
        except SynodError as error:
            await fail(call, error)
