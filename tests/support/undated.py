"""Releases without the day of their publication, which is of the curator's clock and so may be wrong in a test."""

import json
from pathlib import Path

from synod.common.crypto.canonical import canonical_bytes
from synod.common.protocol.manifest import MANIFEST_FILE
from synod.curator.release.files import REPORT_FILE


def read_undated(folder: Path) -> dict[str, bytes]:
    """The files of a release as they would be on any day; hashes and seal, which depend on it, are left out."""
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    manifest = json.loads(files[MANIFEST_FILE])
    day = manifest.pop("published")
    for dependent in ("signature", "files"):
        manifest.pop(dependent)
    page = files[REPORT_FILE].replace(day.encode(), b"DAY")
    for year in (f"({day[:4]})", f"{{{day[:4]}}}"):  # as it is cited
        page = page.replace(year.encode(), b"YEAR")
    return {**files, MANIFEST_FILE: canonical_bytes(manifest), REPORT_FILE: page}
