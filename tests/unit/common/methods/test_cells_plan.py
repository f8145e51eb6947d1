"""Methods of all cells: which attributes a study keeps, what it costs, and what is refused before anybody approves."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.methods.cells import count_cells
from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.protocol.steps import Limit, QueryKind
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study, parse_study
from synod.party.table.encode import TableError, read_table
from tests.support.sources import write_csv
from tests.support.studies import SCHEMA, Attribute, categorical, integer, make_study, study_document

NAMES = ["histogram", "dpcocgen"]
every_method = pytest.mark.parametrize("name", NAMES)


def wide(*sizes: int) -> list[Attribute]:
    return [categorical(f"x{i}", size) for i, size in enumerate(sizes)]


def names_of(study: Study) -> list[str]:
    return [attribute.name for attribute in study.attributes]


# Attributes


@every_method
def test_the_study_has_the_named_attributes_only_in_the_schemas_order(name: str) -> None:
    study = make_study(method={"name": name, "attributes": ["ward", "sex"]})
    assert names_of(study) == ["sex", "ward"]
    written: Any = study.to_json()["method"]
    assert written["attributes"] == ["sex", "ward"]
    assert count_cells(study) == 6
    assert parse_study(json.loads(canonical_bytes(study.to_json())), "again") == study


@every_method
def test_without_names_all_attributes_are_written_out(name: str) -> None:
    study = make_study(method={"name": name})
    written: Any = study.to_json()["method"]
    assert written["attributes"] == names_of(study) == [attribute["name"] for attribute in SCHEMA]
    assert make_study(method={"name": name, "attributes": names_of(study)}) == study


@every_method
def test_a_study_that_is_copied_with_its_method_keeps_them(name: str) -> None:
    method = make_study(method={"name": name, "attributes": ["sex"]}).method
    assert names_of(Study.model_validate(study_document(method=method))) == ["sex"]


@every_method
@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        (["sex", "height"], "the sample: method.attributes: 'height' names one that the schema does not have."),
        (["sex", "sex"], "the sample: method.attributes: 'sex' names an attribute twice."),
        ([], "method.attributes"),
        ("sex", "method.attributes"),
        ([5], "method.attributes"),
        ({"sex": 1}, "method.attributes"),
    ],
)
def test_other_names_are_refused(name: str, attributes: Any, told: str) -> None:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(method={"name": name, "attributes": attributes}), "the sample")
    assert caught.value.code is Code.INVALID
    assert told in caught.value.sentence


@every_method
def test_other_columns_are_neither_read_nor_checked(name: str, tmp_path: Path) -> None:
    study = make_study(method={"name": name, "attributes": ["sex"]})
    table = write_csv(tmp_path, {"sex": ["F", "M"], "age": [-5, "old"]})
    snapshot = read_table(table, codings_of(study), unit=None, expected_rows=2)
    assert [column.tolist() for column in snapshot.columns] == [[0, 1]]
    everything = make_study(schema=SCHEMA[:2], method={"name": name})
    with pytest.raises(TableError):
        read_table(table, codings_of(everything), unit=None, expected_rows=2)


@every_method
@pytest.mark.parametrize("broken", [5, {"type": "categorical"}, {"name": ["sex"]}])
def test_what_is_no_attribute_is_refused_as_ever(name: str, broken: Any) -> None:
    document = study_document(method={"name": name, "attributes": ["sex"]})
    document["schema"] = [*document["schema"], broken]
    with pytest.raises(SynodError, match="schema"):
        parse_study(document, "the sample")


# Plan


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_all_of_the_budget_counts_cells(delta: str | None) -> None:
    study = make_study(schema=wide(3, 4, 5), method={"name": "histogram"}, delta=delta)
    (step,) = plan_study(study).steps
    assert (step.label, step.kind, step.cost) == ("histogram", QueryKind.SUM_MARGINALS, study.budget)
    assert step.limit == Limit(numbers=60, tables=1, cells=60)
    assert step.answerers == study.party_names


@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_the_budget_is_split_between_cells_and_parts(delta: str | None) -> None:
    study = make_study(schema=wide(3, 4, 5), method={"name": "dpcocgen", "split": "0.3"}, delta=delta)
    first, second = plan_study(study).steps
    assert (first.label, second.label) == ("histogram", "parts")
    assert first.cost == study.budget.share(Decimal("0.3"))
    assert Cost.total([first.cost, second.cost]) == study.budget
    assert first.limit == second.limit == Limit(numbers=60, tables=1, cells=60)


def test_a_number_of_parts_bounds_the_second_sum_but_not_below_one_attribute() -> None:
    schema = wide(3, 40, 5)
    limits = [
        plan_study(make_study(schema=schema, method={"name": "dpcocgen", "parts": parts})).step("parts").limit.numbers
        for parts in (2, 50, 10_000)
    ]
    assert limits == [3, 50, 600]


def test_parts_are_written_out() -> None:
    written: Any = make_study(method={"name": "dpcocgen"}).to_json()["method"]
    assert (written["parts"], written["split"]) == ("error", "0.5")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"split": "0"}, "split must be above 0 and below 1"),
        ({"split": "1"}, "split must be above 0 and below 1"),
        ({"parts": 1}, "method.parts"),
        ({"parts": "few"}, "method.parts"),
        ({"max_cells": 10_000_001}, "method.max_cells"),
        ({"max_cells": 1}, "method.max_cells"),
        ({"theta": 4}, "method.theta"),
    ],
)
def test_keys_out_of_range_are_refused(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(method={"name": "dpcocgen", **keys}), "the sample")
    assert told in caught.value.sentence


# Refusals


@every_method
def test_too_many_cells_are_refused_with_what_they_would_take(name: str) -> None:
    study = make_study(
        schema=wide(100, 100, 200), method={"name": name}, rows=(20_000,) * 3, epsilon="1", key_bits=3072, collusion=0
    )
    with pytest.raises(SynodError) as caught:
        check_feasible(study)
    assert caught.value.code is Code.REFUSED
    told = caught.value.sentence
    noise = {"histogram": "2.8", "dpcocgen": "5.6"}[name]
    ciphertexts = 2_000_000 // 187 + 1  # slots of 16 bits
    assert "has 2,000,000 cells; `max_cells` is 1,000,000" in told
    assert f"0.03 rows on average against noise of {noise}" in told
    assert f"{ciphertexts:,} ciphertexts, {ciphertexts * 768 // 10**6} MB from each party" in told
    assert f" and {-(-ciphertexts * 26 // 60_000)} minutes or so" in told
    assert "10,000,000" in caught.value.hint
    check_feasible(make_study(schema=wide(100, 100, 200), method={"name": name, "max_cells": 2_000_000}))


@every_method
def test_the_refusal_is_to_the_cell(name: str) -> None:
    check_feasible(make_study(schema=wide(10, 10), method={"name": name, "max_cells": 100}))
    with pytest.raises(SynodError, match="has 100 cells; `max_cells` is 99"):
        check_feasible(make_study(schema=wide(10, 10), method={"name": name, "max_cells": 99}))


@every_method
def test_an_absurd_study_is_refused_at_once(name: str) -> None:
    """Before anything is listed: a party's policy checks what a curator sends."""
    study = make_study(schema=wide(*[400] * 200), method={"name": name})
    assert plan_study(study).steps[0].limit.numbers == 1_000_000
    with pytest.raises(SynodError, match=r"about 10\^520 cells"):
        check_feasible(study)


def test_values_that_would_be_compared_two_by_two_are_refused_where_they_are_too_many() -> None:
    for method, schema in (("histogram", wide(501, 2)), ("dpcocgen", wide(500, 2))):
        check_feasible(make_study(schema=schema, method={"name": method}))
    with pytest.raises(SynodError, match="x0 has 501 values, which would be compared two by two; at most 500"):
        check_feasible(make_study(schema=wide(501, 2), method={"name": "dpcocgen"}))
    numbers = [integer("n", 0, 999, bins=900), categorical("b", 2)]
    check_feasible(make_study(schema=numbers, method={"name": "dpcocgen"}))
