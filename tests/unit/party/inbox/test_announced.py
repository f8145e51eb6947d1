"""What the curator announces is kept for the operator, as far as the pinned curator has signed it, and no further."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.notices import sign_announcement
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from synod.party.inbox import announced
from synod.party.inbox.announced import (
    ANNOUNCED_FILE,
    forget_announced,
    hear_again,
    keep_announced,
    list_announced,
    read_announced_study,
)
from tests.support.keys import CURATOR, identity_of
from tests.support.studies import make_study

PINNED = identity_of(CURATOR).fingerprint
NOW = 1_700_000_000


def keep(folder: Path, study: Study, *, now: int = NOW, by: str = CURATOR) -> None:
    curator = identity_of(by)
    signature = sign_announcement(curator, study.digest())
    keep_announced(folder, study, curator=curator.public_key, signature=signature, now=now)


def names(folder: Path, curator: str = PINNED) -> list[str]:
    return [one.study.name for one in list_announced(folder, curator)]


def test_what_was_announced_is_listed_with_its_dates_and_who_approved(tmp_path: Path) -> None:
    study = make_study()
    assert list_announced(tmp_path, PINNED) == []
    assert not hear_again(tmp_path, study.digest(), ["valley"], now=NOW)
    keep(tmp_path, study)
    assert hear_again(tmp_path, study.digest(), ["valley", "stranger", "<b>", "north"], now=NOW + 90)
    (found,) = list_announced(tmp_path, PINNED)
    assert (found.study, found.first_heard, found.last_heard) == (study, NOW, NOW + 90)
    assert found.enrolled == ("north", "valley"), "of the roster, in its order, and nobody else"


def test_it_is_written_again_only_for_news(tmp_path: Path) -> None:
    study = make_study()
    keep(tmp_path, study)
    assert hear_again(tmp_path, study.digest(), [], now=NOW + 59)
    assert list_announced(tmp_path, PINNED)[0].last_heard == NOW
    assert hear_again(tmp_path, study.digest(), [], now=NOW + 60)
    assert list_announced(tmp_path, PINNED)[0].last_heard == NOW + 60
    assert hear_again(tmp_path, study.digest(), ["north"], now=NOW + 61)
    assert list_announced(tmp_path, PINNED)[0].enrolled == ("north",)


def test_what_has_ended_is_forgotten(tmp_path: Path) -> None:
    forget_announced(tmp_path, bytes(32))
    assert not (tmp_path / ANNOUNCED_FILE).exists()
    keep(tmp_path, make_study(name="one"))
    keep(tmp_path, make_study(name="two"))
    forget_announced(tmp_path, make_study(name="one").digest())
    assert names(tmp_path) == ["two"]


def test_an_announcement_of_somebody_else_is_not_kept(tmp_path: Path) -> None:
    study, curator = make_study(), identity_of(CURATOR)
    other = make_study(name="another")
    for signature in (
        sign_announcement(identity_of("north"), study.digest()),
        sign_announcement(curator, other.digest()),
        b"",
    ):
        with pytest.raises(SynodError) as caught:
            keep_announced(tmp_path, study, curator=curator.public_key, signature=signature, now=NOW)
        assert caught.value.code is Code.CHECK_FAILED
    assert list_announced(tmp_path, PINNED) == []


def test_only_the_pinned_curators_are_listed(tmp_path: Path) -> None:
    keep(tmp_path, make_study(name="old"), by="valley")
    keep(tmp_path, make_study(name="new"))
    assert names(tmp_path) == ["new"]
    assert names(tmp_path, identity_of("valley").fingerprint) == ["old"]


def test_what_was_changed_in_the_file_is_not_shown(tmp_path: Path) -> None:
    keep(tmp_path, make_study())
    document = canonical_bytes({**make_study().to_json(), "epsilon": "0.1"})
    with closing(sqlite3.connect(tmp_path / ANNOUNCED_FILE)) as connection, connection:
        connection.execute("UPDATE announced SET document = ?", (document,))
    assert list_announced(tmp_path, PINNED) == []
    swapped = make_study(epsilon="0.1")
    with closing(sqlite3.connect(tmp_path / ANNOUNCED_FILE)) as connection, connection:
        connection.execute(
            "UPDATE announced SET document = ?, study = ?",
            (canonical_bytes(swapped.to_json()), swapped.digest()),
        )
    assert list_announced(tmp_path, PINNED) == [], "it has its hash, and not the signature"


def test_of_too_many_those_that_were_not_heard_of_for_longest_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announced, "MOST_STUDIES", 3)
    for number in range(3):
        keep(tmp_path, make_study(name=f"s{number}"), now=NOW + number)
    assert hear_again(tmp_path, make_study(name="s0").digest(), [], now=NOW + 500)
    for number in range(3, 5):
        keep(tmp_path, make_study(name=f"s{number}"), now=NOW + 600 + number)
    assert sorted(names(tmp_path)) == ["s0", "s3", "s4"]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"{", Code.CHECK_FAILED),
        (b"[]", Code.INVALID),
        (b"x" * (announced.LARGEST_STUDY_BYTES + 1), Code.REFUSED),
        (json.dumps(make_study(epsilon="0.5").to_json()).encode(), Code.REFUSED),
    ],
)
def test_a_document_that_is_not_the_announced_study(document: bytes, code: Code) -> None:
    with pytest.raises(SynodError) as caught:
        read_announced_study(document, make_study().digest())
    assert caught.value.code is code
    assert "x" * 100 not in str(caught.value)
