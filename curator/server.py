"""The curator's process: state folder, TLS port, services, signals."""

import asyncio
import logging
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from synod.common.crypto.certificates import (
    ExpiryReminder,
    Role,
    TlsPair,
    check_own_certificate,
    days_left,
    read_changed_tls,
    read_tls,
)
from synod.common.crypto.revocations import Revocations, read_revocations
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.health import tell_health
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.metrics import Metric, serve_metrics
from synod.common.runtime.notify import PING, notify, ping_seconds
from synod.common.runtime.settings import CuratorSettings
from synod.common.runtime.watched import Watched
from synod.common.runtime.wire import open_server, server_credentials
from synod.curator.callers.access import Access
from synod.curator.callers.quotas import MOST_CALLS, MOST_CALLS_OF_A_NAME, Quotas
from synod.curator.context import Changes, Context
from synod.curator.events.webhook import telling
from synod.curator.metrics import describe_curator
from synod.curator.roster.rotation import load_identity, require_current
from synod.curator.rpc import PartyServicer, StudyServicer
from synod.curator.store import Store
from synod.curator.study_handler import StudyHandler
from synod.v1 import party_pb2, party_pb2_grpc, study_pb2, study_pb2_grpc

log = logging.getLogger("synod.curator")

GRACE_SECONDS = 5.0
REMINDER_SECONDS = 60.0
SERVICES = (
    party_pb2.DESCRIPTOR.services_by_name["PartyService"].full_name,
    study_pb2.DESCRIPTOR.services_by_name["StudyService"].full_name,
)
EVERYBODY = frozenset([Role.PARTY, Role.OPERATOR])
CALLERS = {
    SERVICES[0]: frozenset([Role.PARTY]),
    SERVICES[1]: frozenset([Role.OPERATOR]),
    health.SERVICE_NAME: EVERYBODY,
    reflection.SERVICE_NAME: EVERYBODY,
}


async def serve(settings: CuratorSettings) -> None:
    """Serves until SIGTERM or SIGINT."""
    check_own_certificate(settings.tls, Role.CURATOR, None, now=datetime.now(UTC))
    with exclusive_lock(settings.state), tell_health(settings.health) as tell, telling(settings.webhook) as tell_event:
        identity = load_identity(settings)
        store = Store(settings.state)
        require_current(store, identity)
        context = Context(store, identity, settings.state, Changes(), settings.workers, time.time, tell=tell_event)
        studies = StudyHandler(context)
        tls, revoked = _watch_tls(settings), _watch_revocations(settings)
        access = Access(CALLERS, ca=lambda: tls.current().ca, revoked=revoked.current, clock=lambda: datetime.now(UTC))
        quotas = Quotas(lambda holder: holder.role is Role.OPERATOR or store.is_on_a_roster(holder.name))
        server = open_server(
            most_calls=MOST_CALLS,
            most_calls_of_a_connection=MOST_CALLS_OF_A_NAME,
            interceptors=[access, quotas],
        )
        party_pb2_grpc.add_PartyServiceServicer_to_server(PartyServicer(context), server)
        study_pb2_grpc.add_StudyServiceServicer_to_server(StudyServicer(studies, settings.operators), server)
        ready = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(ready, server)
        reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        await _set_health(ready, health_pb2.HealthCheckResponse.NOT_SERVING)
        port = _bind(server, settings, tls)
        studies.resume()
        await server.start()
        await _set_health(ready, health_pb2.HealthCheckResponse.SERVING)
        with serve_metrics(settings.metrics, lambda: _describe(settings, context, studies)):
            tell(True)
            (settings.state / "port").write_text(str(port))
            log.info("serving", extra={"port": port, "fingerprint": identity.fingerprint})
            notify("READY=1", "STATUS=serving")
            await _stop_signal(ExpiryReminder(settings.tls))
        notify("STOPPING=1")
        tell(False)
        await _set_health(ready, health_pb2.HealthCheckResponse.NOT_SERVING)
        context.changes.close()
        await server.stop(GRACE_SECONDS)
        store.close()


def _bind(server: grpc.aio.Server, settings: CuratorSettings, tls: Watched[TlsPair]) -> int:
    try:
        return int(server.add_secure_port(settings.listen, server_credentials(tls.current)))
    except RuntimeError:
        raise SynodError(
            Code.UNREACHABLE,
            f"{settings.listen} cannot be bound.",
            "Another program may listen on that port: change `listen`, or stop it.",
        ) from None


async def _set_health(ready: health.aio.HealthServicer, status: Any) -> None:
    for service in ("", *SERVICES):
        await ready.set(service, status)


def _watch_tls(settings: CuratorSettings) -> Watched[TlsPair]:
    files = settings.tls
    paths = [path for _, path in files if path is not None]
    return Watched(paths, lambda before: read_changed_tls(files, before) if before else read_tls(files), reject=_reject)


def _watch_revocations(settings: CuratorSettings) -> Watched[Revocations]:
    path, ca = settings.revoked, settings.tls.ca
    if path is None:
        return Watched([], lambda _: Revocations(), reject=_reject)
    return Watched([path, ca], lambda before: read_revocations(path, ca, before), reject=_reject)


def _reject(error: SynodError) -> None:
    log.error("a changed file is not used", extra={"why": str(error)})


async def _stop_signal(reminder: ExpiryReminder) -> None:
    """Waits for a signal, and says meanwhile once a day which certificate expires soon."""
    stop = asyncio.Event()
    pings = asyncio.create_task(_ping())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    while not stop.is_set():
        for told in reminder.due(now=datetime.now(UTC)):
            log.warning("a certificate expires", extra={"why": told})
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), REMINDER_SECONDS)
    pings.cancel()


async def _ping() -> None:
    """Says that the event loop runs, as often as systemd asks for."""
    if seconds := ping_seconds():
        while True:
            notify(PING)
            await asyncio.sleep(seconds)


def _describe(settings: CuratorSettings, context: Context, studies: StudyHandler) -> list[Metric]:
    return describe_curator(context, halted=studies.halted, days_left=days_left(settings.tls, now=datetime.now(UTC)))
