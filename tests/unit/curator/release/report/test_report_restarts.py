"""The report of a run that was interrupted everywhere is that of a run that was not, for every kind of method."""

from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.manifest import verify_release
from tests.support.curators import approve_everywhere, copy_parties, release_files, run_study
from tests.support.studies import categorical, make_study


@pytest.mark.parametrize(
    "method",
    [
        {"name": "dp-subn"},
        {"name": "dp-subn", "update": "joint", "encoding": "vanilla"},
        {"name": "independent"},
        {"name": "dp-ccbn"},
    ],
    ids=str,
)
def test_a_restart_after_every_move_gives_the_same_page(method: dict[str, Any], tmp_path: Path) -> None:
    schema = [categorical(f"x{i}", 2 + i % 2) for i in range(3)]
    study = make_study(schema=schema, epsilon="200", method=method)
    ledgers = approve_everywhere(tmp_path / "ledgers", study)
    straight, interrupted = tmp_path / "straight", tmp_path / "interrupted"
    made = run_study(straight, study, copy_parties(study, ledgers, tmp_path / "first"))
    stops = [1 for _, kind, _ in made if kind != "published"]
    run_study(interrupted, study, copy_parties(study, ledgers, tmp_path / "second"), stops)
    files = release_files(straight, study)
    assert release_files(interrupted, study) == files
    verify_release(interrupted / "releases" / study.digest().hex(), None)
    assert b"data-edge" in files["report.html"]
