"""Releases that the console has fetched: verified, and kept in a folder of this process alone until it ends."""

import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synod.common.runtime.errors import Code, SynodError
from synod.curator.release.redraw import check_release

REPORT_FILE = "report.html"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A verified release: its folder, what was checked, what that does not prove, and its files with their sizes."""

    folder: Path
    lines: tuple[str, ...]
    unproven: tuple[str, ...]
    files: tuple[tuple[str, int], ...]

    def path_of(self, name: str) -> Path:
        """The file of this name, if the release has it."""
        if name not in dict(self.files):
            raise SynodError(Code.NOT_FOUND, "the release has no such file.")
        return self.folder / name


class Releases:
    """Fetches each release once, with `fetch(name, folder)`; the folder is removed when the console ends."""

    def __init__(self, fetch: Callable[[str, Path], None]) -> None:
        self._fetch, self._lock = fetch, threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="synod-console-"))
        self._known: dict[str, Fetched] = {}

    def close(self) -> None:
        """Removes what was fetched."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def find(self, name: str, study_hash: str) -> Fetched:
        """The release of a published study, fetched and verified as `synod study fetch` does."""
        with self._lock:
            if study_hash not in self._known:
                folder = self._folder / study_hash
                shutil.rmtree(folder, ignore_errors=True)
                self._fetch(name, folder)
                checked = check_release(folder, None)
                files = tuple((path.name, path.stat().st_size) for path in sorted(folder.iterdir()))
                self._known[study_hash] = Fetched(folder, tuple(checked.lines), tuple(checked.unproven), files)
            return self._known[study_hash]

    def pack(self, name: str, fetched: Fetched) -> Path:
        """All files as one archive, with a folder of the study's name in it."""
        path = fetched.folder.with_suffix(".zip")
        with self._lock:
            if not path.exists():
                draft = path.with_suffix(".draft")
                with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                    for file, _ in fetched.files:
                        archive.write(fetched.folder / file, f"{name}/{file}")
                draft.rename(path)
        return path
