"""Files that are read again when they change, and only then; what is refused does not replace what was good."""

from pathlib import Path

import pytest

from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.watched import Watched


class Reader:
    """Reads a file as a number that may only grow, and counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reads = 0
        self.refused: list[str] = []

    def read(self, before: int | None) -> int:
        self.reads += 1
        text = self.path.read_text() if self.path.exists() else ""
        if not text.isdigit() or (before is not None and int(text) < before):
            raise invalid(f"{text!r} is not a number that grew.")
        return int(text)

    def reject(self, error: SynodError) -> None:
        self.refused.append(error.sentence)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "number").write_text("5")
    return Reader(tmp_path / "number")


def test_nothing_is_read_twice_without_a_change(reader: Reader) -> None:
    watched = Watched([reader.path], reader.read, reject=reader.reject)
    assert [watched.current() for _ in range(3)] == [5, 5, 5]
    assert reader.reads == 1


def test_a_change_is_read_once(reader: Reader) -> None:
    watched = Watched([reader.path], reader.read, reject=reader.reject)
    reader.path.write_text("17")
    assert [watched.current() for _ in range(3)] == [17, 17, 17]
    assert (reader.reads, reader.refused) == (2, [])


def test_a_file_of_the_same_length_moved_into_place_is_a_change(reader: Reader) -> None:
    watched = Watched([reader.path], reader.read, reject=reader.reject)
    (reader.path.parent / "new").write_text("7")
    (reader.path.parent / "new").replace(reader.path)
    assert watched.current() == 7


def test_a_link_that_points_elsewhere_is_a_change(reader: Reader) -> None:
    """As Kubernetes replaces the files of a secret."""
    link = reader.path.with_name("link")
    link.symlink_to(reader.path)
    reader.path.with_name("next").write_text("8")
    linked = Reader(link)
    watched = Watched([link], linked.read, reject=linked.reject)
    link.unlink()
    link.symlink_to(reader.path.with_name("next"))
    assert watched.current() == 8


@pytest.mark.parametrize("content", ["4", "half a fi", None])
def test_what_is_refused_is_told_once_and_the_last_good_value_stays(reader: Reader, content: str | None) -> None:
    watched = Watched([reader.path], reader.read, reject=reader.reject)
    reader.path.unlink()
    if content is not None:
        reader.path.write_text(content)
    assert [watched.current() for _ in range(3)] == [5, 5, 5]
    assert len(reader.refused) == 1
    reader.path.write_text("600")
    assert watched.current() == 600


def test_the_first_reading_must_succeed(reader: Reader) -> None:
    reader.path.write_text("none")
    with pytest.raises(SynodError, match="is not a number"):
        Watched([reader.path], reader.read, reject=reader.reject)
