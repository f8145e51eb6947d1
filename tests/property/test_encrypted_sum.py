"""The encrypted sum against its plain twin: the same coins, added up in plain Python integers.

Party k has 2^k equal rows, so that a party left out, counted twice or mixed up with another shows in every sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from synod.common.privacy.coins import Coins
from synod.common.privacy.noise import sample_shares
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from tests.support.encrypted_sums import answer_all, ask, layout_of, make_sum_study, open_sum
from tests.support.keys import paillier_key
from tests.support.parties import PartyInMemory, make_transcript, parties_in_memory
from tests.support.studies import categorical, fill_table, integer, real

SPARE_BITS = 64

ATTRIBUTES: list[dict[str, Any]] = [
    categorical("sex", ("F", "M")),
    categorical("ward", ("acute", "day", "long")),
    categorical("smoker", ("never", "once", "daily"), nullable=True),
    integer("age", 17, 90),
    real("weight", "2.5", "200", nullable=True),
    categorical("country", ("here",)),
    categorical("insured", ("yes",), nullable=True),
]


@dataclass(frozen=True)
class Case:
    study: Study
    members: Sequence[PartyInMemory]


@st.composite
def cases(draw: st.DrawFn, least_parties: int = 1) -> Case:
    parties = draw(st.integers(least_parties, 6))
    schema = draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=1, max_size=4, unique_by=lambda a: str(a["name"])))
    assume(any(a["name"] != "country" for a in schema))
    study = make_sum_study(
        [2**k for k in range(parties)],
        schema,
        collusion=draw(st.integers(0, parties - 1)),
        epsilon=draw(st.sampled_from(["0.05", "0.8", "3", "1000"])),
        method={"name": "hpdp-dp", "levels": draw(st.sampled_from([256, 1024]))},
    )
    codes = st.lists(st.integers(0, 2000), min_size=len(schema), max_size=len(schema))
    tables = [fill_table(study, draw(codes), 2**k) for k in range(parties)]
    return Case(study, parties_in_memory(study, tables))


def levels_of(study: Study) -> int:
    assert study.method.number_levels is not None
    return study.method.number_levels


def plain_vector(study: Study, member: PartyInMemory, row: int) -> list[tuple[str, int]]:
    """One row's vector as moments.py describes it: (what the entry belongs to, the entry)."""
    codings = codings_of(study)
    sizes = [coding.size for coding in codings]
    numeric = [coding.attribute.is_numeric for coding in codings]
    unit = levels_of(study) if any(numeric) else 1
    signed: list[tuple[str, int]] = [("constant", unit)]
    blocks: list[tuple[str, int]] = []
    for coding, column, size, is_number in zip(codings, member.table, sizes, numeric, strict=True):
        code = int(column[row])
        missing = coding.attribute.nullable and code == size - 1
        if is_number:
            signed.append(("number", 0 if missing else 2 * code - levels_of(study)))
            if coding.attribute.nullable:
                signed.append(("sign", unit if missing else -unit))
        elif size == 2:
            signed.append(("sign", unit if code else -unit))
        elif size > 2:
            blocks += [(f"block {coding.attribute.name}", 2 * unit * (code == place)) for place in range(size)]
    return signed + blocks


def plain_moments(study: Study, member: PartyInMemory) -> list[int]:
    """The moments of a table by two loops: each product of two entries that says something."""
    totals: dict[tuple[int, int], int] = {}
    for row in range(len(member.table[0])):
        vector = plain_vector(study, member, row)
        for i, (kind, left) in enumerate(vector):
            for j, (other, right) in enumerate(vector[i:], i):
                if i == j and (kind == "number" or kind.startswith("block")):
                    totals[i, j] = totals.get((i, j), 0) + left * right
                if i < j and kind != other and not (kind == "constant" and other.startswith("block")):
                    totals[i, j] = totals.get((i, j), 0) + left * right
                if i < j and kind == other and not kind.startswith("block"):
                    totals[i, j] = totals.get((i, j), 0) + left * right
    return [totals[place] for place in sorted(totals)]


def plain_sensitivity(study: Study) -> int:
    """Delta of methods.md, in integer units."""
    codings = codings_of(study)
    blocks = sum(c.size > 2 and not c.attribute.is_numeric for c in codings)
    numbers = sum(c.attribute.is_numeric for c in codings)
    signed = numbers + sum(c.attribute.nullable if c.attribute.is_numeric else c.size == 2 for c in codings)
    half_units = 4 * blocks + 2 * blocks * (blocks - 1) + 2 * blocks * signed + (signed + 1) ** 2 // 4
    unit = levels_of(study) if numbers else 1
    return 2 * unit**2 * half_units + unit**2 * numbers


def plain_noise(study: Study, member: PartyInMemory, query: bytes, length: int) -> list[int]:
    coins = Coins(member.secrets.derive("noise", "moments", query.hex()))
    shape = Fraction(1, len(study.roster) - study.collusion)
    scale = plain_sensitivity(study) / Fraction(study.epsilon)
    return [int(share) for share in sample_shares(length, shape=shape, scale=scale, coins=coins)]


def plain_sum(case: Case, query: bytes) -> list[int]:
    exact = [plain_moments(case.study, member) for member in case.members]
    noise = [plain_noise(case.study, member, query, len(exact[0])) for member in case.members]
    return [sum(column) for column in zip(*exact, *noise, strict=True)]


@settings(max_examples=30, deadline=None)
@given(cases())
def test_encrypted_sum_is_the_plain_sum_plus_noise(case: Case) -> None:
    key = paillier_key()
    transcript = make_transcript(case.study, case.members, key)
    answers = answer_all(case.study, case.members, transcript)
    query = ask(case.study, transcript, 0).query_hash
    assert open_sum(case.study, key, answers).tolist() == plain_sum(case, query)


@settings(max_examples=20, deadline=None)
@given(cases(least_parties=2), st.lists(st.integers(0, 2), min_size=6, max_size=6))
@example(
    Case(
        study := make_sum_study([1, 2], ATTRIBUTES[:1]),
        parties_in_memory(study, [fill_table(study, [1], 1), fill_table(study, [1], 2)]),
    ),
    [1, 0, 1, 1, 1, 1],
)
def test_anything_but_each_party_once_is_garbage(case: Case, times: list[int]) -> None:
    times = times[: len(case.members)]
    assume(any(times) and len(set(times)) > 1)
    layout = layout_of(case.study)
    assume(layout.width * layout.last_slots < case.study.key_bits - SPARE_BITS)
    key = paillier_key()
    answers = answer_all(case.study, case.members, make_transcript(case.study, case.members, key))
    chosen = [vector for vector, count in zip(answers, times, strict=True) for _ in range(count)]
    with pytest.raises(SynodError, match="masks did not cancel") as caught:
        open_sum(case.study, key, chosen)
    assert caught.value.code is Code.CHECK_FAILED


@settings(max_examples=10, deadline=None)
@given(cases(least_parties=2), st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter(case: Case, random: Any) -> None:
    key = paillier_key()
    answers = answer_all(case.study, case.members, make_transcript(case.study, case.members, key))
    expected = open_sum(case.study, key, answers).tolist()
    random.shuffle(answers)
    assert open_sum(case.study, key, answers).tolist() == expected


@pytest.mark.parametrize("parties", [1, 2, 6])
def test_without_noise_to_speak_of_the_sum_is_readable_by_eye(parties: int) -> None:
    study = make_sum_study([2**k for k in range(parties)], ATTRIBUTES[:1], epsilon=1000, collusion=0)
    members = parties_in_memory(study, [fill_table(study, [1], 2**k) for k in range(parties)])
    key = paillier_key()
    answers = answer_all(study, members, make_transcript(study, members, key))
    assert open_sum(study, key, answers).tolist() == [2**parties - 1]
