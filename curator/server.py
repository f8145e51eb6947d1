"""The curator's process: state folder, TLS port, services, signals."""

import asyncio
import logging
import signal
import time
from datetime import UTC, datetime
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from synod.common.crypto.certificates import check_own_certificate
from synod.common.crypto.identity import Identity
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.health import tell_health
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.settings import CuratorSettings
from synod.common.runtime.wire import open_server, server_credentials
from synod.curator.context import Changes, Context
from synod.curator.quotas import MOST_CALLS, QuotaInterceptor, Quotas
from synod.curator.rpc import PartyServicer, StudyServicer
from synod.curator.store import Store
from synod.curator.study_handler import StudyHandler
from synod.v1 import party_pb2, party_pb2_grpc, study_pb2, study_pb2_grpc

log = logging.getLogger("synod.curator")

GRACE_SECONDS = 5.0
SERVICES = (
    party_pb2.DESCRIPTOR.services_by_name["PartyService"].full_name,
    study_pb2.DESCRIPTOR.services_by_name["StudyService"].full_name,
)


def load_identity(settings: CuratorSettings) -> Identity:
    """The curator's identity; made at the first start."""
    path = settings.state / "identity.pem"
    if not path.exists():
        settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        Identity.generate().save(path)
    return Identity.load(path)


async def serve(settings: CuratorSettings) -> None:
    """Serves until SIGTERM or SIGINT."""
    check_own_certificate(settings.tls, None, now=datetime.now(UTC))
    with exclusive_lock(settings.state), tell_health(settings.health) as tell:
        identity = load_identity(settings)
        store = Store(settings.state)
        context = Context(store, identity, settings.state, Changes(), settings.workers, time.time)
        studies = StudyHandler(context)
        quotas = Quotas(lambda name: name in settings.operators or store.is_on_a_roster(name))
        server = open_server(most_calls=MOST_CALLS, interceptors=[QuotaInterceptor(quotas)])
        party_pb2_grpc.add_PartyServiceServicer_to_server(PartyServicer(context), server)
        study_pb2_grpc.add_StudyServiceServicer_to_server(StudyServicer(studies, settings.operators), server)
        ready = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(ready, server)
        reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        await _set_health(ready, health_pb2.HealthCheckResponse.NOT_SERVING)
        port = _bind(server, settings)
        studies.resume()
        await server.start()
        await _set_health(ready, health_pb2.HealthCheckResponse.SERVING)
        tell(True)
        (settings.state / "port").write_text(str(port))
        log.info("serving", extra={"port": port, "fingerprint": identity.fingerprint})
        await _stop_signal()
        tell(False)
        await _set_health(ready, health_pb2.HealthCheckResponse.NOT_SERVING)
        context.changes.close()
        await server.stop(GRACE_SECONDS)
        store.close()


def _bind(server: grpc.aio.Server, settings: CuratorSettings) -> int:
    try:
        return int(server.add_secure_port(settings.listen, server_credentials(settings.tls)))
    except RuntimeError:
        raise SynodError(
            Code.UNREACHABLE, f"{settings.listen} cannot be bound.", "Another program may be listening there."
        ) from None


async def _set_health(ready: health.aio.HealthServicer, status: Any) -> None:
    for service in ("", *SERVICES):
        await ready.set(service, status)


async def _stop_signal() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
