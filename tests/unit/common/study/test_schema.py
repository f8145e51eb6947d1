"""The schema: defaults, exact decimals, and every rule of an attribute broken once."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.common.crypto.canonical import LARGEST_INTEGER
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.attributes import Attribute, varies
from synod.common.study.schema import DEEPEST_TAXONOMY, LARGEST_DOMAIN, write_decimal
from synod.common.study.study import Study, parse_study
from tests.support.studies import categorical, integer, real, study_document


def parse(*attributes: Any) -> Study:
    return parse_study(study_document(schema=[*attributes]), "the sample")


def parse_one(attribute: Any) -> Attribute:
    return parse(attribute).attributes[0]


def complaint(*attributes: Any) -> str:
    with pytest.raises(SynodError) as caught:
        parse(*attributes)
    assert caught.value.code is Code.INVALID
    assert caught.value.sentence.startswith("the sample: ")
    assert "\n" not in str(caught.value)
    return caught.value.sentence


CATEGORICAL = categorical("a", 3)
INTEGER = integer("a", 0, 9)
REAL = real("a", "0", "9.5")


def nested(depth: int) -> Any:
    tree: Any = ["x", "y"]
    for _ in range(depth - 1):
        tree = [tree]
    return tree


@pytest.mark.parametrize(
    ("attribute", "key", "rule"),
    [
        ({**CATEGORICAL, "type": "nominal"}, "schema.0", "'nominal'"),
        ({**CATEGORICAL, "type": ["categorical"]}, "schema.0", "categorical"),
        ({"name": "a", "categories": ["x"]}, "schema.0", "'type'"),
        ("age", "schema.0", "a mapping of keys"),
        ({**CATEGORICAL, "colour": 1}, "schema.0.categorical.colour", "not known"),
        ({**INTEGER, "categories": ["x"]}, "schema.0.integer.categories", "not known"),
        ({**CATEGORICAL, "bins": 3}, "schema.0.categorical.bins", "not known"),
        (dict([*CATEGORICAL.items(), (5, 6)]), "schema.0.categorical", "must be a text"),
        ({"type": "integer", "min": 0, "max": 1}, "schema.0.integer.name", "required"),
        ({**INTEGER, "name": ""}, "schema.0.integer.name", "1 to 200 printable"),
        ({**INTEGER, "name": " age"}, "schema.0.integer.name", "without spaces around"),
        ({**INTEGER, "name": "a\nb"}, "schema.0.integer.name", "printable"),
        ({**INTEGER, "name": "x" * 201}, "schema.0.integer.name", "1 to 200"),
        ({**INTEGER, "name": 7}, "schema.0.integer.name", "must be a text"),
        ({**INTEGER, "nullable": "yes"}, "schema.0.integer.nullable", "true or false"),
        ({**INTEGER, "nullable": 1}, "schema.0.integer.nullable", "true or false"),
        ({**CATEGORICAL, "categories": []}, "schema.0.categorical", "has no categories"),
        ({"name": "a", "type": "categorical"}, "schema.0.categorical", "has no categories"),
        ({**CATEGORICAL, "categories": ["x", "y", "x"]}, "schema.0.categorical", "appears twice"),
        ({**CATEGORICAL, "categories": ["x", ""]}, "schema.0.categorical", "an empty text is how CSV writes"),
        ({**CATEGORICAL, "categories": [0, 1]}, "schema.0.categorical.categories", "0 is not text."),
        ({**CATEGORICAL, "categories": ["no", True]}, "schema.0.categorical.categories", "True is not text"),
        ({**CATEGORICAL, "categories": [None, "x"]}, "schema.0.categorical.categories", "None is not text"),
        ({**CATEGORICAL, "categories": [Decimal("1.5")]}, "schema.0.categorical.categories", "is not text"),
        ({**CATEGORICAL, "categories": {"x": 1}}, "schema.0.categorical.categories", "is a list of texts"),
        ({**CATEGORICAL, "categories": "xyz"}, "schema.0.categorical.categories", "is a list of texts"),
        ({**CATEGORICAL, "categories": [["x", "y"], "z"]}, "schema.0.categorical.categories.0", "must be a text"),
        (categorical("a", LARGEST_DOMAIN + 1), "schema.0.categorical", f"more than {LARGEST_DOMAIN} categories"),
        ({**CATEGORICAL, "out_of_domain": "clip"}, "schema.0.categorical.out_of_domain", "'refuse' or 'null'"),
        ({**CATEGORICAL, "out_of_domain": "null"}, "schema.0.categorical", "null needs nullable: true"),
        ({**INTEGER, "out_of_domain": "null"}, "schema.0.integer", "null needs nullable: true"),
        ({**REAL, "out_of_domain": "drop"}, "schema.0.real.out_of_domain", "'refuse', 'clip' or 'null'"),
        ({**CATEGORICAL, "taxonomy": [["c0", "c1"]]}, "schema.0.categorical", "are not the taxonomy's leaves"),
        ({**CATEGORICAL, "taxonomy": [["x"]], "categories": 5}, "schema.0.categorical", "is a list of texts"),
        ({**CATEGORICAL, "taxonomy": "abc"}, "schema.0.categorical", "a taxonomy is a list"),
        ({**CATEGORICAL, "taxonomy": {"x": 1}}, "schema.0.categorical", "a taxonomy is a list"),
        ({"name": "a", "type": "categorical", "taxonomy": [[1], "x"]}, "schema.0.categorical", "1 is not text"),
        ({"name": "a", "type": "categorical", "taxonomy": [["x"], "x"]}, "schema.0.categorical", "appears twice"),
        ({"name": "a", "type": "categorical", "taxonomy": []}, "schema.0.categorical", "has no categories"),
        (
            {"name": "a", "type": "categorical", "taxonomy": nested(DEEPEST_TAXONOMY + 1)},
            "schema.0.categorical",
            f"nested more than {DEEPEST_TAXONOMY} deep",
        ),
        ({**INTEGER, "min": 10}, "schema.0.integer", "min is above max"),
        ({**INTEGER, "min": "0"}, "schema.0.integer.min", "a whole number"),
        ({**INTEGER, "min": True}, "schema.0.integer.min", "a whole number"),
        ({**INTEGER, "max": Decimal("9.0")}, "schema.0.integer.max", "a whole number"),
        ({**INTEGER, "max": None}, "schema.0.integer.max", "a whole number"),
        ({**INTEGER, "max": LARGEST_INTEGER + 1}, "schema.0.integer.max", "at most"),
        ({**INTEGER, "min": -LARGEST_INTEGER - 1}, "schema.0.integer.min", "at least"),
        ({**INTEGER, "bins": 11}, "schema.0.integer", "more bins than values"),
        ({**INTEGER, "bins": 0}, "schema.0.integer.bins", "at least 1"),
        ({**REAL, "bins": LARGEST_DOMAIN + 1}, "schema.0.real.bins", "at most"),
        ({**REAL, "min": "9.5"}, "schema.0.real", "min must be below max"),
        ({**REAL, "min": "1", "max": "1.0000000000000000000001"}, "schema.0.real", "min must be below max"),
        ({**REAL, "min": "low"}, "schema.0.real.min", "decimal number"),
        ({**REAL, "min": True}, "schema.0.real.min", "decimal number"),
        ({**REAL, "min": 0.5}, "schema.0.real.min", "decimal number"),
        ({**REAL, "max": "nan"}, "schema.0.real.max", "decimal number of reasonable size"),
        ({**REAL, "max": "Infinity"}, "schema.0.real.max", "decimal number of reasonable size"),
        ({**REAL, "max": "1e31"}, "schema.0.real.max", "decimal number of reasonable size"),
        ({**REAL, "min": "1e-31"}, "schema.0.real.min", "decimal number of reasonable size"),
        ({**REAL, "max": "1e999999999"}, "schema.0.real.max", "decimal number of reasonable size"),
        ({"name": "a", "type": "real", "min": 0}, "schema.0.real.max", "required"),
    ],
)
def test_a_broken_rule_is_named_with_its_key(attribute: Any, key: str, rule: str) -> None:
    found = complaint(attribute, categorical("other", 2))
    assert f" {key}" in found
    assert rule in found


def test_the_position_of_the_attribute_is_named() -> None:
    assert "schema.2.integer" in complaint(CATEGORICAL, categorical("b", 2), {**integer("c", 3, 2)})


def test_a_schema_without_anything_open_is_refused() -> None:
    constants = [categorical("a", 1), integer("b", 5, 5)]
    assert "schema: every attribute has a single value" in complaint(*constants)
    for open_one in (categorical("c", 2), categorical("c", 1, nullable=True), integer("c", 5, 5, nullable=True)):
        assert [varies(attribute) for attribute in parse(*constants, open_one).attributes] == [False, False, True]


def test_defaults_are_written_out() -> None:
    study = parse(
        categorical("a", 2),
        {"name": "b", "type": "integer", "min": 0, "max": 4},
        integer("c", 0, 99),
        REAL | {"name": "d"},
    )
    schema: Any = study.to_json()["schema"]
    a, b, c, d = schema
    assert a == {
        "name": "a", "type": "categorical", "nullable": False, "categories": ["c0", "c1"], "taxonomy": None,
        "out_of_domain": "refuse",
    }  # fmt: skip
    assert b == {
        "name": "b", "type": "integer", "nullable": False, "min": 0, "max": 4, "bins": 5, "spikes": [],
        "out_of_domain": "refuse",
    }  # fmt: skip
    assert c["bins"] == 16
    assert d == {
        "name": "d", "type": "real", "nullable": False, "min": "0", "max": "9.5", "bins": 16, "spikes": [],
        "out_of_domain": "refuse",
    }  # fmt: skip


def test_leaves_of_a_taxonomy_are_the_categories() -> None:
    tree = [["federal", ["state", "local"]], "private"]
    attribute = parse_one({"name": "a", "type": "categorical", "taxonomy": tree})
    assert attribute.categories == ("federal", "state", "local", "private")  # type: ignore[union-attr]
    again = parse_one(
        {"name": "a", "type": "categorical", "taxonomy": tree, "categories": ["federal", "state", "local", "private"]}
    )
    assert again == attribute
    parse_one({"name": "a", "type": "categorical", "taxonomy": nested(DEEPEST_TAXONOMY)}).model_dump(mode="json")


def test_limits_are_allowed() -> None:
    assert parse_one(integer("a", -LARGEST_INTEGER, LARGEST_INTEGER)).bins == 16  # type: ignore[union-attr]
    assert len(parse_one(categorical("a", LARGEST_DOMAIN)).categories) == LARGEST_DOMAIN  # type: ignore[union-attr]
    assert parse_one(real("a", "-1e30", "1e30")).max == Decimal("1e30")  # type: ignore[union-attr]


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=12))
def test_decimals_are_written_in_one_way(number: Decimal) -> None:
    text = write_decimal(number)
    assert Decimal(text) == number
    assert write_decimal(Decimal(text)) == text
    assert "E" not in text
    assert text == "0" or not text.endswith(".")
    assert "." not in text or not text.endswith("0")


@pytest.mark.parametrize(
    ("written", "text"),
    [("0.80", "0.8"), ("1e3", "1000"), ("100", "100"), ("-0.0", "0"), ("-0", "0"), ("5.00", "5"), ("1E-3", "0.001")],
)
def test_write_decimal(written: str, text: str) -> None:
    assert write_decimal(Decimal(written)) == text
