"""Limits: no query that a recipe really asks is larger than its step allows, and what is absurd is refused early."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synod.common.methods.dp_ccbn import DpCcbn, candidate_families, largest_sum, uniform_sum
from synod.common.methods.networks import resolved, share_draws, tables_limit, views_limit
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, check_within
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.covers.coarse import ask_views
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.views import design_views, overlapping_views
from synod.deploy import simulate
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.studies import Attribute, binary, categorical, draw_columns, integer, make_study, real

SHAPES: dict[str, list[Attribute]] = {
    "bits": [binary(f"x{i}") for i in range(6)],
    "few": [categorical("a", 3), binary("b"), categorical("c", 5)],
    "one large": [categorical("a", 60), binary("b"), binary("c")],
    "last large": [binary("a"), categorical("b", 4), categorical("c", 60)],
    "two": [binary("a"), binary("b")],
    "one": [categorical("a", 5)],
    "constants and gaps": [
        categorical("a", 1),
        categorical("b", 1, nullable=True),
        integer("c", 0, 9, nullable=True),
        integer("d", 3, 3),
        real("e", "0", "1", bins=3),
    ],
}
METHODS: dict[str, dict[str, Any]] = {
    "hpdp-dp": {"name": "hpdp-dp", "link": "linear"},
    "dp-subn": {"name": "dp-subn"},
    "dp-subn, small views": {"name": "dp-subn", "max_view_cells": 4, "max_candidates": 100, "theta": "0.1"},
    "dp-subn, overlapping": {"name": "dp-subn", "cover": "overlapping", "max_view_cells": 16, "theta": "0.1"},
    "dp-subn, joint": {"name": "dp-subn", "update": "joint", "theta": "0.1", "theta_frontier": "0.1"},
    "dp-ccbn": {"name": "dp-ccbn", "theta": "0.5"},
    "independent": {"name": "independent", "theta": "0.1"},
    "adaptive": {"name": "adaptive"},
    "distdiffgen": {"name": "distdiffgen", "theta": "0.1"},
    "distdiffgen, few splits": {"name": "distdiffgen", "theta": "0.01", "specializations": 2, "split": "0.9"},
    "histogram": {"name": "histogram"},
    "dpcocgen": {"name": "dpcocgen"},
    "dpcocgen, finest": {"name": "dpcocgen", "parts": 10_000},
    "dpcocgen, coarse": {"name": "dpcocgen", "parts": 2},
    "privbayes": {"name": "privbayes", "theta": "0.1"},
    "privbayes, pooled": {"name": "privbayes", "structure": "pooled", "theta": "0.1", "max_candidates": 100},
    "hpprivbayes": {"name": "hpprivbayes", "theta": "0.1"},
    "hpprivbayes, rare values": {"name": "hpprivbayes", "theta": "0.1", "weights": "rare", "max_candidates": 100},
    "privbayes, few candidates": {"name": "privbayes", "theta": "0.1", "max_candidates": 100, "degree": 2},
}
WITHOUT_ENCODING = ("hpdp-dp", "adaptive", "distdiffgen", "histogram", "dpcocgen")
ENCODINGS = ("vanilla", "binary", "gray")
WITH_LEVELS = ("dp-subn", "independent", "privbayes", "hpprivbayes")
WITHOUT_BITS = ("hpprivbayes",)


def study_of(method: dict[str, Any], schema: list[Attribute], encoding: str = "", **changes: Any) -> Study:
    keys = {"encoding": encoding} if encoding and method["name"] not in WITHOUT_ENCODING else {}
    if method["name"] in WITHOUT_BITS and encoding in ("binary", "gray"):
        keys = {}
    return make_study(
        **{"method": {**method, **keys}, "schema": schema, "rows": (70, 90, 110), "epsilon": "60", **changes}
    )


def publish(study: Study, seed: int = 1) -> None:
    """Runs the recipe; the parties refuse a query that is larger than its step allows."""
    check_feasible(study)
    tables = [draw_columns(study, name, seed) for name in study.party_names]
    publication = publish_in_process(study, tables, coins=seeded(seed), rng=np.random.default_rng(seed))
    assert len(publication.columns[0]) == study.rows


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("schema", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_recipes_stay_within_the_limits_of_their_plan(
    method: dict[str, Any], schema: list[Attribute], encoding: str
) -> None:
    publish(study_of(method, schema, encoding))


@pytest.mark.parametrize("schema", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(
    "method",
    [
        "independent",
        "privbayes",
        "privbayes, pooled",
        "privbayes, few candidates",
        "hpprivbayes",
        "hpprivbayes, rare values",
        *(name for name in METHODS if "dp-subn" in name),
    ],
)
def test_recipes_over_levels_stay_within_the_limits_of_their_plan(method: str, schema: list[Attribute]) -> None:
    tree = {"name": "tree", "type": "categorical", "taxonomy": ["a", ["b", "c", ["d", "e"]], ["f", "g"]]}
    wide = [{**attribute, "name": f"{attribute['name']} again"} for attribute in schema]
    for attributes in ([*schema, tree], [*schema, tree, *wide, integer("fine", 0, 99, bins=16)]):
        publish(study_of(METHODS[method], attributes, "hierarchical"))


@st.composite
def studies(draw: st.DrawFn) -> Study:
    sizes = draw(
        st.lists(st.integers(1, 9), min_size=2, max_size=5).filter(lambda sizes: sum(s > 1 for s in sizes) > 1)
    )
    name = draw(st.sampled_from(["dp-subn", "dp-ccbn", "independent", "privbayes", "hpprivbayes"]))
    cells = st.just("auto") | st.integers(0, 40)
    flat = ("vanilla",) if name in WITHOUT_BITS else ENCODINGS
    encodings = (*flat, "hierarchical") if name in WITH_LEVELS else flat
    keys: dict[str, Any] = {"encoding": draw(st.sampled_from(encodings)), "max_candidates": draw(st.integers(100, 200))}
    if name == "dp-subn":
        keys |= {
            "parameter_cells": draw(cells),
            "frontier_cells": draw(cells),
            "max_view_cells": draw(st.integers(4, 99)),
        }
        keys |= {"update": draw(st.sampled_from(["sequential", "joint"]))}
        covers = ["best", "overlapping", *(["nocd"] if keys["encoding"] in ("binary", "gray") else [])]
        keys |= {"cover": draw(st.sampled_from(covers))}
    elif name == "privbayes":
        keys |= {"parameter_cells": draw(cells), "degree": draw(st.none() | st.integers(0, 4))}
        keys |= {"structure": draw(st.sampled_from(["turns", "pooled"]))}
    elif name == "hpprivbayes":
        keys |= {"parameter_cells": draw(cells), "degree": draw(st.none() | st.integers(0, 4))}
        keys |= {"max_view_cells": draw(st.integers(4, 99)), "order": draw(st.sampled_from(["information", "schema"]))}
        keys |= {"weights": draw(st.sampled_from(["rare", "frequent", "none"]))}
    elif name == "dp-ccbn":
        keys |= {"parameter_cells": draw(cells), "max_numbers": draw(st.integers(1, 300))}
    else:
        keys |= {"table_cells": draw(st.just("auto") | st.lists(st.integers(0, 40), min_size=3, max_size=3))}
    kinds = (categorical, lambda name, size, **more: integer(name, 0, size - 1, bins=size, **more))
    schema = [draw(st.sampled_from(kinds))(f"x{i}", n, nullable=draw(st.booleans())) for i, n in enumerate(sizes)]
    return study_of({"name": name, **keys}, schema, max_rows_per_unit=draw(st.integers(1, 3)))


@settings(max_examples=60, deadline=None)
@given(studies(), st.integers(0, 999))
def test_recipes_stay_within_whatever_limits_a_study_writes(study: Study, seed: int) -> None:
    if isinstance(study.method, DpCcbn):
        most = study.method.max_numbers
        if largest_sum(study, resolved(study.method.parameter_cells), most) > most:
            return
    publish(study, seed)


@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_every_method_publishes_for_persons_with_several_rows(method: dict[str, Any], delta: str | None) -> None:
    publish(study_of(method, SHAPES["few"], delta=delta, max_rows_per_unit=3))


def sizes_of_plan(method: dict[str, Any], epsilon: str, rows_per_unit: int) -> tuple[Any, Any]:
    study = study_of(method, SHAPES["few"], epsilon=epsilon, max_rows_per_unit=rows_per_unit, rows=(7000, 9000, 11000))
    return study.method, [step.limit for step in plan_study(study).steps]


def test_the_rules_of_every_method_know_the_noise_for_several_rows() -> None:
    """Under pure epsilon three rows at three times the epsilon have the noise of one row: rounds, shares and sizes that
    follow from noise are the same, and others than those of one row at the larger epsilon.
    """
    noticed = set()
    for method in METHODS.values():
        for one, three in (("1", "3"), ("0.1", "0.3"), ("0.003", "0.009"), ("0.01", "0.03"), ("0.0003", "0.0009")):
            try:
                expected = sizes_of_plan(method, one, 1)
            except SynodError:
                with pytest.raises(SynodError):
                    sizes_of_plan(method, three, 3)
                continue
            assert sizes_of_plan(method, three, 3) == expected, (method, three)
            if sizes_of_plan(method, three, 1) != expected:
                noticed.add(method["name"])
    by_noise = {"dp-subn", "dp-ccbn", "independent", "privbayes", "hpprivbayes", "adaptive", "distdiffgen"}
    assert noticed == by_noise, "the others count what they count, whatever its noise is"


def test_a_recipe_that_asks_for_more_would_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above can fail: for each kind of query that is counted, a limit of one less than is asked."""
    asked: dict[QueryKind, tuple[Query[Any], Study, str]] = {}

    def record(query: Query[Any], step: Any, study: Study) -> None:
        check_within(query, step, study)
        asked[query.kind] = (query, study, step.label)

    monkeypatch.setattr(simulate, "check_within", record)
    for name in ("hpdp-dp", "dp-subn, small views", "dp-subn, joint", "adaptive"):
        publish(study_of(METHODS[name], SHAPES["bits"]))
    assert set(asked) == set(QueryKind)
    for kind, (query, study, label) in asked.items():
        step = plan_study(study).step(label)
        for part, number in asdict(query.size(study)).items():
            if part != "score" and number:
                with pytest.raises(SynodError, match="larger than the approved plan allows"):
                    check_within(query, replace(step, limit=replace(step.limit, **{part: number - 1})), study)
        assert kind is step.kind


# The limits themselves


@pytest.mark.parametrize("max_cells", [4, 5, 16, 100, 256, 4096])
@pytest.mark.parametrize(
    "sizes",
    [
        *[(2,) * d for d in (2, 3, 4, 7, 8, 13, 16, 21, 31, 40, 52)],
        *[(3,) * d for d in (2, 5, 13)],
        (2, 3),
        (2, 2, 3),
        (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 16, 16, 16, 41, 2),
        (300, 2, 2, 2, 2, 2),
        (70, 80, 2, 3),
        (2, 3, 4, 5, 6, 7, 8, 9),
        (65, 65, 65),
    ],
    ids=lambda sizes: f"{len(sizes)} of {max(sizes)}",
)
def test_the_limit_of_views_is_above_all_that_is_asked(sizes: tuple[int, ...], max_cells: int) -> None:
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    study = make_study(method={"name": "dp-subn", "encoding": "vanilla"}, schema=schema)
    limit = views_limit(study, max_cells)
    asked = SumMarginals(design_views(sizes_of(study), max_cells)).size(study)
    assert asked.numbers <= limit.numbers
    assert asked.tables <= limit.tables
    assert asked.cells <= limit.cells


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 12), min_size=2, max_size=9), st.integers(4, 600))
def test_the_limit_of_views_is_above_all_that_is_asked_of_any_sizes(sizes: list[int], max_cells: int) -> None:
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    study = make_study(method={"name": "dp-subn", "encoding": "vanilla"}, schema=schema)
    limit = views_limit(study, max_cells)
    asked = SumMarginals(design_views(sizes_of(study), max_cells)).size(study)
    assert all(asdict(asked)[part] <= most for part, most in asdict(limit).items())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=2, max_size=9), st.integers(4, 600))
@example([2] * 9, 256)
def test_the_limit_of_views_holds_where_large_pairs_are_grouped_and_views_overlap(
    sizes: list[int], max_cells: int
) -> None:
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    study = make_study(method={"name": "dp-subn", "encoding": "vanilla"}, schema=schema)
    for overlapping, lay in ((False, design_views), (True, overlapping_views)):
        limit = views_limit(study, max_cells, whole_pairs=False, overlapping=overlapping)
        asked = ask_views(study, lay(sizes_of(study), max_cells=max_cells), max_cells).size(study)
        assert limit.cells == max_cells
        assert all(asdict(asked)[part] <= most for part, most in asdict(limit).items())


def test_overlapping_views_may_have_more_numbers_than_others_and_are_allowed_them() -> None:
    """Nine bits: two views of eight and what is left, where views that hold a pair once are limited to fewer cells."""
    method = {"name": "dp-subn", "cover": "overlapping", "max_view_cells": 256, "theta": "0.1"}
    study = study_of(method, [binary(f"x{i}") for i in range(9)])
    asked = SumMarginals(overlapping_views(sizes_of(study), max_cells=256)).size(study)
    assert asked.numbers > views_limit(study, 256).numbers
    publish(study)


@pytest.mark.parametrize("count", [*range(2, 60), 97, 128])
@pytest.mark.parametrize("max_cells", [4, 8, 64, 4096])
def test_the_limit_of_views_holds_for_nocd(count: int, max_cells: int) -> None:
    study = make_study(method={"name": "dp-subn"}, schema=[binary(f"x{i}") for i in range(count)])
    limit = views_limit(study, max_cells, whole_pairs=False)
    asked = SumMarginals(nocd_views(count, max_cells)).size(study)
    assert all(asdict(asked)[part] <= most for part, most in asdict(limit).items())


def test_the_limit_of_views_is_reached_by_pairs() -> None:
    study = make_study(method={"name": "dp-subn"}, schema=[binary(f"x{i}") for i in range(5)])
    assert views_limit(study, 4) == Limit(numbers=4 * 10, tables=10, cells=4)
    assert SumMarginals(design_views(sizes_of(study), 4)).size(study) == Limit(numbers=40, tables=10, cells=4)


def test_the_limit_of_tables_has_one_for_each_feature() -> None:
    sizes = (2, 60, 4)
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    study = make_study(method={"name": "dp-subn", "encoding": "vanilla"}, schema=schema)
    assert tables_limit(study, 0) == Limit(numbers=66, tables=3, cells=60)
    assert tables_limit(study, 10) == Limit(numbers=10 + 60 + 10, tables=3, cells=60)
    assert tables_limit(study, 100) == Limit(numbers=300, tables=3, cells=100)


@pytest.mark.parametrize("count", [2, 3, 5, 11])
def test_draws_are_shared_out_by_rows(count: int) -> None:
    schema = [categorical(f"x{i}", 2) for i in range(count)]
    study = study_of({"name": "dp-subn"}, schema, rows=(600, 100, 300))
    shares, draws = share_draws(study), count - 1
    assert sum(shares) == draws
    quotas = (draws * 0.6, draws * 0.1, draws * 0.3)
    assert all(abs(share - quota) < 1 for share, quota in zip(shares, quotas, strict=True))
    labels = [step.label for step in plan_study(study).steps if step.phase == "initialize"]
    drawing = [name for name, share in zip(study.party_names, shares, strict=True) if share]
    assert labels == [f"initialize-{name}" for name in drawing]


# DP-CCBN


def ccbn(schema: list[Attribute], **keys: Any) -> Study:
    return study_of({"name": "dp-ccbn", **keys}, schema, rows=(10**5,) * 3, output_rows=10)


def test_dp_ccbn_is_refused_before_anybody_approves() -> None:
    study = ccbn([binary(f"x{i}") for i in range(40)], theta="1")
    with pytest.raises(SynodError, match="DP-CCBN would ask for more than 200,000 numbers in one iteration") as caught:
        check_feasible(study)
    assert caught.value.code is Code.REFUSED
    assert "dp-subn" in caught.value.hint
    check_feasible(ccbn([binary(f"x{i}") for i in range(40)], theta="10000000"))


def test_dp_ccbn_is_refused_to_the_number() -> None:
    schema = [binary(f"x{i}") for i in range(7)]
    study = ccbn(schema, parameter_cells=8)
    # two parents of the placed ones, each set once: C(k, 2) (7 - k) sets with three placed or more, 8 cells each
    most = max(8 * placed * (placed - 1) // 2 * (7 - placed) for placed in range(1, 7))
    assert largest_sum(study, 8, 10**9) == most
    check_feasible(ccbn(schema, parameter_cells=8, max_numbers=most))
    with pytest.raises(SynodError, match=f"more than {most - 1} numbers"):
        check_feasible(ccbn(schema, parameter_cells=8, max_numbers=most - 1))


@pytest.mark.parametrize("order", [1, -1])
def test_dp_ccbn_is_refused_where_a_feature_alone_is_too_large(order: int) -> None:
    """Whichever comes first: the recipe starts with any feature, so each may be counted."""
    schema = [categorical("large", 300), binary("small")][::order]
    with pytest.raises(SynodError, match="more than 299 numbers"):
        check_feasible(ccbn(schema, encoding="vanilla", parameter_cells=4, max_numbers=299))
    sound = study_of({"name": "dp-ccbn", "encoding": "vanilla", "parameter_cells": 4, "max_numbers": 300}, schema)
    for seed in range(4):
        publish(sound, seed)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("cells", [4, 9, 16, 40])
def test_the_closed_form_of_an_iteration_is_what_listing_it_gives(size: int, cells: int) -> None:
    sizes = (size,) * 7
    for placed in range(1, 7):
        listed = {tuple(sorted((x, *parents))) for x, parents in candidate_families(sizes, range(placed), cells)}
        assert uniform_sum(7, size, placed, cells) == sum(size ** len(family) for family in listed)


def test_an_absurd_study_is_refused_at_once() -> None:
    """Before anything is listed: a party's policy checks what a curator sends."""
    for features, cells in ((60, 16), (200, 8)):
        schema = [categorical(f"a{i}", 2) for i in range(features)]
        method = {"name": "dp-ccbn", "parameter_cells": cells, "max_numbers": 1_000_000}
        with pytest.raises(SynodError, match="more than 1,000,000 numbers"):
            check_feasible(make_study(schema=schema, method=method))
    schema = [categorical(f"a{i}", 2) for i in range(400)]
    with pytest.raises(SynodError, match="it is for 200 features at most"):
        check_feasible(make_study(schema=schema, method={"name": "dp-ccbn", "parameter_cells": 4}))
