"""Who may call what, looked at anew at every call: connections outlive certificates, lists and authorities."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synod.common.crypto.authority import AUTHORITY_DAYS, issue_certificate, make_authority, revoke_certificates
from synod.common.crypto.certificates import Holder, Role
from synod.common.crypto.revocations import Revocations, read_revocations
from synod.common.runtime.errors import SynodError
from synod.curator.callers.access import Access

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NORTH, ALICE = Holder(Role.PARTY, "north"), Holder(Role.OPERATOR, "alice")


@dataclass
class Call:
    """A call over a connection that was made with a certificate."""

    holder: Holder
    pem: bytes

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"peer_uri": [self.holder.uri.encode()], "x509_pem_cert": [self.pem]}


class House:
    """A curator's files, and the checks that it makes of calls."""

    def __init__(self, authority: Path) -> None:
        self.ca = (authority / "ca.pem").read_bytes()
        self.revoked = Revocations()
        self.now = NOW
        self.access = Access(
            {"work": frozenset([Role.PARTY])},
            ca=lambda: self.ca,
            revoked=lambda: self.revoked,
            clock=lambda: self.now,
        )

    def ask(self, call: Call, service: str = "work") -> str:
        """Why the call is refused, or nothing."""
        try:
            self.access.check(service, call)  # type: ignore[arg-type]
        except SynodError as error:
            return f"{error.code.value}: {error.sentence}"
        return ""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    make_authority(tmp_path / "old", now=NOW)
    return tmp_path / "old"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    make_authority(tmp_path / "new", now=NOW)
    return tmp_path / "new"


def call_under(authority: Path, holder: Holder = NORTH, days: float = 397) -> Call:
    files = issue_certificate(authority, holder, [], now=NOW, days=days)
    return Call(holder, files.certificate.read_bytes())


def test_a_sound_certificate_of_the_role_may_call(old: Path) -> None:
    house = House(old)
    assert house.ask(call_under(old)) == ""
    refusal = house.ask(call_under(old, ALICE))
    assert refusal.startswith("not-on-roster: the operator alice may not do this")
    assert "it takes a certificate with the role party" in refusal
    assert "that nobody has" in house.ask(Call(NORTH, (old / "north.pem").read_bytes()), "reflection")


def test_an_open_connection_ends_with_its_certificate(old: Path) -> None:
    house, call = House(old), call_under(old)
    house.now = NOW + timedelta(days=398)
    assert "is not valid now" in house.ask(call)


def test_an_open_connection_of_a_replaced_authority_is_refused_at_its_next_call(old: Path, new: Path) -> None:
    """Both are called alike: the key decides, and not the name."""
    house, before, after = House(old), call_under(old), call_under(new)
    assert (house.ask(before), "not from an authority that is in force" in house.ask(after)) == ("", True)
    house.ca = (old / "ca.pem").read_bytes() + (new / "ca.pem").read_bytes()
    assert (house.ask(before), house.ask(after)) == ("", "")
    house.ca = (new / "ca.pem").read_bytes()
    assert "not from an authority that is in force" in house.ask(before)
    assert house.ask(after) == ""


def test_nothing_is_accepted_from_an_authority_that_has_expired(old: Path) -> None:
    house, call = House(old), call_under(old, days=AUTHORITY_DAYS + 10)
    house.now = NOW + timedelta(days=AUTHORITY_DAYS - 1)
    assert house.ask(call) == ""
    house.now = NOW + timedelta(days=AUTHORITY_DAYS + 1)
    assert "not from an authority that is in force" in house.ask(call)


def test_a_revoked_certificate_is_refused_while_its_authority_is_in_force(old: Path, new: Path) -> None:
    house, call = House(old), call_under(old)
    revoke_certificates(old, NORTH, now=NOW)
    assert house.ask(call) == ""
    house.revoked = read_revocations(old / "revoked.pem", old / "ca.pem", None)
    assert house.ask(call) == "unauthenticated: the certificate of the party north was revoked."
    house.revoked = read_revocations(new / "revoked.pem", new / "ca.pem", house.revoked)
    assert "was revoked" in house.ask(call), "a list of another authority takes nothing back"
