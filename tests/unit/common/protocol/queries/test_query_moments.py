"""The pooled moments: terms that follow from the study alone, a Q that depends on all of it, and stored sums."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from synod.common.privacy.bounds import noise_bound
from synod.common.privacy.laws import LaplaceLaw
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.noise_runs import NoiseRun
from synod.common.protocol.queries.parsing import parse_query, query_digest, read_query
from synod.common.protocol.steps import Limit
from synod.common.runtime.errors import Code
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb
from tests.support.queries import MOMENTS, refusal
from tests.support.studies import SCHEMA, categorical, integer, make_study

QUERY = SumMoments()


def small_study(**changes: Any) -> Study:
    return make_study(**{"rows": (1, 2, 4), "epsilon": "0.8", **changes})


def test_the_query_has_nothing_but_its_kind() -> None:
    assert QUERY.to_json() == {"kind": "sum-moments"}
    assert QUERY.to_proto() == pb.Query(sum_moments=pb.SumMoments())
    assert read_query({"kind": "sum-moments"}, MOMENTS) == QUERY
    assert parse_query(QUERY.to_proto(), MOMENTS) == QUERY


def test_terms_follow_from_the_study_alone() -> None:
    study = small_study(collusion=2, epsilon="0.3")
    terms, design = QUERY.terms(plan_study(study).step("moments"), study), moment_design(study)
    scale = Fraction(design.sensitivity) / Fraction(3, 10)
    assert terms.runs == (NoiseRun(design.length, LaplaceLaw(design.sensitivity, scale, 3, 2)),)
    assert (terms.length, (terms.low, terms.high)) == (design.length, design.bounds(7))
    assert terms.noise_bound == noise_bound(scale, 3, 2, design.length)
    layout = terms.layout(2048)
    assert (layout.low, layout.high) == (terms.low - terms.noise_bound, terms.high + terms.noise_bound)
    assert layout.slots * layout.width < 2048
    assert QUERY.size(study) == Limit(numbers=design.length)
    assert QUERY.unit(study) == 4 * 256**2


def test_only_sums_have_terms() -> None:
    study = small_study()
    with pytest.raises(AssertionError):
        QUERY.terms(plan_study(study).step("rows"), study)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-30"])
def test_too_little_epsilon_for_the_noise_is_refused_before_anything_is_asked(epsilon: str) -> None:
    study = small_study(epsilon=epsilon)
    step = plan_study(study).step("moments")
    assert "too little of the study's epsilon" in refusal(lambda: QUERY.terms(step, study))


CHANGES: list[dict[str, Any]] = [
    {"epsilon": "0.80001"},
    {"collusion": 0},
    {"collusion": 2},
    {"rows": (1, 2, 5)},
    {"rows": (2, 1, 4)},
    {"key_bits": 3072},
    {"method": {"name": "hpdp-dp", "levels": 512}},
    {"schema": [*SCHEMA, categorical("more", 2)]},
    {"schema": [*SCHEMA, categorical("more", 3)]},
    {"schema": [*SCHEMA, integer("more", 0, 1)]},
]


def digest(**changes: Any) -> bytes:
    study = small_study(**changes)
    return query_digest(QUERY, plan_study(study).step("moments"), study)


def test_the_digest_changes_with_every_ingredient() -> None:
    digests = {digest(), *(digest(**changes) for changes in CHANGES)}
    assert len(digests) == 1 + len(CHANGES)
    assert digest() == digest()


def test_the_digest_changes_with_the_steps_cost() -> None:
    step = plan_study(MOMENTS).step("moments")
    cheaper = replace(step, cost=step.cost.share(Fraction(1, 2)))
    assert query_digest(QUERY, cheaper, MOMENTS) != query_digest(QUERY, step, MOMENTS)


def test_released_moments_come_back() -> None:
    length = moment_design(MOMENTS).length
    moments = np.arange(length, dtype=np.int64) - length // 2
    moments[0], moments[-1] = -(2**63), 2**63 - 1
    payload = QUERY.write_answer(moments)
    back = QUERY.read_answer(payload, MOMENTS)
    assert back.dtype == np.int64
    assert np.array_equal(back, moments)
    assert np.array_equal(QUERY.join(QUERY.split(moments, MOMENTS)), moments)


def test_stored_moments_of_another_length_are_refused() -> None:
    sound = QUERY.write_answer(np.zeros(moment_design(MOMENTS).length, dtype=np.int64))
    for payload in (b"", sound[:-1], sound + b"\0", sound[:-8], sound + bytes(8)):
        sentence = refusal(partial(QUERY.read_answer, payload, MOMENTS), Code.CHECK_FAILED)
        assert sentence == "the stored sums are not as many as were asked for."
