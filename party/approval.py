"""The party operator's verbs: init, approve (a check, then a reservation), rename-dataset, revoke.

Data meet the schema here, and nowhere else.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from synod.common.crypto.identity import Identity
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.locks import one_at_a_time
from synod.common.runtime.settings import PartySettings
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.party.account import Account, ApprovalState
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.party.policy import check_policy
from synod.party.table.encode import Unit, read_table
from synod.party.table.marks import mark_source
from synod.party.table.snapshot import Snapshot, drop_snapshot, save_snapshot

IDENTITY_FILE = "identity.pem"


def identity_path(settings: PartySettings) -> Path:
    """Where the party's identity key is."""
    return settings.state / IDENTITY_FILE


def load_identity(settings: PartySettings) -> Identity:
    """The party's identity."""
    return Identity.load(identity_path(settings), read_passphrase(settings.passphrase_file))


def snapshot_folder(settings: PartySettings, study_hash: bytes) -> Path:
    """Where the encoded table of an approved study is."""
    return _snapshots(settings) / study_hash.hex()


def _snapshots(settings: PartySettings) -> Path:
    return settings.state / "snapshots"


def is_history_lost(settings: PartySettings) -> bool:
    """Whether this party had a ledger that is gone: there is an identity, and no ledger, or one that says so."""
    if not (settings.state / LEDGER_FILE).exists():
        return identity_path(settings).exists()
    ledger = Ledger.open(settings.state)
    try:
        return ledger.account().history_lost
    finally:
        ledger.close()


def initialize(settings: PartySettings, *, spent: Cost | None, now: int) -> Identity:
    """Makes identity and ledger where they are missing, and records what the dataset had spent before.

    Guarantee: where the identity is there but the ledger is not, the ledger was lost: the dataset counts as fully
    spent until `spent` is given. Nothing that exists is replaced.
    """
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = identity_path(settings).exists()
    if not known and (settings.state / LEDGER_FILE).exists():
        raise invalid(
            f"{settings.name} has a ledger and no identity key beside it.",
            "Restore identity.pem from its backup; no roster would know a new one.",
        )
    if not known:
        Identity.generate().save(identity_path(settings), read_passphrase(settings.passphrase_file))
    if (settings.state / LEDGER_FILE).exists():
        if spent is None:
            raise invalid(f"{settings.name} is initialized already.", "Its fingerprint: `synod party fingerprint`.")
        ledger = Ledger.open(settings.state)
    else:
        ledger = Ledger.create(settings.state, history_lost=known, now=now)
    if spent is not None:
        ledger.declare_spent(settings.dataset, spent, now=now)
    ledger.close()
    return load_identity(settings)


@dataclass(frozen=True, slots=True)
class CheckedStudy:
    """A study that fits policy, budget and table, with the table as it was read: the one reading of it."""

    study: Study
    cost: Cost
    snapshot: Snapshot
    source: tuple[bytes, ...]


def check_study(settings: PartySettings, study: Study, *, show_values: bool = False) -> CheckedStudy:
    """Checks a resolved study against policy, budget and table. Reserves and keeps nothing. With `show_values`
    what does not fit comes with examples, for the operator's own terminal.

    Guarantee: where the configuration names a unit of privacy, none has more rows in the table than the study's
    `max_rows_per_unit`; where the study counts on several rows, it names one.
    """
    identity = load_identity(settings)
    cost = check_policy(settings, study, own_key=identity.fingerprint)
    ledger = Ledger.open(settings.state)
    try:
        account = ledger.account()
        _refuse_known(account, study)
        account.check_room(settings.dataset, cost, settings.cap, delta=settings.shown_delta)
        unit = Unit(settings.unit, study.max_rows_per_unit) if settings.unit is not None else None
        rows = study.roster[study.index_of(settings.name)].rows
        snapshot = read_table(
            settings.source,
            codings_of(study),
            unit=unit,
            expected_rows=rows,
            layout=settings.format,
            show_values=show_values,
            scratch=settings.state,
        )
        source = tuple(ledger.seal(mark) for mark in mark_source(settings.source, snapshot))
        account.check_source(settings.dataset, source)
    finally:
        ledger.close()
    return CheckedStudy(study, cost, snapshot, source)


def reserve(settings: PartySettings, checked: CheckedStudy, *, now: int) -> None:
    """Keeps the table as it was read, and reserves the study's cost.

    Guarantee: the room under the cap, and that the table has no other dataset's name, are checked again in the
    transaction that reserves; every later answer uses this snapshot and no other. Of several processes that approve at
    once each waits for its turn, so none replaces a snapshot that another has approved.
    """
    study, snapshot = checked.study, checked.snapshot
    folder = snapshot_folder(settings, study.digest())
    with one_at_a_time(identity_path(settings)), closing(Ledger.open(settings.state)) as ledger:
        account = ledger.account()
        _refuse_known(account, study)
        _drop_strays(settings, account)
        save_snapshot(folder, snapshot)
        try:
            ledger.approve(
                study,
                dataset=settings.dataset,
                cost=checked.cost,
                cap=settings.cap,
                snapshot=ledger.seal(snapshot.digest()),
                source=checked.source,
                now=now,
            )
        except SynodError:
            if study.digest().hex() not in ledger.account().approvals:
                drop_snapshot(folder)
            raise


def _refuse_known(account: Account, study: Study) -> None:
    known = account.approvals.get(study.digest().hex())
    if known is not None:
        raise SynodError(Code.CONFLICT, f"{study.name} is in the ledger already ({known.state.value}).")


def drop_ended_snapshots(settings: PartySettings, account: Account) -> None:
    """Removes what a process left behind that was killed between a study's end and the end of its snapshot. Those of
    studies that the ledger does not know stay: it may be an old one, put there by mistake.
    """
    for approval in account.approvals.values():
        if approval.state is not ApprovalState.OPEN:
            drop_snapshot(snapshot_folder(settings, bytes.fromhex(approval.study)))


def _drop_strays(settings: PartySettings, account: Account) -> None:
    """Removes what killed processes left behind: snapshots of studies that have ended, or were never approved. The
    caller has its turn, so that nobody is just approving one of them.
    """
    kept = {one.study for one in account.approvals.values() if one.state is ApprovalState.OPEN}
    for folder in _snapshots(settings).glob("*"):
        if folder.name not in kept:
            drop_snapshot(folder)


def rename_dataset(settings: PartySettings, old: str, new: str, *, now: int) -> None:
    """Makes two names of a dataset one account, which keeps all that both have spent."""
    ledger = Ledger.open(settings.state)
    try:
        ledger.rename_dataset(old, new, now=now)
    finally:
        ledger.close()


def revoke(settings: PartySettings, study_hash: bytes, *, now: int) -> None:
    """Ends an approval: no further answer leaves, and what was not charged is free again."""
    ledger = Ledger.open(settings.state)
    try:
        approval = ledger.account().approvals.get(study_hash.hex())
        if approval is None or approval.state is not ApprovalState.OPEN:
            raise SynodError(Code.NOT_FOUND, "there is no open approval of that study.", "See `synod party ledger`.")
        ledger.end_study(study_hash, ApprovalState.REVOKED, now=now)
    finally:
        ledger.close()
    drop_snapshot(snapshot_folder(settings, study_hash))
