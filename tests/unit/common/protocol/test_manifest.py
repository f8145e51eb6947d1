"""A release in memory: it verifies, and nothing in it can be changed without being found out.

A change is tried twice: as anyone could make it, and sealed again by a curator that lies.
"""

import json
import shutil
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synod.common.crypto.identity import Identity
from synod.common.crypto.paillier import PublicKey
from synod.common.models.gaussian import GaussianModel
from synod.common.protocol.answers import ANSWERS_FILE, party_payloads, write_answers
from synod.common.protocol.heads import Head, StatedHeads
from synod.common.protocol.manifest import MANIFEST_FILE, PartyAccount, noise_law, seal_manifest, verify_release
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery, query_digest
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.signed_query import SignedQuery, sign_query
from synod.common.protocol.steps import QueryKind
from synod.common.protocol.submission import AnsweredStep, Submission, digest_of
from synod.common.protocol.transcript import Enrolment, Transcript, seal_transcript
from synod.common.protocol.trust import Trust
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.release.files import describe_release
from tests.support.alterations import Place, alterations, places
from tests.support.keys import identity_of
from tests.support.studies import NAMES, categorical, integer, make_study, real

CURATOR = identity_of("curator")
KEY = PublicKey(2**2047 + 5, 3**900)
IDENTITIES = {name: identity_of(name) for name in NAMES}
SCHEMA = [
    categorical("sex", ("F", "M")),
    integer("age", 17, 90),
    real("income", "0", "2.5", nullable=True, out_of_domain="clip"),
    {"name": "work", "type": "categorical", "taxonomy": [["federal", "state"], "private"]},
]
STUDY: Study = make_study(seed=11, epsilon="0.8", rows=(1, 2, 4), schema=SCHEMA)
FILES = {"synthetic.csv": b"sex,age\nF,17\n", "synthetic.parquet": b"PAR1", "model.json": b"{}\n"}


def queries_of(study: Study) -> dict[str, AnyQuery]:
    """A query for every step of the plan, of its kind."""
    return {step.label: some_query(step.kind, study) for step in plan_study(study).steps}


def some_query(kind: QueryKind, study: Study) -> AnyQuery:
    match kind:
        case QueryKind.SUM_MOMENTS:
            return SumMoments()
        case QueryKind.SUM_MARGINALS:
            return SumMarginals(((0, 1), (2, 3)))
        case QueryKind.SUM_AGREEMENTS:
            return SumAgreements((bytes(-(-sum(sizes_of(study)) // 8)),))
        case QueryKind.LOCAL_MARGINALS:
            return LocalMarginals(((0, 1), (2, 3)))
        case QueryKind.CHOOSE_PARENTS:
            return ChooseParents((0,), ((1, (0,)), (2, (0, 1))), 1, 8, "F")
        case QueryKind.SYNTHESIZE:
            width = moment_design(study).width - 1
            model = GaussianModel(np.eye(width)[:, :2], 0.5, np.linspace(-1, 1, width), np.full(width, 0.25))
            return Synthesize(model, share_rows(study))


def some_answer(query: AnyQuery, study: Study) -> Any:
    """An answer of the roster that such a query can have."""
    match query:
        case SumQuery():
            return query.split(np.arange(query.size(study).numbers), study)
        case LocalMarginals():
            return query.split_tables(np.arange(query.size(study).numbers), study)
        case ChooseParents():
            return [(1, (0,))]
        case _:
            return [np.zeros(study.rows or 0, coding.dtype) for coding in codings_of(study)]


def enrol(index: int, study: Study) -> Enrolment:
    identity = IDENTITIES[NAMES[index]]
    keys = (bytes([index + 1]) * 32, bytes([index + 50]) * 32)
    heads = StatedHeads(Head(2, bytes([index + 90]) * 32, bytes([index + 95]) * 32))
    return Enrolment(NAMES[index], identity.public_key, *keys, heads).signed_by(identity, study.digest())


def account(name: str, study: Study, transcript: Transcript) -> PartyAccount:
    planned = plan_study(study).steps_of(name)
    asked = queries_of(study)
    steps = tuple(
        AnsweredStep(step.label, query_digest(asked[step.label], step, study).hex(), step.cost) for step in planned
    )
    headers = []
    for count, (step, plan_step) in enumerate(zip(steps, planned, strict=True), 1):
        query = asked[step.label]
        clear = dict(party_payloads(query, plan_step, some_answer(query, study)))
        payload = clear.get(name, f"{name} answers {step.label}".encode())
        header = Submission(
            study.digest(), transcript.digest(study), step.label, bytes.fromhex(step.query),
            bytes.fromhex(KEY.key_id), len(payload), digest_of(payload),
        )  # fmt: skip
        headers.append(header.signed_by(IDENTITIES[name], name, transcript.curator, steps[:count]))
    return PartyAccount(name, steps, tuple(headers), headers[-1].account_signature)


def make_transcript(study: Study, key: PublicKey = KEY) -> Transcript:
    enrolments = tuple(enrol(i, study) for i in range(len(NAMES)))
    return Transcript(study.digest(), key, CURATOR.public_key, enrolments)


def signed_queries(study: Study, transcript: Transcript) -> dict[str, SignedQuery]:
    asked = queries_of(study)
    hashes = {step.label: query_digest(asked[step.label], step, study) for step in plan_study(study).steps}
    return {
        label: SignedQuery(query, sign_query(CURATOR, transcript.digest(study), label, hashes[label]))
        for label, query in asked.items()
    }


def write_release(folder: Path, study: Study = STUDY) -> dict[str, Any]:
    """Writes a release, and gives the manifest's content without the curator's seal."""
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    transcript = make_transcript(study)
    accounts = [account(name, study, transcript) for name in NAMES]
    envelope, queries = seal_transcript(transcript, CURATOR), signed_queries(study, transcript)
    asked = ((step, queries[step.label].query) for step in plan_study(study).steps)
    write_answers(folder / ANSWERS_FILE, study, ((step, query, some_answer(query, study)) for step, query in asked))
    content: dict[str, Any] = describe_release(study, envelope, accounts, queries, 11, {"numpy": "2"}, folder)
    content["published"] = "2026-01-31"
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    return content


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_release(tmp_path / "release")
    return tmp_path / "release"


def read_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / MANIFEST_FILE).read_bytes())
    return manifest


def is_refused(folder: Path) -> bool:
    try:
        verify_release(folder, None)
    except SynodError as error:
        return error.code is Code.CHECK_FAILED
    return False


def failure(folder: Path, trust: Trust | None = None) -> str:
    with pytest.raises(SynodError) as caught:
        verify_release(folder, trust)
    assert caught.value.code is Code.CHECK_FAILED
    return caught.value.sentence


def test_a_sound_release_verifies_and_names_its_signers(release: Path) -> None:
    verdict = verify_release(release, None)
    assert [line for line in verdict.lines if "3 parties" in line] == [
        "all 3 parties signed the hashes of their answers, 6 in all",
        "all 3 parties signed for what they spent, which is the plan's",
    ]
    assert "the curator signed each of the 2 queries" in verdict.lines
    assert "who the curator and the parties are" in verdict.unproven[0]
    assert verdict.transcript_hash == make_transcript(STUDY).digest(STUDY)
    told = [account(name, STUDY, make_transcript(STUDY)).to_json() for name in NAMES]
    assert [account.to_json() for account in verdict.accounts] == told
    assert verdict.signers == {
        "curator": CURATOR.fingerprint,
        **{name: identity.fingerprint for name, identity in IDENTITIES.items()},
    }


def test_any_change_of_any_place_of_the_manifest_is_found(release: Path) -> None:
    manifest = read_manifest(release)
    found = list(places(manifest))
    assert len(found) > 150
    assert {("queries", "moments", "kind"), ("queries", "rows", "model", "noise")} <= set(found)
    for path in found:
        for changed in alterations(manifest, path):
            assert changed != manifest
            (release / MANIFEST_FILE).write_text(json.dumps(changed))
            assert failure(release), path


CURATORS_OWN_WORD = {"published", "versions"}
NETWORK_STUDY: Study = make_study(
    seed=11,
    epsilon="0.8",
    method={"name": "dp-subn", "encoding": "binary"},
    rows=(10_000, 20_000, 40_000),
    schema=SCHEMA,
)


def test_the_network_study_asks_queries_of_three_kinds() -> None:
    kinds = {step.kind for step in plan_study(NETWORK_STUDY).steps}
    assert kinds == {QueryKind.SUM_MARGINALS, QueryKind.LOCAL_MARGINALS, QueryKind.CHOOSE_PARENTS}


@pytest.mark.parametrize("study", [STUDY, NETWORK_STUDY], ids=["moments", "network"])
def test_a_curator_that_seals_its_changes_is_found_out(tmp_path: Path, study: Study) -> None:
    """Everything but the versions follows from the study, the files or the parties' signatures."""
    folder = tmp_path / "release"
    content = write_release(folder, study)
    assert verify_release(folder, None)
    assert {path[1] for path in places(content) if path[0] == "queries" and len(path) > 1} == set(queries_of(study))
    unnoticed = []
    for path in places(content):
        for changed in alterations(content, path):
            (folder / MANIFEST_FILE).write_bytes(seal_manifest(changed, CURATOR))
            if not is_refused(folder):
                unnoticed.append(path)
    assert {path[0] for path in unnoticed} == CURATORS_OWN_WORD


@pytest.mark.parametrize("name", [*FILES, ANSWERS_FILE])
def test_any_change_of_any_file_is_found(release: Path, name: str) -> None:
    path = release / name
    content = path.read_bytes()
    for other in (content + b" ", content[:-1], b"", bytes([content[0] ^ 1]) + content[1:]):
        path.write_bytes(other)
        assert failure(release) == f"the file {name} is not the one that was released."
    path.unlink()
    assert failure(release) == f"the file {name} is missing from the release."
    path.mkdir()
    assert failure(release) == f"the file {name} is not the one that was released."


def test_swapped_files_are_found(release: Path) -> None:
    (release / "synthetic.csv").rename(release / "x")
    (release / "model.json").rename(release / "synthetic.csv")
    (release / "x").rename(release / "model.json")
    assert "is not the one that was released" in failure(release)


def test_files_that_do_not_belong_are_found(release: Path) -> None:
    (release / "report.html").write_text("<html>")
    assert failure(release) == "the file report.html is not part of the release."


@pytest.mark.parametrize(
    ("content", "why"),
    [
        *((content, "") for content in (b"[]", b"null", b"{}", b'"format"', b"5")),
        (b"", ": it is not JSON"),
        (b"{", ": it is not JSON"),
        (b"\xff", ": it is not UTF-8 text"),
        (b"[" * 10**5, ": it is nested more than 64 deep"),
    ],
)
def test_what_is_no_manifest_is_refused(release: Path, content: bytes, why: str) -> None:
    (release / MANIFEST_FILE).write_bytes(content)
    assert failure(release) == f"manifest.json is not a manifest{why}."


@pytest.mark.parametrize("stated", ["synod/release/v2", "synod/manifest/v2", "", 5, None, ["synod/release/v1"], {}])
def test_another_format_says_so(release: Path, stated: Any) -> None:
    for manifest in ({}, read_manifest(release)):
        (release / MANIFEST_FILE).write_text(json.dumps({**manifest, "format": stated}))
        assert failure(release) == "this release has a format that this version does not know."


def test_a_format_from_before_0_1_says_so(release: Path) -> None:
    (release / MANIFEST_FILE).write_text(json.dumps({**read_manifest(release), "format": "synod/manifest/v1"}))
    assert "a format from before version 0.1" in failure(release)


def test_numbers_without_a_canonical_form_are_refused(release: Path) -> None:
    manifest = read_manifest(release)
    for number in (0.5, 2**60):
        (release / MANIFEST_FILE).write_text(json.dumps({**manifest, "seed": number}))
        assert failure(release) == "the manifest is not a signed document."


def test_a_folder_without_a_manifest_is_no_release(tmp_path: Path) -> None:
    assert "there is no manifest.json in" in failure(tmp_path)
    assert "there is no manifest.json in" in failure(tmp_path / "absent")


@pytest.mark.parametrize("key", ["signer", "signature"])
@pytest.mark.parametrize("value", [None, 5, "", "a", "AB" * 32, "zz" * 32, "ab" * 31, ["ab"]])
def test_malformed_seals_are_refused(release: Path, key: str, value: Any) -> None:
    (release / MANIFEST_FILE).write_text(json.dumps({**read_manifest(release), key: value}))
    assert failure(release)


@pytest.mark.parametrize("key", ["signer", "signature"])
def test_a_seal_has_one_written_form(release: Path, key: str) -> None:
    manifest = read_manifest(release)
    text = manifest[key]
    for other in (text.upper(), f" {text}", f"{text}\n", f"{text[:2]} {text[2:]}"):
        (release / MANIFEST_FILE).write_text(json.dumps({**manifest, key: other}))
        assert failure(release) == "the manifest is not a signed document."


EVERYONE = {"curator": CURATOR, **IDENTITIES}
TRUST = {name: identity.fingerprint for name, identity in EVERYONE.items()}


@pytest.mark.parametrize("sealer", [*NAMES, "stranger"])
def test_nobody_but_the_curator_of_the_transcript_seals_a_release(tmp_path: Path, sealer: str) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, identity_of(sealer)))
    for trust in (None, TRUST):
        assert "sealed by another key than that of the curator" in failure(folder, trust)


def test_every_signer_must_be_the_one_that_the_trust_file_names(release: Path) -> None:
    verdict = verify_release(release, TRUST)
    assert "the keys that the trust file names" in verdict.lines[-1]
    assert not any("who" in line.split() for line in verdict.unproven)
    assert verify_release(release, {**TRUST, "desert": Identity.generate().fingerprint})
    for name in EVERYONE:
        others = {other: key for other, key in TRUST.items() if other != name}
        assert failure(release, others) == f"the trust file does not name the key of {name}."
        assert failure(release, {**TRUST, name: Identity.generate().fingerprint}) == (
            f"the key of {name} is not the one that the trust file names."
        )
    swapped = {**TRUST, "curator": TRUST["north"], "north": TRUST["curator"]}
    assert failure(release, swapped) == "the key of curator is not the one that the trust file names."
    assert failure(release, {})


def test_an_account_of_another_transcript_is_refused(tmp_path: Path) -> None:
    """The curator runs the study twice, with two keys, and publishes one run with the other's signatures."""
    folder = tmp_path / "release"
    content = write_release(folder)
    other = make_transcript(STUDY, PublicKey(KEY.n + 2, KEY.h_s))
    signatures = {label: asked.signature.hex() for label, asked in signed_queries(STUDY, other).items()}
    content |= {
        "transcript": json.loads(seal_transcript(other, CURATOR)),
        "transcript_hash": other.digest(STUDY).hex(),
        "query_signatures": signatures,
    }
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(folder) == "the signature of north on its answer to moments is not valid."


def test_the_curator_signs_its_transcript_and_every_query(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    transcript = make_transcript(STUDY)
    by_north = json.loads(seal_transcript(transcript, IDENTITIES["north"]))
    (folder / MANIFEST_FILE).write_bytes(seal_manifest({**content, "transcript": by_north}, CURATOR))
    assert failure(folder) == "the transcript is not signed by the curator that it names."
    swapped = {"moments": content["query_signatures"]["rows"], "rows": content["query_signatures"]["moments"]}
    (folder / MANIFEST_FILE).write_bytes(seal_manifest({**content, "query_signatures": swapped}, CURATOR))
    assert failure(folder) == "the signature of the curator on query is not valid."


def test_an_answer_that_a_party_did_not_send_is_refused(tmp_path: Path) -> None:
    """The curator puts another answer, or another party's, in the place of one."""
    folder = tmp_path / "release"
    content = write_release(folder)
    steps = {name: content["parties"][name]["steps"] for name in NAMES}
    foreign = {key: steps["valley"][0][key] for key in ("answer", "signature")}
    for change in ({"answer": {"sha256": "00" * 32, "bytes": 5}}, foreign):
        changed = deepcopy(content)
        changed["parties"]["north"]["steps"][0].update(change)
        (folder / MANIFEST_FILE).write_bytes(seal_manifest(changed, CURATOR))
        assert failure(folder) == "the signature of north on its answer to moments is not valid."


def test_a_study_of_other_terms_under_the_same_signatures_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    cheaper = STUDY.model_copy(update={"epsilon": STUDY.epsilon / 2})
    enrolments = tuple(enrol(i, STUDY) for i in range(3))
    transcript = Transcript(cheaper.digest(), KEY, CURATOR.public_key, enrolments)
    content |= {
        "study": cheaper.to_json(),
        "study_hash": cheaper.digest().hex(),
        "plan": plan_study(cheaper).to_json(),
        "noise": noise_law(cheaper, queries_of(cheaper)),
        "transcript": json.loads(seal_transcript(transcript, CURATOR)),
        "transcript_hash": transcript.digest(cheaper).hex(),
    }
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(folder) == "the signature of north on enrol is not valid."


@pytest.mark.parametrize(
    "cost",
    [
        "epsilon:1/0",
        "epsilon:-4/5",
        "epsilon:1e99999999",
        "epsilon:0.8",
        "epsilon:8/10",
        "epsilon:",
        "epsilon:x",
        "epsilon: 4/5",
        "Epsilon:4/5",
        "rho:4/5",
        "4/5",
        "",
        "x",
        1,
        None,
        ["epsilon:4/5"],
        {"epsilon": "4/5"},
    ],
)
def test_hostile_costs_are_refused(tmp_path: Path, cost: Any) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    content["parties"]["harbour"]["steps"][0]["cost"] = cost
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(folder) == "what harbour answered and spent is not what the plan and the queries say."


@pytest.mark.parametrize(
    "path",
    [
        ("files",), ("files", "model.json"), ("parties",), ("parties", "harbour"), ("parties", "harbour", "steps"),
        ("parties", "harbour", "steps", 0), ("parties", "harbour", "signature"), ("plan",), ("noise",), ("study",),
        ("study", "roster"), ("study", "schema", 0), ("transcript",), ("transcript", "enrolments"),
        ("transcript", "enrolments", 1), ("study_hash",), ("transcript_hash",), ("queries",), ("queries", "moments"),
        ("queries", "rows"), ("queries", "rows", "model"), ("queries", "rows", "rows"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, [[]], {"x": {}}])
def test_hostile_types_are_refused(tmp_path: Path, path: Place, value: Any) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    holder: Any = content
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(folder)


def test_a_party_beside_the_roster_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    content = write_release(folder)
    content["parties"]["ghost"] = content["parties"]["north"]
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(folder) == "the manifest's parties are not those of the roster."


def test_the_noise_law_is_in_exact_numbers_and_says_whom_it_protects_against() -> None:
    laws: list[Any] = noise_law(STUDY, queries_of(STUDY))
    (law,) = laws
    assert law["label"] == "moments"
    (run,) = SumMoments().terms(plan_study(STUDY).step("moments"), STUDY).runs
    assert law["runs"] == [run.to_json()]
    sensitivity = moment_design(STUDY).sensitivity
    assert run.to_json() == {
        "numbers": moment_design(STUDY).length,
        "law": "sum over parties of NB(r, a) - NB(r, a), a = exp(-1/scale)",
        "r": "1/2",
        "scale": str(sensitivity / Fraction("0.8")),
        "sensitivity": str(sensitivity),
    }
    assert law["protects_against"] == "anyone, and the curator together with up to 1 of 3 parties"
    assert law["protects"] == "any one row"
    open_study = STUDY.model_copy(update={"collusion": 0})
    (bare,) = noise_law(open_study, queries_of(open_study))
    assert isinstance(bare, dict)
    assert "but not a party, which can subtract its own share" in str(bare["protects_against"])


def test_the_noise_law_of_a_study_with_delta_is_gaussian() -> None:
    study = make_study(delta="1e-9")
    laws: list[Any] = noise_law(study, queries_of(study))
    ((run,), squared) = (laws[0]["runs"], moment_design(study).squared_sensitivity)
    assert run["law"].startswith("sum over parties of discrete Gaussians")
    assert run["squared_sensitivity"] == str(squared)
    assert float(Fraction(run["square"])) == pytest.approx(squared / (2 * float(study.budget.rho) * 2), rel=1e-3)


def test_a_release_with_more_rho_than_its_delta_allows_is_refused(tmp_path: Path) -> None:
    """Whoever verifies checks the inequality again; the curator's signature does not replace it."""
    folder = tmp_path / "release"
    content = write_release(folder, make_study(seed=11, delta="1e-9"))
    verify_release(folder, None)
    content["study"]["rho"] = "0.016"
    (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert "rho 0.016 at order 34.8651 is not within epsilon 1 and delta 1e-9" in failure(folder)


def test_laws_of_local_answers_are_in_exact_numbers() -> None:
    laws: dict[str, Any] = {law["label"]: law for law in noise_law(NETWORK_STUDY, queries_of(NETWORK_STUDY))}  # type: ignore[index,call-overload,misc]
    plan = plan_study(NETWORK_STUDY)
    assert list(laws) == [step.label for step in plan.steps]
    update, start = plan.step("update-harbour").cost.epsilon, plan.step("initialize-north").cost.epsilon
    own = {"numbers": 8, "law": "discrete Laplace", "scale": str(2 * 2 / update), "sensitivity": "2"}
    assert laws["update-harbour"] == {
        "label": "update-harbour",
        "runs": [own],
        "protects": "any one row",
        "protects_against": "anyone",
    }
    assert laws["initialize-north"]["epsilon_each"] == str(start / 1)
    (pooled,) = laws["parameters"]["runs"]
    assert (pooled["sensitivity"], pooled["scale"]) == ("2", str(4 / plan.step("parameters").cost.epsilon))


def test_queries_that_the_parties_did_not_answer_are_refused(tmp_path: Path) -> None:
    """Sound ones of the planned kinds, with a noise law to match: only the parties' signatures tell."""
    others: dict[str, AnyQuery] = {
        "correlations": SumMarginals(((0, 1), (2, 4))),
        "initialize-north": ChooseParents((0,), ((1, (0,)), (2, (0,))), 1, 8, "F"),
        "update-valley": LocalMarginals(((0, 1), (2, 4))),
    }
    for label, query in others.items():
        folder = tmp_path / label
        content = write_release(folder, NETWORK_STUDY)
        queries = {**queries_of(NETWORK_STUDY), label: query}
        content["queries"][label] = query.to_json()
        content["noise"] = noise_law(NETWORK_STUDY, queries)
        (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
        assert failure(folder) == "the signature of the curator on query is not valid."
        step = plan_study(NETWORK_STUDY).step(label)
        transcript = make_transcript(NETWORK_STUDY).digest(NETWORK_STUDY)
        signature = sign_query(CURATOR, transcript, label, query_digest(query, step, NETWORK_STUDY))
        content["query_signatures"][label] = signature.hex()
        (folder / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
        assert failure(folder).endswith("answered and spent is not what the plan and the queries say.")


def test_a_query_beyond_the_plans_limit_is_refused(tmp_path: Path) -> None:
    """Even one that the parties would have signed for: no honest party answers it."""
    content = write_release(tmp_path / "release", NETWORK_STUDY)
    limit = plan_study(NETWORK_STUDY).step("correlations").limit
    query = SumMarginals(((0, 1),) * (limit.tables + 1))
    content["queries"]["correlations"] = query.to_json()
    content["noise"] = noise_law(NETWORK_STUDY, {**queries_of(NETWORK_STUDY), "correlations": query})
    (tmp_path / "release" / MANIFEST_FILE).write_bytes(seal_manifest(content, CURATOR))
    assert failure(tmp_path / "release").endswith(
        "is not the plan's: the query is larger than the approved plan allows."
    )


def test_a_copy_verifies_like_the_original(release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "copy")
    assert verify_release(tmp_path / "copy", None) == verify_release(release, None)
