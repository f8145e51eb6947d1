"""The grid and its keys: what is measured, and that a rerun finds it again."""

from dataclasses import replace

import pytest

from bench.reproduction.grid import KINDS, full_grid, quick_grid
from bench.reproduction.points import EPSILONS, METHODS, PARTIES, Point

SOURCES = {"nltcs": "aaa", "adult": "bbb"}


def test_a_key_is_the_same_in_every_run() -> None:
    point = Point("release", "dp-subn", "nltcs", "made", 3, "0.2", seed=4)
    assert point.key == (
        '{"contribution":"","epsilon":"0.2","features":0,"kind":"release","method":"dp-subn","parties":3,'
        '"seed":4,"source":"made","table":"nltcs"}'
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "views"},
        {"method": "independent"},
        {"table": "adult"},
        {"source": "made"},
        {"parties": 4},
        {"epsilon": "0.4"},
        {"contribution": "0.5"},
        {"features": 8},
        {"setting": "3"},
        {"seed": 1},
    ],
)
def test_every_setting_is_in_the_key(change: dict[str, object]) -> None:
    point = Point("release", "dp-subn", "nltcs", "aaa", 3, "0.2")
    assert replace(point, **change).key != point.key  # type: ignore[arg-type]


def test_the_grid_has_every_point_once() -> None:
    points = full_grid(5, 2).points(SOURCES)
    assert len({point.key for point in points}) == len(points)
    releases = [p for p in points if p.kind == "release" and not p.contribution and p.table == "adult"]
    assert {(p.epsilon, p.parties) for p in releases} == {
        *((epsilon, 3) for epsilon in EPSILONS),
        *(("0.2", parties) for parties in PARTIES),
    }
    assert {p.method for p in releases} == set(METHODS)
    assert {p.seed for p in releases} == {0, 1}


def test_one_run_of_everything_comes_before_the_next() -> None:
    seeds = [point.seed for point in full_grid(3, 2).points(SOURCES)]
    assert seeds == sorted(seeds)


def test_later_seeds_alone() -> None:
    every, later = full_grid(5, 4).points(SOURCES), replace(full_grid(5, 4), first_seed=3).points(SOURCES)
    drawn = [point for point in every if point.kind not in {"cover", "candidates"}]
    assert later == [point for point in drawn if point.seed >= 3]
    assert {(point.table, point.seed) for point in later} == {("nltcs", 3), ("nltcs", 4), ("adult", 3)}


def test_every_kind_of_a_point_can_be_asked_for() -> None:
    assert {point.kind for point in full_grid(1, 1).points(SOURCES)} <= set(KINDS)
    only = replace(full_grid(1, 1), kinds=("views",)).points(SOURCES)
    assert {point.kind for point in only} == {"views"}


def test_the_quick_grid_is_small_and_a_part_of_the_full_one() -> None:
    quick = {point.key for point in quick_grid().points(SOURCES)}
    assert 30 < len(quick) < 100
    assert quick <= {point.key for point in full_grid(1, 0).points(SOURCES)}
