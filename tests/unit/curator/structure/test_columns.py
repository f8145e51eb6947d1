"""Columns alone: which columns there are, how the budget is divided among them, and the noise that follows."""

from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from synod.common.privacy.laws import TABLE, noise_for
from synod.common.runtime.errors import SynodError
from synod.common.study.study import parse_study
from synod.curator.structure.columns import column_deviation, column_laws, column_sizes, divide_budget, whole_budget
from tests.support.studies import categorical, integer, make_study, real, study_document

SCHEMA: list[dict[str, Any]] = [
    categorical("sex", 2),
    categorical("only", 1),
    integer("age", 0, 100, bins=8),
    real("income", "0", "1", bins=26, nullable=True),
]


@pytest.mark.parametrize("method", ["hpdp-dp", "dp-subn", "adaptive"])
def test_columns_are_in_the_schemas_bins_whatever_the_method(method: str) -> None:
    study = make_study(schema=SCHEMA, method={"name": method}, rows=(400, 500, 600))
    assert column_sizes(study) == (2, 8, 27)


@pytest.mark.parametrize("power", [1 / 2, 2 / 3])
def test_parts_add_up_to_one_and_follow_the_sizes(power: float) -> None:
    sizes = (2, 8, 27, 27)
    parts = divide_budget(sizes, power)
    assert sum(parts) == 1
    assert [float(part / parts[-1]) for part in parts] == pytest.approx([(s / 27) ** power for s in sizes], rel=1e-3)
    assert divide_budget((2, 2), power) == [Fraction(1, 2)] * 2
    assert divide_budget((), power) == []


@pytest.mark.parametrize(("changes", "power"), [({}, 1 / 2), ({"epsilon": "0.5", "delta": "1e-9"}, 2 / 3)])
def test_the_laws_together_are_the_whole_budget(changes: dict[str, Any], power: float) -> None:
    study = make_study(schema=SCHEMA, **changes)
    parts = divide_budget((2, 8, 27), power)
    expected = [noise_for(study.budget, TABLE, part=part, parties=3, threshold=1, rows_per_unit=1) for part in parts]
    assert list(column_laws(study)) == expected
    mean = (2 * expected[0].variance + 8 * expected[1].variance + 27 * expected[2].variance) / 37
    assert column_deviation(study) == pytest.approx(mean**0.5)


@pytest.mark.parametrize(("changes", "power"), [({}, 1 / 2), ({"epsilon": "0.5", "delta": "1e-9"}, 2 / 3)])
def test_no_other_power_has_less_total_error(changes: dict[str, Any], power: float) -> None:
    """The sum of the deviations over all cells, which the mean total variation distance follows."""
    study, sizes = make_study(schema=SCHEMA, **changes), (2, 8, 27)

    def error(other: float) -> float:
        laws = [noise_for(study.budget, TABLE, part=part, rows_per_unit=1) for part in divide_budget(sizes, other)]
        return sum(size * sqrt(law.nominal_variance) for size, law in zip(sizes, laws, strict=True))

    assert error(power) == min(error(other) for other in (0.3, 1 / 2, 2 / 3, 0.9))


def test_a_schema_of_one_bin_has_no_columns_to_publish() -> None:
    study = make_study(schema=[integer("age", 0, 100, bins=1)])
    assert (column_sizes(study), column_laws(study), column_deviation(study)) == ((), (), None)


def test_so_little_budget_that_there_is_no_rho_is_refused() -> None:
    for epsilon, delta in (("1e-25", "1e-30"), ("1e-6", "1e-12")):
        study = parse_study(study_document(roster=None, epsilon=epsilon, delta=delta), "test")
        with pytest.raises(SynodError, match="no noise is large enough"):
            whole_budget(study)
        with pytest.raises(SynodError, match="no noise is large enough"):
            make_study(epsilon=epsilon, delta=delta).resolve()
