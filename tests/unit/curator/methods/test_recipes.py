"""The network methods over in-process parties: awkward shapes, the schema back intact, and the plan to the letter."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.methods.dp_ccbn import candidate_families, largest_sum
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import check_within
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.queries.rows import share_rows
from synod.common.protocol.steps import QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import Codes
from synod.common.study.features import base_count, features_of
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.methods.dp_ccbn import list_candidates
from synod.deploy.simulate import publish_in_process
from tests.support.keys import seeded
from tests.support.recipes import check_publication, check_run, draw_tables, record
from tests.support.studies import categorical, integer, make_study, real

METHODS: dict[str, dict[str, Any]] = {
    "sequential": {"name": "dp-subn"},
    "joint": {"name": "dp-subn", "update": "joint"},
    "dp-ccbn": {"name": "dp-ccbn"},
    "independent": {"name": "independent"},
    "privbayes": {"name": "privbayes"},
    "privbayes, clipped": {"name": "privbayes", "tables": "clip"},
    "hpprivbayes": {"name": "hpprivbayes"},
    "hpprivbayes, rare values": {"name": "hpprivbayes", "weights": "rare"},
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")


def encoded(method: Mapping[str, Any], encoding: str) -> dict[str, Any]:
    """The method over features of this encoding; levels in place of bits where it refuses these."""
    has_bits = method["name"] != "hpprivbayes"
    return {**method, "encoding": encoding if has_bits or encoding == "vanilla" else "hierarchical"}


MIXED: list[dict[str, Any]] = [
    categorical("sex", 2),
    integer("age", 17, 90, bins=5, nullable=True),
    categorical("one", ("one0",)),
    real("income", "-1.5", "2.5", bins=4, nullable=True),
    integer("year", 2020, 2020),
    categorical("ward", 3, nullable=True),
    integer("stays", 0, 2),
]


def publish(study: Study, tables: Sequence[Sequence[Codes]], coins: int = 1, seed: int = 1) -> Publication:
    return publish_in_process(study, tables, coins=seeded(coins), rng=np.random.default_rng(seed))


# Shapes


@every_method
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.1", "10"])
def test_few_features(method: Mapping[str, Any], d: int, epsilon: str) -> None:
    check_run(make_study(schema=[categorical(f"x{i}", 2) for i in range(d)], method=method, epsilon=epsilon))


@every_method
@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_attributes_as_they_are(method: Mapping[str, Any], d: int) -> None:
    schema = [categorical(f"x{i}", 3 + i) for i in range(d)]
    check_run(make_study(schema=schema, method={**method, "encoding": "vanilla"}, epsilon="20"))


@every_method
def test_more_parties_than_attributes(method: Mapping[str, Any]) -> None:
    names = tuple(f"p{i}" for i in range(6))
    schema = [categorical(f"x{i}", 2) for i in range(3)]
    study = make_study(names=names, rows=(60, 50, 40, 30, 20, 10), schema=schema, method=method, epsilon="10")
    check_run(study)


def test_parties_without_a_share_of_the_first_network_spend_less() -> None:
    names = tuple(f"p{i}" for i in range(6))
    schema = [categorical(f"x{i}", 2) for i in range(3)]
    study = make_study(names=names, rows=(60,) * 6, schema=schema, method={"name": "dp-subn"}, epsilon="10")
    labels = [step.label for step in plan_study(study).steps if step.kind is QueryKind.CHOOSE_PARENTS]
    assert labels == ["initialize-p0", "initialize-p1"]
    assert not study.budget.fits_within(plan_study(study).cost_of("p5"))
    assert plan_study(study).cost_of("p0") == study.budget


@every_method
def test_a_party_with_one_row(method: Mapping[str, Any]) -> None:
    schema = [categorical(f"x{i}", 2) for i in range(4)]
    check_run(make_study(rows=(1, 80, 60), schema=schema, method=method, epsilon="10"))
    check_run(make_study(rows=(1, 1, 1), schema=schema, method=method, epsilon="10"))


@every_method
def test_one_party_alone(method: Mapping[str, Any]) -> None:
    schema = [categorical(f"x{i}", 2) for i in range(4)]
    check_run(make_study(names=("north",), rows=(90,), schema=schema, method=method, epsilon="10", collusion=0))


@every_method
@pytest.mark.parametrize("encoding", ["binary", "gray", "vanilla"])
def test_constant_columns_of_data(method: Mapping[str, Any], encoding: str) -> None:
    schema = [categorical("a", 3), categorical("b", 2), categorical("c", 5)]
    study = make_study(schema=schema, method=encoded(method, encoding), epsilon="60", rows=(200, 200, 200))
    tables = [(np.full(200, 2, dtype=np.uint8), np.zeros(200, dtype=np.uint8), np.full(200, 4, dtype=np.uint8))] * 3
    publication = publish(study, tables)
    check_publication(study, publication)
    for column, code in zip(publication.columns, (2, 0, 4), strict=True):
        assert (column == code).mean() > 0.9


@every_method
@pytest.mark.parametrize("encoding", ["binary", "gray", "vanilla"])
@pytest.mark.parametrize("epsilon", ["0.5", "30"])
def test_mixed_types_nullable_and_one_category(method: Mapping[str, Any], encoding: str, epsilon: str) -> None:
    study = make_study(schema=MIXED, method=encoded(method, encoding), epsilon=epsilon, rows=(150, 120, 90))
    table = check_publication(study, check_run(study))
    assert set(table["one"].to_pylist()) == {"one0"}
    assert set(table["year"].to_pylist()) == {2020}
    assert 0 < table["age"].null_count < table.num_rows


@every_method
def test_rows_may_be_any_number(method: Mapping[str, Any]) -> None:
    names = tuple(f"p{i}" for i in range(4))
    schema = [categorical(f"x{i}", 2) for i in range(3)]
    for rows in (1, 2, 777):
        study = make_study(names=names, rows=(5, 50, 60, 5), schema=schema, method=method, epsilon="9")
        study = study.model_copy(update={"rows": rows})
        assert sum(share_rows(study)) == rows
        check_publication(study, publish(study, draw_tables(study)))


# No parents


@pytest.mark.parametrize("name", ["sequential", "joint", "dp-ccbn", "independent", "privbayes", "hpprivbayes"])
def test_a_theta_that_leaves_no_parents_spends_all_on_the_margins(name: str) -> None:
    method = {**METHODS[name], "theta": "100000000"}
    study = make_study(schema=[categorical(f"x{i}", 2) for i in range(4)], method=method, epsilon="10")
    publication = check_run(study)
    steps = plan_study(study).steps
    if name == "independent":
        assert [step.label for step in steps] == ["tables-north", "tables-harbour", "tables-valley"]
        assert isinstance(publication.model, dict)
        assert [one["network"] for one in publication.model["networks"]] == [[[i, []] for i in range(4)]] * 3
    else:
        assert [step.label for step in steps] == ["parameters"]
        assert isinstance(publication.model, dict)
        assert publication.model["network"] == [[i, []] for i in range(4)]
    assert all(plan_study(study).cost_of(entry.name) == study.budget for entry in study.roster)


# What comes out


def linked_tables(study: Study) -> list[tuple[Codes, ...]]:
    """Four attributes of five values: the second copies the first, the fourth the third, up to one row in ten."""
    tables: list[tuple[Codes, ...]] = []
    for index, entry in enumerate(study.roster):
        rng = np.random.default_rng(index)
        first, third = (rng.choice(5, entry.rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]) for _ in range(2))
        stray = rng.integers(0, 5, (2, entry.rows))
        keep = rng.random((2, entry.rows)) < 0.9
        columns = (first, np.where(keep[0], first, stray[0]), third, np.where(keep[1], third, stray[1]))
        tables.append(tuple(column.astype(np.uint8) for column in columns))
    return tables


def distance(one: Sequence[Codes], other: Sequence[Codes], pair: tuple[int, int]) -> float:
    shares = [np.bincount(columns[pair[0]] * 5 + columns[pair[1]], minlength=25) / len(columns[0])
              for columns in (one, other)]  # fmt: skip
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


@every_method
@pytest.mark.parametrize("encoding", ["binary", "gray", "vanilla"])
def test_with_much_epsilon_the_rows_look_like_the_data(method: Mapping[str, Any], encoding: str) -> None:
    schema = [categorical(f"x{i}", 5) for i in range(4)]
    study = make_study(schema=schema, method=encoded(method, encoding), epsilon="30", rows=(900, 800, 700))
    tables = linked_tables(study)
    publication = publish(study, tables)
    data = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
    # Independent attributes are 0.5 away from the linked pairs; bits of no code would pile up at the last one.
    for pair in ((0, 1), (2, 3)):
        assert distance(data, publication.columns, pair) < 0.15
    assert distance(data, publication.columns, (0, 2)) < 0.15
    shuffled = [data[0], np.random.default_rng(1).permutation(data[1])]
    assert distance(data, shuffled, (0, 1)) > 0.4


@every_method
def test_the_same_coins_and_seed_give_the_same_publication(method: Mapping[str, Any]) -> None:
    study = make_study(schema=MIXED, method=method, epsilon="20")
    tables = draw_tables(study)
    one, again = publish(study, tables), publish(study, tables)
    assert canonical_bytes(one.model) == canonical_bytes(again.model)
    assert all(np.array_equal(a, b) for a, b in zip(one.columns, again.columns, strict=True))
    for other in (publish(study, tables, coins=2), publish(study, tables, seed=2)):
        assert not all(np.array_equal(a, b) for a, b in zip(one.columns, other.columns, strict=True))


@every_method
def test_the_model_names_each_feature_once(method: Mapping[str, Any]) -> None:
    study = make_study(schema=MIXED, method=method, epsilon="20")
    model = publish(study, draw_tables(study)).model
    assert isinstance(model, dict)
    networks: Any = [one["network"] for one in model["networks"]] if "networks" in model else [model["network"]]
    for network in networks:
        assert sorted(feature for feature, _ in network) == list(range(base_count(study)))
    if "features" in model:
        assert model["features"] == [[f.attribute, f.size, -1 if f.bit is None else f.bit] for f in features_of(study)]


# Steps


def test_dp_subn_asks_its_phases_in_order() -> None:
    schema = [categorical(f"x{i}", 2) for i in range(5)]
    study = make_study(schema=schema, method=METHODS["sequential"], epsilon="20")
    _, recorder = record(study, draw_tables(study))
    assert [label for label, _ in recorder.asked] == [
        "correlations",
        *(f"initialize-{name}" for name in ("north", "harbour", "valley")),
        *(f"update-{name}" for name in ("north", "harbour", "valley")),
        "parameters",
    ]
    joint = make_study(schema=schema, method=METHODS["joint"], epsilon="20")
    _, recorder = record(joint, draw_tables(joint))
    assert [label for label, _ in recorder.asked][-2:] == ["update", "parameters"]


def test_dp_ccbn_refuses_an_absurd_size_before_anything_is_asked() -> None:
    schema = [categorical(f"x{i}", 2) for i in range(40)]
    study = make_study(schema=schema, method=METHODS["dp-ccbn"], rows=(10**6,) * 3, epsilon="1")
    with pytest.raises(SynodError, match="DP-CCBN would ask for more than 200,000 numbers") as caught:
        check_feasible(study)
    assert caught.value.code is Code.REFUSED


def ccbn_of(sizes: Sequence[int], max_numbers: int, cells: int) -> Study:
    method = {**METHODS["dp-ccbn"], "encoding": "vanilla", "max_numbers": max_numbers, "parameter_cells": cells}
    schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    return make_study(schema=schema, method=method, rows=(400, 50, 60), epsilon="10")


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (2, 3, 4, 5), (5, 4, 3, 2), (20, 2, 2, 2), (2, 2, 2, 20)])
@pytest.mark.parametrize("cells", [8, 12, 60])
def test_dp_ccbn_asks_for_something_in_any_order_and_never_for_too_much(sizes: tuple[int, ...], cells: int) -> None:
    """At the very edge of what `check` lets pass, whichever features are placed before."""
    most = largest_sum(ccbn_of(sizes, 10_000, cells), cells, 10_000)
    study = ccbn_of(sizes, most, cells)
    check_feasible(study)
    with pytest.raises(SynodError, match="DP-CCBN would ask for more than"):
        check_feasible(ccbn_of(sizes, most - 1, cells))
    step = plan_study(study).step("candidates-1")
    for placed in (list(order) for length in (1, 2, 3) for order in combinations(range(4), length)):
        pairs = list_candidates(study, placed)
        assert pairs
        assert len(set(pairs)) == len(pairs)
        assert all(pair.feature not in placed and set(pair.parents) <= set(placed) for pair in pairs)
        query = SumMarginals(tuple(sorted({tuple(sorted(pair.family)) for pair in pairs})))
        check_within(query, step, study)
        if placed == list(range(len(placed))):
            whole = list(candidate_families(sizes, placed, cells))
            assert [(pair.feature, pair.parents) for pair in pairs] == whole, "nothing is left out of what was checked"
