"""The comparison of sources: every source gives the same snapshot and numbers, and each part has its figures."""

import os
from pathlib import Path

import pytest

from bench import sources
from bench.sources import PARTS, SCHEMA, SOURCES, choose_views, make_study, measure_source
from synod.common.study.features import features_of

ROWS = 3000


@pytest.fixture
def peaks_may_begin_anew() -> None:
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the peak of memory of a part is read from Linux")


@pytest.mark.usefixtures("peaks_may_begin_anew")
def test_all_sources_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 1000)
    found = {}
    for name in ("csv", "parquet", "duckdb"):
        write, _ = SOURCES[name]
        write(tmp_path / f"table.{name}", ROWS)
        found[name] = measure_source(name, tmp_path / f"table.{name}", ROWS)
    assert len({figures["digest"] for figures in found.values()}) == 1
    for figures in found.values():
        assert all(figures[f"{part}_cpu_s"] > 0 and figures[f"{part}_peak_mib"] > 0 for part in PARTS)
        assert 7.75 <= figures["disk_bytes_a_row"] < 9, "62 bits a row, and a head for each file"


def test_the_table_is_the_one_that_its_titles_say() -> None:
    study = make_study(10, {"name": "independent", "encoding": "binary"})
    views = choose_views(len(features_of(study)))
    assert (len(SCHEMA), len(features_of(study))) == (20, 62)
    assert (len(views), {len(set(view)) for view in views}) == (57, {8})


def test_ratios_are_before_over_now() -> None:
    now = {f"{part}_{unit}": 2.0 for part in PARTS for unit in ("cpu_s", "peak_mib")}
    before = {key: 3 * figure for key, figure in now.items()}
    found = sources.ratios({"before csv": before, "now csv": now}, ["csv"])
    assert found["csv_encode_cpu_s_ratio"] == found["csv_views_peak_mib_ratio"] == 3
