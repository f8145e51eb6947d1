"""`synod verify`: exit 0 only if all holds, 5 at whatever does not, and it says which of the two was proven."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import complaint, synod
from tests.support.keys import CURATOR, identity_of
from tests.support.releases import AnsweredStudy
from tests.support.studies import make_study

SIGNERS = (CURATOR, "north", "harbour", "valley")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answered = AnsweredStudy(tmp_path_factory.mktemp("study"), make_study())
    answered.write()
    return answered.target


@pytest.fixture
def release(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "release"))


def write_trust(path: Path, *names: str) -> Path:
    lines = [f"{name} {identity_of(name).fingerprint}  # by phone" for name in names]
    path.write_text("# compared by phone\n" + "\n".join(lines) + "\n")
    return path


def test_a_sound_release(release: Path) -> None:
    ending = synod("verify", release)
    assert (ending.code, ending.err) == (0, "")
    for name in SIGNERS:
        assert f"{name} signed with {identity_of(name).fingerprint}" in ending.out
    assert "NOT proven: who signed it" in ending.out
    assert "--  not proven: who the curator and the parties are" in ending.out
    assert (
        "--  not proven: that the sums are those of the encrypted answers, for which you trust the curator"
        in ending.out
    )
    assert "ok  all 3 parties signed the hashes of their answers, 6 in all" in ending.out


def test_who_signed_is_proven_with_fingerprints(release: Path, tmp_path: Path) -> None:
    ending = synod("verify", release, "--trust", write_trust(tmp_path / "trust", *SIGNERS))
    assert (ending.code, ending.err) == (0, "")
    assert "every signer is the one that you named" in ending.out
    assert "ok  the curator and all parties have the keys that the trust file names" in ending.out
    assert "NOT" not in ending.out
    assert "who the curator" not in ending.out
    assert "--  not proven: that the parties' rows are true" in ending.out


@pytest.mark.parametrize("missing", SIGNERS)
def test_one_stranger_is_enough_to_fail(release: Path, tmp_path: Path, missing: str) -> None:
    trust = write_trust(tmp_path / "trust", *(name for name in SIGNERS if name != missing))
    ending = synod("verify", release, "--trust", trust)
    assert f"the trust file does not name the key of {missing}." in complaint(ending, 5)
    assert ending.out == ""


@pytest.mark.parametrize("content", ["", "# nothing\n", "north\n", "sha256:abc\n", "north sha256:\n"])
def test_a_file_without_fingerprints(release: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "trust").write_text(content)
    assert "fingerprint" in complaint(synod("verify", release, "--trust", tmp_path / "trust"), 2)
    complaint(synod("verify", release, "--trust", tmp_path / "none"), 2)


def test_a_fingerprint_after_a_name_is_good_for_that_name_alone(release: Path, tmp_path: Path) -> None:
    keys = {name: identity_of(name).fingerprint for name in SIGNERS}
    trust = tmp_path / "trust"
    trust.write_text("".join(f"{name} {key}\n" for name, key in keys.items()))
    assert synod("verify", release, "--trust", trust).code == 0
    swapped = {**keys, "north": keys["valley"], "valley": keys["north"]}
    trust.write_text("".join(f"{name} {key}\n" for name, key in swapped.items()))
    assert "the key of north is not the one" in complaint(synod("verify", release, "--trust", trust), 5)


def test_a_fingerprint_without_a_name_is_refused_with_what_to_write(release: Path, tmp_path: Path) -> None:
    trust = write_trust(tmp_path / "trust", *SIGNERS)
    trust.write_text(trust.read_text() + f"{identity_of('north').fingerprint}\n")
    told = complaint(synod("verify", release, "--trust", trust), 2)
    assert "line 6 of" in told
    assert "does not say whose it is" in told
    assert "`curator sha256:...`" in told


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    if sign:
        manifest.pop("signature")
        manifest["signature"] = identity_of(CURATOR).sign("manifest", manifest).hex()
    path.write_text(json.dumps(manifest))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


FILES: dict[str, Callable[[Path], object]] = {
    "a row more": lambda r: (r / "synthetic.csv").open("a").write("F,1,2,a\n"),
    "a changed byte": lambda r: (r / "synthetic.parquet").write_bytes(
        (r / "synthetic.parquet").read_bytes()[:-1] + b"?"
    ),
    "a file less": lambda r: (r / "model.json").unlink(),
    "a file more": lambda r: (r / "extra.csv").write_text("x\n"),
    "a folder more": lambda r: (r / "extra").mkdir(),
    "a folder for a file": lambda r: replace_by_folder(r / "model.json"),
    "no manifest": lambda r: (r / "manifest.json").unlink(),
    "half a manifest": lambda r: (r / "manifest.json").write_bytes((r / "manifest.json").read_bytes()[:500]),
    "a list for a manifest": lambda r: (r / "manifest.json").write_text("[]"),
    "nothing at all": shutil.rmtree,
}


@pytest.mark.parametrize("damage", FILES.values(), ids=FILES.keys())
def test_damaged_files(release: Path, damage: Callable[[Path], object]) -> None:
    damage(release)
    ending = synod("verify", release)
    complaint(ending, 5)
    assert ending.out == ""


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "epsilon": lambda m: m["study"].update(epsilon="0.1"),
    "study hash": lambda m: m.update(study_hash="00" * 32),
    "transcript hash": lambda m: m.update(transcript_hash="00" * 32),
    "plan": lambda m: m["plan"][0].update(cost="1/10"),
    "noise": lambda m: m["noise"][0].update(scale="1"),
    "spend": lambda m: m["parties"]["north"].update(spent="1/10"),
    "a step's cost": lambda m: m["parties"]["north"]["steps"][0].update(cost="1/10"),
    "a step less": lambda m: m["parties"]["north"]["steps"].pop(),
    "a negative cost": lambda m: m["parties"]["north"]["steps"][0].update(cost="-1"),
    "a cost of nonsense": lambda m: m["parties"]["north"]["steps"][0].update(cost="1/0"),
    "another query": lambda m: m["parties"]["north"]["steps"][0].update(query="00" * 32),
    "no queries": lambda m: m.pop("queries"),
    "a query less": lambda m: m["queries"].pop("rows"),
    "a query more": lambda m: m["queries"].update(more={"kind": "sum-moments"}),
    "queries swapped": lambda m: m["queries"].update(moments=m["queries"]["rows"], rows=m["queries"]["moments"]),
    "another model in a query": lambda m: m["queries"]["rows"]["model"].update(noise=1),
    "other rows in a query": lambda m: m["queries"]["rows"].update(rows=[150, 0, 0]),
    "a party less": lambda m: m["parties"].pop("valley"),
    "a party more": lambda m: m["parties"].update(ghost=m["parties"]["valley"]),
    "accounts swapped": lambda m: m["parties"].update(north=m["parties"]["valley"]),
    "no signatures on queries": lambda m: m.update(query_signatures={}),
    "a malformed signature on a query": lambda m: m["query_signatures"].update(moments="zz"),
    "a signature on a query less": lambda m: m["query_signatures"].pop("rows"),
    "another answer": lambda m: m["parties"]["north"]["steps"][0]["answer"].update(sha256="00" * 32),
    "an answer's length": lambda m: m["parties"]["north"]["steps"][0]["answer"].update(bytes=1),
    "a signature on an answer": lambda m: m["parties"]["north"]["steps"][0].update(signature="00" * 64),
    "another curator": lambda m: m["transcript"].update(curator="00" * 32),
    "an unsigned transcript": lambda m: m["transcript"].pop("signature"),
    "an enrolment less": lambda m: m["transcript"]["enrolments"].pop(),
    "another exchange key": lambda m: m["transcript"]["enrolments"][0].update(exchange="00" * 32),
    "a file's facts": lambda m: m["files"].update({"model.json": "trust me"}),
    "no files": lambda m: m.pop("files"),
    "files of a list": lambda m: m.update(files=[]),
    "a path for a file": lambda m: m["files"].update({"../model.json": m["files"].pop("model.json")}),
    "no study": lambda m: m.pop("study"),
    "another format": lambda m: m.update(format="synod/manifest/v0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("sign", [False, True], ids=["unsigned", "signed by the curator"])
def test_a_changed_manifest(release: Path, change: Callable[[dict[str, Any]], Any], sign: bool) -> None:
    """The curator's signature is not enough: the parties signed what they spent, and the rest follows from that."""
    change_manifest(release, change, sign=sign)
    ending = synod("verify", release)
    complaint(ending, 5)
    assert ending.out == ""


def test_a_release_that_another_key_took_over(release: Path, tmp_path: Path) -> None:
    """Anybody can sign a manifest again, but the parties have signed for who seals it."""
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("signature")
    thief = identity_of("thief")
    manifest["signer"] = thief.public_key.hex()
    path.write_text(json.dumps({**manifest, "signature": thief.sign("manifest", manifest).hex()}))
    for more in ((), ("--trust", write_trust(tmp_path / "trust", *SIGNERS))):
        assert "sealed by another key" in complaint(synod("verify", release, *more), 5)


def test_a_copy_for_spreadsheets_leaves_the_release_as_it_is(release: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    assert synod("verify", release, "--spreadsheet", target).code == 0
    assert target.read_bytes() == (release / "synthetic.csv").read_bytes(), "no text of this table is a formula"
    assert synod("verify", release).code == 0
    assert "is there already" in complaint(synod("verify", release, "--spreadsheet", target), 2)
    for inside in (release / "rows.csv", release / ".." / "release" / "rows.csv"):
        assert "is inside of the release" in complaint(synod("verify", release, "--spreadsheet", inside), 2)
        assert not inside.exists()


def test_no_copy_of_a_release_that_does_not_hold(release: Path, tmp_path: Path) -> None:
    (release / "synthetic.csv").write_text("=1+1\n")
    complaint(synod("verify", release, "--spreadsheet", tmp_path / "rows.csv"), 5)
    assert not (tmp_path / "rows.csv").exists()
