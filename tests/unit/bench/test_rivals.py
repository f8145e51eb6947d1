"""The rivals beside slow twins: what a replaced row can change, what the noise is, and what comes out without it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, product
from math import log

import numpy as np
import pytest

from bench.rivals.answers import (
    Answers,
    Floats,
    clip_and_rescale,
    count_exactly,
    list_sets,
    mean_distance,
    project_joint,
)
from bench.rivals.catalog import CLASSIFIERS, RIVALS, measure_classifier, measure_rival
from bench.rivals.classifiers import (
    draw_direction,
    huber,
    measure_erm,
    minimize_loss,
    plan_perturbation,
    predict_majority,
    scale_rows,
    train_privately,
)
from bench.rivals.fourier import count_coefficients, draw_noise, sensitivity, signs_of, spread_noise
from bench.rivals.mwem import choose_cell, count_rounds, update
from bench.rivals.plain import MOST_CELLS, answer_contingency, count_joint, laplace_scale
from synod.common.runtime.errors import SynodError
from synod.deploy.evaluate.classifiers import Target
from synod.deploy.evaluate.tables import Table

Row = tuple[int, ...]


def make_table(sizes: tuple[int, ...], rows: int = 400, seed: int = 3) -> Table:
    """Columns that mostly follow a hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    columns = [np.minimum((hidden + rng.normal(0, 0.2, rows)).clip(0) * size, size - 1) for size in sizes]
    names = tuple(f"a{place}" for place in range(len(sizes)))
    return Table(names, sizes, sizes, tuple(column.astype(np.uint8) for column in columns))


def table_of(rows: Sequence[Row], sizes: tuple[int, ...]) -> Table:
    columns = tuple(np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True))
    return Table(tuple(map(str, sizes)), sizes, sizes, columns)


def largest_change(statistics: Callable[[Table], Floats], sizes: tuple[int, ...], rows: int = 2) -> float:
    """The L1 sensitivity by brute force: over all tables of so many rows, and all ways to replace one row."""
    cells = list(product(*map(range, sizes)))
    changes: Iterator[float] = (
        float(np.abs(a - b).sum())
        for others in product(cells, repeat=rows - 1)
        for a, b in combinations([statistics(table_of([*others, cell], sizes)) for cell in cells], 2)
    )
    return max(changes)


# Marginals


def test_marginals_of_a_joint_table_are_its_sums() -> None:
    joint = np.random.default_rng(1).random((2, 3, 2, 4))
    for order in (1, 2, 3, 4):
        slowly = [
            joint.sum(axis=tuple(axis for axis in range(4) if axis not in own)).reshape(-1)
            for own in combinations(range(4), order)
        ]
        found = project_joint(joint, order)
        assert len(found) == len(slowly)
        assert all(np.allclose(a, b) for a, b in zip(found, slowly, strict=True))


def test_shares_are_cut_and_scaled() -> None:
    assert clip_and_rescale(np.array([-1.0, 1.0, 3.0])).tolist() == [0, 0.25, 0.75]
    assert clip_and_rescale(np.array([-1.0, -2.0])).tolist() == [0.5, 0.5]


def test_the_distance_is_the_mean_over_all_marginals() -> None:
    table = table_of([(0, 0), (1, 2)], (2, 3))
    assert mean_distance(table, 2, [np.full(6, 1 / 6)]) == pytest.approx(2 / 3)
    assert mean_distance(table, 1, [np.array([0.5, 0.5]), np.array([1.0, 0.0, 0.0])]) == pytest.approx(0.25)


# What a replaced row can change


@pytest.mark.parametrize(("sizes", "order"), [((2, 2, 2), 2), ((2, 3, 2), 2), ((3, 2), 1), ((2, 3, 2), 3)])
def test_laplace_has_the_sensitivity_of_all_marginals(sizes: tuple[int, ...], order: int) -> None:
    change = largest_change(lambda table: np.concatenate(count_exactly(table, order)), sizes)
    assert laplace_scale(len(sizes), order, 0.5) == change / 0.5


def test_a_table_of_all_attributes_changes_by_two() -> None:
    assert largest_change(lambda table: count_joint(table).reshape(-1), (2, 3)) == 2


def coefficients_of(table: Table, order: int) -> Floats:
    """All coefficients by the definition: for every set of bits of at most `order` attributes, a sum of signs."""
    bits = [(size - 1).bit_length() for size in table.sizes]
    found = []
    for masks in product(*(range(2**count) for count in bits)):
        if 1 <= sum(mask > 0 for mask in masks) <= order:
            odd = [
                sum((mask & int(column[row])).bit_count() for mask, column in zip(masks, table.columns, strict=True))
                % 2
                for row in range(table.rows)
            ]
            found.append(sum(1 - 2 * each for each in odd))
    return np.array(found, dtype=np.float64)


@pytest.mark.parametrize(
    ("sizes", "order"),
    [((2,) * 4, 1), ((2,) * 4, 2), ((2,) * 5, 3), ((3, 2, 2), 2), ((5, 3), 2), ((4, 2, 3), 3), ((7, 2), 1)],
)
def test_fourier_has_the_exact_sensitivity_of_its_coefficients(sizes: tuple[int, ...], order: int) -> None:
    statistics = partial(coefficients_of, order=order)
    assert sensitivity(sizes, order) == largest_change(statistics, sizes, rows=1)
    assert count_coefficients(sizes, order) == len(statistics(make_table(sizes, 2)))


@pytest.mark.parametrize(("bits", "order", "turned", "all_of_them"), [
    (16, 3, 576, 696), (16, 4, 1_280, 2_516), (23, 4, 5_504, 10_902),
])  # fmt: skip
def test_fourier_of_the_papers_binary_tables(bits: int, order: int, turned: int, all_of_them: int) -> None:
    assert sensitivity((2,) * bits, order) == 2 * turned
    assert count_coefficients((2,) * bits, order) == all_of_them
    sets = [own for size in range(1, order + 1) for own in combinations(range(bits), size)]
    slowly = [sum(sum(place < flipped for place in own) % 2 for own in sets) for flipped in range(bits + 1)]
    assert max(slowly) == turned


def test_scores_of_mwem_move_by_one_at_most() -> None:
    fixed = [np.full(6, 0.3)]
    cells = list(product(range(2), range(3)))
    scores = [np.abs(count_exactly(table_of([(0, 0), cell], (2, 3)), 2)[0] - fixed[0]) for cell in cells]
    assert max(np.abs(a - b).max() for a, b in combinations(scores, 2)) == 1


# Fourier


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 5, 2)])
def test_noise_of_coefficients_reaches_cells_by_the_inverse_transform(sizes: tuple[int, ...]) -> None:
    noise = draw_noise(sizes, 2, 1.0, rng=np.random.default_rng(1))
    for own in list_sets(len(sizes), 2):
        codes = [1 << (sizes[attribute] - 1).bit_length() for attribute in own]
        slowly = []
        for cell in product(*(range(sizes[attribute]) for attribute in own)):
            total = 0.0
            for masks in product(*map(range, codes)):
                part = tuple(a for a, mask in zip(own, masks, strict=True) if mask)
                if part:
                    odd = sum((mask & code).bit_count() for mask, code in zip(masks, cell, strict=True)) % 2
                    value = noise[part][tuple(mask - 1 for mask in masks if mask)]
                    total += (-1) ** odd * value
            slowly.append(total / np.prod(codes))
        assert spread_noise(own, sizes, noise) == pytest.approx(slowly)


def test_marginals_that_share_an_attribute_share_its_noise() -> None:
    noise = draw_noise((2, 2, 2), 2, 1.0, rng=np.random.default_rng(1))
    left, right = (spread_noise(own, (2, 2, 2), noise).reshape(2, 2).sum(axis=1) for own in [(0, 1), (0, 2)])
    assert left == pytest.approx(right)
    assert left.sum() == pytest.approx(0)


def test_signs_are_a_transform_that_is_its_own_inverse() -> None:
    signs = signs_of(8)
    assert (signs @ signs == 8 * np.eye(8)).all()
    assert signs[0b101].tolist() == [1, -1, 1, -1, -1, 1, -1, 1]


# Contingency and MWEM


def test_cut_cells_push_marginals_towards_even() -> None:
    table = make_table((2,) * 8)
    plain, cut = (
        mean_distance(table, 2, answer_contingency(table, 2, 0.5, is_cut=is_cut, rng=np.random.default_rng(1)))
        for is_cut in (False, True)
    )
    assert plain < cut


@pytest.mark.parametrize("name", ["Contingency", "MWEM"])
def test_a_joint_table_that_is_too_large_is_refused(name: str) -> None:
    table = make_table((2,) * (MOST_CELLS.bit_length()), 5)
    with pytest.raises(SynodError, match="cells"):
        RIVALS[name](table, 2, 1.0, rng=np.random.default_rng(1))


def test_mwem_has_a_round_for_each_twentieth_of_epsilon() -> None:
    assert [count_rounds(epsilon) for epsilon in (0.01, 0.05, 0.1, 0.8, 1.6)] == [1, 1, 2, 16, 32]


def test_mwem_scales_the_rows_behind_one_cell() -> None:
    model = np.random.default_rng(1).random((2, 3, 2)) * 10
    changed = update(model, (0, 2), 2, 25.0)  # the cell (1, 0) of attributes 0 and 2
    slowly = model.copy()
    for code in range(3):
        slowly[1, code, 0] *= np.exp((25.0 - model[1, :, 0].sum()) / (2 * model.sum()))
    assert changed == pytest.approx(slowly * model.sum() / slowly.sum())


def test_mwem_chooses_by_the_exponential_mechanism() -> None:
    true: Answers = [np.array([0.0, 1.0]), np.array([3.0])]
    found: Answers = [np.zeros(2), np.zeros(1)]
    rng = np.random.default_rng(1)
    drawn = [choose_cell(true, found, 2.0, rng=rng) for _ in range(4_000)]
    shares = [sum((c.marginal, c.place) == own for c in drawn) / 4_000 for own in [(0, 0), (0, 1), (1, 0)]]
    weights = np.exp([0.0, 1.0, 3.0])
    assert shares == pytest.approx(weights / weights.sum(), abs=0.03)


# All of them


BINARY = make_table((2,) * 9)


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_answers_all_marginals_with_shares(name: str) -> None:
    for order in (2, 3):
        answers = RIVALS[name](BINARY, order, 0.5, rng=np.random.default_rng(1))
        assert len(answers) == len(list_sets(9, order))
        assert all(len(answer) == 2**order and answer.min() >= 0 for answer in answers)
        assert [answer.sum() for answer in answers] == pytest.approx([1] * len(answers))


@pytest.mark.parametrize("name", [name for name in RIVALS if name not in {"Uniform", "MWEM"}])
def test_without_noise_the_marginals_are_exact_or_nearly(name: str) -> None:
    near = measure_rival(name, BINARY, (2, 3), 1e7, seed=1)
    assert near["tvd2"] < 1e-3
    assert near["tvd3"] < (0.02 if "pairs" in name else 1e-3)


def run_mwem_slowly(table: Table, order: int, epsilon: float, *, rng: np.random.Generator) -> Answers:
    """By the definition, over a dictionary of cells; coins are drawn in the same order."""
    rounds = round(epsilon / 0.05)
    cells = list(product(*map(range, table.sizes)))
    rows = list(zip(*(column.tolist() for column in table.columns), strict=True))
    queries = [
        (own, codes)
        for own in combinations(range(len(table.sizes)), order)
        for codes in product(*(range(table.sizes[attribute]) for attribute in own))
    ]

    def fits(cell: Row, query: tuple[Row, Row]) -> bool:
        return all(cell[attribute] == code for attribute, code in zip(*query, strict=True))

    true = [sum(fits(row, query) for row in rows) for query in queries]
    model = dict.fromkeys(cells, len(rows) / len(cells))
    total = dict.fromkeys(cells, 0.0)
    for _ in range(rounds):
        found = [sum(weight for cell, weight in model.items() if fits(cell, query)) for query in queries]
        exponents = [epsilon / (2 * rounds) * abs(a - b) / 2 for a, b in zip(true, found, strict=True)]
        chosen = int(np.argmax(exponents + rng.gumbel(size=len(queries))))
        gap = true[chosen] + rng.laplace(0.0, 2 * rounds / epsilon) - found[chosen]
        for cell in cells:
            model[cell] *= np.exp(gap / (2 * len(rows))) if fits(cell, queries[chosen]) else 1.0
        scale = len(rows) / sum(model.values())
        model = {cell: weight * scale for cell, weight in model.items()}
        total = {cell: total[cell] + model[cell] for cell in cells}
    shares = [sum(total[cell] for cell in cells if fits(cell, query)) / sum(total.values()) for query in queries]
    ends = np.cumsum([np.prod([table.sizes[a] for a in own]) for own in list_sets(len(table.sizes), order)])
    return np.split(np.array(shares), ends[:-1])


def test_mwem_is_its_slow_twin() -> None:
    table = make_table((2, 3, 2))
    slowly = run_mwem_slowly(table, 2, 0.5, rng=np.random.default_rng(7))
    found = RIVALS["MWEM"](table, 2, 0.5, rng=np.random.default_rng(7))
    assert all(a == pytest.approx(b) for a, b in zip(found, slowly, strict=True))


def test_mwem_gets_nearer_than_uniform_and_nearer_with_more_rounds() -> None:
    uniform = measure_rival("Uniform", BINARY, (2,), 1.0, seed=1)["tvd2"]
    few, many = (measure_rival("MWEM", BINARY, (2,), epsilon, seed=1)["tvd2"] for epsilon in (1.0, 20.0))
    assert many < few < uniform


def test_the_noise_of_laplace_has_its_promised_size() -> None:
    """On a large even table nothing is cut; scaling to the public total takes the mean off the noise of a marginal."""
    table = table_of(list(product(range(2), repeat=5)) * 4_000, (2,) * 5)
    found = np.mean([measure_rival("Laplace", table, (2,), 0.5, seed=seed)["tvd2"] for seed in range(40)])
    noise = np.random.default_rng(1).laplace(0.0, 2 * 10 / 0.5, (20_000, 4))
    expected = np.abs(noise - noise.mean(axis=1, keepdims=True)).sum(axis=1).mean() / 2 / table.rows
    assert found == pytest.approx(expected, rel=0.08)


def test_the_noise_of_fourier_has_its_promised_size() -> None:
    """Of two bits there are three coefficients, of which a replaced row turns two."""
    table = table_of(list(product(range(2), repeat=2)) * 10_000, (2, 2))
    found = np.mean([measure_rival("Fourier", table, (2,), 0.5, seed=seed)["tvd2"] for seed in range(400)])
    first, second, both = np.random.default_rng(1).laplace(0.0, 2 * 2 / 0.5, (3, 20_000))
    cells = [first + second + both, first - second - both, -first + second - both, -first - second + both]
    assert found == pytest.approx(np.abs(cells).sum(axis=0).mean() / 4 / 2 / table.rows, rel=0.08)


def test_fourier_takes_attributes_of_any_size() -> None:
    table = make_table((3, 5, 2, 6))
    assert measure_rival("Fourier", table, (2, 3), 1e7, seed=1) == pytest.approx({"tvd2": 0, "tvd3": 0}, abs=1e-3)
    answers = RIVALS["Fourier"](table, 2, 1.0, rng=np.random.default_rng(1))
    assert [len(answer) for answer in answers] == [15, 6, 18, 10, 30, 12]


# Classifiers

TARGETS = [Target("first", 0), Target("last", 8)]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_is_measured(name: str) -> None:
    wrong = measure_classifier(name, BINARY, TARGETS, 4.0, seed=1)
    assert set(wrong) == {"wrong first", "wrong last"}
    assert all(0 <= share <= 1 for share in wrong.values())


def test_targets_share_the_budget_but_for_the_single_one() -> None:
    shared = measure_classifier("PrivateERM", BINARY, TARGETS, 4.0, seed=1)
    single = measure_classifier("PrivateERM (single)", BINARY, TARGETS, 2.0, seed=1)
    assert shared == single


def test_majority_counts_once() -> None:
    classes = np.arange(1_000) < 520
    drawn = [predict_majority(classes, 0.05, rng=np.random.default_rng(seed)) for seed in range(2_000)]
    assert np.mean(drawn) == pytest.approx(1 - np.exp(-20 * 0.05) / 2, abs=0.03)  # the Laplace law's tail


def test_the_curvature_of_the_loss_is_paid_for() -> None:
    """The loss bends by 1 at most and the regularizer is 1/n, so 2 log 2 of epsilon are gone. Where that is all of it,
    half is left, and the regularizer is raised until it costs 2 log(1 + 1 / n(1/n + extra)) = epsilon / 2.
    """
    assert plan_perturbation(1.6, 1_000).epsilon == pytest.approx(1.6 - log(4))
    assert plan_perturbation(1.6, 1_000).extra == 0
    plan = plan_perturbation(0.4, 1_000)
    assert plan.epsilon == 0.2
    assert 2 * log(1 + 1 / (1_000 * (1 / 1_000 + plan.extra))) == pytest.approx(0.2)


def test_huber_loss_is_smooth_and_bends_no_more_than_its_curvature() -> None:
    margins = np.linspace(-1, 3, 4_001)
    losses, slopes = huber(margins)
    assert np.gradient(losses, margins)[1:-1] == pytest.approx(slopes[1:-1], abs=2e-3)
    assert np.abs(np.diff(slopes) / np.diff(margins)).max() <= 1 + 1e-6
    assert np.abs(slopes).max() <= 1


def test_the_noise_vector_has_its_law() -> None:
    drawn = np.array([draw_direction(3, 2.0, rng=np.random.default_rng(seed)) for seed in range(3_000)])
    norms = np.linalg.norm(drawn, axis=1)
    assert norms.mean() == pytest.approx(6, rel=0.05)
    assert norms.var() == pytest.approx(12, rel=0.15)
    assert drawn.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.3)


def test_rows_have_norm_one() -> None:
    inputs = scale_rows(make_table((3, 5, 2, 6)), Target("a2", 2))
    assert np.sqrt(inputs.multiply(inputs).sum(axis=1)) == pytest.approx(np.ones((400, 1)))
    assert inputs.shape == (400, 3 + 5 + 6 + 1)


def test_the_optimum_has_no_slope_and_is_nearly_that_without_noise() -> None:
    inputs, classes = scale_rows(BINARY, TARGETS[0]), BINARY.columns[0] == 1
    exact = minimize_loss(inputs, classes, np.zeros(inputs.shape[1]), 1 / BINARY.rows)
    signs = np.where(classes, 1.0, -1.0)
    _, slopes = huber(signs * (inputs @ exact))
    gradient = inputs.T @ (signs * slopes) / BINARY.rows + exact / BINARY.rows
    assert np.abs(gradient).max() < 1e-4
    private = train_privately(inputs, classes, 1e6, rng=np.random.default_rng(1))
    assert private == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize("epsilon", [0.4, 1.6])
def test_the_noise_vector_is_that_of_the_plan(epsilon: float) -> None:
    inputs, classes = scale_rows(BINARY, TARGETS[0]), BINARY.columns[0] == 1
    plan, rows = plan_perturbation(epsilon, BINARY.rows), BINARY.rows
    noise = draw_direction(inputs.shape[1], 2 / plan.epsilon, rng=np.random.default_rng(1))
    slowly = minimize_loss(inputs, classes, noise / rows, 1 / rows + plan.extra)
    assert train_privately(inputs, classes, epsilon, rng=np.random.default_rng(1)) == pytest.approx(slowly)


def test_erm_learns_with_enough_budget_and_nothing_without() -> None:
    table = make_table((2,) * 9, 4_000)
    majority = min(table.columns[0].mean(), 1 - table.columns[0].mean())
    assert measure_erm(table, TARGETS[0], 50.0, seed=1) < 0.8 * majority
    far = np.mean([measure_erm(table, TARGETS[0], 0.001, seed=seed) for seed in range(10)])
    assert far > 0.8 * majority


def test_a_target_of_many_classes_is_refused() -> None:
    with pytest.raises(SynodError, match="more than two classes"):
        measure_erm(make_table((3, 2)), Target("a0", 0), 1.0, seed=1)
