"""Rotations: only both keys together move a name on, one step at a time."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from synod.common.protocol.rotation import (
    Rotation,
    move_key,
    parse_rotation,
    read_rotation,
    sign_rotation,
    successors,
)
from synod.common.protocol.trust import move_trust, parse_trust
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import identity_of

FIRST, SECOND, THIRD, STRANGER = (identity_of(name) for name in ("first", "second", "third", "stranger"))
ONE, TWO = sign_rotation("north", FIRST, SECOND), sign_rotation("north", SECOND, THIRD)


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(SynodError) as caught:
        act()
    assert caught.value.code is Code.CHECK_FAILED
    return str(caught.value)


def test_a_rotation_comes_back_as_it_was_written() -> None:
    assert read_rotation(ONE.to_bytes()) == parse_rotation(ONE.to_json()) == ONE
    assert move_key("north", FIRST.fingerprint, [ONE, TWO]) == THIRD.fingerprint
    assert move_key("north", FIRST.fingerprint, []) == FIRST.fingerprint


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        (replace(sign_rotation("north", STRANGER, SECOND), old=FIRST.public_key), "signature of the old key"),
        (replace(sign_rotation("north", FIRST, STRANGER), new=SECOND.public_key), "signature of the old key"),
        (replace(ONE, new_signature=ONE.old_signature), "signature of the new key"),
        (replace(ONE, old_signature=ONE.new_signature), "signature of the old key"),
        (replace(ONE, name="valley"), "signature of the old key of valley"),
        (replace(ONE, old=ONE.new, new=ONE.old), "signature of the old key"),
        (sign_rotation("north", FIRST, FIRST), "from one key to another"),
        (replace(ONE, old=ONE.old[:-1]), "from one key to another"),
        (
            replace(ONE, new_signature=SECOND.sign("head", {"name": "north"}), old_signature=b""),
            "signature of the old key",
        ),
    ],
)
def test_what_both_keys_have_not_signed_is_refused(forged: Rotation, words: str) -> None:
    assert words in refusal(lambda: read_rotation(forged.to_bytes()))


def test_a_signature_of_another_context_is_none() -> None:
    statement = {key: value for key, value in ONE.to_json().items() if not key.endswith("signature")}
    posed = replace(ONE, old_signature=FIRST.sign("enrol", statement))
    assert "signature of the old key" in refusal(lambda: read_rotation(posed.to_bytes()))


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b"null", b'"north"', b"\xff", b" " * 5000, b"[" * 100])
def test_another_document_is_refused(document: bytes) -> None:
    assert "rotation" in refusal(lambda: read_rotation(document))


def test_further_or_missing_fields_are_refused() -> None:
    whole = ONE.to_json()
    for data in ({**whole, "more": 1}, {k: v for k, v in whole.items() if k != "name"}, {**whole, "old": 7}):
        assert "not a rotation" in refusal(lambda data=data: parse_rotation(data))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "key", "rotations", "words"),
    [
        ("north", FIRST, [TWO], "not from the key that is known"),
        ("north", FIRST, [TWO, ONE], "not from the key that is known"),
        ("north", FIRST, [ONE, ONE], "not from the key that is known"),
        ("north", SECOND, [ONE], "not from the key that is known"),
        ("north", STRANGER, [ONE], "not from the key that is known"),
        ("valley", FIRST, [ONE], "of north, and not of valley"),
        ("curator", FIRST, [ONE], "of north, and not of curator"),
    ],
)
def test_only_the_next_rotation_of_the_same_name_moves_a_key(
    name: str, key: object, rotations: list[Rotation], words: str
) -> None:
    assert words in refusal(lambda: move_key(name, key.fingerprint, rotations))  # type: ignore[attr-defined]


def test_a_trust_file_moves_on_in_one_line() -> None:
    text = f"# by phone\ncurator {STRANGER.fingerprint}\nnorth {FIRST.fingerprint}  # Monday\n"
    moved = move_trust(text, "trust.txt", ONE)
    assert moved == text.replace(FIRST.fingerprint, SECOND.fingerprint)
    assert parse_trust(move_trust(moved, "trust.txt", TWO), "trust.txt")["north"] == THIRD.fingerprint
    assert "not from the key" in refusal(lambda: move_trust(moved, "trust.txt", ONE))
    assert "not from the key" in refusal(lambda: move_trust(text, "trust.txt", TWO))
    other = sign_rotation("valley", FIRST, SECOND)
    assert "does not name a key of valley" in refusal(lambda: move_trust(text, "trust.txt", other))


def test_one_key_under_two_names_moves_under_one() -> None:
    text = f"north {FIRST.fingerprint}\nvalley {FIRST.fingerprint}\n"
    moved = parse_trust(move_trust(text, "trust.txt", ONE), "trust.txt")
    assert moved == {"north": SECOND.fingerprint, "valley": FIRST.fingerprint}


def test_successors_end_even_in_a_circle() -> None:
    back = sign_rotation("north", THIRD, FIRST)
    by_old = {rotation.old: rotation for rotation in (ONE, TWO, back)}
    assert successors(FIRST.public_key, by_old) == [ONE, TWO]
    assert successors(STRANGER.public_key, by_old) == []
