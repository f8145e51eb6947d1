"""Fetching a release: into any empty folder, and again after it was cut off."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest

from synod.common.runtime.errors import SynodError
from synod.deploy.launch.operator import OperatorClient
from synod.v1 import study_pb2 as pb

FILES = {"manifest.json": b"{}", "synthetic.csv": b"a\n1\n"}


def client_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: int) -> OperatorClient:
    """A client whose curator sends so many files, and then goes away."""

    def send(*_: object, **__: object) -> Iterator[pb.FetchReleaseResponse]:
        for name, content in list(FILES.items())[:files]:
            yield pb.FetchReleaseResponse(file_name=name, chunk=content)
        if files < len(FILES):
            raise grpc.RpcError

    client = OperatorClient.__new__(OperatorClient)
    client._address = "curator:7443"
    client._stub = SimpleNamespace(FetchRelease=send)  # type: ignore[assignment]
    monkeypatch.chdir(tmp_path)
    return client


@pytest.mark.parametrize("out", [".", "new", "new/below"])
def test_where_one_stands_and_where_nothing_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: str) -> None:
    client_of(monkeypatch, tmp_path, len(FILES)).fetch("survey", Path(out))
    assert {path.name: path.read_bytes() for path in Path(out).iterdir()} == FILES


def test_what_was_cut_off_is_fetched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SynodError):
        client_of(monkeypatch, tmp_path, 1).fetch("survey", Path("out"))
    assert not (Path("out") / "manifest.json").exists()
    client_of(monkeypatch, tmp_path, len(FILES)).fetch("survey", Path("out"))
    assert {path.name for path in Path("out").iterdir()} == set(FILES)


def test_a_refused_fetch_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SynodError):
        client_of(monkeypatch, tmp_path, 0).fetch("survey", Path("out"))
    assert not Path("out").exists()


def test_a_folder_with_something_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(SynodError, match="is not an empty folder"):
        client_of(monkeypatch, tmp_path, len(FILES)).fetch("survey", Path())
