"""Every reader of bytes from outside, as a function of bytes. What it may do is read them or raise a `SynodError`."""

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.envelope import SIGNATURE, SIGNER, read_document, sign_document
from synod.common.protocol.manifest import MANIFEST_FILE, verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import ClearQuery, check_within
from synod.common.protocol.queries.parsing import AnyQuery, check_feasible, parse_query, read_query
from synod.common.protocol.rotation import read_rotation, sign_rotation
from synod.common.protocol.submission import Submission
from synod.common.protocol.transcript import check_transcript, parse_transcript
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.jsontext import DocumentError, read_json
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, PartySettings, parse_settings
from synod.common.runtime.yamltext import read_yaml
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study, parse_study
from synod.curator.checks import AskedRound, check_header
from synod.curator.release.redraw import redraw_rows
from synod.curator.rpc import read_header
from synod.deploy.enrolment.kit import read_kit, write_kit
from synod.deploy.study.draft import draft_study
from synod.party.table.encode import read_table
from synod.party.table.source import count_rows
from synod.v1 import party_pb2 as pb
from synod.v1 import query_pb2 as qpb
from tests.support.fuzz.kept import KeptRun, kept_runs
from tests.support.keys import identity_of
from tests.support.studies import make_study

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests/fuzz/corpus"
UNITS = ROOT / "tests/fuzz/units"
CONFIGURATION = b"""\
name: north
address: curator.example.org:7443
state: state
curator: "sha256:%s"
dataset: patients
source: patients.csv
unit: person
max_epsilon_total: 1.5
max_epsilon_per_study: 0.8
max_rho_total: {epsilon: 0.8, delta: 1e-9}
methods: [adaptive, dp-subn]
proxy: http://proxy.example.org:3128
tls: {ca: ca.pem, certificate: north.pem, key: north.key}
""" % (b"0f" * 32)
TABLE = b'sex,age,income,ward\nF,17,1.5,a\nM,90,,b\n"F",+5,1e2,c\n'


@cache
def scratch(name: str) -> Path:
    """A folder of this process; for a method, with a copy of its release."""
    folder = Path(tempfile.mkdtemp(prefix="synod-fuzz-"))
    if name in kept_runs():
        shutil.copytree(kept_runs()[name].folder, folder, dirs_exist_ok=True)
    return folder


def _json(data: bytes) -> Any:
    try:
        return read_json(data)
    except DocumentError as error:
        raise invalid(f"the document {error.reason}.") from None


def _run_of(value: Any, *path: str) -> KeptRun:
    """The run whose method a document names at this path, or any."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return kept_runs().get(value if isinstance(value, str) else "", kept_runs()["adaptive"])


def read_study_file(data: bytes) -> None:
    """A study file, as far as `synod study check` goes."""
    study = parse_study(read_yaml(data, "study.yaml"), "study.yaml").resolve()
    check_feasible(study)
    study.digest()


def read_study_document(data: bytes) -> None:
    """A study as the curator sends it."""
    study = parse_study(_json(data), "the study").resolve()
    check_feasible(study)
    study.digest()


def read_configuration(data: bytes) -> None:
    """A configuration of each program; a party's is its policy."""
    value = read_yaml(data, "party.yaml")
    for kind in (CuratorSettings, OperatorSettings):
        with suppress(SynodError):
            parse_settings(kind, value, "curator.yaml")
    settings = parse_settings(PartySettings, value, "party.yaml")
    str(settings.cap)
    str(settings.shown_delta)


def read_transcript(data: bytes) -> None:
    """A transcript in its envelope, and the bare one against its study."""
    with suppress(SynodError):
        read_document("transcript", data)
    run = kept_runs()["adaptive"]
    check_transcript(parse_transcript(_json(data)), run.study, run.study.digest())


def read_query_document(data: bytes) -> None:
    """A query as the log and a manifest hold it, asked of each kept study."""
    value = _json(data)
    for run in kept_runs().values():
        _within_plan(lambda study: read_query(value, study), run.study)


def read_query_message(data: bytes) -> None:
    """A query as a party gets it, asked of each kept study."""
    message = qpb.Query()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return
    for run in kept_runs().values():
        _within_plan(lambda study: parse_query(message, study), run.study)


def _within_plan(read: Callable[[Study], AnyQuery], study: Study) -> None:
    try:
        query = read(study)
    except SynodError:
        return
    for step in plan_study(study).steps:
        if step.kind is query.kind:
            try:
                check_within(query, step, study)
            except SynodError:
                continue
            query.law(step, study)


def read_submission(data: bytes) -> None:
    """The header of an answer, as it comes and as it is stored; and an answer in the clear."""
    header = pb.SubmissionHeader()
    try:
        header.ParseFromString(data)
    except DecodeError:
        Submission.from_json(_json(data))
        return
    run = kept_runs()["independent"]
    step = plan_study(run.study).steps[0]
    party, query = step.answerers[0], run.queries[step.label]
    check_header(party, read_header(header), AskedRound.bind(run.study, run.transcript, step, query))


def read_answer(data: bytes) -> None:
    """An answer in the clear, to each kept query that has one."""
    for run in kept_runs().values():
        for step in plan_study(run.study).steps:
            query = run.queries[step.label]
            if isinstance(query, ClearQuery):
                try:
                    query.read_answer(data, run.study, step.answerers[0])
                except SynodError:
                    continue


def read_manifest(data: bytes) -> None:
    """A manifest, signed anew so that more than its signature is looked at, beside the files of its release."""
    try:
        value = read_json(data)
    except DocumentError:
        value = None
    folder = scratch(_run_of(value, "study", "method", "name").study.method.name)
    (folder / MANIFEST_FILE).write_bytes(data)
    if isinstance(value, dict):
        content = {key: part for key, part in value.items() if key not in (SIGNER, SIGNATURE)}
        try:
            signed = sign_document("manifest", content, identity_of("curator"))
        except (TypeError, ValueError):  # it has no canonical form, so nobody can sign it
            pass
        else:
            (folder / MANIFEST_FILE).write_text(json.dumps(signed))
    verify_release(folder, None)


def read_model(data: bytes) -> None:
    """The model of a release, from which rows are drawn again."""
    try:
        value = read_json(data)
    except DocumentError:
        value = None
    run = _run_of(value, "method")
    folder = scratch(run.study.method.name)
    (folder / "model.json").write_bytes(data)
    redraw_rows(folder, run.study, run.manifest["seed"])


def read_statement(data: bytes) -> None:
    """A rotation as the curator, a party or a reader of releases is shown it."""
    read_rotation(data)


def read_enrolment_kit(data: bytes) -> None:
    """A kit as a party's operator is sent it, and the same content soundly signed."""
    path, value = scratch("kit") / "kit", _json(data)
    if isinstance(value, dict):
        content = {key: one for key, one in value.items() if key not in (SIGNER, SIGNATURE)}
        signed = b""
        with suppress(ValueError, TypeError, RecursionError):  # what has no canonical form is never signed
            signed = _write(sign_document("kit", content, identity_of("curator")))
        path.write_bytes(signed)
        with suppress(SynodError):
            read_kit(path)
    path.write_bytes(data)
    read_kit(path)


def read_answers(data: bytes) -> None:
    """The released answers of a study of each method."""
    for run in kept_runs().values():
        path = scratch("answers") / ANSWERS_FILE
        path.write_bytes(data)
        try:
            answers = ReleasedAnswers(path, run.study, run.queries)
            for label in run.queries:
                answers.read(label)
        except SynodError:
            continue


def read_csv(data: bytes) -> None:
    """A table of a party, and the draft of a schema from it."""
    source = scratch("table") / "table.csv"
    source.write_bytes(data)
    with suppress(SynodError, OSError, ValueError, pa.ArrowException):  # which the command makes a sentence of
        draft_study([source])
    read_table(source, codings_of(make_study()), unit=None, expected_rows=min(count_rows(source), 10**6))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "study": read_study_file,
    "study-document": read_study_document,
    "configuration": read_configuration,
    "transcript": read_transcript,
    "query": read_query_document,
    "query-message": read_query_message,
    "submission": read_submission,
    "answer": read_answer,
    "manifest": read_manifest,
    "model": read_model,
    "answers": read_answers,
    "rotation": read_statement,
    "kit": read_enrolment_kit,
    "table": read_csv,
}


def _write(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """What mutations of a target start from: sound documents, and the kept corpus."""
    runs = list(kept_runs().values())
    studies = [_write(run.manifest["study"]) for run in runs]
    queries = [query for run in runs for query in run.queries.values()]
    header = pb.SubmissionHeader(study_hash=b"s" * 32, label="ones", length=5, signature=b"x" * 64)
    stored = Submission(b"s" * 32, b"t" * 32, "ones", b"q" * 32, b"k" * 32, 5, b"d" * 32)
    sound: dict[str, list[bytes]] = {
        "study": [(ROOT / "examples/hospitals/study.yaml").read_bytes(), *studies],
        "study-document": studies,
        "configuration": [CONFIGURATION],
        "transcript": [_write(kept_runs()["adaptive"].manifest["transcript"])],
        "query": [_write(query.to_json()) for query in queries],
        "query-message": [query.to_proto().SerializeToString() for query in queries],
        "submission": [header.SerializeToString(), _write(stored.to_json())],
        "answer": [b"", qpb.NoisyCounts(counts=[1, -2, 3]).SerializeToString()],
        "manifest": [(run.folder / MANIFEST_FILE).read_bytes() for run in runs],
        "model": [(run.folder / "model.json").read_bytes() for run in runs],
        "answers": [(run.folder / ANSWERS_FILE).read_bytes() for run in runs],
        "rotation": [sign_rotation("north", identity_of("north"), identity_of("next")).to_bytes()],
        "kit": [write_kit(identity_of("curator"), address="a.example.org:1", ca="PEM", certificates="Mail it.")],
        "table": [TABLE],
    }
    kept = sorted((CORPUS / name).glob("*"))
    return (*sound[name], *(path.read_bytes() for path in kept))
