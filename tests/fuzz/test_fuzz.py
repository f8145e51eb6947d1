"""Readers of bytes from outside: the kept corpus, and mutations of sound documents for two minutes in all."""

from pathlib import Path
from random import Random

import pytest

from synod.common.runtime.errors import Code, SynodError, invalid
from tests.support.fuzz import runs
from tests.support.fuzz.mutations import mutate
from tests.support.fuzz.runs import FindingError, run_mutations, run_once
from tests.support.fuzz.targets import CORPUS, TARGETS, seeds

SECONDS_IN_ALL = 120


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", TARGETS)
def test_the_kept_corpus_is_read_or_refused(name: str) -> None:
    for data in seeds(name):
        run_once(TARGETS[name], data)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_kept_is_refused(path: Path) -> None:
    """Every file of the corpus is hostile; a reader that only looked away would let it pass."""
    with pytest.raises(SynodError):
        TARGETS[path.parent.name](path.read_bytes())


def test_every_file_of_the_corpus_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_read_or_refused(name: str, tmp_path: Path) -> None:
    assert run_mutations(name, SECONDS_IN_ALL / len(TARGETS), rng=Random(name), findings=tmp_path) > 10


@pytest.mark.parametrize("foreign", [ValueError("x"), KeyError("x"), RecursionError(), AssertionError(), MemoryError()])
def test_any_other_error_is_a_finding(foreign: Exception) -> None:
    def read(data: bytes) -> None:
        raise foreign

    with pytest.raises(FindingError, match=type(foreign).__name__):
        run_once(read, b"")


def test_an_error_without_a_sentence_is_a_finding() -> None:
    def read(data: bytes) -> None:
        raise SynodError(Code.INVALID, "")

    with pytest.raises(FindingError, match="without a sentence"):
        run_once(read, b"")


def test_what_takes_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> None:
        sum(range(10**6))

    monkeypatch.setattr(runs, "LONGEST_SECONDS", 0.001)
    with pytest.raises(FindingError, match="it took more than"):
        run_once(read, b"")


def test_a_finding_keeps_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(data: bytes) -> None:
        raise KeyError

    monkeypatch.setitem(TARGETS, "table", read)
    with pytest.raises(FindingError, match="KeyError"):
        run_mutations("table", 5, rng=Random(1), findings=tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("table-")


def test_mutations_reach_every_part_of_a_document() -> None:
    rng = Random(3)
    changed = {mutate(b'{"a":[1,{"b":"c"}],"d":2}', rng=rng) for _ in range(300)}
    assert len(changed) > 200
    assert any(b'"a":[2,{"b":"c"}],"d":2' in data for data in changed)
    assert any(data.startswith(b'{"a":[1,{"b":"c"}],"d":') for data in changed)


def test_an_error_is_one_line_that_a_terminal_can_show() -> None:
    error = invalid("the key \x1b[2J\n\ud800 is not known." + "x" * 5_000, "Look\nhere.")
    assert str(error).isprintable()
    assert error.sentence.startswith("the key \N{REPLACEMENT CHARACTER}[2J")
    assert len(str(error)) < 2_100
