"""Methods: defaults written out, shares of epsilon, and every key that is refused."""

from decimal import Decimal
from typing import Any

import pytest
from synod.common.methods.base import LATER_METHODS

from synod.common.methods.dp_ccbn import DpCcbn
from synod.common.methods.dp_subn import BEST_SPLITS, PAPER_SPLIT, DpSubn
from synod.common.methods.independent import Independent
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import parse_study
from tests.support.studies import make_study, real, study_document

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
    written = make_study(method={"name": "dp-subn"}).to_json()["method"]
    assert written == {
        "name": "dp-subn",
        "score": "auto",
        "encoding": "auto",
        "max_candidates": 500_000,
        "split": "best",
        "theta": "6",
        "theta_frontier": "2",
        "update": "sequential",
        "max_view_cells": 4096,
    }


@pytest.mark.parametrize("method", [DpSubn(name="dp-subn"), DpCcbn(name="dp-ccbn"), Independent(name="independent")])
def test_a_study_with_defaults_is_the_study_that_writes_them(method: DpSubn | DpCcbn | Independent) -> None:
    short = make_study(method={"name": method.name})
    long = make_study(method=method.model_dump(mode="json"))
    assert short == long
    assert short.digest() == long.digest()


def test_auto_is_binary() -> None:
    assert DpSubn(name="dp-subn").resolved_encoding == "binary"
    assert DpSubn(name="dp-subn", encoding="gray").resolved_encoding == "gray"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"name": "dp-subn", "split": QUARTERS[:3]}, "4 positive shares"),
    ({"name": "dp-subn", "split": [*QUARTERS, "0.1"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.5", "0.5", "0.5", "-0.5"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.5", "0.25", "0.25", "0"]}, "4 positive shares"),
    ({"name": "dp-subn", "split": ["0.25", "0.25", "0.25", "0.2500001"]}, "at most 1"),
    ({"name": "dp-subn", "split": "worst"}, "split"),
    ({"name": "dp-subn", "theta": "0"}, "theta must be above 0"),
    ({"name": "dp-subn", "theta_frontier": "-1"}, "theta must be above 0"),
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


@pytest.mark.parametrize("name", LATER_METHODS)
def test_a_method_of_a_later_version_is_named(name: str) -> None:
    with pytest.raises(SynodError, match=f"the method {name} is not in this version"):
        make_study(method={"name": name})


def test_a_schema_of_single_bins_has_nothing_to_count() -> None:
    schema = [{**real("weight", "0", "10"), "bins": 1}]
    assert parse_study(study_document(schema=schema), "the sample").attributes  # levels tell hpdp-dp enough
    with pytest.raises(SynodError, match="nothing to publish"):
        make_study(schema=schema, method={"name": "dp-subn"})
    assert make_study(schema=[{**schema[0], "nullable": True}], method={"name": "dp-subn"})
