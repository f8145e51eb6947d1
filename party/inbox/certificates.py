"""The certificates of a party and the days that are left of them."""

from dataclasses import dataclass
from datetime import datetime

from synod.common.crypto.certificates import WARNING_DAYS, days_left
from synod.common.runtime.settings import TlsFiles


@dataclass(frozen=True, slots=True)
class CertificateView:
    """One certificate: whose it is, its file's name, the whole days that are left, and whether it is time to renew."""

    whose: str
    file: str
    days: int
    is_due: bool


def view_certificates(files: TlsFiles, *, now: datetime) -> tuple[CertificateView, ...]:
    """This party's own certificate, and that of the authority that signed it."""
    days = days_left(files, now=now)
    found = (("this party's", files.certificate, days["own"]), ("its authority's", files.ca, days["authority"]))
    return tuple(CertificateView(whose, path.name, left, left <= WARNING_DAYS) for whose, path, left in found)
