"""The manifest of a release and its verification, offline and pure.

The manifest holds the resolved study, the transcript in the curator's envelope, the plan, the signed queries, what each
party answered (by hash), spent and signed for, the noise law, the seed, versions and file hashes. The curator signs all
of it; each party has signed T, which names that curator, its answers, its steps and its spend. The answers themselves
are in a file beside it (answers.py).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.crypto.identity import Identity, fingerprint, verify
from synod.common.privacy.cost import Cost
from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers, party_payloads
from synod.common.protocol.envelope import SignedDocument, open_document, read_hex, sign_document
from synod.common.protocol.losses import LostParty, check_losses_stated, steps_answered
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import SumQuery, check_within
from synod.common.protocol.queries.parsing import AnyQuery, query_digest, read_query
from synod.common.protocol.signed_query import require_query_signature
from synod.common.protocol.submission import AnsweredStep, Submission, account_statement, digest_of
from synod.common.protocol.transcript import Enrolment, Transcript, check_transcript, open_transcript
from synod.common.protocol.trust import Trust, check_signers
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.study.study import CURATOR_NAME, Study, parse_study

FORMAT = "synod/release/v1"
KEYS = frozenset(
    [
        "format", "study", "study_hash", "transcript", "transcript_hash", "plan", "queries", "query_signatures",
        "noise", "parties", "seed", "versions", "files", "published",
    ]
)  # fmt: skip
LOSS_KEYS = frozenset(["losses"])  # of a study that may lose parties
FORMATS_BEFORE_0_1 = ("synod/manifest/v1",)
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class PartyAccount:
    """What one party answered and signed for: its steps, the signed header of the answer to each of them, and the
    signature that covers all steps.
    """

    name: str
    steps: tuple[AnsweredStep, ...]
    headers: tuple[Submission, ...]
    signature: bytes

    def to_json(self) -> dict[str, Json]:
        """As the manifest holds it; the rest of a header follows from study, transcript and query."""
        return {
            "steps": [
                {
                    "label": step.label,
                    "query": step.query,
                    "cost": str(step.cost),
                    "answer": {"sha256": header.digest.hex(), "bytes": header.length},
                    "signature": header.signature.hex(),
                }
                for step, header in zip(self.steps, self.headers, strict=True)
            ],
            "spent": str(Cost.total(step.cost for step in self.steps)),
            "signature": self.signature.hex(),
        }


def noise_law(study: Study, queries: Mapping[str, AnyQuery]) -> list[Json]:
    """For each step that costs something: the law of its randomness, in exact numbers and in words."""
    laws = [queries[step.label].law(step, study) for step in plan_study(study).steps if step.label in queries]
    return [law for law in laws if law is not None]


def seal_manifest(content: dict[str, Json], identity: Identity) -> bytes:
    """The manifest with the curator's key and signature, indented for people."""
    signed = sign_document("manifest", content, identity)
    return json.dumps(signed, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification proved: each line holds; what no release can prove is said too. `signers` are the fingerprints
    behind the signatures. Study, T, queries, seed, versions, date and what each party answered are the release's own.
    """

    lines: tuple[str, ...]
    unproven: tuple[str, ...]
    signers: dict[str, str]
    study: Study
    transcript_hash: bytes
    queries: dict[str, AnyQuery] = field(compare=False)
    seed: int
    versions: dict[str, Any]
    accounts: tuple[PartyAccount, ...]
    enrolments: tuple[Enrolment, ...]
    losses: tuple[LostParty, ...] = ()
    published: str = ""


def verify_release(folder: Path, trust: Trust | None) -> Verdict:
    """Checks a release directory; raises at the first check that does not hold.

    1. the manifest is whole and its signature is valid; 2. every file is there and has its hash, and no other file
    pretends to belong; 3. hash, plan, queries and noise are the study's, and who is missing from a round is lost; 4.
    the transcript is of this study and its roster, signed by the curator that it names; 5. that curator has sealed the
    manifest, and signed each query; 6. each party's signatures cover its answers, and T, that curator, its planned
    steps, their queries and their cost, within the budget; 7. the released answers are as many numbers as each query
    asks for, and those that travelled in the clear are the bytes that their parties signed; 8. with a trust file, the
    curator and every party have the keys that it names.

    Guarantee: whoever alters or replaces anything in a release needs the identity key of the curator that every party
    has signed for: neither a party of the roster nor an outsider can seal it. With a trust file it is the curator that
    the reader knows. That curator cannot alter what a party answered in the clear; the sums are its word.
    """
    # 1
    signed = open_document("manifest", _read_manifest(folder))
    manifest = signed.content
    if set(manifest) - LOSS_KEYS != KEYS:
        raise check_failed("the manifest does not have exactly the keys of its format.")
    # 2
    _check_files(folder, manifest)
    # 3
    run = _check_study(manifest)
    # 4
    transcript = run.transcript
    check_transcript(transcript, run.study, run.study_hash)
    # 5
    _check_sealer(signed, transcript)
    _check_query_signatures(manifest, run)
    # 6
    accounts = tuple(_check_account(manifest, run, enrolment) for enrolment in transcript.enrolments)
    # 7
    clear = _check_answers(folder, run, accounts)
    # 8
    signers = {
        CURATOR_NAME: signed.fingerprint,
        **{e.name: fingerprint(e.identity) for e in transcript.enrolments},
    }
    if trust is not None:
        check_signers(trust, signers)
    return Verdict(
        lines=_describe_proof(accounts, run, clear, is_trusted=trust is not None),
        unproven=_describe_gaps(run, is_trusted=trust is not None),
        signers=signers,
        study=run.study,
        transcript_hash=run.transcript_hash,
        queries=run.queries,
        seed=run.seed,
        versions=_part(manifest, "versions", dict),
        accounts=accounts,
        enrolments=transcript.enrolments,
        losses=run.losses,
        published=_part(manifest, "published", str),
    )


def _describe_proof(
    accounts: tuple[PartyAccount, ...], run: "_Run", clear: int, *, is_trusted: bool
) -> tuple[str, ...]:
    answered = [account for account in accounts if account.headers]
    parties, answers = len(answered), sum(len(account.headers) for account in answered)
    lost = [f"{one.party} (from {one.since} on)" for one in run.losses if one.since]
    of_rounds = " for the rounds that they are in" if lost else ""
    return (
        "files have the hashes that the manifest states",
        "the manifest is sealed by the curator that all parties signed for",
        "study, plan and transcript belong together, and the curator signed the transcript",
        f"the curator signed each of the {len(run.queries)} queries",
        f"all {parties} parties signed the hashes of their answers, {answers} in all",
        f"all {parties} parties signed for what they spent, which is the plan's{of_rounds}",
        f"{ANSWERS_FILE} has the roster's answer to each of the {len(run.queries)} queries",
        *([f"what single parties answered is what they signed, {clear} answers in all"] if clear else []),
        *([f"the study went on without {', '.join(lost)}, and nobody else is missing from a round"] if lost else []),
        *(["the curator and all parties have the keys that the trust file names"] if is_trusted else []),
    )


def _describe_gaps(run: "_Run", *, is_trusted: bool) -> tuple[str, ...]:
    sums = sum(isinstance(query, SumQuery) for query in run.queries.values())
    return (
        *([] if is_trusted else ["who the curator and the parties are; use --trust for that"]),
        *(["that the sums are those of the encrypted answers, for which you trust the curator"] if sums else []),
        *(["that the seed was drawn at random, for which you trust the curator"] if run.study.seed is None else []),
        "that the parties' rows are true, for which you trust the parties",
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
    for name in sorted({ANSWERS_FILE, *files} - present):
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
    study_hash: bytes
    transcript: Transcript
    transcript_hash: bytes
    queries: dict[str, AnyQuery]
    query_hashes: dict[str, bytes]
    seed: int
    losses: tuple[LostParty, ...]


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
    transcript = open_transcript(_part(manifest, "transcript", dict))
    if [e.name for e in transcript.enrolments] != list(study.party_names):
        raise check_failed("the transcript's parties are not those of the approved roster.")
    transcript_hash = transcript.digest(study)
    if transcript_hash.hex() != manifest.get("transcript_hash"):
        raise check_failed("the manifest's transcript does not have the hash that it states.")
    asked = [step for step in plan_study(study).steps if step.label in queries]
    query_hashes = {step.label: query_digest(queries[step.label], step, study) for step in asked}
    if "losses" in manifest and not study.may_lose:
        raise check_failed("the manifest has lost parties, and its study may lose none.")
    losses = check_losses_stated(study, queries, _part(manifest, "losses", list)) if study.may_lose else ()
    return _Run(study, study.digest(), transcript, transcript_hash, queries, query_hashes, seed, losses)


def _check_queries(manifest: dict[str, Any], study: Study) -> dict[str, AnyQuery]:
    """The queries of the run: one for each planned step, of its kind."""
    stated = _part(manifest, "queries", dict)
    plan = plan_study(study)
    labels = {step.label for step in plan.steps}
    may_be_skipped = {step.label for step in plan.steps if step.kind.is_local and study.may_lose}
    if not labels - may_be_skipped <= set(stated) <= labels:
        raise check_failed("the manifest's queries are not those of the plan's steps.")
    try:
        queries = {label: read_query(data, study) for label, data in stated.items()}
    except SynodError as error:
        raise check_failed(f"a query of the manifest is not sound: {error.sentence}") from None
    for step in plan.steps:
        if step.label not in queries:
            continue
        query = queries[step.label]
        try:
            check_within(query, step, study)
        except SynodError as error:
            raise check_failed(f"the manifest's query of {step.label} is not the plan's: {error.sentence}") from None
        if canonical_bytes(query.to_json()) != canonical_bytes(stated[step.label]):
            raise check_failed(f"the manifest's query of {step.label} is not in canonical form.")
    return queries


def _check_sealer(signed: SignedDocument, transcript: Transcript) -> None:
    if signed.signer != transcript.curator:
        raise check_failed(
            "the manifest is sealed by another key than that of the curator that the parties signed for.",
            "Somebody has replaced it; get the release from the curator.",
        )


def _check_query_signatures(manifest: dict[str, Any], run: _Run) -> None:
    stated = _part(manifest, "query_signatures", dict)
    if set(stated) != set(run.queries):
        raise check_failed("the manifest's signatures on queries are not those of the plan's steps.")
    for label, query in run.query_hashes.items():
        try:
            signature = read_hex(stated[label])
        except (TypeError, ValueError):
            raise check_failed(f"the manifest's signature on the query of {label} is malformed.") from None
        require_query_signature(run.transcript.curator, run.transcript_hash, label, query, signature)


def _check_account(manifest: dict[str, Any], run: _Run, enrolment: Enrolment) -> PartyAccount:
    """What a party answered and spent, if that is what the plan and the queries say, and its signatures are valid. What
    a lost party answered before counts, and stays spent.
    """
    party, stated = enrolment.name, manifest["parties"][enrolment.name]
    steps = tuple(
        AnsweredStep(step.label, run.query_hashes[step.label].hex(), step.cost)
        for step in steps_answered(run.study, run.queries, party)
    )
    account = _read_account(stated, run, party, steps)
    if canonical_bytes(stated) != canonical_bytes(account.to_json()):
        raise check_failed(f"what {party} answered and spent is not what the plan and the queries say.")
    for header in account.headers:
        if not verify(enrolment.identity, "answer", header.statement(party), header.signature):
            raise check_failed(f"the signature of {party} on its answer to {header.label} is not valid.")
    if not steps and not account.signature:
        return account  # lost before its first answer, so there is nothing that it could have signed for
    statement = account_statement(party, run.transcript.curator, run.transcript_hash, steps)
    if not verify(enrolment.identity, "account", statement, account.signature):
        raise check_failed(f"the signature of {party} on what it spent is not valid.")
    return account


def _read_account(stated: Any, run: _Run, party: str, steps: tuple[AnsweredStep, ...]) -> PartyAccount:
    """The account of these steps with the answers and signatures that the manifest states; nothing is checked yet."""
    key_id = bytes.fromhex(run.transcript.key.key_id)
    try:
        headers = tuple(
            Submission(
                study_hash=run.study_hash,
                transcript=run.transcript_hash,
                label=step.label,
                query=run.query_hashes[step.label],
                key_id=key_id,
                length=int(answered["answer"]["bytes"]),
                digest=bytes.fromhex(answered["answer"]["sha256"]),
                signature=bytes.fromhex(answered["signature"]),
            )
            for step, answered in zip(steps, stated["steps"], strict=True)
        )
        return PartyAccount(party, steps, headers, bytes.fromhex(stated["signature"]))
    except (KeyError, TypeError, ValueError):
        raise check_failed(f"the manifest's account of {party} is malformed.") from None


def _check_answers(folder: Path, run: _Run, accounts: tuple[PartyAccount, ...]) -> int:
    """Reads the answer to each query; what its parties sent in the clear must have the length and the hash that they
    signed. Gives how many such answers there are.
    """
    signed = {
        (account.name, header.label): (header.length, header.digest)
        for account in accounts
        for header in account.headers
    }
    answers, clear = ReleasedAnswers(folder / ANSWERS_FILE, run.study, run.queries), 0
    for step in plan_study(run.study).steps:
        if step.label not in run.queries:  # skipped: its party was lost
            continue
        query, answer = run.queries[step.label], answers.read(step.label)
        for party, payload in party_payloads(query, step, answer):
            if (len(payload), digest_of(payload)) != signed[party, step.label]:
                raise check_failed(f"the released answer of {party} to {step.label} is not the one that it signed.")
            clear += 1
    return clear


def _part(manifest: dict[str, Any], key: str, kind: Callable[..., Any]) -> Any:
    value = manifest.get(key)
    if not isinstance(value, kind):  # type: ignore[arg-type]
        raise check_failed(f"the manifest has no {key}.")
    return value
