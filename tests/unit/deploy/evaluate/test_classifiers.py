"""Misclassification against a pipeline of scikit-learn's own parts, and what may be predicted."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from synod.common.runtime.errors import Code, SynodError
from synod.deploy.evaluate.classifiers import Misclassification, Target, measure_misclassification, parse_target
from synod.deploy.evaluate.tables import Table
from tests.support.comparisons import draw_table, table_of
from tests.support.studies import categorical, integer, make_study

SIZES = (2, 5, 3, 4)


def related_table(rows: int, seed: int, noise: float) -> Table:
    """The first attribute is mostly whether the second is large; the third follows it, too."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 5, rows)
    flag = np.where(rng.random(rows) < noise, rng.integers(0, 2, rows), base >= 3)
    third = np.where(rng.random(rows) < noise, rng.integers(0, 3, rows), base // 2)
    return table_of([flag.tolist(), base.tolist(), third.tolist(), rng.integers(0, 4, rows).tolist()], SIZES)


def measure(real: Table, synthetic: Table, target: Target, seed: int = 0) -> Misclassification:
    found = measure_misclassification(real, synthetic, [target], rng=np.random.default_rng(seed))
    return found[target.label]


def predict_directly(train: Table, test: NDArray[np.int64], target: int, chosen: tuple[int, ...]) -> NDArray[np.int64]:
    others = [index for index in range(len(SIZES)) if index != target]
    encoder = OneHotEncoder(categories=[list(range(SIZES[index])) for index in others])
    pipeline = make_pipeline(make_column_transformer((encoder, others)), LinearSVC(C=1.0, dual=False))
    rows = np.stack(train.columns, axis=1)
    wanted = np.isin(rows[:, target], chosen) if chosen else rows[:, target]
    guesses: NDArray[np.int64] = pipeline.fit(rows, wanted).predict(test)
    return guesses


@pytest.mark.parametrize(("attribute", "chosen"), [(0, ()), (1, ()), (1, (0, 4)), (2, ())])
def test_the_rates_are_those_of_a_direct_pipeline(attribute: int, chosen: tuple[int, ...]) -> None:
    real, synthetic = related_table(501, 1, 0.3), related_table(340, 2, 0.6)
    found = measure(real, synthetic, Target("t", attribute, chosen), seed=8)
    order = np.random.default_rng(8).permutation(501)
    rows = np.array([column.tolist() for column in real.columns]).T
    test, train = rows[order[:100]], rows[order[100:]]
    truth = np.isin(test[:, attribute], chosen) if chosen else test[:, attribute]
    kept = table_of(train.T.tolist(), SIZES)
    assert found.tested_rows == 100
    assert found.synthetic == np.mean(predict_directly(synthetic, test, attribute, chosen) != truth)
    assert found.real == np.mean(predict_directly(kept, test, attribute, chosen) != truth)
    classes = np.isin(train[:, attribute], chosen) if chosen else train[:, attribute]
    assert found.majority == np.mean(np.bincount(classes.astype(int)).argmax() != truth)


def test_what_can_be_learned_is_learned() -> None:
    found = measure(related_table(1000, 1, 0.0), related_table(1000, 2, 0.0), Target("t", 0))
    assert (found.synthetic, found.real) == (0, 0)
    assert 0.3 < found.majority < 0.5
    useless = measure(related_table(1000, 1, 0.0), draw_table(SIZES, 1000, 3), Target("t", 0))
    assert useless.synthetic > 0.2
    assert useless.real == 0


def test_a_single_class_is_predicted_without_a_machine() -> None:
    real = related_table(400, 1, 0.2)
    always = Table(real.names, real.sizes, real.values, (np.ones(400, dtype=np.uint8), *real.columns[1:]))
    found = measure(real, always, Target("t", 0))
    order = np.random.default_rng(0).permutation(400)
    assert found.synthetic == np.mean(real.columns[0][order[:80]] != 1)
    assert measure(always, always, Target("t", 0)) == Misclassification(0.0, 0.0, 0.0, 80)


def test_a_single_attribute_is_predicted_from_nothing() -> None:
    real = table_of([[0, 0, 0, 0, 0, 0, 0, 1, 1, 0]], [2])
    assert measure(real, real, Target("t", 0)).real <= 0.5


def test_each_target_is_measured_on_the_same_rows() -> None:
    real, synthetic = related_table(300, 1, 0.3), related_table(300, 2, 0.3)
    targets = [Target("one", 0), Target("two", 1)]
    both = measure_misclassification(real, synthetic, targets, rng=np.random.default_rng(1))
    assert list(both) == ["one", "two"]
    assert both["two"] == measure(real, synthetic, targets[1], seed=1)


def test_too_few_rows() -> None:
    with pytest.raises(SynodError, match="needs 5 real rows"):
        measure(related_table(4, 1, 0.0), related_table(50, 1, 0.0), Target("t", 0))
    assert measure(related_table(5, 1, 0.0), related_table(50, 1, 0.0), Target("t", 0)).tested_rows == 1


STUDY = make_study(
    schema=[
        categorical("sex", ("F", "M")),
        categorical("a", ("b=y=z", "w")),
        categorical("a=b", ("x", "y=z", "w")),
        categorical("only", ("one",)),
        integer("age", 0, 100),
    ]
)
NAMES = ("sex", "a", "a=b", "age")


def test_targets_as_people_write_them() -> None:
    assert parse_target("sex", STUDY, NAMES) == Target("sex", 0)
    assert parse_target("a=b", STUDY, NAMES) == Target("a=b", 2)
    assert parse_target("age", STUDY, NAMES) == Target("age", 3)
    assert parse_target("sex=M", STUDY, NAMES) == Target("sex=M", 0, (1,))
    assert parse_target("a=b=y=z|w", STUDY, NAMES) == Target("a=b=y=z|w", 2, (1, 2))
    assert parse_target("sex=M|F", STUDY, NAMES) == Target("sex=M|F", 0, (1, 0))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("income", "'income' names no attribute"),
        ("only", "'only' names no attribute"),
        ("", "'' names no attribute"),
        ("age=3", "'age' has no categories"),
        ("sex=", "'sex' has no category ''"),
        ("sex=M|X", "'sex' has no category 'X'"),
    ],
)
def test_targets_that_are_none(text: str, told: str) -> None:
    with pytest.raises(SynodError) as caught:
        parse_target(text, STUDY, NAMES)
    assert caught.value.code is Code.INVALID
    assert told in str(caught.value)
