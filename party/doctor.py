"""`synod party doctor`: what can go wrong between a party and its curator, in the order in which it would.

Certificate, keys, table, name, port, identity, ledger, curator, ledger's age, clock, roster, and on request a study:
each with its remedy. Of the table the header alone is read. Changes nothing.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from synod.common.crypto.certificates import Role, check_own_certificate, days_left, describe_expiry
from synod.common.crypto.identity import fingerprint
from synod.common.runtime.errors import Code, SynodError, check_failed, invalid, refused
from synod.common.runtime.settings import Database, PartySettings
from synod.common.study.study import Study
from synod.party.approval import check_study, identity_path, load_identity
from synod.party.client import CuratorClient, Greeting
from synod.party.daemon import ANOTHER_CURATOR, LARGEST_SKEW_SECONDS, check_not_behind
from synod.party.inbox.announced import list_announced
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.party.rotation import check_not_rotated, require_current
from synod.party.table.source import read_header

CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One examined thing; `error` says what is wrong and what to do, and `warns` that `told` soon will be."""

    what: str
    told: str
    error: SynodError | None = None
    warns: bool = False


def examine(settings: PartySettings, study: Study | None, *, now: datetime) -> Iterator[Diagnosis]:
    """Examines everything, in order; stops where the rest cannot be examined."""
    certificate = _try("certificate", lambda: _check_certificate(settings, now))
    yield certificate
    if certificate.error is None:
        yield from (Diagnosis("certificate", told, warns=True) for told in describe_expiry(settings.tls, now=now))
    yield from _look_at_keys(settings)
    yield from _look_at_table(settings, study)
    host, port = settings.address.rsplit(":", 1)
    name = _try("name", lambda: _look_up(host, settings.proxy))
    yield name
    if name.error is not None:
        return
    reached = _try("port", lambda: _connect(host, int(port), settings.proxy))
    yield reached
    if reached.error is not None:
        return
    identity = _try("identity", lambda: load_identity(settings).fingerprint)
    yield identity
    if identity.error is not None:
        return
    ledger = _try("ledger", lambda: _read_ledger(settings))
    yield ledger
    if ledger.error is None:
        yield from _talk(settings)
    if study is not None:
        yield _try("study", lambda: f"fits; it would cost {check_study(settings, study).cost.describe()}")


def _check_certificate(settings: PartySettings, now: datetime) -> str:
    check_own_certificate(settings.tls, Role.PARTY, settings.name, now=now)
    days = days_left(settings.tls, now=now)
    return f"valid, for {settings.name}, for {days['own']} more days; its authority's for {days['authority']}"


def _look_at_keys(settings: PartySettings) -> Iterator[Diagnosis]:
    """Who may read the files that make this party: their owner, and a group only where it is not the owner who runs
    this, as under systemd.
    """
    secret = [settings.tls.key, identity_path(settings), settings.state / LEDGER_FILE]
    if isinstance(settings.source, Database) and settings.source.password_file is not None:
        secret.append(settings.source.password_file)
    exposed = False
    for path in [path for path in secret if path.exists()]:
        found = path.stat()
        who = 0o077 if found.st_uid == os.geteuid() else 0o007
        if found.st_mode & who:
            exposed = True
            told = f"others may read or change {path} (mode {stat.S_IMODE(found.st_mode):04o}). Run `chmod 600 {path}`."
            yield Diagnosis("keys", told, warns=True)
    if not exposed:
        yield Diagnosis("keys", "readable by nobody else")


def _look_at_table(settings: PartySettings, study: Study | None) -> Iterator[Diagnosis]:
    """Whether the table can be opened, and has the columns that the configuration, the given study and the announced
    ones name.
    """
    try:
        header = set(read_header(settings.source, settings.format))
    except SynodError as error:
        yield Diagnosis("table", "", error)
        return
    named = [*(settings.columns or ()), *([settings.unit] if settings.unit is not None else [])]
    missing = [name for name in named if name not in header]
    if missing:
        told = f"{settings.source.name} has no column {missing[0]}, which the configuration names."
        yield Diagnosis("table", "", invalid(told, "Correct `columns` or `unit`, or the table."))
    else:
        yield Diagnosis("table", f"{settings.source.name} can be read, with {len(header)} columns")
    announced = [] if study else [one.study for one in list_announced(settings.state, settings.curator)]
    for asked in [study] if study else announced:
        lacking = [attribute.name for attribute in asked.attributes if attribute.name not in header]
        if lacking:
            more = f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""
            yield Diagnosis("table", f"it has no column {lacking[0]}{more} that {asked.name} asks for.", warns=True)


def _try(what: str, check: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(what, check())
    except SynodError as error:
        return Diagnosis(what, "", error)


def _look_up(host: str, proxy: str | None) -> str:
    if proxy:
        return f"left to the proxy {proxy}"
    try:
        return str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError:
        raise SynodError(
            Code.UNREACHABLE, f"the name {host} cannot be looked up.", "Check `address` and this machine's DNS."
        ) from None


def _connect(host: str, port: int, proxy: str | None) -> str:
    if proxy:
        return f"left to the proxy {proxy}"
    try:
        with socket.create_connection((host.strip("[]"), port), CONNECT_SECONDS):
            return "open"
    except OSError:
        raise SynodError(
            Code.UNREACHABLE,
            f"{host}:{port} does not accept connections.",
            "Check the firewall, and that the curator is running.",
        ) from None


def _read_ledger(settings: PartySettings) -> str:
    ledger = Ledger.open(settings.state, tidies=False)
    try:
        account = ledger.account()
        require_current(account, load_identity(settings))
        spent, held = account.spent(settings.dataset), account.held(settings.dataset)
        return f"whole, {ledger.head().sequence} entries; spent {spent.describe()}, held {held.describe()}"
    finally:
        ledger.close()


def _talk(settings: PartySettings) -> Iterator[Diagnosis]:
    client = CuratorClient(settings, load_identity(settings))
    ledger = Ledger.open(settings.state, tidies=False)
    try:
        head = ledger.head()
        try:
            rotations = [rotation.to_bytes() for rotation in ledger.account().own_rotations]
            greeting = client.greet(head, rotations)
        except SynodError as error:
            yield Diagnosis("curator", "", error)
            return
        yield _try("curator", lambda: _check_curator(settings, greeting))
        yield _try("ledger's age", lambda: _check_age(settings, ledger, greeting))
        yield _try("clock", lambda: _check_clock(greeting))
        moves = client.pull(head, [], 0)
        names = ", ".join(sorted({move.study_name for move in moves}))
        yield Diagnosis(
            "roster", f"to do: {names}" if names else f"no study of the curator's waits for {settings.name}"
        )
    finally:
        client.close()
        ledger.close()


def _check_curator(settings: PartySettings, greeting: Greeting) -> str:
    if fingerprint(greeting.curator) != settings.curator:
        raise check_failed("the curator's key is not the one that `curator` pins.", ANOTHER_CURATOR)
    return "reached; its key is the pinned one"


def _check_age(settings: PartySettings, ledger: Ledger, greeting: Greeting) -> str:
    check_not_rotated(ledger.account(), load_identity(settings), greeting.rotations)
    if greeting.highest is not None:
        check_not_behind(ledger, load_identity(settings), greeting.highest)
    return "not behind what the curator has seen"


def _check_clock(greeting: Greeting) -> str:
    skew = abs(greeting.unix_seconds - datetime.now(UTC).timestamp())
    if skew > LARGEST_SKEW_SECONDS:
        raise refused(f"this clock and the curator's differ by {skew:.0f} seconds.", "Set the clock (NTP).")
    return "agrees with the curator's"
