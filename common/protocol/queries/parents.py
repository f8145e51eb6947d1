"""Attribute-parent pairs, drawn privately by one party from its own rows."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self, get_args

from synod.common.crypto.canonical import Json
from synod.common.models.candidates import ParentOptions, Score, count_options, is_maximal
from synod.common.privacy.laws import epsilon_of_each_draw
from synod.common.protocol.queries.base import ClearQuery, parse_exactly, protection
from synod.common.protocol.queries.marginals import INDEX_BYTES, OVERHEAD_BYTES
from synod.common.protocol.queries.reading import is_ascending, read_whole, read_wholes
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import check_failed, invalid
from synod.common.study.features import base_count, base_sizes, chains_of, sizes_of
from synod.common.study.study import Study
from synod.v1 import query_pb2 as pb

Choice = tuple[int, tuple[int, ...]]
CHOICE_BYTES = 16
LARGEST_DEGREE = 32
MOST_PARENTS = 1 << 16
SCORES: dict[Score, pb.Score.ValueType] = {"F": pb.SCORE_F, "R": pb.SCORE_R, "I": pb.SCORE_I}


@dataclass(frozen=True)
class ChooseParents(ClearQuery[list[Choice]]):
    """One party, on its own: `count` draws of a feature with its parents, which share epsilon evenly.

    A draw takes an open feature and a set of placed ones among that feature's `candidates`, as large as `max_cells`
    allows for the table of both, and of at most `max_parents`; the feature is placed then. All of these are base
    features; the parents that are drawn may be coarser levels of them. With `ordered` the draws take the features as
    they are listed, so that all options are known beforehand: a draw with one option is no choice and costs nothing,
    and only the others share epsilon.
    """

    placed: tuple[int, ...]
    candidates: tuple[tuple[int, tuple[int, ...]], ...]
    count: int
    max_cells: int
    score: Score
    max_parents: int | None = None
    ordered: bool = False
    kind: ClassVar[QueryKind] = QueryKind.CHOOSE_PARENTS

    @property
    def open(self) -> tuple[int, ...]:
        """The features that have no parents yet."""
        return tuple(feature for feature, _ in self.candidates)

    def epsilon_each(self, step: Step, study: Study) -> Fraction:
        """The epsilon of one draw that is a choice; 0 where none is.

        Guarantee: which draws are choices follows from the query and the study alone, and where `ordered` is not set
        all of them count as such; sequential composition over these is the step's cost.
        """
        choices = sum(list_choices(self, study)) if self.ordered else self.count
        return epsilon_of_each_draw(step.cost, choices) if choices else Fraction(0)

    def options(self, study: Study) -> ParentOptions:
        """What its draws choose among, as both sides list it."""
        return ParentOptions(sizes_of(study), chains_of(study), self.max_cells, self.max_parents)

    def to_json(self) -> dict[str, Json]:
        """The canonical form; what is not set is left out."""
        written: dict[str, Json] = {
            "kind": self.kind.value,
            "placed": list(self.placed),
            "candidates": [[feature, list(parents)] for feature, parents in self.candidates],
            "count": self.count,
            "max_cells": self.max_cells,
            "score": self.score,
        }
        if self.max_parents is not None:
            written["max_parents"] = self.max_parents
        if self.ordered:
            written["ordered"] = True
        return written

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Reads the canonical form."""
        if data["score"] not in get_args(Score):
            raise ValueError("not a score")
        return cls(
            placed=read_wholes(data["placed"]),
            candidates=tuple((read_whole(x), read_wholes(parents)) for x, parents in data["candidates"]),
            count=read_whole(data["count"]),
            max_cells=read_whole(data["max_cells"]),
            score=data["score"],
            max_parents=read_whole(data["max_parents"]) if "max_parents" in data else None,
            ordered=data.get("ordered", False),
        )

    def to_proto(self) -> pb.Query:
        """The message."""
        candidates = [pb.Candidates(feature=feature, parents=parents) for feature, parents in self.candidates]
        return pb.Query(
            choose_parents=pb.ChooseParents(
                placed=self.placed,
                candidates=candidates,
                count=self.count,
                max_cells=self.max_cells,
                score=SCORES[self.score],
                max_parents=self.max_parents or 0,
                ordered=self.ordered,
            )
        )

    @classmethod
    def from_proto(cls, message: pb.Query) -> Self:
        """Reads the message."""
        asked = message.choose_parents
        scores = {number: score for score, number in SCORES.items()}
        if asked.score not in scores:
            raise ValueError("not a score")
        candidates = tuple((one.feature, tuple(one.parents)) for one in asked.candidates)
        placed, score, most = tuple(asked.placed), scores[asked.score], asked.max_parents or None
        return cls(placed, candidates, asked.count, asked.max_cells, score, most, asked.ordered)

    def check(self, study: Study) -> None:
        """Base features of the study, each placed or open, and a score that they allow."""
        sizes = base_sizes(study)
        known, placed = len(sizes), set(self.placed)
        sound = (
            bool(self.placed)
            and bool(self.open)
            and is_ascending(self.placed, known)
            and is_ascending(sorted(self.open) if self.ordered else self.open, known)
            and not placed & set(self.open)
            and all(is_ascending(parents, known) for _, parents in self.candidates)
            and 1 <= self.count <= len(self.open)
            and self.max_cells >= 1
            and (self.max_parents is None or 1 <= self.max_parents <= MOST_PARENTS)
            and isinstance(self.ordered, bool)
            and (self.score != "F" or all(sizes[feature] == 2 for feature in self.open))
        )
        if not sound:
            raise invalid("the query's candidates are not candidates among the study's features.")

    def size(self, study: Study) -> Limit:
        """Draws, the cells of the largest table that is scored, and the longest list of candidates."""
        del study
        longest, cells = max(len(parents) for _, parents in self.candidates), self.max_cells
        return Limit(numbers=cells, tables=self.count, cells=cells, candidates=longest, score=self.score)

    def exceeds(self, limit: Limit, study: Study) -> bool:
        """Whether a feature may get more parents, or a draw more options, than the limit allows; a single candidate is
        always allowed.
        """
        if limit.parents and (self.max_parents is None or self.max_parents > limit.parents):
            return True
        if not limit.options or all(len(parents) <= 1 for _, parents in self.candidates):
            return False
        sizes, chains = sizes_of(study), chains_of(study)
        options = count_options(self.candidates, sizes, chains, self.max_cells, self.max_parents, most=limit.options)
        return options > limit.options

    @classmethod
    def message_bytes(cls, step: Step, study: Study) -> int:
        """Every feature, placed or with as many candidates as the step allows."""
        features = base_count(study)
        return OVERHEAD_BYTES + features * (OVERHEAD_BYTES + INDEX_BYTES * (1 + step.limit.candidates))

    def law(self, step: Step, study: Study) -> dict[str, Json] | None:
        """How a draw is made, and what each costs."""
        return {
            "label": step.label,
            "law": f"permute-and-flip on the score {self.score}",
            "epsilon_each": str(self.epsilon_each(step, study)),
            **protection(study, "anyone"),
        }

    def write_answer(self, answer: list[Choice]) -> bytes:
        """A ChosenParents, in the order of drawing."""
        choices = [pb.Choice(feature=feature, parents=parents) for feature, parents in answer]
        return pb.ChosenParents(choices=choices).SerializeToString(deterministic=True)

    def read_answer(self, payload: bytes, study: Study, party: str | None = None) -> list[Choice]:
        """Reads a ChosenParents; each choice must be one that the query allows at its turn."""
        del party
        message = parse_exactly(pb.ChosenParents, payload)
        choices = [(choice.feature, tuple(choice.parents)) for choice in message.choices]
        if len(choices) != self.count:
            raise check_failed("an answer with chosen parents is not the list that was asked for.")
        placed, candidates, sizes, chains = set(self.placed), dict(self.candidates), sizes_of(study), chains_of(study)
        for place, (feature, parents) in enumerate(choices):
            if feature not in candidates:
                raise check_failed("an answer chooses a feature that was not open.")
            if self.ordered and feature != self.open[place]:
                raise check_failed("an answer chooses features in another order than was asked for.")
            allowed = placed.intersection(candidates.pop(feature))
            if not is_maximal(feature, parents, allowed, sizes, self.max_cells, chains, self.max_parents):
                raise check_failed("an answer chooses parents that were not among the candidates.")
            placed.add(feature)
        return choices

    def answer_bytes(self, study: Study, party: str) -> range:
        """Bounded by the number of draws."""
        del study, party
        return range(1, 2 + self.count * CHOICE_BYTES * (1 + LARGEST_DEGREE))


@lru_cache(maxsize=16)
def list_choices(query: ChooseParents, study: Study) -> tuple[bool, ...]:
    """For each draw of an ordered query, whether it has more than one option."""
    assert query.ordered
    options, placed = query.options(study), set(query.placed)
    found = []
    for feature, shortlist in query.candidates[: query.count]:
        found.append(len(options.of([(feature, shortlist)], placed)) > 1)
        placed.add(feature)
    return tuple(found)
