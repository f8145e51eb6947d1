"""The words for a budget: epsilon alone, or with delta, and what either promises to a person with several rows."""

from decimal import Decimal
from fractions import Fraction

import pytest

from synod.common.privacy.conversion import epsilon_for
from synod.common.privacy.cost import FREE, Cost
from synod.common.study.promise import describe_cost, explain_delta, explain_several_rows, name_budget, name_unit
from synod.common.study.schema import write_delta
from tests.support.studies import make_study


@pytest.mark.parametrize(
    ("delta", "text"),
    [("1e-9", "1e-9"), ("0.000000001", "1e-9"), ("0.0001", "0.0001"), ("1.50E-7", "1.5e-7"), ("0.010", "0.01")],
)
def test_delta_is_written_as_people_write_it(delta: str, text: str) -> None:
    assert write_delta(Decimal(delta)) == text


def test_rho_is_told_with_the_epsilon_that_it_stands_for() -> None:
    rho = make_study(epsilon="0.8", delta="1e-9").budget
    assert describe_cost(rho) == "rho 0.00976 (epsilon 0.8 at delta 1e-9)"
    assert describe_cost(rho, Decimal("1e-5")).endswith(" at delta 0.00001)")
    assert describe_cost(rho + Cost.pure(Fraction(1, 2))) == "epsilon 0.5 and rho 0.00976 (epsilon 0.8 at delta 1e-9)"
    assert describe_cost(Cost.pure(Fraction(1, 2))) == "epsilon 0.5"
    assert describe_cost(FREE) == "epsilon 0"


def test_a_budget_has_its_delta_beside_it() -> None:
    assert name_budget(make_study(epsilon="0.80")) == "epsilon 0.8"
    assert name_budget(make_study(epsilon="0.8", delta="1e-09")) == "(epsilon, delta) = (0.8, 1e-9)"


def test_delta_is_beside_the_factor_of_epsilon() -> None:
    words = explain_delta(make_study(epsilon="0.8", delta="1e-9"))
    assert "at most the factor exp(0.8), and by 1e-9, which is delta, beside that" in words


def test_rho_grows_with_the_square_of_a_persons_rows() -> None:
    assert "five times that epsilon" in explain_several_rows(make_study())
    study = make_study(epsilon="0.8", delta="1e-9")
    assert study.rho is not None
    epsilon = epsilon_for(25 * Fraction(study.rho), Fraction("1e-9"))
    words = explain_several_rows(study)
    assert "rho is 0.00976, and a person with m rows has m\u00b2 times that" in words
    assert f"an epsilon of {epsilon.normalize()} at the same delta" in words
    assert epsilon > 5 * Decimal("0.8")


def test_a_study_of_persons_promises_to_persons() -> None:
    row, pure = make_study(), make_study(max_rows_per_unit=3)
    assert (name_unit(row), name_unit(pure)) == ("row", "person with up to 3 rows at a party")
    words = explain_several_rows(pure)
    assert words.startswith("It is per person with up to 3 rows at a party: a person with 6 rows")
    assert words.endswith("has twice that epsilon.")
    study = make_study(epsilon="0.8", delta="1e-9", max_rows_per_unit=3)
    assert study.rho is not None
    assert "Replacing the rows of any one person, up to 3 at a party, changes the chance" in explain_delta(study)
    epsilon = epsilon_for(4 * Fraction(study.rho), Fraction("1e-9"))
    assert f"has four times that, which is an epsilon of {epsilon.normalize()} at" in explain_several_rows(study)
