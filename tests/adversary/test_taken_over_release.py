"""A member of the roster, or a stranger, takes a release, replaces its rows and model, and seals it again.

Whoever verifies has the true keys of everybody, by name. Each attack succeeds where what stops it is taken away.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.identity import Identity, verify
from synod.common.protocol import manifest as manifest_module
from synod.common.protocol.manifest import MANIFEST_FILE, file_hash, seal_manifest, verify_release
from synod.common.protocol.signed_query import sign_query
from synod.common.protocol.transcript import parse_transcript, seal_transcript
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import CURATOR, identity_of
from tests.support.releases import AnsweredStudy
from tests.support.studies import NAMES, make_study

TRUST = {name: identity_of(name).fingerprint for name in (CURATOR, *NAMES)}
TAKERS = ("north", "valley", "stranger")


@pytest.fixture(scope="module")
def true_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answered = AnsweredStudy(tmp_path_factory.mktemp("study"), make_study())
    answered.write()
    return answered.target


@pytest.fixture
def release(true_release: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(true_release, tmp_path / "release"))
    verify_release(folder, TRUST)
    return folder


def replace_content(folder: Path) -> dict[str, Any]:
    """Other rows and another model; gives the manifest with their hashes, and without its seal."""
    rows = (folder / "synthetic.csv").read_text().splitlines()
    (folder / "synthetic.csv").write_text("\n".join([rows[0], *[rows[1]] * (len(rows) - 1)]) + "\n")
    (folder / "model.json").write_text('{"method": "hpdp-dp", "model": "mine"}\n')
    manifest: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_text())
    del manifest["signer"], manifest["signature"]
    for name in manifest["files"]:
        path = folder / name
        manifest["files"][name] = {"sha256": file_hash(path), "bytes": path.stat().st_size}
    return manifest


def take_over(folder: Path, taker: Identity) -> None:
    """Seals other content with one's own identity, under the true transcript."""
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(replace_content(folder), taker))


def take_over_as_curator(folder: Path, taker: Identity) -> None:
    """The same, with a transcript that names the taker as the curator, and queries that it signed."""
    manifest = replace_content(folder)
    envelope = manifest["transcript"]
    content = {key: value for key, value in envelope.items() if key not in ("signer", "signature")}
    transcript = parse_transcript({**content, "curator": taker.public_key.hex()})
    study = make_study()
    steps = {step["label"]: step["query"] for party in manifest["parties"].values() for step in party["steps"]}
    digest = transcript.digest(study)
    manifest |= {
        "transcript": json.loads(seal_transcript(transcript, taker)),
        "transcript_hash": digest.hex(),
        "query_signatures": {
            label: sign_query(taker, digest, label, bytes.fromhex(query)).hex() for label, query in steps.items()
        },
    }
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(manifest, taker))


def failure(folder: Path, trust: Mapping[str, str] | None) -> str:
    with pytest.raises(SynodError) as caught:
        verify_release(folder, trust)
    assert caught.value.code is Code.CHECK_FAILED
    return caught.value.sentence


def trust_without_names(trust: Mapping[str, str], signers: Mapping[str, str]) -> None:
    """The rule of fingerprints alone: any signer may have any of them."""
    if not set(signers.values()) <= set(trust.values()):
        raise AssertionError("a stranger")


@pytest.mark.parametrize("taker", TAKERS)
def test_no_key_but_the_curators_seals_a_release(release: Path, taker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_over(release, identity_of(taker))
    for trust in (None, TRUST):
        assert "sealed by another key" in failure(release, trust)
    monkeypatch.setattr(manifest_module, "_check_sealer", lambda *_: None)
    assert failure(release, TRUST) == "the key of curator is not the one that the trust file names."
    assert verify_release(release, None), "without the check nobody notices who has no trust file"


@pytest.mark.parametrize("taker", NAMES)
def test_with_keys_that_name_nobody_a_party_passes_for_the_curator(
    release: Path, taker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_over(release, identity_of(taker))
    monkeypatch.setattr(manifest_module, "_check_sealer", lambda *_: None)
    monkeypatch.setattr(manifest_module, "check_signers", trust_without_names)
    assert verify_release(release, TRUST).signers["curator"] == identity_of(taker).fingerprint
    monkeypatch.undo()
    assert failure(release, TRUST)


@pytest.mark.parametrize("taker", NAMES)
def test_no_party_is_the_curator(release: Path, taker: str) -> None:
    take_over_as_curator(release, identity_of(taker))
    for trust in (None, TRUST):
        assert failure(release, trust) == "the curator of the transcript is a party of the roster."


def test_the_parties_have_signed_for_their_curator(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger as the curator of its own transcript: all that it can sign is sound, and no party signed for it."""
    taker = identity_of("stranger")
    take_over_as_curator(release, taker)
    for trust in (None, TRUST):
        assert failure(release, trust) == "the signature of north on its answer to moments is not valid."

    def skip(context: str) -> None:
        monkeypatch.setattr(
            manifest_module,
            "verify",
            lambda key, used, value, signature: used in context.split() or verify(key, used, value, signature),
        )

    skip("answer")
    assert failure(release, None) == "the signature of north on what it spent is not valid."
    skip("answer account")
    assert verify_release(release, None).signers["curator"] == taker.fingerprint
    assert failure(release, TRUST) == "the key of curator is not the one that the trust file names."
