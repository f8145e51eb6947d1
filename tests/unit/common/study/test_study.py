"""The study: its resolved form, its hash, and every rule broken once."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto.canonical import canonical_bytes
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import LARGEST_ROSTER, LARGEST_SCHEMA, known_methods, load_study, parse_study
from tests.support.keys import pinned
from tests.support.studies import (
    NAMES,
    ROWS,
    SCHEMA,
    categorical,
    integer,
    make_roster,
    make_study,
    real,
    study_document,
)


def complaint(**changes: Any) -> str:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(**changes), "the sample")
    assert caught.value.code is Code.INVALID
    assert caught.value.sentence.startswith("the sample: ")
    assert "\n" not in str(caught.value)
    assert caught.value.sentence.endswith((".", ".)"))
    return caught.value.sentence


def entry(index: int, **changes: Any) -> dict[str, Any]:
    return {"name": f"party-{index}", "key": pinned(index), "rows": 5} | changes


REMOVED: Any = None
METHODS = (
    "name must be one of adaptive, distdiffgen, dp-ccbn, dp-subn, dpcocgen, histogram, hpdp-dp, hpprivbayes, "
    "independent, privbayes"
)


@pytest.mark.parametrize(
    ("changes", "key", "rule"),
    [
        ({"nmae": "x"}, "nmae", "not known"),
        ({"attributes": [categorical("a", 2)]}, "attributes", "not known"),
        ({"name": REMOVED}, "name", "required"),
        ({"name": 5}, "name", "a text"),
        ({"name": "Care Survey"}, "name", "small letters"),
        ({"name": "-x"}, "name", "small letters"),
        ({"name": "x\n"}, "name", "small letters"),
        ({"name": "x" * 64}, "name", "1 to 63"),
        ({"name": "../x"}, "name", "small letters"),
        ({"format": "synod/study/v2"}, "format", "synod/study/v1"),
        ({"method": REMOVED}, "method", "required"),
        ({"method": "hpdp-dp"}, "method:", "is a mapping with a name"),
        ({"method": 5}, "method:", "is a mapping with a name"),
        ({"method": ["hpdp-dp"]}, "method:", "is a mapping with a name"),
        ({"method": {}}, "method:", METHODS),
        ({"method": {"name": "magic"}}, "method:", METHODS),
        ({"method": {"name": ["hpdp-dp"]}}, "method:", METHODS),
        ({"method": {"name": {"a": 1}}}, "method:", METHODS),
        ({"method": {"name": 5}}, "method:", METHODS),
        ({"method": {"name": None}}, "method:", METHODS),
        ({"method": {"name": "hpdp-dp", 5: 6}}, "method.5:", "keys are texts"),
        ({"method": {"name": "hpdp-dp", "version": 2}}, "method.version:", "must be 1"),
        ({"method": {"name": "hpdp-dp", "theta": 6}}, "method.theta", "not known"),
        ({"method": {"name": "hpdp-dp", "levels": 300}}, "method.levels", "256, 512 or 1024"),
        ({"method": {"name": "hpdp-dp", "levels": "256"}}, "method.levels", "256, 512 or 1024"),
        ({"method": {"name": "hpdp-dp", "link": "log"}}, "method.link", "'copula' or 'linear'"),
        ({"method": {"name": "hpdp-dp", "contribution": 0}}, "method", "contribution must be above 0"),
        ({"method": {"name": "hpdp-dp", "contribution": "1.01"}}, "method", "above 0 and at most 1"),
        ({"method": {"name": "dp-subn", "levels": 256}}, "method.levels", "not known"),
        ({"method": {"name": "dp-subn", "split": "worst"}}, "method.split:", "be 'best' or 'paper', or a valid list."),
        ({"method": {"name": "dp-subn", "split": 5}}, "method.split:", "be 'best' or 'paper', or a valid list."),
        ({"method": {"name": "dp-subn", "split": {"a": 1}}}, "method.split:", "'best' or 'paper', or a valid list."),
        ({"method": {"name": "dp-subn", "split": ["0.5", "x"]}}, "method.split.1:", "must be a decimal number."),
        ({"method": {"name": "dp-subn", "split": ["x", "y"]}}, "method.split.0:", "decimal number. (1 more after it.)"),
        ({"method": {"name": "dp-subn", "spilt": "best", "update": 5}}, "method.spilt", "not known. (1 more"),
        ({"method": {"name": "dp-subn", "parameter_cells": "few"}}, "method.parameter_cells:", "number, or 'auto'."),
        ({"method": {"name": "dp-subn", "parameter_cells": -1}}, "method.parameter_cells:", "at least 0, or 'auto'."),
        ({"method": {"name": "dp-subn", "frontier_cells": 2**16 + 1}}, "method.frontier_cells:", "at most 65536, or"),
        ({"method": {"name": "dp-ccbn", "max_numbers": 0}}, "method.max_numbers:", "at least 1."),
        ({"method": {"name": "independent", "table_cells": 4}}, "method.table_cells:", "a valid list, or 'auto'."),
        ({"method": {"name": "independent", "table_cells": [4, "a"]}}, "method.table_cells.1:", "a whole number."),
        ({"method": {"name": "independent", "table_cells": [4, -1]}}, "method.table_cells.1:", "at least 0."),
        ({"method": {"name": "dp-subn", "split": ["0.5", "0.5"]}}, "method", "split must be 4 positive shares"),
        ({"method": {"name": "dp-subn", "split": ["0.3", "0.3", "0.3", "0.2"]}}, "method", "add up to at most 1"),
        ({"method": {"name": "dp-subn", "split": ["0.5", "0", "0.3", "0.2"]}}, "method", "4 positive shares"),
        ({"method": {"name": "dp-subn", "theta": 0}}, "method", "theta must be above 0"),
        ({"method": {"name": "dp-subn", "theta_frontier": "-1"}}, "method", "theta_frontier must be above 0"),
        ({"method": {"name": "dp-subn", "update": "never"}}, "method.update", "'sequential' or 'joint'"),
        ({"method": {"name": "dp-ccbn", "split": ["0.5", "0.51"]}}, "method", "split must be 2 positive shares"),
        ({"method": {"name": "independent", "beta": 1}}, "method", "beta must be above 0 and below 1"),
        ({"method": {"name": "independent", "score": "G"}}, "method.score:", "'auto', 'F', 'R' or 'I'."),
        ({"method": {"name": "independent", "encoding": "hex"}}, "method.encoding:", "'gray' or 'hierarchical'."),
        ({"epsilon": REMOVED}, "epsilon", "required"),
        ({"epsilon": 0}, "", "epsilon must be above 0"),
        ({"epsilon": -1}, "", "epsilon must be above 0"),
        ({"epsilon": "1000.0001"}, "", "epsilon must be above 0 and at most 1000"),
        ({"epsilon": "much"}, "epsilon", "decimal number"),
        ({"epsilon": True}, "epsilon", "decimal number"),
        ({"epsilon": 0.8}, "epsilon", "decimal number"),
        ({"epsilon": [1]}, "epsilon", "decimal number"),
        ({"epsilon": "nan"}, "epsilon", "decimal number"),
        ({"epsilon": "1e-40"}, "epsilon", "decimal number of reasonable size"),
        ({"delta": "little"}, "delta:", "decimal number"),
        ({"delta": True}, "delta:", "decimal number"),
        ({"delta": 1e-9}, "delta:", "decimal number"),
        ({"delta": "-1e-9"}, "delta:", "at least 0 and below 1, such as 1e-9"),
        ({"delta": 1}, "delta:", "at least 0 and below 1, such as 1e-9"),
        ({"delta": "0.001"}, "", "somebody's row could be published outright"),
        ({"rho": "0.001", "order": 30}, "", "rho and order are of a study with delta"),
        ({"delta": 0, "rho": "0.001", "order": 30}, "", "rho and order are of a study with delta"),
        ({"delta": "1e-9", "rho": "0.001"}, "", "go together"),
        ({"delta": "1e-9", "order": 30}, "", "go together"),
        ({"delta": "1e-9", "rho": "0.02", "order": "34.8651"}, "", "is not within epsilon 1 and delta 1e-9."),
        ({"delta": "1e-9", "rho": 0, "order": "34.8651"}, "", "rho 0 at order 34.8651 is not within"),
        ({"delta": "1e-9", "rho": "0.001", "order": 1}, "", "at order 1 is not within"),
        ({"collusion": -1}, "collusion", "at least 0"),
        ({"collusion": "1"}, "collusion", "whole number"),
        ({"collusion": True}, "collusion", "whole number"),
        ({"max_rows_per_unit": 0}, "max_rows_per_unit", "at least 1"),
        ({"max_rows_per_unit": 1001}, "max_rows_per_unit", "at most 1000"),
        ({"max_rows_per_unit": True}, "max_rows_per_unit", "whole number"),
        ({"collusion": 3}, "", "collusion must be below the number of parties, which is 3"),
        ({"collusion": 4}, "", "collusion must be below the number of parties, which is 3"),
        ({"rows": 0}, "rows", "at least 1"),
        ({"rows": 10**9 + 1}, "rows", "at most"),
        ({"rows": Decimal("10.0")}, "rows", "whole number"),
        ({"key_bits": 1024}, "key_bits", "at least 2048"),
        ({"key_bits": 8200}, "key_bits", "at most 8192"),
        ({"key_bits": 2050}, "key_bits", "multiple of 8"),
        ({"key_bits": "2048"}, "key_bits", "whole number"),
        ({"seed": -1}, "seed", "at least 0"),
        ({"seed": 2**53}, "seed", "less than"),
        ({"seed": "x"}, "seed", "whole number"),
        ({"roster": {"name": "north"}}, "roster", "valid list"),
        ({"roster": ["north"]}, "roster.0", "mapping of keys"),
        ({"roster": [entry(0), {"name": "b", "key": pinned(1)}]}, "roster.1.rows", "required"),
        ({"roster": [entry(0), entry(1, rows=0)]}, "roster.1.rows", "at least 1"),
        ({"roster": [entry(0), entry(1, rows=True)]}, "roster.1.rows", "whole number"),
        ({"roster": [entry(0), entry(1, rows=10**9 + 1)]}, "roster.1.rows", "at most"),
        ({"roster": [entry(0, key="sha256:12"), entry(1)]}, "roster.0.key", "64 hexadecimal digits"),
        ({"roster": [entry(0, key=pinned(1).upper()), entry(1)]}, "roster.0.key", "64 hexadecimal digits"),
        ({"roster": [entry(0, key=pinned(5) + "\n"), entry(1)]}, "roster.0.key", "64 hexadecimal digits"),
        ({"roster": [entry(0, name="North"), entry(1)]}, "roster.0.name", "small letters"),
        ({"roster": [entry(0), entry(1, admin=True)]}, "roster.1.admin", "not known"),
        ({"roster": [entry(0), entry(1), entry(2, name="party-0")]}, "", "the party party-0 appears twice"),
        ({"roster": [entry(0), entry(1), entry(2, key=pinned(1))]}, "", f"the key {pinned(1)} appears twice"),
        ({"roster": [entry(i) for i in range(LARGEST_ROSTER + 1)]}, "roster", "500 entries or fewer"),
        ({"schema": REMOVED}, "schema", "required"),
        ({"schema": []}, "schema", "1 or more entries"),
        ({"schema": {"age": "integer"}}, "schema", "valid list"),
        ({"schema": [categorical(f"a{i}", 2) for i in range(LARGEST_SCHEMA + 1)]}, "schema", "1000 entries or fewer"),
        ({"schema": [categorical("a", 2), integer("a", 0, 1)]}, "", "the attribute a appears twice"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_with_its_key(changes: dict[str, Any], key: str, rule: str) -> None:
    found = complaint(**changes)
    assert f" {key}" in found
    assert rule in found


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"epsilon": "0"}, "Correct it and try again."),
        ({"rho": "0.01"}, "Leave rho and order out to have them follow."),
        ({"delta": "0.5"}, "Write 1e-9, or at most 0.0006."),
        ({"delta": "0.5", "roster": [{**entry(i), "rows": 10**7} for i in range(2)]}, "Write 1e-9, or at most 5e-9."),
        ({"schema": [categorical("a", ("x", ""))]}, "Use `nullable: true` for it."),
        ({"schema": [{**categorical("a", 2), "categories": [0, 1]}]}, "Put it in quotes."),
        ({"schema": [{**categorical("a", 2), "taxonomy": [["x", "y"]]}]}, "Give categories or a taxonomy."),
    ],
)
def test_an_error_has_one_hint(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(**changes), "x")
    assert caught.value.hint == hint
    assert ";" not in caught.value.sentence


def test_further_broken_rules_are_counted() -> None:
    with pytest.raises(SynodError) as caught:
        parse_study(study_document(name="X", key_bits=7, seed=-1), "x")
    assert "(2 more after it.)" in caught.value.sentence
    assert caught.value.further == ("x: key_bits: must be a multiple of 8.", "x: seed: must be at least 0.")


@pytest.mark.parametrize("data", [None, [], "name: x", 5, [{"name": "x"}]])
def test_what_is_not_a_mapping_is_refused(data: Any) -> None:
    with pytest.raises(SynodError, match="the sample is not a study: it must be a mapping"):
        parse_study(data, "the sample")


def test_a_key_that_is_not_text_is_refused() -> None:
    with pytest.raises(SynodError, match=r"the sample: .*keys are texts"):
        parse_study({**study_document(), 5: 6}, "the sample")


def test_the_known_methods_are_those_that_a_study_may_name() -> None:
    assert {"dp-ccbn", "dp-subn", "hpdp-dp", "independent"} <= set(known_methods())
    for name, method in known_methods().items():
        study = make_study(method={"name": name})
        assert study.method.name == name
        assert type(study.method) is method
        assert type(study.resolve().method) is method


@pytest.mark.parametrize(
    "name", ["PrivBayes", "HPPrivBayes", "priview", "Histogram", "dp-cocgen", "Dp-Subn", "dp_subn", ""]
)
def test_methods_that_are_not_in_this_version_are_refused_with_those_that_are(name: str) -> None:
    found = complaint(method={"name": name})
    assert all(known in found for known in known_methods())


def test_cells_for_another_number_of_parties_are_refused() -> None:
    with pytest.raises(SynodError, match="`table_cells` must have one number for each party") as caught:
        make_study(method={"name": "independent", "table_cells": [4, 4]})
    assert caught.value.code is Code.INVALID


def test_resolving_writes_every_default_out() -> None:
    document = study_document(
        epsilon="0.8", seed=None, roster=make_roster(rows=(1, 2, 4)), schema=[categorical("a", 2)]
    )
    del document["key_bits"]
    assert parse_study(document, "x").resolve().to_json() == {
        "format": "synod/study/v1",
        "name": "care-survey",
        "method": {
            "name": "hpdp-dp",
            "version": 1,
            "contribution": "0.9",
            "components": "contribution",
            "levels": 256,
            "link": "copula",
        },
        "epsilon": "0.8",
        "delta": None,
        "rho": None,
        "order": None,
        "collusion": 1,
        "max_rows_per_unit": 1,
        "rows": 7,
        "key_bits": 3072,
        "seed": None,
        "roster": document["roster"],
        "schema": [
            {
                "name": "a",
                "type": "categorical",
                "nullable": False,
                "categories": ["c0", "c1"],
                "taxonomy": None,
                "out_of_domain": "refuse",
            }
        ],
    }


ATTRIBUTES = st.one_of(
    st.builds(categorical, st.just("x"), st.integers(2, 6), nullable=st.booleans()),
    st.builds(integer, st.just("x"), st.integers(-50, 0), st.integers(1, 50), nullable=st.booleans()),
    st.builds(
        real,
        st.just("x"),
        st.decimals(-5, 0, places=3).map(str),
        st.decimals("0.01", 5, places=4).map(str),
        nullable=st.booleans(),
    ),
    st.just({"name": "x", "type": "categorical", "taxonomy": [["\u20ac", "\U0001f600"], "z"]}),
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    schema = [
        {**attribute, "name": f"a{i}"} for i, attribute in enumerate(draw(st.lists(ATTRIBUTES, min_size=1, max_size=5)))
    ]
    parties = draw(st.integers(1, 5))
    return study_document(
        epsilon=draw(st.decimals("0.001", 1000, places=5).map(str) | st.integers(1, 9) | st.decimals(1, 9, places=3)),
        collusion=draw(st.integers(0, parties - 1)),
        rows=draw(st.none() | st.integers(1, 10**6)),
        seed=draw(st.none() | st.integers(0, 2**53 - 1)),
        method={"name": "hpdp-dp", "contribution": draw(st.sampled_from(["0.50", "1", Decimal("0.9")]))},
        delta=draw(st.none() | st.sampled_from(["0", "1e-9", "1e-12", Decimal("1e-8")])),
        roster=[entry(i, rows=draw(st.integers(1, 10**6))) for i in range(parties)],
        schema=schema,
    )


@settings(deadline=None)
@given(documents())
def test_resolving_is_a_fixed_point_also_through_json(document: dict[str, Any]) -> None:
    study = parse_study(document, "x").resolve()
    travelled = parse_study(json.loads(canonical_bytes(study.to_json())), "x").resolve()
    assert study.resolve() == study
    assert travelled == study
    assert travelled.digest() == study.digest()
    assert canonical_bytes(travelled.to_json()) == canonical_bytes(study.to_json())


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "care-surveys"},
        {"epsilon": "1.00001"},
        {"delta": "1e-9"},
        {"collusion": 2},
        {"max_rows_per_unit": 2},
        {"output_rows": sum(ROWS) + 1},
        {"key_bits": 2056},
        {"seed": 0},
        {"method": {"name": "hpdp-dp", "levels": 512}},
        {"method": {"name": "hpdp-dp", "link": "linear"}},
        {"method": {"name": "hpdp-dp", "contribution": "0.91"}},
        {"method": {"name": "dp-subn"}},
        {"roster": [entry(0), entry(1)]},
        {"roster": list(reversed(make_roster()))},
        {"schema": list(reversed(SCHEMA))},
        {"schema": [*SCHEMA, categorical("more", 2)]},
    ],
)
def test_the_hash_changes_with_every_key(changes: dict[str, Any]) -> None:
    assert make_study(**changes).digest() != make_study().digest()


@pytest.mark.parametrize("epsilon", ["0.8", "0.80", Decimal("0.8"), Decimal("0.8000"), "8e-1"])
def test_the_hash_does_not_depend_on_how_a_decimal_is_written(epsilon: Any) -> None:
    assert make_study(epsilon=epsilon).digest() == make_study(epsilon="0.8").digest()


@pytest.mark.parametrize("delta", ["1e-9", "1e-09", "1.0e-9", "0.000000001", "'1e-9'", '"0.000000001"'])
def test_delta_is_read_as_people_write_it(tmp_path: Path, delta: str) -> None:
    """YAML readers take 1e-9 for text, and 1.0e-9 for a number."""
    path = tmp_path / "study.yaml"
    path.write_text(json.dumps(study_document())[:-1] + f", delta: {delta}}}")
    resolved = load_study(path).resolve()
    assert resolved.to_json()["delta"] == "0.000000001"
    assert resolved.digest() == make_study(delta="1e-9").digest()


@pytest.mark.parametrize("delta", [0, "0", "0.0", "0e-9"])
def test_no_delta_and_a_delta_of_0_are_pure(delta: Any) -> None:
    study = make_study(delta=delta)
    assert study == make_study()
    assert study.budget == Cost.pure(Fraction(1))
    assert [study.to_json()[key] for key in ("delta", "rho", "order")] == [None, None, None]


@pytest.mark.parametrize(("epsilon", "rho", "order"), [("0.2", 0.000675, 153.4), ("0.8", 0.00976, 42.7)])
def test_rho_and_its_order_are_resolved_from_epsilon_and_delta(epsilon: str, rho: float, order: float) -> None:
    study = make_study(epsilon=epsilon, delta="1e-9")
    assert study.rho is not None
    assert study.order is not None
    assert float(study.rho) == pytest.approx(rho, rel=1e-3)
    assert float(study.order) == pytest.approx(order, rel=1e-3)
    assert study.budget == Cost.concentrated(study.rho)
    assert study.to_json()["rho"] == str(study.rho)
    assert parse_study(study.to_json(), "x") == study == study.resolve()


def test_less_rho_than_allowed_is_kept_and_more_is_refused_by_whoever_parses() -> None:
    """So both sides check the inequality: the curator when a study is submitted, a party when it reads one."""
    document = make_study(delta="1e-9").to_json()
    less = parse_study({**document, "rho": "0.0149"}, "x").resolve()
    assert less.budget == Cost.concentrated(Decimal("0.0149"))
    for change in ({"rho": "0.0149730576736"}, {"epsilon": "0.9"}, {"delta": "1e-10"}, {"order": "40"}):
        with pytest.raises(SynodError, match="Leave rho and order out to have them follow"):
            parse_study({**document, **change}, "x")


def test_a_delta_above_one_in_ten_times_the_rows_is_refused() -> None:
    rows = (100, 200, 700)
    assert make_study(rows=rows, delta="0.0001").delta == Decimal("0.0001")
    with pytest.raises(SynodError) as caught:
        make_study(rows=rows, delta="0.0001" + "0" * 40 + "1")
    assert "is too large for 1,000 rows, because somebody's row could be published outright" in caught.value.sentence
    assert caught.value.hint == "Write 1e-9, or at most 0.0001."
    assert make_study(rows=(1, 2, 3), delta="0.01").delta == Decimal("0.01")
    with pytest.raises(SynodError, match=r"at most 0\.01\."):
        make_study(rows=(1, 2, 3), delta="0.02")


def test_so_little_that_no_noise_is_large_enough_is_refused() -> None:
    with pytest.raises(SynodError, match="no noise is large enough") as caught:
        make_study(epsilon="1e-30", delta="1e-30")
    assert caught.value.code is Code.INVALID


def test_epsilon_is_exact() -> None:
    assert make_study(epsilon=Decimal("0.1")).budget.epsilon == Fraction(1, 10)
    digits = "0.1000000000000000055511151231257827"
    assert make_study(epsilon=digits).to_json()["epsilon"] == digits


def test_a_decimal_has_no_more_digits_than_a_ledger_reads() -> None:
    with pytest.raises(SynodError, match="epsilon: must be a decimal number of reasonable size and at most 60 digits"):
        make_study(epsilon="1." + "1" * 60)
    assert make_study(epsilon="1." + "1" * 59).budget.epsilon > 1


def test_rows_beyond_use_are_refused() -> None:
    assert make_study(rows=(1, 1, 1), output_rows=10**6).rows == 10**6
    with pytest.raises(SynodError, match="asks for 1,000,001 synthetic rows out of 3 real ones"):
        make_study(rows=(1, 1, 1), output_rows=10**6 + 1)


def test_only_a_study_with_a_roster_is_resolved() -> None:
    study = parse_study(study_document(roster=None, collusion=7), "x")
    with pytest.raises(SynodError, match="care-survey has no roster"):
        study.resolve()
    with pytest.raises(AssertionError, match="only a resolved study"):
        study.digest()
    with pytest.raises(AssertionError, match="only a resolved study"):
        parse_study(study_document(), "x").digest()


def test_a_roster_with_more_rows_than_can_be_drawn_needs_rows() -> None:
    roster = [entry(i, rows=6 * 10**8) for i in range(2)]
    with pytest.raises(SynodError, match="more than 1000000000 rows"):
        make_study(roster=roster)
    assert make_study(roster=roster, output_rows=5).rows == 5


def test_roster_facts() -> None:
    study = make_study(rows=(1, 2, 4))
    assert study.total_rows == 1 + 2 + 4
    assert [study.index_of(name) for name in NAMES] == [0, 1, 2]


def test_a_file_is_read_with_exact_decimals_and_its_path_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "name: care\nmethod: {name: hpdp-dp}\nepsilon: 0.30\n"
        "schema:\n  - {name: sex, type: categorical, categories: [F, M]}\n"
    )
    assert load_study(path).to_json()["epsilon"] == "0.3"
    path.write_text(path.read_text().replace("[F, M]", "[yes, no]"))
    with pytest.raises(SynodError, match=r"study\.yaml: schema\.0\.categorical\.categories \(sex\): True is not text"):
        load_study(path)
    path.write_text("[" * 3 + "]" * 3)
    with pytest.raises(SynodError, match=r"study\.yaml is not a study"):
        load_study(path)
