"""A party's identity is rotated between studies, never in one, and a crash on the way is made good."""

from pathlib import Path

import pytest

from synod.common.crypto import keyrotation
from synod.common.crypto.identity import Identity, fingerprint
from synod.common.privacy.cost import Cost
from synod.common.protocol.rotation import Rotation, parse_rotation, sign_rotation
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.files import erase_file
from synod.common.runtime.settings import PartySettings
from synod.party.account import ApprovalState, key_in_use
from synod.party.approval import identity_path, initialize, load_identity
from synod.party.ledger import Ledger, StoredAnswer
from synod.party.rotation import accept_curator, check_not_rotated, repin, require_current, rotate_identity
from tests.support.keys import CURATOR, identity_of
from tests.support.parties import make_settings
from tests.support.studies import make_study

COST = Cost.parse("epsilon:1/2")
CHARGE = {"label": "moments", "query": "aa", "transcript": "bb", "cost": "epsilon:0", "answer": "cc"}
CURATORS = sign_rotation(CURATOR, identity_of(CURATOR), identity_of("next curator"))


@pytest.fixture
def settings(tmp_path: Path) -> PartySettings:
    made = make_settings(tmp_path)
    initialize(made, spent=None, now=1)
    return made


@pytest.fixture
def ledger(settings: PartySettings) -> Ledger:
    return Ledger.open(settings.state)


def approve(ledger: Ledger, name: str = "survey") -> bytes:
    study = make_study(name=name)
    ledger.approve(study, dataset="d", cost=COST, cap=COST, snapshot=bytes(32), source=(), now=2)
    return study.digest()


def keys_on_disk(settings: PartySettings) -> list[str]:
    return sorted(path.name for path in settings.state.glob("*.pem"))


def test_the_new_key_is_signed_for_by_the_old_one_which_is_erased(settings: PartySettings, ledger: Ledger) -> None:
    old, path = load_identity(settings), identity_path(settings)
    (settings.state / "link").hardlink_to(path)
    rotation = rotate_identity(settings, ledger, now=5)
    new = load_identity(settings)
    assert (rotation.name, rotation.old, rotation.new) == (settings.name, old.public_key, new.public_key)
    assert parse_rotation(rotation.to_json()) == rotation
    assert old.public_key != new.public_key
    assert keys_on_disk(settings) == ["identity.pem"]
    assert path.stat().st_mode & 0o077 == 0
    assert set((settings.state / "link").read_bytes()) == {0}


def test_the_ledger_s_chain_goes_on_across_identities(settings: PartySettings, ledger: Ledger) -> None:
    before = ledger.head()
    first, second = (rotate_identity(settings, ledger, now=now) for now in (5, 6))
    assert second.old == first.new
    assert [entry["kind"] for entry in ledger.entries()] == ["opened", "rotated", "rotated"]
    assert ledger.hash_at(before.sequence) == before.hash
    assert ledger.head().ledger == before.ledger
    ledger.close()
    assert Ledger.open(settings.state).account().own_rotations == (first, second)


def test_a_rotation_in_the_middle_of_a_study_is_refused_and_changes_nothing(
    settings: PartySettings, ledger: Ledger
) -> None:
    study_hash, key, head = approve(ledger), load_identity(settings).public_key, ledger.head()
    with pytest.raises(SynodError, match="survey is open under the old key") as caught:
        rotate_identity(settings, ledger, now=5)
    assert caught.value.code is Code.REFUSED
    assert (load_identity(settings).public_key, ledger.head()) == (key, head)
    assert keys_on_disk(settings) == ["identity.pem"]
    ledger.end_study(study_hash, ApprovalState.PUBLISHED, now=6)
    rotate_identity(settings, ledger, now=7)


@pytest.mark.parametrize("point", ["make_next_key", "rotate", "link", "replace", "erase"])
def test_a_rotation_that_is_cut_short_is_finished_by_the_next_call(
    settings: PartySettings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The process dies after each step; there is a key at each moment, and the ledger has one rotation in the end."""

    class DiedError(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise DiedError

    old = load_identity(settings)
    with monkeypatch.context() as patched:
        if point == "make_next_key":
            patched.setattr("synod.party.rotation.sign_rotation", die)
        elif point == "rotate":
            patched.setattr("synod.party.rotation.put_next_key", die)
        elif point == "link":
            patched.setattr(Path, "replace", die)
        elif point == "replace":
            patched.setattr(keyrotation, "sync_folder", die)
        else:
            calls: list[Path] = []

            def die_late(path: Path) -> None:
                calls.append(path)
                if len(calls) == 3:  # before a new key is made, before the link, and at the end
                    raise DiedError
                erase_file(path)

            patched.setattr(keyrotation, "erase_file", die_late)
        with pytest.raises(DiedError):
            rotate_identity(settings, ledger, now=5)
    identity, rotations = load_identity(settings), ledger.account().own_rotations
    assert len(rotations) == (0 if point == "make_next_key" else 1)
    is_in_place = point in ("replace", "erase")
    assert (identity.public_key == old.public_key) is not is_in_place
    if rotations and not is_in_place:
        with pytest.raises(SynodError, match="not the one that the ledger was last rotated to"):
            require_current(ledger.account(), identity)
    rotation = rotate_identity(settings, ledger, now=6)
    assert load_identity(settings).public_key == rotation.new
    require_current(ledger.account(), load_identity(settings))
    assert keys_on_disk(settings) == ["identity.pem"]
    assert len(ledger.account().own_rotations) == (2 if is_in_place else 1)


def test_to_finish_a_rotation_never_erases_the_key_in_use(
    settings: PartySettings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the old key got its second name, and again before it gets it anew."""

    def die(*_: object) -> None:
        raise InterruptedError

    old = load_identity(settings)
    for name in ("pathlib.Path.replace", "os.link"):
        with monkeypatch.context() as patched:
            patched.setattr(name, die)
            with pytest.raises(InterruptedError):
                rotate_identity(settings, ledger, now=5)
        assert load_identity(settings).public_key == old.public_key
    assert rotate_identity(settings, ledger, now=6).new == load_identity(settings).public_key


def test_an_old_identity_beside_a_rotated_ledger_is_refused(settings: PartySettings, ledger: Ledger) -> None:
    old = load_identity(settings)
    require_current(ledger.account(), old)
    rotate_identity(settings, ledger, now=5)
    with pytest.raises(SynodError, match="not the one that the ledger was last rotated to") as caught:
        require_current(ledger.account(), old)
    assert caught.value.code is Code.REFUSED


def test_a_ledger_takes_rotations_in_order_only(settings: PartySettings, ledger: Ledger) -> None:
    first = rotate_identity(settings, ledger, now=5)
    other = sign_rotation(settings.name, identity_of("stranger"), identity_of("another"))
    for rotation in (first, other):
        with pytest.raises(SynodError, match="not from the key that this ledger was last rotated to"):
            ledger.rotate(rotation, now=6)
    assert ledger.account().own_rotations == (first,)


# What a curator shows


def test_a_rotation_that_the_ledger_does_not_have_shows_that_it_is_old(settings: PartySettings, ledger: Ledger) -> None:
    identity = load_identity(settings)
    later = sign_rotation(settings.name, identity, identity_of("later"))
    with pytest.raises(SynodError, match="an old copy") as caught:
        check_not_rotated(ledger.account(), identity, [later.to_bytes()])
    assert caught.value.code is Code.REFUSED
    own = rotate_identity(settings, ledger, now=5)
    check_not_rotated(ledger.account(), load_identity(settings), [own.to_bytes()])
    forged = Rotation(settings.name, identity.public_key, later.new, b"0" * 64, later.new_signature)
    foreign = sign_rotation(settings.name, identity_of("stranger"), identity_of("later"))
    check_not_rotated(ledger.account(), load_identity(settings), [b"", forged.to_bytes(), foreign.to_bytes()])


# The curator's key


def write_config(folder: Path, key: str, quote: str = '"') -> Path:
    path = folder / "party.yaml"
    path.write_text(f"# ours\nname: north\ncurator: {quote}{key}{quote}  # by phone\nsource: a.csv\n")
    path.chmod(0o640)
    return path


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_the_pinned_curator_moves_on_with_a_rotation_that_it_signed(
    settings: PartySettings, ledger: Ledger, tmp_path: Path, quote: str
) -> None:
    config = write_config(tmp_path, settings.curator, quote)
    before = config.read_text()
    for _ in range(2):  # repeated after a crash before the file was changed
        config.write_text(before)
        accept_curator(settings, ledger, config, CURATORS, now=5)
        assert config.read_text() == before.replace(settings.curator, fingerprint(CURATORS.new))
    assert config.stat().st_mode & 0o777 == 0o640
    assert [entry["kind"] for entry in ledger.entries()] == ["opened", "rotated"]
    assert ledger.account().own_rotations == ()


@pytest.mark.parametrize(
    "rotation",
    [
        sign_rotation(CURATOR, identity_of("stranger"), identity_of("next curator")),
        sign_rotation(CURATOR, identity_of("next curator"), identity_of(CURATOR)),
        sign_rotation("north", identity_of(CURATOR), identity_of("next curator")),
    ],
)
def test_no_other_rotation_moves_the_pinned_curator(
    settings: PartySettings, ledger: Ledger, tmp_path: Path, rotation: Rotation
) -> None:
    config = write_config(tmp_path, settings.curator)
    before, head = config.read_text(), ledger.head()
    with pytest.raises(SynodError) as caught:
        accept_curator(settings, ledger, config, rotation, now=5)
    assert caught.value.code is Code.CHECK_FAILED
    assert (config.read_text(), ledger.head()) == (before, head)


def test_a_study_that_was_answered_under_the_old_curator_holds_its_rotation_up(
    settings: PartySettings, ledger: Ledger, tmp_path: Path
) -> None:
    config, study_hash = write_config(tmp_path, settings.curator), approve(ledger)
    ledger.charge(study_hash, dict(CHARGE), StoredAnswer({}, b""), now=3)
    with pytest.raises(SynodError, match="open under the old key"):
        accept_curator(settings, ledger, config, CURATORS, now=5)
    assert settings.curator in config.read_text()
    ledger.end_study(study_hash, ApprovalState.ABORTED, now=4)
    approve(ledger, "not-yet-answered")
    accept_curator(settings, ledger, config, CURATORS, now=5)


def test_a_configuration_without_the_line_is_left_alone() -> None:
    for text in ("", "name: north\n# curator: sha256:aa\n", "other:\n  curator: sha256:aa\n"):
        with pytest.raises(SynodError, match="Write it yourself: `curator: sha256:bb`"):
            repin(text, "sha256:aa", "sha256:bb")


# Releases of before


def test_a_release_is_compared_with_the_keys_of_its_time(settings: PartySettings, ledger: Ledger) -> None:
    first = load_identity(settings)
    studies = []
    for number in range(2):
        study_hash = approve(ledger, f"study-{number}")
        ledger.charge(study_hash, dict(CHARGE), StoredAnswer({}, b""), now=3)
        ledger.end_study(study_hash, ApprovalState.PUBLISHED, now=4)
        studies.append(study_hash.hex())
        if number == 0:
            rotate_identity(settings, ledger, now=5)
            ledger.rotate(CURATORS, now=5)
    entries, now = ledger.entries(), Identity.load(identity_path(settings)).fingerprint
    assert [key_in_use(entries, study, settings.name, now) for study in studies] == [first.fingerprint, now]
    pinned, before = fingerprint(CURATORS.new), fingerprint(CURATORS.old)
    assert [key_in_use(entries, study, CURATOR, pinned) for study in studies] == [before, pinned]
