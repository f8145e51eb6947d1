"""JSON from others: what could take long is refused before it is parsed."""

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synod.common.runtime import jsontext
from synod.common.runtime.jsontext import (
    DEEPEST_DOCUMENT,
    LONGEST_NUMBER,
    DocumentError,
    read_json,
    read_json_file,
)

HOSTILE = {
    "deep lists": (b"[" * 400 + b"]" * 400, "is nested more than 64 deep"),
    "deep objects": (b'{"a":' * 400 + b"1" + b"}" * 400, "is nested more than 64 deep"),
    "never closed": (b"[" * 10**6, "is nested more than 64 deep"),
    "behind a text": (b'["]]", "\\"]", ' + b"[" * 100 + b"]" * 101, "is nested more than 64 deep"),
    "a count beyond 10^4300": (b"[" + b"9" * 4_301 + b"]", "has a number of more than 40 digits"),
    "a decimal of 600,000 digits": (b"0." + b"3" * 600_000, "has a number of more than 40 digits"),
    "one digit too many": (b"1" * (LONGEST_NUMBER + 1), "has a number of more than 40 digits"),
    "another encoding": ("[[]]".encode("utf-16"), "is not UTF-8 text"),
}


FLOODS: dict[str, Callable[[], bytes]] = {
    "1,000,000 colons": lambda: b"{" + b",".join(b'"%d":0' % i for i in range(2_000_000)) + b"}",
    "1,000,000 lists": lambda: b"[" + b"[]," * 2_000_000 + b"0]",
    "500,000 objects": lambda: b"[" + b"{}," * 2_000_000 + b"0]",
    "5,000,000 quotation marks": lambda: b"[" + b'"",' * 3_000_000 + b"0]",
    "20,000,000 commas": lambda: b"[" + b"0," * 20_000_001 + b"0]",
}


@pytest.fixture
def _no_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(json, "loads", refuse)


@pytest.mark.usefixtures("_no_parsing")
@pytest.mark.parametrize(("document", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_could_take_long_is_not_even_parsed(document: bytes, why: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(document)
    assert caught.value.reason == why


@pytest.mark.usefixtures("_no_parsing")
@pytest.mark.parametrize("most", FLOODS)
def test_a_flood_is_refused_before_it_takes_time_or_room(most: str) -> None:
    """To parse two million keys takes seconds, and hundreds of megabytes."""
    flood = FLOODS[most]()
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(DocumentError) as caught:
        read_json(flood)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.reason == f"has more than {most}"
    assert peak < 1 << 20
    assert seconds < 1


@pytest.mark.usefixtures("_no_parsing")
def test_what_is_too_large_is_not_even_parsed() -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(b" " * ((1 << 20) + 1), 1 << 20)
    assert caught.value.reason == "is larger than 1 MiB"


def test_of_a_file_no_more_is_read_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(jsontext, "read_json", lambda document, _: seen.append(len(document)))
    (tmp_path / "file.json").write_bytes(b" " * 5_000)
    read_json_file(tmp_path / "file.json", 1_000)
    assert seen == [1_001]


@pytest.mark.parametrize(
    "value",
    [
        {"text": 'a "quoted" [[[[ {{{{ \\', "more": ["\\", '"', "]" * 100, "9" * 100]},
        [10 ** (LONGEST_NUMBER - 1), -1, 0.5, 1e-9, True, None],
        [[[{"a": [{}, [], {"b": []}]}]]],
        "[" * 100,
    ],
)
def test_what_json_writes_is_read(value: Any) -> None:
    for indent in (None, 1):
        assert read_json(json.dumps(value, indent=indent).encode()) == value
        assert read_json(json.dumps(value, indent=indent, ensure_ascii=False).encode()) == value


def test_the_deepest_document_is_read() -> None:
    deepest = b"[" * DEEPEST_DOCUMENT + b"]" * DEEPEST_DOCUMENT
    assert json.loads(deepest) == read_json(deepest)
    assert read_json(b"[" + b"[]," * 1_000 + b"[]]") == [[]] * 1_001


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', "has the same key twice in one object"),
        (b"[NaN]", "holds NaN, which is not JSON"),
        (b"[-Infinity]", "holds -Infinity, which is not JSON"),
        (b'"', "is not JSON"),
        (b'"\\', "is not JSON"),
        (b"\xef\xbb\xbf[]", "is not JSON"),
        (b"]" * 100, "is not JSON"),
    ],
)
def test_what_is_not_json_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(document)
    assert caught.value.reason == why


def test_texts_without_an_end_are_passed_once() -> None:
    """Each of these quotes could start a text: to try all of them would take the square of their number in steps."""
    with pytest.raises(DocumentError):
        read_json(b'"' + b'\\"' * 500_000)
