"""The release: synthetic rows as CSV and Parquet, the answers that they come from, the model, the report and the
manifest. Written whole or not at all.

Made from released statistics and public input only; the same log gives the same bytes.
"""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.protocol.answers import ANSWERS_FILE, write_answers
from synod.common.protocol.losses import LostParty, first_without, steps_answered
from synod.common.protocol.manifest import FORMAT, MANIFEST_FILE, PartyAccount, file_hash, noise_law, seal_manifest
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import AnyQuery, read_query
from synod.common.protocol.signed_query import SignedQuery
from synod.common.protocol.steps import Step
from synod.common.protocol.submission import AnsweredStep, Submission
from synod.common.protocol.transcript import read_transcript
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import sync_files, sync_folder
from synod.common.study.attributes import DaysAttribute, TruthAttribute
from synod.common.study.encoding import Codes, Coding, codings_of, decode_numbers
from synod.common.study.schema import CategoricalAttribute
from synod.common.study.study import Study
from synod.curator.context import Context
from synod.curator.methods.base import Publication
from synod.curator.release.report.page import PREVIEW_ROWS, write_report
from synod.curator.release.report.sections import Imprint
from synod.curator.release.versions import current_versions, describe_versions
from synod.curator.store import Store

MODEL_FILE, REPORT_FILE = "model.json", "report.html"
CSV_FILE, PARQUET_FILE = "synthetic.csv", "synthetic.parquet"
VERSIONS_NOTE, PUBLISHED_NOTE = "versions", "published"


def write_release(context: Context, study: Study, publication: Publication, seed: int) -> None:
    """Writes the release beside its place, then moves it there in one step."""
    target = context.release_folder(study.digest())
    if target.exists():
        return
    try:
        draft = target.with_suffix(".draft")
        _write_draft(draft, context, study, publication, seed)
        draft.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise SynodError(
            Code.STORAGE,
            f"the release of {study.name} cannot be written ({type(error).__name__}).",
            "Check free disk space, the volume and its permissions; it is tried again by itself.",
        ) from error


def _write_draft(draft: Path, context: Context, study: Study, publication: Publication, seed: int) -> None:
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    table = decode_table(study, publication.columns, coins=Coins.public(seed, "values"))
    write_csv(table, draft / CSV_FILE)
    pa.parquet.write_table(table, draft / PARQUET_FILE)
    _write_json(draft / MODEL_FILE, {"method": study.method.name, "model": publication.model})
    envelope = context.store.transcript(study.digest())
    assert envelope is not None, "a study is published under its transcript"
    queries = asked_queries(context.store, study)
    write_answers(draft / ANSWERS_FILE, study, logged_answers(context.store, study, queries))
    transcript_hash = read_transcript(envelope).digest(study).hex()
    versions = describe_versions(context.store.note(study.digest(), VERSIONS_NOTE), current_versions())
    published = _publication_date(context, study)
    imprint = Imprint(context.identity.fingerprint, transcript_hash, seed, versions["synod-dp"], published)
    lost = lost_parties(context.store, study)
    answers = {step.label: answer for step, _, answer in logged_answers(context.store, study, queries)}
    asked = {label: signed.query for label, signed in queries.items()}
    report = write_report(study, publication, asked, imprint, lost, answers=answers, preview=first_rows(table))
    (draft / REPORT_FILE).write_text(report, encoding="utf-8", newline="\n")
    content = describe_release(study, envelope, accounts(context.store, study), queries, seed, versions, draft)
    content["published"] = published
    if study.may_lose:
        content["losses"] = [one.to_json() for one in lost]
    (draft / MANIFEST_FILE).write_bytes(seal_manifest(content, context.identity))
    sync_files(draft)


def _publication_date(context: Context, study: Study) -> str:
    """The day on which the release was first written, which stays the same however often it is tried."""
    today = datetime.fromtimestamp(context.clock(), UTC).date().isoformat()
    context.store.add_note(study.digest(), PUBLISHED_NOTE, today)
    return str(context.store.note(study.digest(), PUBLISHED_NOTE))


def decode_table(study: Study, columns: list[Codes], *, coins: Coins) -> pa.Table:
    """The schema's columns and types, in its order, in the original domains."""
    codings = codings_of(study)
    arrays = [decode_column(coding, codes, coins=coins) for coding, codes in zip(codings, columns, strict=True)]
    return pa.table(arrays, names=[coding.attribute.name for coding in codings])


def first_rows(table: pa.Table) -> list[list[str]]:
    """The first rows of a decoded table as texts, for the report: spelled as in the CSV file."""
    shown = [column.slice(0, PREVIEW_ROWS).to_pylist() for column in table.columns]
    return [["" if value is None else _spell(value) for value in row] for row in zip(*shown, strict=True)]


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def decode_column(coding: Coding, codes: Codes, *, coins: Coins) -> pa.Array:
    """One column's values; a missing value's code becomes null."""
    missing = codes == coding.null_code if coding.attribute.nullable else np.zeros(len(codes), dtype=bool)
    if isinstance(coding.attribute, TruthAttribute):
        return pa.array(codes == 1, mask=missing)
    if isinstance(coding.attribute, CategoricalAttribute):
        texts = pa.array(coding.attribute.categories)
        places = pa.array(np.where(missing, 0, codes).astype(np.int32), mask=missing)
        return texts.take(places)
    numbers = decode_numbers(coding, np.where(missing, 0, codes), coins=coins)
    if isinstance(coding.attribute, DaysAttribute):
        return pa.array(numbers.astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(numbers, mask=missing)


def write_csv(table: pa.Table, path: Path) -> None:
    """Plain CSV, quoted only where a text needs it; a missing value is an empty field."""
    texts = [*table.column_names]
    for column in table.columns:
        if pa.types.is_string(column.type):
            texts.extend(text or "" for text in column.unique().to_pylist())
    needs_quotes = any(character in text for text in texts for character in ',"\r\n')
    style = "needed" if needs_quotes else "none"
    options = pa.csv.WriteOptions(quoting_style=style, quoting_header=style)
    pa.csv.write_csv(table, path, options)


def accounts(store: Store, study: Study) -> list[PartyAccount]:
    """What each party answered, with the signed headers of its answers."""
    found = []
    queries = {label: asked.query for label, asked in asked_queries(store, study).items()}
    for entry in study.roster:
        planned = steps_answered(study, queries, entry.name)
        headers = tuple(_stored_header(store, study, step.label, entry.name) for step in planned)
        steps = tuple(
            AnsweredStep(step.label, header.query.hex(), step.cost)
            for step, header in zip(planned, headers, strict=True)
        )
        found.append(PartyAccount(entry.name, steps, headers, headers[-1].account_signature if headers else b""))
    return found


def lost_parties(store: Store, study: Study) -> list[LostParty]:
    """Whom the study went on without, since which step, and why."""
    queries = {label: asked.query for label, asked in asked_queries(store, study).items()}
    return [
        LostParty(one.party, first_without(study, queries, one.party), one.reason, one.declared)
        for one in store.losses(study.digest())
    ]


def _stored_header(store: Store, study: Study, label: str, party: str) -> Submission:
    header = store.submission(study.digest(), label, party)
    assert header is not None, "a study is published when every step is answered"
    return header


def asked_queries(store: Store, study: Study) -> dict[str, SignedQuery]:
    """The query of each step with the curator's signature, from the log; of steps that were skipped there is none."""
    study_hash, skipped = study.digest(), store.skipped(study.digest())
    labels = [step.label for step in plan_study(study).steps if step.label not in skipped]
    return {
        label: SignedQuery(
            read_query(json.loads(store.query(study_hash, label)), study), store.query_signature(study_hash, label)
        )
        for label in labels
    }


def logged_answers(store: Store, study: Study, queries: dict[str, SignedQuery]) -> Iterator[tuple[Step, AnyQuery, Any]]:
    """Each step with its query and the roster's answer as the log has it, in the order of the plan."""
    for step in plan_study(study).steps:
        if step.label not in queries:  # skipped: its party was lost
            continue
        query = queries[step.label].query
        yield step, query, query.read_answer(store.answer(study.digest(), step.label), study)


def describe_release(
    study: Study,
    envelope: bytes,
    parties: list[PartyAccount],
    queries: dict[str, SignedQuery],
    seed: int,
    versions: dict[str, str],
    folder: Path,
) -> dict[str, Json]:
    """Everything that the manifest says, but for the curator's signature; `envelope` is the signed transcript."""
    files: dict[str, Json] = {
        path.name: {"sha256": file_hash(path), "bytes": path.stat().st_size} for path in sorted(folder.iterdir())
    }
    return {
        "format": FORMAT,
        "study": study.to_json(),
        "study_hash": study.digest().hex(),
        "transcript": json.loads(envelope),
        "transcript_hash": read_transcript(envelope).digest(study).hex(),
        "plan": plan_study(study).to_json(),
        "queries": {label: asked.query.to_json() for label, asked in queries.items()},
        "query_signatures": {label: asked.signature.hex() for label, asked in queries.items()},
        "noise": noise_law(study, {label: asked.query for label, asked in queries.items()}),
        "parties": {account.name: account.to_json() for account in parties},
        "seed": seed,
        "versions": versions,
        "files": files,
    }


def _write_json(path: Path, value: Json) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
