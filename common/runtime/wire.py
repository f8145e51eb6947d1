"""The wire: channels and servers over mutual TLS, message limits, chunks, and errors in both directions.

There is no way here to open a plaintext port. gRPC cannot be told "TLS 1.3 only"; it offers 1.3, and 1.2 is kept to
forward-secret AEAD suites.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc

from synod.common.crypto.certificates import Holder, TlsPair
from synod.common.runtime.errors import OUTCOMES, Code, SynodError

os.environ.setdefault(
    "GRPC_SSL_CIPHER_SUITES",
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:"
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305",
)

MESSAGE_BYTES = 1 << 20
CHUNK_BYTES = 512 << 10
CALL_SECONDS = 30.0
UPLOAD_SECONDS = 3600.0
CODE_TRAILER = "synod-code"
HINT_TRAILER = "synod-hint-bin"
_TOO_LARGE = "message larger than max"  # gRPC's words; it has the same status for a server with too many calls
_LIMITS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]
_CLIENT_OPTIONS = [
    *_LIMITS,
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 15_000),
]
_SERVER_OPTIONS = [
    *_LIMITS,
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.so_reuseport", 0),
    # Else a stream that nobody reads may fill megabytes, once the connection has been seen to be fast.
    ("grpc.http2.bdp_probe", 0),
]

T = TypeVar("T")


def open_channel(address: str, tls: TlsPair, *, proxy: str | None) -> grpc.Channel:
    """A channel to the curator; it connects at the first call and reconnects by itself, with backoff and jitter."""
    credentials = grpc.ssl_channel_credentials(
        root_certificates=tls.ca, private_key=tls.key, certificate_chain=tls.certificate
    )
    through = [("grpc.http_proxy", proxy)] if proxy else [("grpc.enable_http_proxy", 0)]
    return grpc.secure_channel(address, credentials, options=[*_CLIENT_OPTIONS, *through])


def server_credentials(current: Callable[[], TlsPair]) -> grpc.ServerCredentials:
    """Credentials that demand a certificate from the authority of every client; asked for anew at every connection."""

    def configure() -> grpc.ServerCertificateConfiguration:
        tls = current()
        return grpc.ssl_server_certificate_configuration([(tls.key, tls.certificate)], root_certificates=tls.ca)

    return grpc.dynamic_ssl_server_credentials(configure(), configure, require_client_authentication=True)


def open_server(
    *, most_calls: int, most_calls_of_a_connection: int, interceptors: Sequence[grpc.aio.ServerInterceptor]
) -> grpc.aio.Server:
    """A server with the message limits, which refuses a call while `most_calls` are open; it has no port yet. Of a
    connection it takes a few calls at once, and the others wait at the caller, at whose cost they are.
    """
    options = [*_SERVER_OPTIONS, ("grpc.max_concurrent_streams", most_calls_of_a_connection)]
    return grpc.aio.server(options=options, maximum_concurrent_rpcs=most_calls, interceptors=list(interceptors))


def caller(context: grpc.aio.ServicerContext[Any, Any]) -> Holder:
    """Whom the caller's certificate is for."""
    return Holder.of_uris(bytes(uri).decode("utf-8", "replace") for uri in _peer(context, "peer_uri"))


def caller_name(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The name in the caller's certificate."""
    return caller(context).name


def caller_certificate(context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    """The caller's certificate, PEM; nothing if there is none."""
    return b"".join(_peer(context, "x509_pem_cert"))


def _peer(context: grpc.aio.ServicerContext[Any, Any], key: str) -> list[bytes]:
    return list((context.auth_context() or {}).get(key) or [])


def chunks_of(data: bytes) -> Iterator[bytes]:
    """The data in pieces that fit a message; at least one."""
    for start in range(0, max(len(data), 1), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


async def fail(context: grpc.aio.ServicerContext[Any, Any], error: SynodError) -> NoReturn:
    """Ends a call with the error's status, sentence and hint."""
    status = grpc.StatusCode[OUTCOMES[error.code].status]
    trailers = ((CODE_TRAILER, error.code.value), (HINT_TRAILER, error.hint.encode()))
    await context.abort(status, error.sentence, trailing_metadata=trailers)
    raise AssertionError("abort raises")


def replies(method: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """For servicer methods with one reply: a `SynodError` becomes the call's status."""

    @wraps(method)
    async def guarded(self: Any, request: Any, context: Any) -> T:
        try:
            return await method(self, request, context)
        except SynodError as error:
            await fail(context, error)

    return guarded


def streams(method: Callable[..., AsyncIterator[T]]) -> Callable[..., AsyncIterator[T]]:
    """For servicer methods that stream replies: a `SynodError` becomes the call's status."""

    @wraps(method)
    async def guarded(self: Any, request: Any, context: Any) -> AsyncIterator[T]:
        try:
            async for reply in method(self, request, context):
                yield reply
        except SynodError as error:
            await fail(context, error)

    return guarded


def _trailers(error: grpc.RpcError) -> dict[str, Any]:
    metadata: Any = error.trailing_metadata() if hasattr(error, "trailing_metadata") else ()
    return dict(metadata or ())


def explain(error: grpc.RpcError, address: str) -> SynodError:
    """What a failed call means, for the operator of the calling side."""
    trailers = _trailers(error)
    details = (error.details() if hasattr(error, "details") else "") or ""
    if CODE_TRAILER in trailers:
        known = {code.value: code for code in Code}
        code = known.get(trailers[CODE_TRAILER], Code.INTERNAL)
        return SynodError(code, details, bytes(trailers.get(HINT_TRAILER, b"")).decode("utf-8", "replace"))
    status = error.code() if hasattr(error, "code") else grpc.StatusCode.UNKNOWN
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in details:
        return SynodError(Code.INVALID, f"a message is over the limit of {MESSAGE_BYTES >> 20} MiB.")
    if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return SynodError(Code.UNREACHABLE, f"{address} has as many calls open as it takes.", "Try again later.")
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return SynodError(Code.UNREACHABLE, f"{address} did not answer in time.", "Check its load and the network.")
    if status is not grpc.StatusCode.UNAVAILABLE:
        return SynodError(Code.INTERNAL, f"the call to {address} failed ({status.name}).", "See the curator's log.")
    return _explain_connection(details, address)


def _explain_connection(details: str, address: str) -> SynodError:
    lowered = details.lower()
    if "certificate_verify_failed" in lowered or "hostname verification" in lowered or "peer name" in lowered:
        return SynodError(
            Code.UNAUTHENTICATED,
            f"the certificate of {address} is not from the authority in `ca`, has expired, or is for another host.",
            "Compare both sides' ca.pem; the curator's certificate must name the host that is dialed.",
        )
    if "ssl" in lowered or "tls" in lowered or "socket closed" in lowered or "connection reset" in lowered:
        return SynodError(
            Code.UNAUTHENTICATED,
            f"{address} ended the connection in the TLS handshake: it does not accept this certificate, or stopped.",
            "If the certificate is from another authority than the curator's, ask for a new one.",
        )
    return SynodError(
        Code.UNREACHABLE,
        f"{address} cannot be reached.",
        "Check the address, the port and the curator's state.",
    )
