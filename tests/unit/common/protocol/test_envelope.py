"""Signed documents: what was signed comes back with its signer, and nothing else passes."""

import json
from typing import Any

import pytest

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.common.protocol.envelope import SIGNATURE, SIGNER, open_document, read_document, sign_document
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import identity_of

NORTH, VALLEY = identity_of("north"), identity_of("valley")
CONTENT: dict[str, Json] = {"study": "ab", "numbers": [1, 2, {"deep": None}], "empty": {}, "text": "\u20ac \u0000"}
SIGNED: dict[str, Any] = sign_document("transcript", CONTENT, NORTH)


def complaint(document: Any, context: str = "transcript") -> str:
    with pytest.raises(SynodError) as caught:
        open_document(context, document)
    assert caught.value.code is Code.CHECK_FAILED
    assert "\n" not in str(caught.value)
    return caught.value.sentence


def test_content_comes_back_with_its_signer() -> None:
    opened = open_document("transcript", SIGNED)
    assert opened.content == CONTENT
    assert (opened.signer, opened.fingerprint) == (NORTH.public_key, NORTH.fingerprint)
    travelled = read_document("transcript", canonical_bytes(SIGNED))
    assert travelled == opened
    assert read_document("transcript", json.dumps(SIGNED, indent=2).encode()) == opened


def test_a_document_is_flat_and_signed_the_same_way_each_time() -> None:
    assert set(SIGNED) == {*CONTENT, "signer", "signature"}
    assert SIGNED["signer"] == NORTH.public_key.hex()
    assert sign_document("transcript", CONTENT, NORTH) == SIGNED
    assert open_document("empty", sign_document("empty", {}, NORTH)).content == {}


@pytest.mark.parametrize("key", CONTENT)
def test_altered_content_is_found(key: str) -> None:
    assert "signature on the transcript is not valid" in complaint({**SIGNED, key: "other"})
    assert "not valid" in complaint({name: value for name, value in SIGNED.items() if name != key})


def test_added_content_is_found() -> None:
    assert "not valid" in complaint({**SIGNED, "more": 1})
    deeper = json.loads(json.dumps(SIGNED))
    deeper["numbers"][2]["deep"] = False
    assert "not valid" in complaint(deeper)


def test_a_document_of_another_kind_is_found() -> None:
    for context in ("manifest", "transcripts", "", "account"):
        assert "not valid" in complaint(SIGNED, context)


def test_another_signer_is_found() -> None:
    assert "not valid" in complaint({**SIGNED, SIGNER: VALLEY.public_key.hex()})
    other = sign_document("transcript", CONTENT, VALLEY)
    assert "not valid" in complaint({**SIGNED, SIGNATURE: other[SIGNATURE]})
    assert open_document("transcript", other).signer == VALLEY.public_key


def test_an_altered_signature_is_found() -> None:
    signature = SIGNED[SIGNATURE]
    for place in (0, 63, 64, 127):
        digit = "1" if signature[place] == "0" else "0"
        assert "not valid" in complaint({**SIGNED, SIGNATURE: signature[:place] + digit + signature[place + 1 :]})
    for other in ("", signature[:-2], signature + "00"):
        assert "not valid" in complaint({**SIGNED, SIGNATURE: other})


@pytest.mark.parametrize("key", [SIGNER, SIGNATURE])
def test_signer_and_signature_have_one_written_form(key: str) -> None:
    text = SIGNED[key]
    for other in (text.upper(), f" {text}", f"{text}\n", f"{text[:2]} {text[2:]}", f"0x{text}"):
        assert complaint({**SIGNED, key: other}) == "the transcript is not a signed document."


@pytest.mark.parametrize("key", [SIGNER, SIGNATURE])
def test_a_document_without_its_signer_or_signature_is_none(key: str) -> None:
    missing = {name: value for name, value in SIGNED.items() if name != key}
    assert complaint(missing) == "the transcript is not a signed document."
    for value in (None, 5, "a", "zz", ["ab"], {"a": "b"}, True):
        assert complaint({**SIGNED, key: value}) == "the transcript is not a signed document."


@pytest.mark.parametrize("document", [None, 5, "signed", [], [SIGNED], {}, b"{}"])
def test_what_is_no_document_is_refused(document: Any) -> None:
    assert complaint(document) == "the transcript is not a signed document."


@pytest.mark.parametrize("value", [0.5, 2**60, [1.0], "\ud800"])
def test_content_without_a_canonical_form_is_refused(value: Any) -> None:
    assert complaint({**SIGNED, "more": value})


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[" * 200_000, "is nested more than 64 deep"),
        (b'{"a": }', "is not JSON"),
        (b'{"a": 1, "a": 1}', "has the same key twice in one object"),
    ],
)
def test_bytes_that_are_no_json_are_refused(document: bytes, why: str) -> None:
    with pytest.raises(SynodError, match=f"the transcript {why}") as caught:
        read_document("transcript", document)
    assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize(
    "document", [b"null", b"[]", b"5", b'"x"', b"{}", b'{"signer": "ab", "signature": "cd", "x": 1.5}']
)
def test_json_that_is_no_signed_document_is_refused(document: bytes) -> None:
    with pytest.raises(SynodError, match="not a signed document") as caught:
        read_document("transcript", document)
    assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize("key", [SIGNER, SIGNATURE])
def test_content_cannot_pass_for_its_own_signature(key: str) -> None:
    with pytest.raises(AssertionError):
        sign_document("transcript", {key: "ab"}, NORTH)
