"""Tables with different noise: sensitive columns and others have different shares of a budget, and in tables of the
others the values of a column have weights.

Everything here is computed from released tables and public numbers, and decides what is asked next; the party derives
the noise from the query itself. HPPrivBayes (Deng 2025), Algorithms 4 to 6, with the composition that holds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any, Literal

import numpy as np

from synod.common.crypto.canonical import Json
from synod.common.protocol.queries.marginals import LARGEST_SHARE, LARGEST_WEIGHT, SumMarginals, Tables, Weights
from synod.common.protocol.queries.reading import is_ascending, read_wholes
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.features import base_count
from synod.common.study.study import Study
from synod.curator.network.graph import SCORE_DIGITS, Network
from synod.curator.network.tables import Floats


def order_by_information(information: Floats) -> list[int]:
    """Features by what they tell about the others on average, most first; of equals, lower indices."""
    sums = [round(float(own), SCORE_DIGITS) for own in information.sum(axis=1)]
    return sorted(range(len(sums)), key=lambda feature: (-sums[feature], feature))


def find_sensitive(information: Floats, to: int, threshold: Decimal) -> list[int]:
    """The feature itself, and those that tell at least `threshold` bits about it."""
    told = [round(float(own), SCORE_DIGITS) for own in information[to]]
    return [feature for feature, own in enumerate(told) if feature == to or own >= threshold]


def weigh_values(shares: Floats, rows: int, direction: Literal["rare", "frequent"]) -> tuple[int, ...]:
    """The weights of a column's values by -log2 of their shares, which are taken as at least half a row: in proportion
    for `rare`, as printed, and inversely for `frequent`.
    """
    rarities = -np.log2(np.clip(shares, 1 / (2 * rows), 1.0)) + 0.0
    if direction == "rare":
        ratios = rarities / rarities.max()
    else:
        least = rarities.min()
        ratios = np.where(rarities > least, least / np.maximum(rarities, 1e-12), 1.0)
    return tuple(min(LARGEST_WEIGHT, max(1, floor(LARGEST_WEIGHT * float(ratio) + 0.5))) for ratio in ratios)


def ask_tables(
    network: Network,
    sensitive: Collection[int],
    weights: Mapping[int, Sequence[int]],
    shares: tuple[Decimal, Decimal],
) -> SumMarginals:
    """The tables of a network, with shares for those of sensitive features and for others, and weights in the others.

    A table that tells a sensitive feature's family counts as sensitive, whatever it was asked for. `shares` are those
    of the two groups; the tables of a group share its part evenly, and a group alone has all.

    Guarantee: the query states what its noise is derived from; its cost is the step's, whatever the shares and weights
    are (`Tables.table_noise`).
    """
    families = network.asked_families()
    guarded = [pair.family for pair in network.pairs if pair.feature in sensitive]
    is_sensitive = [any(network.levels.covers(family, own) for own in guarded) for family in families]
    own_weights = tuple(
        None if is_own or len(set(weights.get(family[0], ()))) < 2 else Weights(family[0], tuple(weights[family[0]]))
        for family, is_own in zip(families, is_sensitive, strict=True)
    )
    return SumMarginals(
        network.asked_sets(),
        shares=share_tables(is_sensitive, shares),
        weights=own_weights if any(own_weights) else (),
    )


def share_tables(is_sensitive: Sequence[bool], shares: tuple[Decimal, Decimal]) -> tuple[int, ...]:
    """The share of each table: of m_A sensitive ones L_A / m_A, of m_B others L_B / m_B, in lowest terms as far as a
    query has digits; none where all are equal.
    """
    first = sum(is_sensitive)
    second = len(is_sensitive) - first
    if not first or not second:
        return ()
    ratio = Fraction(shares[0]) * second / (Fraction(shares[1]) * first)
    small = min(ratio, 1 / ratio).limit_denominator(LARGEST_SHARE)
    own, other = (small.numerator, small.denominator)[:: 1 if ratio <= 1 else -1]
    return () if own == other else tuple(own if is_own else other for is_own in is_sensitive)


def part_by_value(query: Tables, place: int) -> tuple[Fraction, ...]:
    """Which part of the step's cost a row is known to lose at most, by its value of the weighted entry of one table.

    Guarantee: let p_s be the parts of the tables, and p that of this one. A row that is replaced changes at most two
    cells of every table: its own, and that of the row in its place. Each costs at most p_s / 2, and in this table the
    row's own cell costs p w / (2 w_max). So all of it is at most the sum of the p_s, which is 1, less
    (1 - w / w_max) p / 2. It is a bound for the value, whatever else the row holds and whatever row takes its place.
    Where a unit has m rows, noise is m times as large; replaced one after the other, m rows with the value lose no more
    than that together.
    """
    own = query.weights[place]
    assert own is not None
    half, most = query.parts()[place] / 2, max(own.values)
    return tuple(1 - half * (1 - Fraction(weight, most)) for weight in own.values)


@dataclass(frozen=True, slots=True)
class Groups:
    """What a published model says beside its network: the sensitive features, and the query of its tables."""

    sensitive: tuple[int, ...]
    query: SumMarginals

    def to_json(self) -> dict[str, Json]:
        """The keys that are added to the model of a network."""
        return {"sensitive": list(self.sensitive), "parameters": self.query.to_json()}


def split_model(study: Study, model: Any) -> tuple[Json, Groups]:
    """A published model as that of its network and its groups.

    Raises:
        SynodError: it has no groups, or none of this study's features.
    """
    try:
        network = dict(model)
        sensitive, written = read_wholes(network.pop("sensitive")), network.pop("parameters")
        query = SumMarginals.from_json(written)
        query.check(study)
    except (KeyError, TypeError, ValueError, AttributeError, SynodError):
        raise _unsound() from None
    if not is_ascending(sensitive, base_count(study)) or query.to_json() != written:
        raise _unsound()
    return network, Groups(sensitive, query)


def _unsound() -> SynodError:
    return check_failed("model.json does not say which columns are sensitive, or what its tables were asked with.")
