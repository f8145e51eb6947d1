"""The operator's end of the wire: submit, status, fetch, lose, abort."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import grpc

from synod.common.crypto.canonical import canonical_bytes
from synod.common.crypto.certificates import read_tls
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.files import naming
from synod.common.runtime.settings import OperatorSettings
from synod.common.runtime.wire import CALL_SECONDS, UPLOAD_SECONDS, explain, open_channel
from synod.common.study.study import Study
from synod.v1 import study_pb2 as pb
from synod.v1 import study_pb2_grpc as rpc

KEYGEN_SECONDS = 300.0
DRAFT = ".draft"
MOST_STUDIES = 1_000_000
T = TypeVar("T")


class OperatorClient:
    """A connection to the curator's admin service."""

    def __init__(self, settings: OperatorSettings) -> None:
        self._address = settings.address
        self._channel = open_channel(settings.address, read_tls(settings.tls), proxy=settings.proxy)
        self._stub = rpc.StudyServiceStub(self._channel)

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def submit(self, study: Study) -> bytes:
        """Hands over a resolved study; returns its hash. The curator makes the study's key meanwhile."""
        request = pb.SubmitStudyRequest(study=canonical_bytes(study.to_json()))
        return self._call(lambda: self._stub.SubmitStudy(request, timeout=KEYGEN_SECONDS)).study_hash

    def status(self, name: str = "") -> list[pb.StudyStatus]:
        """How studies stand: the one of this name, or all, newest first."""
        found = self._call(lambda: self._stub.GetStatus(pb.GetStatusRequest(name=name), timeout=CALL_SECONDS))
        studies = list(found.studies)
        while found.older and found.studies:
            request = pb.GetStatusRequest(after=studies[-1].study_hash)
            found = self._call(partial(self._stub.GetStatus, request, timeout=CALL_SECONDS))
            studies += found.studies
            if len(studies) > MOST_STUDIES:
                raise SynodError(Code.CHECK_FAILED, "the curator lists studies without end.")
        return studies

    def newest(self) -> tuple[list[pb.StudyStatus], int]:
        """How the newest studies stand, as many as one message holds, and how many older ones there are."""
        found = self._call(lambda: self._stub.GetStatus(pb.GetStatusRequest(), timeout=CALL_SECONDS))
        return list(found.studies), found.older

    def abort(self, name: str) -> None:
        """Ends a study."""
        self._call(lambda: self._stub.AbortStudy(pb.AbortStudyRequest(name=name), timeout=CALL_SECONDS))

    def lose(self, name: str, party: str, reason: str) -> str:
        """Declares a party lost; returns what follows, in one sentence."""
        (study,) = self.status(name)
        request = pb.LosePartyRequest(study_hash=study.study_hash, party=party, reason=reason)
        return self._call(lambda: self._stub.LoseParty(request, timeout=CALL_SECONDS)).effect

    def fetch(self, name: str, folder: Path) -> None:
        """Writes a release into a new or empty folder; what was cut off counts as nothing, and is fetched again.

        The draft is inside of the folder, which may be a mounted one, or where the operator stands.
        """
        require_empty(folder)
        draft = folder / DRAFT
        shutil.rmtree(draft, ignore_errors=True)
        self._call(lambda: self._fetch(name, draft))
        for path in draft.iterdir():
            path.rename(folder / path.name)
        draft.rmdir()

    def _fetch(self, name: str, folder: Path) -> None:
        current: Path | None = None
        for part in self._stub.FetchRelease(pb.FetchReleaseRequest(name=name), timeout=UPLOAD_SECONDS):
            if part.file_name:
                if Path(part.file_name).name != part.file_name:
                    raise SynodError(Code.CHECK_FAILED, "the curator sent a file name with a path in it.")
                folder.mkdir(parents=True, exist_ok=True)
                current = folder / part.file_name
                current.write_bytes(b"")
            if current is None:
                raise SynodError(Code.CHECK_FAILED, "the curator sent a release without file names.")
            with naming(current), current.open("ab") as file:
                file.write(part.chunk)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except grpc.RpcError as error:
            raise explain(error, self._address) from None


def require_empty(folder: Path) -> None:
    """Refuses a folder that holds something already."""
    if folder.exists() and (not folder.is_dir() or any(path.name != DRAFT for path in folder.iterdir())):
        raise invalid(f"{folder} is not an empty folder.", "Name another --out, or remove it first.")
