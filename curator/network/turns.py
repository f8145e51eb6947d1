"""Draws that the parties make in turn: what a lost party would have drawn goes to those who come after it."""

from collections.abc import Callable, Sequence

from synod.common.methods.networks import share_draws
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.study.features import base_count
from synod.common.study.study import Study
from synod.curator.methods.base import Parties
from synod.curator.network.graph import Pair


async def draw_in_turn(
    study: Study, parties: Parties, phase: str, first: int, ask: Callable[[list[Pair], int], ChooseParents]
) -> list[Pair]:
    """The first feature without parents, then each party's draws; `ask` makes the query for the pairs so far and a
    number of draws. Draws that nobody is left to make are missing.

    Guarantee: a step costs what the plan says, however many draws it has: they share its epsilon.
    """
    pairs, owed = [Pair(first, ())], 0
    for entry, count in zip(study.roster, share_draws(study), strict=True):
        if not count:
            continue
        owed += count
        chosen = await parties.ask_one(f"{phase}-{entry.name}", ask(pairs, owed))
        if chosen is not None:
            pairs.extend(Pair(feature, parents) for feature, parents in chosen)
            owed = 0
    return pairs


def left_alone(study: Study, pairs: Sequence[Pair]) -> list[Pair]:
    """The features that nobody was left to draw parents for, without any."""
    placed = {pair.feature for pair in pairs}
    return [Pair(feature, ()) for feature in range(base_count(study)) if feature not in placed]
