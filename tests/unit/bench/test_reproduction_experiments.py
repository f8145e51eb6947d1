"""Experiments on small made tables: every kind has a measure, and measures what its figure shows.

Methods that this version does not have are stood in for by one that it has: the measure is the same.
"""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from bench.reproduction.experiments import measures
from bench.reproduction.experiments.hpdp import measure_covariance
from bench.reproduction.experiments.joint import area, draw_occupied, measure_areas, measure_joint
from bench.reproduction.experiments.kernel import wrong_by_kernel
from bench.reproduction.experiments.measures import MEASURES, class_targets, measure_experiment
from bench.reproduction.experiments.places import release
from bench.reproduction.experiments.plans import (
    CONSISTENT_COVERS,
    DISTDIFFGEN,
    EXACT_CHOICE,
    EXPERIMENTS,
    GROWN,
    KINDS,
    LATER_METHODS,
    MEAN_COVARIANCE,
    PRIVBAYES,
    RATIOS,
    is_here,
)
from bench.reproduction.learning import measure_wrong
from bench.reproduction.points import METHODS, PAPER_HPDP, Method, Point
from bench.reproduction.tables import Rows, make_rows
from bench.rivals.catalog import CLASSIFIERS, RIVALS
from synod.common.study.study import known_methods
from synod.deploy.evaluate.classifiers import Target, measure_misclassification
from synod.deploy.evaluate.queries import answer_query
from synod.deploy.evaluate.tables import Table, make_table

ROWS = {name: make_rows(name, 1_200) for name in ("nltcs", "adult")}
STAND_IN = {"name": "independent"}


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every later method is `independent`, which ignores what it would have been told."""
    stand_ins = {name: Method(STAND_IN, unlimited=method.unlimited) for name, method in LATER_METHODS.items()}
    monkeypatch.setattr(measures, "LATER_METHODS", stand_ins)


def measure(kind: str, method: str, table: str = "nltcs", **settings: object) -> dict[str, float]:
    values = {"source": "made", "parties": 1, "epsilon": "0.8", **settings}
    point = Point(kind, method, table, **values)  # type: ignore[arg-type]
    return measure_experiment(point, ROWS[table])


def test_every_kind_has_a_measure() -> None:
    assert set(KINDS) == set(MEASURES)


def test_methods_that_are_not_here_have_no_points() -> None:
    names = {str(method.keys["name"]) for method in LATER_METHODS.values()}
    assert {name: is_here(name) for name in names} == {name: name in known_methods() for name in names}
    for experiment, table in product(EXPERIMENTS, ROWS):
        assert all(is_here(point.method) for point in experiment.points(table, "made", 0, None))


def test_every_method_of_an_experiment_is_known_to_somebody() -> None:
    named = {name for experiment in EXPERIMENTS for methods in experiment.methods.values() for name in methods}
    ours = {*RIVALS, *CLASSIFIERS, *METHODS, *LATER_METHODS, *CONSISTENT_COVERS, *GROWN, MEAN_COVARIANCE}
    assert named <= ours


def test_budgets_of_groups_have_their_ratio_and_add_up() -> None:
    for ratio in RATIOS:
        parts = list(map(Decimal, LATER_METHODS[f"hpprivbayes, r = {ratio}"].keys["split"]))
        above, below = map(int, ratio.split("/"))
        assert sum(parts) == 1
        assert float(parts[2] / parts[3]) == pytest.approx(above / below, rel=0.01)


# Rivals


def test_rivals_are_measured_over_attributes() -> None:
    assert set(measure("rival", "Laplace", setting="3")) == {"tvd3"}
    assert 0 < measure("rival", "Laplace", "adult", setting="2")["tvd2"] < 1


def test_a_rival_that_refuses_a_table_has_no_figures() -> None:
    assert measure("rival", "MWEM", "adult", setting="2") == {}


@pytest.mark.parametrize("method", ["PriView, pairs", "PriView, triples, ripple", "NOCD, consistent"])
def test_views_answer_two_orders_out_of_one_release(method: str) -> None:
    figures = measure("rival-bits", method)
    assert set(figures) == {"tvd2", "tvd3", "views"}
    assert figures["views"] == {"PriView, pairs": 6, "PriView, triples, ripple": 14, "NOCD, consistent": 28}[method]
    assert 0 < figures["tvd2"] < figures["tvd3"] < 0.5


def test_ripple_is_for_every_cover() -> None:
    plain, rippled = (measure("rival-bits", f"NOCD, consistent{cut}", epsilon="0.1") for cut in ("", ", ripple"))
    assert plain["views"] == rippled["views"]
    assert plain["tvd2"] != rippled["tvd2"]


def test_rivals_that_train_have_four_targets() -> None:
    for table in ROWS:
        assert len(measure("rival-trained", "Majority", table)) == 4


# Methods in one place


def test_a_place_has_distances_over_attributes() -> None:
    assert set(measure("place", PRIVBAYES)) == {"tvd3", "tvd4"}
    assert set(measure("place", PRIVBAYES, "adult")) == {"tvd2", "tvd3"}


def test_a_network_has_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "LATER_METHODS", {PRIVBAYES: Method({"name": "dp-subn"})})
    few, many = (measure("place", PRIVBAYES, parties=2, epsilon=epsilon)["information"] for epsilon in ("0.5", "50"))
    assert 0 <= few < many


def test_steps_without_limit_are_nearly_exact() -> None:
    rows = ROWS["nltcs"]
    tables = {
        prefix: release(rows, STAND_IN, 1, "0.5", seed=1, unlimited=prefix).publication.tables[0]
        for prefix in ("", "tables")
    }
    column = rows.columns[tables["tables"].features[0]]
    exact = tables["tables"].counts.reshape(2, -1).sum(axis=1)
    assert exact == pytest.approx(np.bincount(column), abs=0.5)
    assert tables[""].counts.sum() != pytest.approx(rows.count, abs=0.5)


def test_a_part_of_the_rows_is_published() -> None:
    kept = np.arange(100)
    made = release(ROWS["nltcs"], STAND_IN, 2, "5", seed=1, kept=kept)
    assert len(made.columns[0]) == made.study.total_rows == 100
    assert made.parties.labels[:2] in (["choose-p0", "tables-p0"], ["tables-p0", "tables-p1"])


def test_trained_machines_are_told_beside_real_ones() -> None:
    figures = measure("place-trained", PRIVBAYES)
    assert {name.split()[0] for name in figures} == {"wrong", "real", "majority"}
    assert len(figures) == 12


def test_settings_are_keys_of_the_method() -> None:
    few, many = (measure("beta", PRIVBAYES, setting=beta) for beta in ("0.1", "0.9"))
    assert few.keys() == many.keys() >= {"tvd3", "tvd4", "wrong outside"}
    assert few != many


def test_a_key_that_a_method_does_not_have_is_no_figure() -> None:
    assert measure("degree", PRIVBAYES, "adult", setting="2") == {}


def test_the_joint_table_of_five_attributes() -> None:
    figures = measure("joint", "dpcocgen", "adult")
    expected = {f"{which}area {label}, {name}" for which in ("", "real ") for label in ("sex", "relationship")
                for name in ("bayes", "svm")}  # fmt: skip
    assert set(figures) == {"hellinger", "joint tvd", "relative", *expected}
    assert all(0 <= figures[name] <= 1 for name in expected)
    assert all(figures[name] > 0.6 for name in expected if name.startswith("real "))


def table_of(*columns: list[int], sizes: tuple[int, ...]) -> Table:
    return Table(tuple(map(str, sizes)), sizes, sizes, tuple(np.array(column, dtype=np.uint8) for column in columns))


def test_joint_distances_are_those_of_all_cells() -> None:
    real = table_of([0, 0, 1, 1], [0, 1, 2, 2], sizes=(2, 3))
    other = table_of([0, 0, 0, 0], [0, 0, 0, 0], sizes=(2, 3))
    assert measure_joint(real, real, rng=np.random.default_rng(1)) == {"hellinger": 0, "joint tvd": 0, "relative": 0}
    figures = measure_joint(real, other, rng=np.random.default_rng(1))
    assert figures["joint tvd"] == pytest.approx(0.75)
    assert figures["hellinger"] == pytest.approx(np.sqrt(0.5 * (0.25 + 0.25 + 0.5)))


def test_boxes_without_rows_are_drawn_again() -> None:
    table = make_table(ROWS["adult"].study, ROWS["adult"].columns)
    small = Table(table.names[:3], table.sizes[:3], table.values[:3], table.columns[:3])
    queries = draw_occupied(small, 50, rng=np.random.default_rng(1))
    assert len(queries) == 50
    assert all(answer_query(small, query) > 0 and len(query) == 3 for query in queries)


def test_areas_count_pairs_in_the_right_order() -> None:
    rng = np.random.default_rng(3)
    truth, scores = rng.random(60) < 0.4, rng.integers(0, 6, 60)
    pairs = [(a > b) + (a == b) / 2 for a in scores[truth] for b in scores[~truth]]
    assert area(truth, scores) == pytest.approx(np.mean(pairs))


def test_a_class_that_was_never_published_is_guessed() -> None:
    real = table_of([0, 1] * 20, [0, 1] * 20, sizes=(2, 2))
    synthetic = table_of([0] * 40, [0, 1] * 20, sizes=(2, 2))
    assert measure_areas(real, synthetic, 0, np.arange(40)) == {"bayes": 0.5, "svm": 0.5}
    assert measure_areas(real, real, 0, np.arange(40)) == {"bayes": 1, "svm": 1}


# Several parties


def test_two_parties_have_bytes_and_wrong_shares() -> None:
    figures = measure("two", "dp-subn", "adult", parties=2)
    assert {"wrong salary", "wrong education", "bytes", "paper_bytes"} <= set(figures)


def test_distdiffgen_publishes_once_for_each_target(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(rows: Rows, keys: dict[str, object], parties: int, epsilon: str, **_: object) -> object:
        asked.append((keys["target"], parties, epsilon))
        return release(rows, STAND_IN, parties, epsilon, seed=1)

    monkeypatch.setattr(measures, "release", note)
    figures = measure("two", DISTDIFFGEN, "adult", parties=2)
    (first, *_), (second, *_) = asked
    assert first == "a15"
    assert second == {"attribute": "a4", "classes": [list(map(str, range(8, 16))), list(map(str, range(8)))]}
    assert {call[1:] for call in asked} == {(2, "0.4")}
    assert {"wrong salary", "wrong education", "bytes"} <= set(figures)


def test_an_exact_choice_has_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps without limit are not counted, so what is left of the bytes would be too little."""
    exact = {EXACT_CHOICE: LATER_METHODS[EXACT_CHOICE], DISTDIFFGEN: LATER_METHODS[DISTDIFFGEN]}
    monkeypatch.setattr(measures, "LATER_METHODS", exact)
    counted, choice = (measure("two", name, "adult", parties=2, epsilon="8") for name in (DISTDIFFGEN, EXACT_CHOICE))
    assert "bytes" in counted
    assert set(choice) == {name for name in counted if "bytes" not in name}
    assert choice["real salary"] == counted["real salary"]


def test_targets_become_classes() -> None:
    rows = replace(ROWS["adult"], targets={"gender": "a10"})
    assert class_targets(rows) == {"gender": "a10"}


def test_rounds_and_frontiers_are_counted() -> None:
    figures = measure("rounds", "dp-subn", parties=3, epsilon="8")
    assert figures["rounds"] == 1 + 3 + 3 + 1  # correlations, initialize and update at each party, parameters
    assert figures["last frontier"] > 0
    assert 0 < figures["first frontier"] < figures["paper_bytes"]


# HPDP-DP, and time


def test_more_components_are_kept_where_asked() -> None:
    few, many = (measure("kept", PAPER_HPDP, "adult", parties=2, epsilon="50", setting=kept) for kept in ("1", "40"))
    assert few["real salary"] == many["real salary"]
    assert sum(many[f"wrong {label}"] for label in ("salary", "education")) < sum(
        few[f"wrong {label}"] for label in ("salary", "education")
    )


def test_covariances_are_off_by_what_their_means_differ() -> None:
    """The covariance of all rows is the mean of the parts' own and that of the parts' means."""
    columns = np.array([[0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1]], dtype=np.uint8)
    rows = Rows("toy", {}, tuple(columns), {})
    point = Point("covariance", MEAN_COVARIANCE, "toy", parties=2, seed=3)
    dealt = np.array_split(np.random.default_rng(3).permutation(6), 2)
    means = np.array([columns[:, part].mean(axis=1) for part in dealt])
    centred = means - columns.mean(axis=1)
    lost = np.linalg.norm(centred.T @ centred / 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rows, "on_bits", lambda self: self)
        found = measure_covariance(point, rows)["millionths"] / 1e6
    assert found == pytest.approx(lost / np.linalg.norm(np.cov(columns, bias=True)))


def test_growth_counts_what_is_sent() -> None:
    few, many = (
        measure("growth", method, "adult", parties=3, epsilon="50", setting="1200", source="made") for method in GROWN
    )
    for figures, attributes in ((few, 13), (many, 52)):
        assert figures["rows"] == 1_200 * attributes
        assert figures["matrices"] == 3 * (attributes + attributes * (attributes - 1) / 2)
        assert figures["models"] == 3 * (attributes * (figures["components"] + 1) + 1)
        assert figures["seconds"] > 0


def test_seconds_are_those_of_the_processor() -> None:
    assert 0 < measure("seconds", PRIVBAYES)["seconds"] < 60


# Classifiers


def test_a_kernel_machine_learns_what_no_line_tells_apart() -> None:
    """The class is whether two bits differ."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 2, (2, 400))
    table = table_of((first != second).astype(int).tolist(), first.tolist(), second.tolist(), sizes=(2, 2, 2))
    target, tested = Target("differ", 0), np.arange(200)
    assert wrong_by_kernel(table, table, target, tested, rng=rng) == 0
    constant = Table(table.names, table.sizes, table.values, (np.zeros(400, dtype=np.uint8), *table.columns[1:]))
    assert wrong_by_kernel(table, constant, target, tested, rng=rng) == pytest.approx(table.columns[0][:200].mean())


def test_kernel_machines_are_told_beside_linear_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "LATER_METHODS", {PRIVBAYES: LATER_METHODS[PRIVBAYES]})
    figures = measure("personal", PRIVBAYES, "adult")
    assert {"wrong education", "wrong education, kernel", "real education", "tvd2"} <= set(figures)
    ratio = measure("ratio", PRIVBAYES, "adult")
    assert ratio == {name: share for name, share in figures.items() if "education" in name}


def test_shares_are_those_of_the_evaluation() -> None:
    """What is kept of real rows is what `synod evaluate` would measure each time, also for another seed."""
    rows = ROWS["nltcs"]
    synthetic = [column[::-1] for column in rows.columns]
    real, other = make_table(rows.study, rows.columns), make_table(rows.study, synthetic)
    for seed in (4, 4, 5):
        rng = np.random.default_rng([seed, 11])
        expected = measure_misclassification(real, other, rows.parse_targets(), rng=rng)
        found = measure_wrong(rows, synthetic, seed)
        for label, shares in expected.items():
            assert found[f"wrong {label}"] == shares.synthetic
            assert found[f"real {label}"] == shares.real
            assert found[f"majority {label}"] == shares.majority
