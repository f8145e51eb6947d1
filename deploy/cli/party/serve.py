"""The process of a party's daemon: lock, health, metrics, the supervisor, signals."""

import signal
import time
from datetime import UTC, datetime

from synod.common.crypto.certificates import Role, check_own_certificate, days_left
from synod.common.runtime.health import tell_health
from synod.common.runtime.locks import exclusive_lock
from synod.common.runtime.metrics import Metric, serve_metrics
from synod.common.runtime.notify import notify, pinging
from synod.common.runtime.settings import PartySettings
from synod.party.approval import drop_ended_snapshots, load_identity
from synod.party.daemon import Daemon
from synod.party.ledger import Ledger
from synod.party.operations.metrics import Contact, describe_party
from synod.party.rotation import require_current


def serve_party(settings: PartySettings) -> None:
    """Serves until SIGTERM or SIGINT."""
    check_own_certificate(settings.tls, Role.PARTY, settings.name, now=datetime.now(UTC))
    contact = Contact(time.time)
    with exclusive_lock(settings.state), tell_health(settings.health) as tell, pinging():

        def note_contact(well: bool) -> None:
            tell(well)
            contact.tell(well)
            notify(*(["READY=1", "STATUS=in touch with the curator"] if well else ["STATUS=waiting for the curator"]))

        ledger = Ledger.open(settings.state)
        identity = load_identity(settings)
        require_current(ledger.account(), identity)
        drop_ended_snapshots(settings, ledger.account())
        daemon = Daemon(settings, ledger, identity, clock=time.time, tell_contact=note_contact)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        try:
            with serve_metrics(settings.metrics, lambda: collect(settings, contact, daemon)):
                daemon.run()
        finally:
            ledger.close()


def collect(settings: PartySettings, contact: Contact, daemon: Daemon) -> list[Metric]:
    """The metrics as they are now, over a ledger of their own: the daemon's may be in the middle of a write."""
    ledger = Ledger.open(settings.state)
    try:
        account = ledger.account()
    finally:
        ledger.close()
    days = days_left(settings.tls, now=datetime.now(UTC))
    waiting = daemon.waiting_since.values()
    return describe_party(settings, account, days_left=days, contact=contact, waiting_since=waiting)
