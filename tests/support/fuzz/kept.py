"""Runs of all methods, from the kept releases, for readers that need a study."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.protocol.queries.parsing import AnyQuery, read_query
from synod.common.protocol.transcript import Transcript, parse_transcript
from synod.common.study.study import Study, parse_study

RELEASES = sorted((Path(__file__).parents[2] / "data").glob("release-0.1-*"))


@dataclass(frozen=True)
class KeptRun:
    """What the manifest of a kept release says."""

    folder: Path
    manifest: dict[str, Any]
    study: Study
    transcript: Transcript
    queries: dict[str, AnyQuery]


@cache
def kept_runs() -> dict[str, KeptRun]:
    """A run of each method, from the kept releases."""
    found = {}
    for folder in RELEASES:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        study = parse_study(manifest["study"], "a kept study")
        queries = {label: read_query(query, study) for label, query in manifest["queries"].items()}
        transcript = parse_transcript(manifest["transcript"])
        found[study.method.name] = KeptRun(folder, manifest, study, transcript, queries)
    return found
