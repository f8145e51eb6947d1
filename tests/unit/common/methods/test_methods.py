"""Methods: defaults written out, shares of epsilon, and every key that is refused."""

from decimal import Decimal
from typing import Any

import pytest

from synod.common.methods.dp_ccbn import DpCcbn
from synod.common.methods.dp_subn import BEST_SPLITS, PAPER_SPLIT, DpSubn
from synod.common.methods.independent import Independent
from synod.common.methods.networks import NetworkMethod
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import known_methods, parse_study
from tests.support.studies import binary, categorical, make_study, real, study_document

QUARTERS = ["0.25", "0.25", "0.25", "0.25"]


def test_the_best_split_follows_the_update_and_the_paper_has_quarters() -> None:
    assert DpSubn(name="dp-subn").parts == BEST_SPLITS["sequential"]
    assert DpSubn(name="dp-subn", update="joint").parts == BEST_SPLITS["joint"]
    assert DpSubn(name="dp-subn", split="paper").parts == PAPER_SPLIT == (Decimal("0.25"),) * 4
    written = make_study(method={"name": "dp-subn", "split": ["0.1", "0.2", "0.3", "0.4"]}).method
    assert isinstance(written, DpSubn)
    assert written.parts == tuple(map(Decimal, ("0.1", "0.2", "0.3", "0.4")))
    assert all(sum(parts) == 1 for parts in BEST_SPLITS.values())


def test_the_resolved_study_writes_every_default_out() -> None:
    rows = (10_000, 20_000, 40_000)
    binary_keys = {"encoding": "binary"}
    methods = [
        {"name": name, **(binary_keys if name in ("dp-subn", "independent") else {})} for name in known_methods()
    ]
    resolved = [make_study(method=method, rows=rows).to_json()["method"] for method in methods]
    written: dict[Any, Any] = {one["name"]: one for one in resolved if isinstance(one, dict)}
    assert written["dp-subn"] == {
        "name": "dp-subn",
        "version": 1,
        "score": "F",
        "encoding": "binary",
        "max_candidates": 500_000,
        "split": ["0.2", "0.05", "0.15", "0.6"],
        "theta": "6",
        "theta_frontier": "2",
        "update": "sequential",
        "cover": "best",
        "max_view_cells": 4096,
        "parameter_cells": 2**9,  # 0.6 * 70000 / ((12 - 8) 2^10 sqrt(3/2)) is above 6, and below with 9 in place of 8
        "frontier_cells": 2**9,
    }
    assert written["dp-ccbn"] == {
        "name": "dp-ccbn",
        "version": 1,
        "score": "F",
        "encoding": "binary",
        "max_candidates": 500_000,
        "split": ["0.5", "0.5"],
        "theta": "6",
        "parameter_cells": 2**9,
        "max_numbers": 200_000,
    }
    assert written["independent"] == {
        "name": "independent",
        "version": 1,
        "score": "F",
        "encoding": "binary",
        "max_candidates": 500_000,
        "beta": "0.3",
        "theta": "4",
        "table_cells": [2**7, 2**8, 2**10],
    }
    assert written["hpdp-dp"] == {
        "name": "hpdp-dp",
        "version": 1,
        "contribution": "0.9",
        "components": "contribution",
        "levels": 256,
        "link": "copula",
    }


@pytest.mark.parametrize("method", [DpSubn(name="dp-subn"), DpCcbn(name="dp-ccbn"), Independent(name="independent")])
def test_a_study_with_defaults_is_the_study_that_writes_them(method: DpSubn | DpCcbn | Independent) -> None:
    short = make_study(method={"name": method.name})
    long = make_study(method=method.model_dump(mode="json"))
    assert short == long
    assert short.digest() == long.digest()


@pytest.mark.parametrize(
    ("name", "usual"),
    [("dp-subn", "vanilla"), ("dp-ccbn", "binary"), ("independent", "hierarchical"), ("privbayes", "hierarchical")],
)
def test_auto_is_the_usual_encoding_where_an_attribute_has_more_than_two_values(name: str, usual: str) -> None:
    def encoding_of(*sizes: int, **keys: str) -> str:
        schema = [categorical(f"x{i}", size) for i, size in enumerate(sizes)]
        method = make_study(schema=schema, method={"name": name, **keys}).method
        assert isinstance(method, NetworkMethod)
        assert method.encoding == method.feature_encoding
        return method.encoding

    assert encoding_of(2, 3, 2) == usual
    assert encoding_of(2, 2, 2) == ("vanilla" if name == "privbayes" else "binary")
    assert encoding_of(2, 3, encoding="gray") == encoding_of(2, 2, encoding="gray") == "gray"
    assert encoding_of(2, 3, encoding="binary") == "binary"


@pytest.mark.parametrize("name", ["dp-subn", "dp-ccbn", "independent"])
def test_auto_scores_by_f_where_every_feature_is_binary_and_by_r_elsewhere(name: str) -> None:
    def score_of(**keys: Any) -> str:
        method = make_study(method={"name": name, **keys}).method
        assert isinstance(method, NetworkMethod)
        return method.chosen_score

    assert score_of(encoding="binary") == score_of(encoding="gray") == "F"
    assert score_of(encoding="vanilla") == "R"
    assert score_of(score="I") == score_of(score="I", encoding="vanilla") == "I"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "dp-subn", "split": QUARTERS[:3]}, "4 positive shares"),
    ({"name": "dp-subn", "split": [*QUARTERS, "0.1"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.5", "0.5", "0.5", "-0.5"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.5", "0.25", "0.25", "0"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.25", "0.25", "0.25", "0.2500001"]}, "at most 1"),
    ({"name": "dp-subn", "split": "worst"}, "split"),
    ({"name": "dp-subn", "theta": "0"}, "theta must be above 0"),
    ({"name": "dp-subn", "theta_frontier": "-1"}, "theta_frontier must be above 0"),
    ({"name": "dp-subn", "update": "both"}, "update"),
    ({"name": "dp-subn", "max_view_cells": 3}, "max_view_cells"),
    ({"name": "dp-subn", "max_candidates": 99}, "max_candidates"),
    ({"name": "dp-subn", "score": "f"}, "score"),
    ({"name": "dp-subn", "encoding": "hex"}, "encoding"),
    ({"name": "dp-subn", "beta": "0.3"}, "is not known"),
    ({"name": "dp-ccbn", "split": QUARTERS}, "2 positive shares"),
    ({"name": "dp-ccbn", "theta": "0"}, "theta must be above 0"),
    ({"name": "independent", "beta": "0"}, "beta must be above 0 and below 1"),
    ({"name": "independent", "beta": "1"}, "beta must be above 0 and below 1"),
    ({"name": "independent", "theta": "0"}, "theta must be above 0"),
    ({"name": "independent", "score": "F", "encoding": "vanilla"}, "needs the encoding binary or gray"),
    ({"name": "hpdp-dp", "contribution": "0"}, "contribution"),
    ({"name": "unheard-of"}, "method"),
    ({}, "method"),
]


@pytest.mark.parametrize(("method", "words"), REFUSED)
def test_what_breaks_a_rule_is_refused_with_its_key(method: dict[str, Any], words: str) -> None:
    with pytest.raises(SynodError, match=words) as caught:
        make_study(method=method)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("name", ["dp-subn", "dp-ccbn", "independent"])
def test_f_is_for_binary_features_however_they_are_encoded(name: str) -> None:
    method = {"name": name, "score": "F", "encoding": "vanilla"}
    study = make_study(method=method, schema=[binary("a"), categorical("b", 1), categorical("c", 2)])
    assert parse_study(study.to_json(), "the resolved study").resolve() == study
    with pytest.raises(SynodError, match="needs the encoding binary or gray"):
        make_study(method=method, schema=[binary("a"), categorical("b", 2, nullable=True)])


def test_a_schema_of_single_bins_has_nothing_to_count() -> None:
    schema = [{**real("weight", "0", "10"), "bins": 1}]
    assert parse_study(study_document(schema=schema), "the sample").attributes  # levels tell hpdp-dp enough
    with pytest.raises(SynodError, match="nothing to publish"):
        make_study(schema=schema, method={"name": "dp-subn"})
    assert make_study(schema=[{**schema[0], "nullable": True}], method={"name": "dp-subn"})


@pytest.mark.parametrize(
    "method",
    [
        {"name": "dp-subn", "split": ["0.25", "0.25", "0.25", "0.25000000000000000000000000000000001"]},
        {"name": "dp-ccbn", "split": ["0.5", "0.50000000000000000000000000000000000000001"]},
    ],
)
def test_shares_that_add_up_to_more_than_one_are_refused_however_little(method: dict[str, Any]) -> None:
    with pytest.raises(SynodError, match="add up to at most 1"):
        make_study(method=method)
