"""Trust files: whose key is whose, as the reader of a release was told by the organizations themselves.

A line is a name and a fingerprint: `curator sha256:...`, `north sha256:...`. A fingerprint without a name would be good
for every signer, so that one party could sign in the place of the curator.
"""

import re
from collections.abc import Mapping

from synod.common.protocol.rotation import Rotation, move_key
from synod.common.runtime.errors import SynodError, check_failed, invalid
from synod.common.study.study import CURATOR_NAME

Trust = Mapping[str, str]
"""The fingerprint of each name."""

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9-]+")
_HOW_TO_WRITE = f"Write `{CURATOR_NAME} sha256:...` for the curator, and such a line with its name for each party."


def parse_trust(text: str, source: str) -> Trust:
    """Reads a trust file; text after `#` is a comment. Refuses lines without a name, and two keys for one name."""
    trust: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) == 1 and _FINGERPRINT.fullmatch(words[0]):
            raise invalid(f"line {number} of {source} has a fingerprint and does not say whose it is.", _HOW_TO_WRITE)
        if len(words) != 2 or not _NAME.fullmatch(words[0]) or not _FINGERPRINT.fullmatch(words[1]):
            raise invalid(f"line {number} of {source} is not a name and a fingerprint.", _HOW_TO_WRITE)
        name, key = words
        if trust.setdefault(name, key) != key:
            raise invalid(f"{source} has two fingerprints for {name}.", "Ask its holder which one is right.")
    if not trust:
        raise invalid(f"{source} holds no fingerprint.", _HOW_TO_WRITE)
    return trust


def move_trust(text: str, source: str, rotation: Rotation) -> str:
    """A trust file after a rotation: the one line of the rotation's name has the new key, all else is as it was.

    Guarantee: nothing changes unless the key that the file names has signed for the new one (`move_key`).
    """
    key = parse_trust(text, source).get(rotation.name)
    if key is None:
        raise check_failed(
            f"{source} does not name a key of {rotation.name}.", "Ask its holder for the fingerprint, and add the line."
        )
    new = move_key(rotation.name, key, [rotation])
    lines = [
        line.replace(key, new) if line.split("#")[0].split()[:1] == [rotation.name] else line
        for line in text.splitlines(keepends=True)
    ]
    return "".join(lines)


def check_signers(trust: Trust, signers: Mapping[str, str]) -> None:
    """Refuses a release of which any signer is not the one that the trust file names; `signers` has the fingerprint of
    the curator that sealed it and of each party of the roster.
    """
    for name, key in signers.items():
        if trust.get(name) != key:
            raise _distrust(name, is_named=name in trust)


def _distrust(name: str, *, is_named: bool) -> SynodError:
    if is_named:
        return check_failed(
            f"the key of {name} is not the one that the trust file names.",
            f"Do not use the release, unless {name} itself confirms the other key.",
        )
    return check_failed(
        f"the trust file does not name the key of {name}.",
        f"Add the line `{name} sha256:...` with what {name} itself tells you.",
    )
