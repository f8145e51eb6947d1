"""The report of a run that was interrupted everywhere is that of a run that was not, for every kind of method."""

import re
from pathlib import Path
from typing import Any

import pytest

from synod.common.protocol.manifest import verify_release
from synod.curator.methods.base import publisher_of
from synod.curator.release.redraw import redraw_rows
from tests.support.curators import approve_everywhere, copy_parties, release_files, run_study
from tests.support.studies import binary, categorical, integer, make_study, real

MIXED = [
    categorical("ward", 4),
    integer("age", 0, 100, bins=6, spikes=[0, 100], nullable=True),
    real("pay", "-1", "9", bins=3),
    categorical("one", 1),
]
POOLED = {"name": "privbayes", "structure": "pooled"}
ALONE = {"name": "hpprivbayes", "sensitive": ["pay"], "order": "schema", "weights": {"ward": [1, 2, 3, 4]}}


@pytest.mark.parametrize(
    "changes",
    [
        {"method": {"name": "dp-subn"}},
        {"method": {"name": "dp-subn", "update": "joint", "encoding": "vanilla"}},
        {"method": {"name": "independent"}},
        {"method": {"name": "dp-ccbn"}},
        {"method": {"name": "privbayes"}},
        {"method": {"name": "privbayes"}, "schema": MIXED, "delta": "1e-9"},
        {"method": POOLED, "schema": MIXED},
        {"method": POOLED, "delta": "1e-9", "names": ("north",), "rows": (150,), "collusion": 0},
        {"method": {"name": "privbayes"}, "schema": MIXED, "names": ("north",), "rows": (150,), "collusion": 0},
        {"method": {"name": "hpprivbayes"}},
        {"method": {"name": "hpprivbayes", "weights": "rare"}, "schema": MIXED, "delta": "1e-9"},
        {"method": ALONE, "schema": MIXED, "names": ("north",), "rows": (150,), "collusion": 0},
        {"method": {"name": "independent", "encoding": "hierarchical"}, "schema": MIXED},
        {"method": {"name": "adaptive", "rounds": 5}, "schema": MIXED, "delta": "1e-9"},
        {"method": {"name": "adaptive", "rounds": 3}},
        {"method": {"name": "distdiffgen", "target": "ward"}, "schema": MIXED, "delta": "1e-9"},
        {"method": {"name": "distdiffgen"}},
        {"method": {"name": "adaptive"}, "schema": [binary(f"x{i}") for i in range(4)], "delta": "1e-9"},
        {"method": {"name": "histogram", "attributes": ["pay", "ward"]}, "schema": MIXED},
        {"method": {"name": "dpcocgen"}, "schema": MIXED, "epsilon": "3"},
        {"method": {"name": "dpcocgen", "parts": 4}, "schema": MIXED, "delta": "1e-9", "epsilon": "9"},
    ],
    ids=[
        *("dp-subn", "dp-subn, joint", "independent", "dp-ccbn", "privbayes", "privbayes, levels"),
        *("privbayes, pooled", "privbayes, pooled, one party", "privbayes, one party"),
        *("hpprivbayes", "hpprivbayes, rare values", "hpprivbayes, one party"),
        *("independent, levels", "adaptive", "adaptive, pure"),
        *("distdiffgen", "distdiffgen, pure", "adaptive, two values"),
        *("histogram", "dpcocgen", "dpcocgen, four parts"),
    ],
)
def test_a_restart_after_every_move_gives_the_same_page(changes: dict[str, Any], tmp_path: Path) -> None:
    schema = [categorical(f"x{i}", 2 + i % 2) for i in range(3)]
    study = make_study(**{"schema": schema, "epsilon": "200", **changes})
    ledgers = approve_everywhere(tmp_path / "ledgers", study)
    straight, interrupted = tmp_path / "straight", tmp_path / "interrupted"
    made = run_study(straight, study, copy_parties(study, ledgers, tmp_path / "first"))
    stops = [1 for _, kind, _ in made if kind != "published"]
    run_study(interrupted, study, copy_parties(study, ledgers, tmp_path / "second"), stops)
    files = release_files(straight, study)
    assert release_files(interrupted, study) == files
    folder = interrupted / "releases" / study.digest().hex()
    verify_release(folder, None)
    drawn_again = redraw_rows(folder, study, 7)
    assert bool(drawn_again) == (publisher_of(study).draw is not None)
    if study.method.name in ("dp-subn", "independent", "dp-ccbn", "privbayes", "hpprivbayes"):
        assert re.search(rb"data-(edge|pair)", files["report.html"])
