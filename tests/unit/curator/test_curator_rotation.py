"""Rotations at the curator: it holds ledgers to their heads across them, and rotates its own key between studies."""

from pathlib import Path

import pytest

from synod.common.crypto.identity import Identity
from synod.common.protocol.heads import Head
from synod.common.protocol.notices import sign_acknowledgement
from synod.common.protocol.rotation import parse_rotation, sign_rotation
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import CuratorSettings, TlsFiles
from synod.common.study.study import Study
from synod.curator.party_handler import Notice, PartyHandler
from synod.curator.party_store import STORE_FILE
from synod.curator.records import SeenHead, State
from synod.curator.roster.rotation import (
    MOST_ROTATIONS,
    follows,
    learn_rotations,
    load_identity,
    newest_rotation,
    require_current,
    rotate_identity,
    witness,
)
from synod.curator.store import Store
from tests.support.curators import make_context
from tests.support.keys import identity_of
from tests.support.studies import NAMES, make_study

PARTY = NAMES[0]
FIRST, SECOND, THIRD, STRANGER = (identity_of(name) for name in (PARTY, "second", "third", "stranger"))
ONE, TWO = sign_rotation(PARTY, FIRST, SECOND), sign_rotation(PARTY, SECOND, THIRD)
LEDGER = b"l" * 32


@pytest.fixture
def study() -> Study:
    made = make_study()
    first, *rest = made.roster
    pinned = first.model_copy(update={"key": FIRST.fingerprint})
    return made.model_copy(update={"roster": (pinned, *rest)}).resolve()


@pytest.fixture
def store(tmp_path: Path, study: Study) -> Store:
    made = Store(tmp_path)
    made.add_study(study, now=1)
    return made


def head_of(identity: Identity, sequence: int) -> SeenHead:
    digest = sequence.to_bytes(32, "big")
    return SeenHead(LEDGER, sequence, digest, identity.sign("head", Head(sequence, digest, LEDGER).statement()))


def refusal(store: Store, *documents: bytes, party: str = PARTY) -> str:
    before = store.rotations(PARTY)
    with pytest.raises(SynodError) as caught:
        learn_rotations(store, party, documents)
    assert store.rotations(PARTY) == before
    return str(caught.value)


def test_a_rotation_from_a_pinned_key_is_kept_and_its_new_key_is_known(store: Store) -> None:
    assert not store.is_pinned(PARTY, SECOND.fingerprint)
    for _ in range(2):
        learn_rotations(store, PARTY, [ONE.to_bytes(), TWO.to_bytes()])
    assert store.rotations(PARTY) == {FIRST.public_key: ONE, SECOND.public_key: TWO}
    assert store.is_pinned(PARTY, THIRD.fingerprint)
    assert not store.is_pinned("valley", THIRD.fingerprint)


def test_a_rotation_of_a_key_that_nobody_knows_is_passed_over(store: Store) -> None:
    learn_rotations(store, PARTY, [TWO.to_bytes(), sign_rotation(PARTY, STRANGER, THIRD).to_bytes()])
    assert store.rotations(PARTY) == {}


def test_forged_foreign_and_forked_rotations_are_refused(store: Store) -> None:
    learn_rotations(store, PARTY, [ONE.to_bytes()])
    forged = parse_rotation(ONE.to_json())
    altered = forged.to_bytes().replace(SECOND.public_key.hex().encode(), THIRD.public_key.hex().encode())
    assert "signature of the old key" in refusal(store, altered)
    assert "shows a rotation of" in refusal(store, ONE.to_bytes(), party="valley")
    assert "was rotated to another key before" in refusal(store, sign_rotation(PARTY, FIRST, THIRD).to_bytes())
    assert "at most" in refusal(store, *[ONE.to_bytes()] * (MOST_ROTATIONS + 1))


def test_a_ledger_is_held_to_its_highest_head_under_whichever_key(tmp_path: Path, store: Store) -> None:
    handler = PartyHandler(make_context(tmp_path))
    handler.see(PARTY, FIRST.public_key, head_of(FIRST, 4))
    assert handler.see(PARTY, SECOND.public_key, head_of(SECOND, 9)) == ""  # not known to be the party's
    learn_rotations(store, PARTY, [ONE.to_bytes()])
    assert handler.see(PARTY, SECOND.public_key, head_of(SECOND, 7)) == SECOND.fingerprint
    before = witness(store, PARTY, FIRST.public_key, LEDGER)
    assert before.highest is not None
    assert (before.highest.sequence, before.identity, before.rotations) == (7, SECOND.public_key, (ONE,))
    after = witness(store, PARTY, SECOND.public_key, LEDGER)
    assert after.highest == before.highest
    assert after.rotations == ()
    handler.see(PARTY, FIRST.public_key, head_of(FIRST, 8))  # a copy that goes on under the old key
    seen = witness(store, PARTY, SECOND.public_key, LEDGER).highest
    assert seen is not None
    assert seen.sequence == 8
    assert witness(store, PARTY, STRANGER.public_key, LEDGER).highest is None
    assert witness(store, "valley", FIRST.public_key, b"o" * 32).highest is None


def test_the_end_of_an_old_study_is_told_to_the_new_key_and_acknowledged_with_it(
    tmp_path: Path, store: Store, study: Study
) -> None:
    handler = PartyHandler(make_context(tmp_path))
    store.end_study(study.digest(), State.PUBLISHED)

    def acknowledge(identity: Identity) -> None:
        signature = sign_acknowledgement(identity, PARTY, study.digest(), State.PUBLISHED.value)
        handler.acknowledge(Notice(PARTY, study.digest(), identity.public_key, signature))

    assert handler.moves(PARTY, SECOND.fingerprint, set()) == []
    with pytest.raises(SynodError, match="is not the one on the roster"):
        acknowledge(SECOND)
    learn_rotations(store, PARTY, [ONE.to_bytes()])
    for signer in (STRANGER, THIRD):
        assert handler.moves(PARTY, signer.fingerprint, set()) == []
        with pytest.raises(SynodError, match="is not the one on the roster"):
            acknowledge(signer)
    assert [move.study_hash for move in handler.moves(PARTY, SECOND.fingerprint, set())] == [study.digest()]
    acknowledge(SECOND)
    assert store.acknowledged(study.digest(), PARTY)
    assert handler.moves(PARTY, SECOND.fingerprint, set()) == []


def test_a_key_follows_only_forward(store: Store) -> None:
    learn_rotations(store, PARTY, [ONE.to_bytes(), TWO.to_bytes()])
    assert follows(store, PARTY, FIRST.fingerprint, THIRD.fingerprint)
    assert follows(store, PARTY, SECOND.fingerprint, SECOND.fingerprint)
    assert not follows(store, PARTY, SECOND.fingerprint, FIRST.fingerprint)
    assert not follows(store, "valley", FIRST.fingerprint, SECOND.fingerprint)


# The curator's own identity


@pytest.fixture
def settings(tmp_path: Path) -> CuratorSettings:
    tls = TlsFiles(ca=tmp_path / "ca.pem", certificate=tmp_path / "own.pem", key=tmp_path / "own.key")
    return CuratorSettings(tls=tls, listen="127.0.0.1:0", state=tmp_path / "state")


def test_an_identity_is_made_once_and_never_beside_a_store(settings: CuratorSettings) -> None:
    made = load_identity(settings)
    Store(settings.state).close()
    assert load_identity(settings).public_key == made.public_key
    (settings.state / "identity.pem").unlink()
    with pytest.raises(SynodError, match="a store and no identity key") as caught:
        load_identity(settings)
    assert caught.value.code is Code.INVALID
    assert "Restore identity.pem" in caught.value.hint
    assert [path.name for path in settings.state.iterdir()] == [STORE_FILE]


def test_the_curator_rotates_between_studies_and_never_in_one(settings: CuratorSettings, study: Study) -> None:
    old = load_identity(settings)
    store = Store(settings.state)
    store.add_study(study, now=1)
    with pytest.raises(SynodError, match="is open under the old key") as caught:
        rotate_identity(settings, store)
    assert caught.value.code is Code.REFUSED
    assert load_identity(settings).public_key == old.public_key
    store.end_study(study.digest(), State.PUBLISHED)
    first, second = (rotate_identity(settings, store) for _ in range(2))
    assert (first.name, first.old, second.old) == ("curator", old.public_key, first.new)
    assert load_identity(settings).public_key == second.new == parse_rotation(second.to_json()).new
    assert newest_rotation(store) == second
    assert sorted(path.name for path in settings.state.glob("*.pem")) == ["identity.pem"]


def test_a_curator_s_rotation_that_is_cut_short_is_finished(
    settings: CuratorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: Path) -> None:
        raise InterruptedError

    load_identity(settings)
    store = Store(settings.state)
    require_current(store, load_identity(settings))
    with monkeypatch.context() as patched:
        patched.setattr("synod.curator.roster.rotation.put_next_key", die)
        with pytest.raises(InterruptedError):
            rotate_identity(settings, store)
    with pytest.raises(SynodError, match="not the one that the curator was last rotated to"):
        require_current(store, load_identity(settings))
    rotation = rotate_identity(settings, store)
    assert len(store.rotations("curator")) == 1
    require_current(store, load_identity(settings))
    assert load_identity(settings).public_key == rotation.new
