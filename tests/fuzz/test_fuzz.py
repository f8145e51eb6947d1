"""Readers of bytes from outside: the kept corpus, and mutations of sound documents for two minutes in all."""

import sys
from pathlib import Path
from random import Random

import pytest

from synod.common.runtime.errors import Code, SynodError, invalid
from tests.support.fuzz import runs, units
from tests.support.fuzz.mutations import mutate
from tests.support.fuzz.runs import FindingError, run_mutations, run_once
from tests.support.fuzz.targets import CORPUS, TARGETS, UNITS, seeds
from tests.support.fuzz.units import LARGEST_UNIT_BYTES, MOST_BYTES_OF_A_TARGET, Units, read_units

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
    more = read_units(UNITS / name)
    assert run_mutations(name, SECONDS_IN_ALL / len(TARGETS), rng=Random(name), findings=tmp_path, more=more) > 10


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


def read_branches(data: bytes) -> None:
    """A reader whose lines are the program's, as far as the trace can see."""
    code = compile("x = 1\nif data[:1] == b'Q':\n    x = 2\nif data[:2] == b'QR':\n    x = 3\n", "/synod/x.py", "exec")
    exec(code, {"data": data})


def test_units_are_the_smallest_inputs_that_reach_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "table", read_branches)
    units = Units("table", tmp_path)
    for data in (b"zzz", b"Q....", b"Q", b"QR....", b"QR"):
        units.offer(data)
    assert units.kept == [b"Q....", b"QR...."]
    (tmp_path / "table" / "given").write_bytes(b"QR")
    (tmp_path / "table" / "large").write_bytes(b"QR" + bytes(LARGEST_UNIT_BYTES))
    assert Units("table", tmp_path).kept == [b"QR"]
    assert [path.read_bytes() for path in (tmp_path / "table").iterdir()] == [b"QR"]
    assert Units("table", tmp_path).kept == [b"QR"]


def test_units_have_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "table", read_branches)
    monkeypatch.setattr(units, "MOST_BYTES_OF_A_TARGET", 5)
    kept = Units("table", tmp_path)
    for data in (b"Q...", b"QR"):
        kept.offer(data)
    assert kept.kept == [b"Q..."]


def test_a_finding_is_one_with_units_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Units("table", tmp_path)
    before = sys.gettrace()
    monkeypatch.setattr(kept, "_read", [].index)
    with pytest.raises(FindingError, match="ValueError"):
        kept.offer(b"")
    assert sys.gettrace() is before


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", TARGETS)
def test_the_kept_units_are_read_or_refused_and_few(name: str) -> None:
    kept = list((UNITS / name).glob("*"))
    assert all(path.stat().st_size <= LARGEST_UNIT_BYTES for path in kept)
    assert sum(path.stat().st_size for path in kept) <= MOST_BYTES_OF_A_TARGET
    for path in kept:
        run_once(TARGETS[name], path.read_bytes())


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
