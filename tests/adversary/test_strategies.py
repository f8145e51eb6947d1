"""What a curator can compute that tells honest parties different things about who is present: linear algebra over all
of its strategies, for every small roster.

Each honest party i answers at most once, under one set S of parties that it was told: v_i plus its masks with the
others of S, each keyed by S. Masks with colluders are known and left out. A combination of answers in which all masks
cancel is what the curator learns; it must be a sum over the honest members of sets under which all of them answered.
Handing out masks, or answering twice, fails this, and so the check itself can fail.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

import pytest

PRIME = 2**61 - 1
CASES = [(3, 1, 1), (4, 1, 1), (4, 1, 2), (5, 2, 2), (5, 1, 1), (5, 1, 2)]

Places = frozenset[int]
Row = dict[object, int]
Stories = tuple[Places | None, ...]


def stories_of(party: int, parties: int, may_lose: int) -> list[Places | None]:
    """What a party may be told and answer: nothing, or any set with itself in it that is large enough."""
    others = [place for place in range(parties) if place != party]
    sets = (
        Places((party, *chosen))
        for size in range(parties - may_lose - 1, parties)
        for chosen in combinations(others, size)
    )
    return [None, *sets]


def strategies(parties: int, collusion: int, may_lose: int) -> Iterator[Stories]:
    """Everything that the honest parties, who are the first, may be told."""
    return product(*(stories_of(party, parties, may_lose) for party in range(parties - collusion)))


def kernel(rows: Sequence[Mapping[object, int]]) -> list[list[int]]:
    """The combinations of rows in which every unknown cancels, modulo the prime: a basis."""
    work = [(dict(row), [int(i == place) for i in range(len(rows))]) for place, row in enumerate(rows)]
    free = []
    while work:
        row, told = work.pop()
        pivot = next((unknown for unknown, value in row.items() if value % PRIME), None)
        if pivot is None:
            free.append(told)
            continue
        inverse = pow(row[pivot], -1, PRIME)
        for index, (other, other_told) in enumerate(work):
            factor = other.get(pivot, 0) * inverse % PRIME
            if factor:
                mixed = {u: (other.get(u, 0) - factor * row.get(u, 0)) % PRIME for u in {*other, *row}}
                combined = [(a - factor * b) % PRIME for a, b in zip(other_told, told, strict=True)]
                work[index] = (mixed, combined)
    return free


def rank(vectors: Iterable[Sequence[int]]) -> int:
    rows: list[Row] = [dict(enumerate(vector)) for vector in vectors]
    return len(rows) - len(kernel(rows))


def masks_of(party: int, story: Places, honest: Places, key: object) -> Row:
    """The unknown masks in a party's answer: those with the honest others of the set."""
    return {
        (min(party, other), max(party, other), key): 1 if party < other else -1
        for other in story & honest
        if other != party
    }


def opened_sets(stories: Stories, honest: Places) -> set[Places]:
    """The sets under which all honest members have answered: what the curator is meant to learn the sums of."""
    told = {story for story in stories if story is not None}
    return {story & honest for story in told if all(stories[place] == story for place in story & honest)}


def is_breached(learned: list[list[int]], opened: set[Places], honest: Places) -> bool:
    """Whether more is learned than the sums that are meant to be opened."""
    meant = [[int(place in one) for place in sorted(honest)] for one in opened]
    return rank([*meant, *learned]) > rank(meant)


def learn_once(stories: Stories, honest: Places) -> list[list[int]]:
    """What is learned of the honest v_i where each answers once, under what it was told."""
    answering = [(place, story) for place, story in enumerate(stories) if story is not None]
    rows = [masks_of(place, story, honest, story) for place, story in answering]
    combined = kernel(rows)
    return [
        [
            sum(c for c, (answerer, _) in zip(found, answering, strict=True) if answerer == place)
            for place in sorted(honest)
        ]
        for found in combined
    ]


def learn_by_opening_masks(stories: Stories, honest: Places) -> list[list[int]]:
    """The unsound design: all answer first, under masks with everybody and one of their own; then each hands out its
    own mask, and those with parties outside of the set that it is told.
    """
    shown: set[object] = set()
    for place, story in enumerate(stories):
        if story is not None:
            shown.add(place)
            shown |= {(*sorted((place, other)), None) for other in honest - story}
    everybody = frozenset(honest)
    rows = [{place: 1, **masks_of(place, everybody, honest, None)} for place in sorted(honest)]
    return kernel([{unknown: value for unknown, value in row.items() if unknown not in shown} for row in rows])


def count_breaches(parties: int, collusion: int, may_lose: int, *, opening: bool = False) -> tuple[int, int]:
    """How many strategies tell too much, of how many."""
    honest = Places(range(parties - collusion))
    learn = learn_by_opening_masks if opening else learn_once
    breaches = total = 0
    for stories in strategies(parties, collusion, may_lose):
        total += 1
        breaches += is_breached(learn(stories, honest), opened_sets(stories, honest), honest)
    return breaches, total


def test_one_answer_under_one_set_opens_the_sums_of_such_sets_and_nothing_else() -> None:
    counted = [count_breaches(*case) for case in CASES]
    assert [total for _, total in counted] == [16, 125, 512, 1728, 1296, 20736]
    assert [breaches for breaches, _ in counted] == [0] * len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_every_opened_sum_has_a_full_noise_and_no_row_is_in_two(case: tuple[int, int, int]) -> None:
    """A share under S has shape 1 / (|S| - t): so many honest shares make one noise or more."""
    parties, collusion, _ = case
    honest = Places(range(parties - collusion))
    for stories in strategies(*case):
        opened = opened_sets(stories, honest)
        assert sum(len(one) for one in opened) == len(Places().union(*opened))
        for story in {story for story in stories if story is not None and story & honest in opened}:
            assert len(story & honest) >= len(story) - collusion >= 1


@pytest.mark.parametrize(("case", "breaches"), [((3, 1, 1), (6, 16)), ((4, 1, 1), (68, 125))])
def test_handing_out_masks_is_unsound(case: tuple[int, int, int], breaches: tuple[int, int]) -> None:
    assert count_breaches(*case, opening=True) == breaches


def test_a_second_answer_under_a_smaller_set_with_the_same_noise_bares_a_party() -> None:
    """All answer under everybody, then all but party 0 under the others: the difference is v_0."""
    honest, everybody, others = Places((0, 1, 2)), Places(range(4)), Places((1, 2, 3))
    answers = [(place, everybody) for place in range(3)] + [(place, others) for place in (1, 2)]
    found = kernel([masks_of(place, story, honest, story) for place, story in answers])
    learned = [
        [sum(c for c, (own, _) in zip(one, answers, strict=True) if own == place) % PRIME for place in range(3)]
        for one in found
    ]
    assert rank([*learned, [1, 0, 0]]) == rank(learned)
    assert is_breached(learned, {honest}, honest)
