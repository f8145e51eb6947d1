"""Who may call what: every call, of every service, passes here before its servicer sees it.

TLS has checked that the caller's certificate is a client's and from an authority. gRPC looks at it once, when a
connection is made; here it is looked at again at every call, because connections last for weeks, and authorities,
too, are replaced.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

from cryptography import x509

from synod.common.crypto.certificates import Role, find_issuer, rejected
from synod.common.crypto.revocations import Revocations
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import caller, caller_certificate
from synod.curator.callers.admission import Admission, Call

MOST_CERTIFICATES = 1024


@lru_cache(MOST_CERTIFICATES)
def _parse(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


@lru_cache(MOST_CERTIFICATES)
def _issuer(pem: bytes, ca: bytes) -> x509.Certificate | None:
    return find_issuer(_parse(pem), x509.load_pem_x509_certificates(ca))


class Access(Admission):
    """Refuses calls; `roles` says who may call a service, and nobody may call one that it does not name."""

    def __init__(
        self,
        roles: Mapping[str, frozenset[Role]],
        *,
        ca: Callable[[], bytes],
        revoked: Callable[[], Revocations],
        clock: Callable[[], datetime],
    ) -> None:
        self._roles = roles
        self._ca = ca
        self._revoked = revoked
        self._clock = clock

    def check(self, service: str, call: Call) -> None:
        """1. the certificate names one role and one name; 2. it is valid now; 3. it is from an authority that is in
        force now, which is valid itself; 4. it is not revoked; 5. its role may call this service.
        """
        # 1
        holder = caller(call)
        pem = caller_certificate(call)
        certificate = _parse(pem)
        # 2
        until = certificate.not_valid_after_utc
        if not certificate.not_valid_before_utc <= self._clock() <= until:
            raise rejected(
                f"the certificate of {holder} is not valid now; it expires on {until:%Y-%m-%d %H:%M} UTC.",
                "Renew it, or check the clocks.",
            )
        # 3
        issuer = _issuer(pem, self._ca())
        if issuer is None or not issuer.not_valid_before_utc <= self._clock() <= issuer.not_valid_after_utc:
            raise rejected(
                f"the certificate of {holder} is not from an authority that is in force now.",
                "Ask whoever runs the transport authority for a new one.",
            )
        # 4
        if self._revoked().has(issuer, certificate.serial_number):
            raise rejected(
                f"the certificate of {holder} was revoked.", "Ask whoever runs the transport authority for a new one."
            )
        # 5
        allowed = self._roles.get(service, frozenset())
        if holder.role not in allowed:
            takes = " or ".join(sorted(role.value for role in allowed)) or "that nobody has"
            raise SynodError(
                Code.NOT_ON_ROSTER,
                f"{holder} may not do this: it takes a certificate with the role {takes}.",
                "Ask whoever runs the transport authority for one.",
            )

    @contextmanager
    def admit(self, service: str, call: Call) -> Iterator[None]:
        """Checks a call, and nothing more once it runs."""
        self.check(service, call)
        yield
