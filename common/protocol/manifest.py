"""The manifest of a release and its verification, offline and pure.

The manifest holds the resolved study, the transcript, the plan, what each party spent and signed for, the noise law,
the seed, versions and file hashes. The curator signs all of it; each party has signed T, its steps and its spend.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.privacy.cost import Cost
from synod.common.protocol.envelope import open_document, sign_document
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.parsing import AnyQuery, query_digest, read_query
from synod.common.protocol.submission import AnsweredStep, account_statement
from synod.common.protocol.transcript import Transcript, check_transcript, parse_transcript
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.study.study import Study, parse_study

FORMAT = "synod/release/v1"
KEYS = frozenset(
    [
        "format", "study", "study_hash", "transcript", "transcript_hash", "plan", "queries", "noise", "parties",
        "seed", "versions", "files",
    ]
)  # fmt: skip
FORMATS_BEFORE_0_1 = ("synod/manifest/v1",)
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class PartyAccount:
    """What one party answered and signed for."""

    name: str
    steps: tuple[AnsweredStep, ...]
    signature: bytes

    def to_json(self) -> dict[str, Json]:
        """As the manifest holds it."""
        return {
            "steps": [{"label": s.label, "query": s.query, "cost": str(s.cost)} for s in self.steps],
            "spent": str(Cost.total(s.cost for s in self.steps)),
            "signature": self.signature.hex(),
        }


def noise_law(study: Study, queries: Mapping[str, AnyQuery]) -> list[Json]:
    """For each step that costs something: the law of its randomness, in exact numbers and in words."""
    laws = [queries[step.label].law(step, study) for step in plan_study(study).steps]
    return [law for law in laws if law is not None]


def seal_manifest(content: dict[str, Json], identity: Identity) -> bytes:
    """The manifest with the curator's key and signature, indented for people."""
    signed = sign_document("manifest", content, identity)
    return json.dumps(signed, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification proved: each line holds; `signers` are the fingerprints behind the signatures. Study and seed
    are the release's own.
    """

    lines: tuple[str, ...]
    signers: dict[str, str]
    study: Study
    seed: int


def verify_release(folder: Path, trusted: Set[str] | None) -> Verdict:
    """Checks a release directory; raises at the first check that does not hold.

    1. the manifest is whole and the curator's signature is valid; 2. every file is there and has its hash, and no
    other file pretends to belong; 3. hash, plan, queries and noise are the study's; 4. the transcript is of this
    study and its roster; 5. each party's signature covers T, its planned steps, their queries and their cost, within
    the budget; 6. with a set of trusted fingerprints (`sha256:...`, or `NAME sha256:...` for one signer only), every
    signer is in it.
    """
    # 1
    signed = open_document("manifest", _read_manifest(folder))
    manifest = signed.content
    if set(manifest) != KEYS:
        raise check_failed("the manifest does not have exactly the keys of its format.")
    # 2
    _check_files(folder, manifest)
    # 3
    run = _check_study(manifest)
    # 4
    transcript = run.transcript
    check_transcript(transcript, run.study, run.study.digest())
    # 5
    for enrolment in transcript.enrolments:
        _check_account(manifest, run, enrolment.name, enrolment.identity)
    # 6
    signers = {
        "curator": signed.fingerprint,
        **{e.name: fingerprint(e.identity) for e in transcript.enrolments},
    }
    if trusted is not None:
        strangers = [name for name, key in signers.items() if not trusted & {key, f"{name} {key}"}]
        if strangers:
            raise check_failed(f"{strangers[0]} signed with a key that is not among the trusted fingerprints.")
    return Verdict(
        (
            "files have the hashes that the manifest states",
            "the curator's signature is valid",
            "study, plan and transcript belong together",
            f"all {len(transcript.enrolments)} parties signed for what they spent, which is the plan's",
        ),
        signers,
        run.study,
        run.seed,
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: Any = read_json_file(folder / MANIFEST_FILE)
        stated = manifest["format"]
    except OSError:
        raise check_failed(f"there is no {MANIFEST_FILE} in {folder}.", "Is it a release directory?") from None
    except DocumentError as error:
        raise check_failed(f"{MANIFEST_FILE} is not a manifest: it {error.reason}.") from None
    except (KeyError, TypeError):
        raise check_failed(f"{MANIFEST_FILE} is not a manifest.") from None
    if stated in FORMATS_BEFORE_0_1:
        raise check_failed(
            "this release has a format from before version 0.1, which this version does not verify.",
            "Publish it again, or verify it with the version that made it.",
        )
    if stated != FORMAT:
        raise check_failed("this release has a format that this version does not know.", "Update Synod.")
    return dict(manifest)


def _check_files(folder: Path, manifest: dict[str, Any]) -> None:
    files = _part(manifest, "files", dict)
    present = {path.name for path in folder.iterdir()} - {MANIFEST_FILE}
    for name in sorted(set(files) - present):
        raise check_failed(f"the file {name} is missing from the release.")
    for name in sorted(present - set(files)):
        raise check_failed(f"the file {name} is not part of the release.", "Remove it, or do not trust it.")
    for name, facts in sorted(files.items()):
        path = folder / name
        if not path.is_file() or facts != {"sha256": file_hash(path), "bytes": path.stat().st_size}:
            raise check_failed(f"the file {name} is not the one that was released.")


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class _Run:
    """What a manifest says of a run, checked to belong together."""

    study: Study
    transcript: Transcript
    queries: dict[str, AnyQuery]
    seed: int


def _check_study(manifest: dict[str, Any]) -> _Run:
    try:
        study = parse_study(manifest.get("study"), "the manifest's study").resolve()
    except SynodError as error:
        raise check_failed(f"the manifest's study is not sound: {error.sentence}") from None
    if set(_part(manifest, "parties", dict)) != {entry.name for entry in study.roster}:
        raise check_failed("the manifest's parties are not those of the roster.")
    if canonical_bytes(study.to_json()) != canonical_bytes(manifest["study"]):
        raise check_failed("the manifest's study is not in resolved form.")
    if study.digest().hex() != manifest.get("study_hash"):
        raise check_failed("the manifest's study does not have the hash that it states.")
    if canonical_bytes(plan_study(study).to_json()) != canonical_bytes(_part(manifest, "plan", list)):
        raise check_failed("the manifest's plan is not the study's.")
    queries = _check_queries(manifest, study)
    if canonical_bytes(noise_law(study, queries)) != canonical_bytes(_part(manifest, "noise", list)):
        raise check_failed("the manifest's noise law is not the study's.")
    seed = _part(manifest, "seed", int)
    if study.seed not in (None, seed):
        raise check_failed("the manifest's seed is not the study's.")
    transcript = parse_transcript(_part(manifest, "transcript", dict))
    if canonical_bytes(transcript.to_json()) != canonical_bytes(manifest["transcript"]):
        raise check_failed("the manifest's transcript is not in canonical form.")
    if [e.name for e in transcript.enrolments] != list(study.party_names):
        raise check_failed("the transcript's parties are not those of the approved roster.")
    if transcript.digest(study).hex() != manifest.get("transcript_hash"):
        raise check_failed("the manifest's transcript does not have the hash that it states.")
    return _Run(study, transcript, queries, seed)


def _check_queries(manifest: dict[str, Any], study: Study) -> dict[str, AnyQuery]:
    """The queries of the run: one for each planned step, of its kind."""
    stated = _part(manifest, "queries", dict)
    plan = plan_study(study)
    if set(stated) != {step.label for step in plan.steps}:
        raise check_failed("the manifest's queries are not those of the plan's steps.")
    try:
        queries = {label: read_query(data, study) for label, data in stated.items()}
    except SynodError as error:
        raise check_failed(f"a query of the manifest is not sound: {error.sentence}") from None
    for step in plan.steps:
        query = queries[step.label]
        try:
            check_within(query, step, study)
        except SynodError as error:
            raise check_failed(f"the manifest's query of {step.label} is not the plan's: {error.sentence}") from None
        if canonical_bytes(query.to_json()) != canonical_bytes(stated[step.label]):
            raise check_failed(f"the manifest's query of {step.label} is not in canonical form.")
    return queries


def _check_account(manifest: dict[str, Any], run: _Run, party: str, identity: bytes) -> None:
    study, transcript, queries = run.study, run.transcript, run.queries
    try:
        account = manifest["parties"][party]
        signature = bytes.fromhex(account["signature"])
    except (KeyError, TypeError, ValueError):
        raise check_failed(f"the manifest's account of {party} is malformed.") from None
    steps = tuple(
        AnsweredStep(step.label, query_digest(queries[step.label], step, study).hex(), step.cost)
        for step in plan_study(study).steps_of(party)
    )
    if account != PartyAccount(party, steps, signature).to_json():
        raise check_failed(f"what {party} answered and spent is not what the plan and the queries say.")
    if not verify(identity, "account", account_statement(party, transcript.digest(study), steps), signature):
        raise check_failed(f"the signature of {party} on what it spent is not valid.")


def _part(manifest: dict[str, Any], key: str, kind: Callable[..., Any]) -> Any:
    value = manifest.get(key)
    if not isinstance(value, kind):  # type: ignore[arg-type]
        raise check_failed(f"the manifest has no {key}.")
    return value
