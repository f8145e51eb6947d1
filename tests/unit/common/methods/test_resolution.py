"""A resolved study leaves nothing open: its plan follows from what is written in it, whatever the code's defaults."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from synod.common.crypto.canonical import canonical_bytes
from synod.common.methods.networks import NetworkMethod
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study, known_methods, parse_study
from tests.support import defaults
from tests.support.studies import SCHEMA, binary, categorical, integer, make_study, real, study_document

ROWS = (4_000, 8_000, 16_000)
SCHEMAS: dict[str, list[dict[str, Any]]] = {
    "mixed": [*SCHEMA],
    "bits": [binary(f"x{i}") for i in range(7)],
    "large": [categorical("a", 300), categorical("b", 70), integer("c", 0, 1000), real("d", "0", "1")],
    "one": [binary("x")],
    "none but one": [categorical("a", 1), binary("x"), integer("c", 3, 3)],
}
WRITTEN: list[dict[str, Any]] = [
    {"name": "hpdp-dp"},
    {"name": "hpdp-dp", "levels": 512, "link": "linear"},
    {"name": "hpdp-dp", "components": 3},
    {"name": "dp-subn"},
    {"name": "dp-subn", "update": "joint", "encoding": "vanilla"},
    {"name": "dp-subn", "split": "paper", "encoding": "gray", "theta": "0.5"},
    {"name": "dp-subn", "split": ["0.1", "0.2", "0.3", "0.4"], "score": "I"},
    {"name": "dp-ccbn"},
    {"name": "dp-ccbn", "encoding": "vanilla", "theta": "1"},
    {"name": "independent"},
    {"name": "independent", "encoding": "gray", "score": "R"},
    {"name": "independent", "encoding": "vanilla"},
    {"name": "independent", "encoding": "hierarchical"},
    {"name": "privbayes"},
    {"name": "privbayes", "encoding": "binary", "degree": 2, "tables": "clip"},
    {"name": "privbayes", "encoding": "gray", "score": "I", "theta": "0.5"},
    {"name": "hpprivbayes"},
    {"name": "hpprivbayes", "encoding": "hierarchical", "weights": "rare", "threshold": "0.02", "degree": 2},
    {"name": "adaptive"},
    {"name": "adaptive", "rounds": 1, "max_model_cells": 5_000, "splits": 2},
    {"name": "distdiffgen"},
    {"name": "distdiffgen", "specializations": 3, "split": "0.4", "theta": "0.5"},
    {"name": "histogram"},
    {"name": "histogram", "max_cells": 100},
    {"name": "dpcocgen"},
    {"name": "dpcocgen", "parts": "modl", "split": "0.3"},
    {"name": "dpcocgen", "parts": 6},
]
every_study = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
every_method = pytest.mark.parametrize("method", WRITTEN, ids=lambda method: "-".join(map(str, method.values())))


def study_of(method: dict[str, Any], schema: list[dict[str, Any]], **changes: Any) -> Study:
    return make_study(**{"method": method, "schema": schema, "rows": ROWS, "epsilon": "0.8", **changes})


def travelled(study: Study) -> Study:
    """The study as another version of the code reads it."""
    return parse_study(json.loads(canonical_bytes(study.to_json())), "the approved study")


def words(value: Any) -> Iterator[str]:
    """Every text of a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from words(inner)


def test_every_method_is_tried() -> None:
    assert {method["name"] for method in WRITTEN} == set(known_methods())


@every_study
@every_method
def test_nothing_is_left_open(method: dict[str, Any], schema: list[dict[str, Any]]) -> None:
    study = study_of(method, schema)
    assert not {"auto", "best", "paper"} & set(words(study.to_json()))
    written: Any = study.to_json()["method"]
    assert written["version"] == 1
    assert set(written) == set(type(study.method).model_fields)
    assert None not in written.values()


@every_study
@every_method
def test_resolving_twice_changes_nothing(method: dict[str, Any], schema: list[dict[str, Any]]) -> None:
    study = study_of(method, schema)
    assert study.resolve() == study
    assert study.resolve().digest() == study.digest()
    assert travelled(study) == study
    assert travelled(study).resolve().digest() == study.digest()


@every_study
@every_method
def test_the_plan_follows_from_what_is_written(method: dict[str, Any], schema: list[dict[str, Any]]) -> None:
    study = study_of(method, schema)
    before = study.method.plan(study)
    assert before == plan_study(study).steps
    other = travelled(study)
    assert other.method.plan(other) == before


@every_study
@every_method
def test_a_resolved_study_does_not_notice_other_defaults(method: dict[str, Any], schema: list[dict[str, Any]]) -> None:
    study = study_of(method, schema)
    plan, document = study.method.plan(study), canonical_bytes(study.to_json())
    with defaults.other_defaults():
        later = travelled(study)
        assert canonical_bytes(later.to_json()) == canonical_bytes(later.resolve().to_json()) == document
        assert later.resolve().digest() == study.digest()
        assert plan_study(later.resolve()).steps == plan
        assert study.method.plan(study) == plan


@pytest.mark.parametrize("name", sorted(known_methods()))
def test_a_study_that_leaves_things_open_does_notice_them(name: str) -> None:
    """So that the test above can fail."""
    open_study = parse_study(study_document(method={"name": name}), "x")
    before = open_study.resolve()
    with defaults.other_defaults():
        after = make_study(method={"name": name})
        assert after.method != before.method
        assert after.attributes != before.attributes
        assert after.digest() != before.digest()
        if isinstance(before.method, NetworkMethod):
            assert plan_study(after).to_json() != plan_study(before).to_json()
    assert make_study(method={"name": name}) == before


def test_every_default_of_a_method_is_one_of_those_that_are_changed() -> None:
    for method in known_methods().values():
        keys = {name for name, field in method.model_fields.items() if not field.is_required()}
        own = {key for name, key in defaults.OWN if name in get_args(method.model_fields["name"].annotation)}
        assert keys - {"version"} <= set(defaults.DIFFERENT) | own


# Cells that a study writes itself


def network_method(study: Study) -> NetworkMethod:
    assert isinstance(study.method, NetworkMethod)
    return study.method


@pytest.mark.parametrize("cells", [0, 1, 2, 7, 1 << 16])
def test_cells_that_a_study_writes_are_taken(cells: int) -> None:
    for name in ("dp-subn", "dp-ccbn"):
        written: Any = study_of({"name": name, "parameter_cells": cells}, SCHEMAS["bits"]).to_json()["method"]
        assert written["parameter_cells"] == cells
    method = {"name": "independent", "table_cells": [cells, 0, 4]}
    own: Any = study_of(method, SCHEMAS["bits"]).to_json()["method"]
    assert own["table_cells"] == [cells, 0, 4]


@pytest.mark.parametrize(
    "method",
    [
        {"name": "dp-subn", "parameter_cells": 4},
        {"name": "dp-subn", "parameter_cells": 1, "frontier_cells": 8},
        {"name": "dp-ccbn", "parameter_cells": 4},
        {"name": "independent", "table_cells": [0, 4, 0]},
    ],
)
@pytest.mark.parametrize("schema", ["one", "none but one"])
def test_a_single_feature_has_no_tables_to_size(method: dict[str, Any], schema: str) -> None:
    with pytest.raises(SynodError, match="single feature, which has no parents") as caught:
        study_of(method, SCHEMAS[schema])
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("name", ["dp-subn", "dp-ccbn", "independent"])
def test_a_single_feature_is_counted_with_all_of_the_budget(name: str) -> None:
    study = study_of({"name": name}, SCHEMAS["one"])
    assert network_method(study).chosen_score == "F"
    steps = plan_study(study).steps
    assert {step.cost for step in steps} == {study.budget}
    assert {step.limit.numbers for step in steps} == {2}
