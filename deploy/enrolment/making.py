"""Makes a kit from a curator's configuration: its transport authority and its identity."""

from dataclasses import dataclass

from cryptography.hazmat.primitives.serialization import Encoding

from synod.common.crypto.certificates import read_authorities
from synod.common.runtime.settings import CuratorSettings
from synod.deploy.enrolment.kit import write_kit


@dataclass(frozen=True, slots=True)
class MadeKit:
    """A kit as a file, and the fingerprint that is read out by phone."""

    content: bytes
    fingerprint: str


def make_kit(settings: CuratorSettings, *, address: str, certificates: str) -> MadeKit:
    """The kit of this curator, for every party; makes the curator's identity if there is none."""
    from synod.curator.roster.rotation import load_identity  # noqa: PLC0415  (pulls in the store)

    authorities = b"\n".join(one.public_bytes(Encoding.PEM) for one in read_authorities(settings.tls.ca))
    identity = load_identity(settings)
    content = write_kit(identity, address=address, ca=authorities.decode(), certificates=certificates)
    return MadeKit(content, identity.fingerprint)
