"""The private queries as values, their JSON form, and Q, the hash that binds an answer to its question.

Both sides build Q for themselves out of what they know: kind and content, epsilon, sensitivity, threshold, roster
and packing. A party that is told another question, or would pack it otherwise, derives another Q.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any, get_args

from synod.common.crypto.canonical import Json, canonical_hash
from synod.common.crypto.packing import SlotLayout, noise_bound, plan_slots
from synod.common.methods.base import HpdpDp
from synod.common.models.candidates import Score, shortlist_length
from synod.common.models.gaussian import GaussianModel, parse_model
from synod.common.models.moments import MomentDesign, design_moments
from synod.common.privacy.noise import MAX_SCALE
from synod.common.protocol.plan import QueryKind, Step, plan_study
from synod.common.runtime.errors import SynodError, invalid, refused
from synod.common.study.encoding import codings_of
from synod.common.study.features import sizes_of
from synod.common.study.study import Study

MARGINAL_SENSITIVITY = 2  # one replaced row leaves one cell and enters another


@dataclass(frozen=True, slots=True)
class SumMoments:
    """All parties, encrypted and blinded: the pooled moments of the whole schema plus one share of noise."""

    kind = QueryKind.SUM_MOMENTS

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value}


@dataclass(frozen=True, slots=True)
class SumMarginals:
    """All parties, encrypted and blinded: the pooled counts of sets of features plus one share of noise."""

    sets: tuple[tuple[int, ...], ...]
    kind = QueryKind.SUM_MARGINALS

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value, "sets": [list(features) for features in self.sets]}


@dataclass(frozen=True, slots=True)
class LocalMarginals:
    """One party, on its own: its counts of sets of features plus its own full noise."""

    sets: tuple[tuple[int, ...], ...]
    kind = QueryKind.LOCAL_MARGINALS

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value, "sets": [list(features) for features in self.sets]}


@dataclass(frozen=True, slots=True)
class ChooseParents:
    """One party, on its own: `count` draws of a feature with its parents, each at epsilon / count.

    A draw takes an open feature and a set of placed ones among that feature's `candidates`, as large as `max_cells`
    allows for the table of both; the feature is placed then.
    """

    placed: tuple[int, ...]
    candidates: tuple[tuple[int, tuple[int, ...]], ...]
    count: int
    max_cells: int
    score: Score
    kind = QueryKind.CHOOSE_PARENTS

    @property
    def open(self) -> tuple[int, ...]:
        """The features that have no parents yet."""
        return tuple(feature for feature, _ in self.candidates)

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {
            "kind": self.kind.value,
            "placed": list(self.placed),
            "candidates": [[feature, list(parents)] for feature, parents in self.candidates],
            "count": self.count,
            "max_cells": self.max_cells,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class Synthesize:
    """Each answering party draws its share of rows from a model that is already private; free."""

    model: GaussianModel
    rows: tuple[int, ...]
    kind = QueryKind.SYNTHESIZE

    def to_json(self) -> dict[str, Json]:
        """The canonical form."""
        return {"kind": self.kind.value, "model": self.model.to_json(), "rows": list(self.rows)}


EncryptedSum = SumMoments | SumMarginals
Query = SumMoments | SumMarginals | LocalMarginals | ChooseParents | Synthesize


def parse_query(data: Any, study: Study) -> Query:
    """Reads a query from its JSON form; what is not a sound query about this study is refused."""
    try:
        kind = QueryKind(data["kind"])
        query = _read_query(kind, data, study)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise invalid("the query is not one that this version answers.", "Update the older side.") from None
    _check_query(query, study)
    return query


def _read_query(kind: QueryKind, data: Any, study: Study) -> Query:
    match kind:
        case QueryKind.SUM_MOMENTS:
            return SumMoments()
        case QueryKind.SYNTHESIZE:
            return Synthesize(parse_model(data["model"], moment_design(study)), share_rows(study))
        case QueryKind.CHOOSE_PARENTS:
            candidates = tuple((_whole(x), _wholes(parents)) for x, parents in data["candidates"])
            count, cells = _whole(data["count"]), _whole(data["max_cells"])
            return ChooseParents(_wholes(data["placed"]), candidates, count, cells, _score(data["score"]))
        case QueryKind.SUM_MARGINALS:
            return SumMarginals(tuple(_wholes(features) for features in data["sets"]))
        case QueryKind.LOCAL_MARGINALS:
            return LocalMarginals(tuple(_wholes(features) for features in data["sets"]))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _score(name: Any) -> Score:
    if name not in get_args(Score):
        raise ValueError
    score: Score = name
    return score


def _wholes(values: Any) -> tuple[int, ...]:
    return tuple(_whole(value) for value in values)


def _check_query(query: Query, study: Study) -> None:
    """A query is about features or moments as the method has them, names each once and in order, and asks for
    something.
    """
    if isinstance(study.method, HpdpDp) != isinstance(query, SumMoments | Synthesize):
        raise invalid("the query is of another method than the study's.")
    match query:
        case SumMarginals(sets) | LocalMarginals(sets):
            known = len(sizes_of(study))
            if not sets or not all(_is_ascending(features, known) for features in sets):
                raise invalid("the query's sets are not sets of the study's features.")
        case ChooseParents():
            _check_choice(query, sizes_of(study))
        case _:
            return


def _is_ascending(features: Sequence[int], known: int) -> bool:
    inside = all(0 <= feature < known for feature in features)
    return bool(features) and inside and list(features) == sorted(set(features))


def _check_choice(query: ChooseParents, sizes: Sequence[int]) -> None:
    known, placed, open_features = len(sizes), set(query.placed), query.open
    sound = (
        _is_ascending(query.placed, known)
        and _is_ascending(open_features, known)
        and not placed & set(open_features)
        and all(not parents or _is_ascending(parents, known) for _, parents in query.candidates)
        and 1 <= query.count <= len(open_features)
        and query.max_cells >= 1
        and (query.score != "F" or all(sizes[feature] == 2 for feature in open_features))
    )
    if not sound:
        raise invalid("the query's candidates are not candidates among the study's features.")


def share_rows(study: Study) -> tuple[int, ...]:
    """How many synthetic rows each party draws: in proportion to its public row count, by largest remainder."""
    assert study.rows is not None
    total = study.total_rows
    shares = [study.rows * entry.rows // total for entry in study.roster]
    remainders = [study.rows * entry.rows % total for entry in study.roster]
    by_remainder = sorted(range(len(shares)), key=lambda i: (-remainders[i], i))
    for index in by_remainder[: study.rows - sum(shares)]:
        shares[index] += 1
    return tuple(shares)


@lru_cache(maxsize=64)
def moment_design(study: Study) -> MomentDesign:
    """The columns of the study's moments."""
    return design_moments(codings_of(study))


def cells_of(sets: Sequence[tuple[int, ...]], study: Study) -> list[int]:
    """How many cells the table of each set has."""
    sizes = sizes_of(study)
    return [prod(sizes[feature] for feature in features) for features in sets]


@dataclass(frozen=True, slots=True)
class SumTerms:
    """What an encrypted sum is made of: how many integers, their range, sensitivity, noise and packing.

    Guarantee: with `shape` 1/(K-t) and `scale` sensitivity/epsilon, the sum of any K-t parties' noise shares is a
    full discrete Laplace variable, so the decrypted sum is epsilon-DP even to who knows t shares.
    """

    length: int
    low: int
    high: int
    sensitivity: int
    scale: Fraction
    shape: Fraction
    noise_bound: int

    def layout(self, key_bits: int) -> SlotLayout:
        """How the integers are packed into plaintexts."""
        return plan_slots(self.length, self.low, self.high, self.noise_bound, key_bits)


@lru_cache(maxsize=64)
def sum_terms(query: EncryptedSum, step: Step, study: Study) -> SumTerms:
    """The terms of a planned encrypted sum: epsilon from the approved plan, sensitivity from the question itself."""
    assert query.kind is step.kind
    parties, threshold = len(study.roster), study.collusion
    if isinstance(query, SumMoments):
        design = moment_design(study)
        length, sensitivity = design.length, design.sensitivity
        low, high = design.bounds(study.total_rows)
    else:
        length = sum(cells_of(query.sets, study))
        sensitivity = MARGINAL_SENSITIVITY * len(query.sets)
        low, high = 0, study.total_rows
    scale = noise_scale(sensitivity, step)
    return SumTerms(
        length=length,
        low=low,
        high=high,
        sensitivity=sensitivity,
        scale=scale,
        shape=Fraction(1, parties - threshold),
        noise_bound=noise_bound(scale, parties, threshold, length),
    )


def noise_scale(sensitivity: int, step: Step) -> Fraction:
    """Sensitivity over epsilon; refused where the sampler has a limit."""
    scale = Fraction(sensitivity) / step.cost.epsilon
    if scale > MAX_SCALE:
        raise invalid(
            f"the step {step.label} has too little epsilon for its sensitivity.",
            "Give the study more epsilon, or fewer attributes or levels.",
        )
    return scale


def local_scale(query: LocalMarginals, step: Step) -> Fraction:
    """The scale of a party's own discrete Laplace noise: sensitivity over epsilon."""
    return noise_scale(MARGINAL_SENSITIVITY * len(query.sets), step)


def check_feasible(study: Study) -> None:
    """Refuses a resolved study whose noise or packing has no room, before anybody approves it."""
    for step in plan_study(study).steps:
        if step.kind is QueryKind.SUM_MOMENTS:
            sum_terms(SumMoments(), step, study).layout(study.key_bits)


def query_digest(query: Query, step: Step, study: Study) -> bytes:
    """Q: the hash of everything that an answer depends on, but for the data."""
    binding: dict[str, Json] = {
        "query": query.to_json(),
        "cost": str(step.cost),
        "collusion": study.collusion,
        "roster": [entry.model_dump(mode="json") for entry in study.roster],
    }
    if isinstance(query, SumMoments | SumMarginals):
        terms = sum_terms(query, step, study)
        layout = terms.layout(study.key_bits)
        binding["sensitivity"] = str(terms.sensitivity)
        binding["packing"] = [layout.length, layout.width, layout.slots, str(layout.low)]
    return canonical_hash(binding)


def check_answerable(query: Query, study: Study, max_cells: int) -> None:
    """Refuses a query with more numbers than a party's policy allows."""
    match query:
        case SumMoments():
            cells = moment_design(study).length
        case SumMarginals(sets) | LocalMarginals(sets):
            cells = sum(cells_of(sets, study))
        case ChooseParents():
            cells = query.max_cells
            _check_shortlists(query, study)
        case Synthesize():
            return
    if cells > max_cells:
        raise too_large(cells, max_cells)


def _check_shortlists(query: ChooseParents, study: Study) -> None:
    """Refuses more candidates than the study's `max_candidates` stand for: they cost the party its time."""
    assert not isinstance(study.method, HpdpDp)
    most = shortlist_length(sizes_of(study), query.max_cells, study.method.max_candidates)
    if any(len(parents) > most for _, parents in query.candidates):
        raise invalid("the query offers more candidate parents than the study's `max_candidates` allow.")


def too_large(cells: int, max_cells: int) -> SynodError:
    """A query that asks for more numbers than `max_cells`."""
    return refused(f"the query asks for {cells} numbers; `max_cells` is {max_cells}.")
