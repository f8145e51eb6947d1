"""`synod study forecast`: what a study will take and how exact it can be, from public numbers only."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from synod.common.methods.base import DpSubn, HpdpDp
from synod.common.models.usefulness import parameter_cells
from synod.common.privacy.noise import share_variance
from synod.common.protocol.plan import QueryKind, Step, plan_study
from synod.common.protocol.queries import EncryptedSum, SumMarginals, SumMoments, moment_design, sum_terms
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.covers.nocd import nocd_views
from synod.curator.covers.views import design_views, expected_variance, overlapping_views

MULTIPLICATION_SECONDS = 3.0e-6  # one product modulo n^2 at 3072 bits, measured by make bench-crypto
MULTIPLICATIONS = 192


@dataclass(frozen=True, slots=True)
class Forecast:
    """One encrypted round: what it moves, how long a party works on it, and how far its numbers are off.

    `error` is the standard deviation of the noise on a share of the rows, over all parties' shares of noise.
    """

    label: str
    numbers: int
    ciphertexts: int
    bytes_per_party: int
    seconds_per_party: float
    memory_mib: float
    error: float


@dataclass(frozen=True, slots=True)
class Cover:
    """A way to see all pairs of features: how many views, and the mean variance of a 2-way cell in units of the
    variance that one marginal asked alone would have.
    """

    name: str
    views: int
    variance: float


def forecast_study(study: Study) -> list[Forecast]:
    """A forecast for each encrypted round of a resolved study whose size is known beforehand."""
    return [_forecast(study, step, query) for step, query in _known_sums(study)]


def _known_sums(study: Study) -> Iterator[tuple[Step, EncryptedSum]]:
    """The encrypted sums with their queries; an adaptive one stands for as many tables as there are features."""
    for step in plan_study(study).steps:
        if step.kind is QueryKind.SUM_MOMENTS:
            yield step, SumMoments()
        elif step.label == "correlations":
            yield step, SumMarginals(_views(study))
        elif step.label in ("parameters", "update"):
            yield step, SumMarginals(_typical_sets(study))


def _views(study: Study) -> tuple[tuple[int, ...], ...]:
    assert isinstance(study.method, DpSubn)
    return tuple(tuple(sorted(view)) for view in design_views(sizes_of(study), study.method.max_view_cells))


def _typical_sets(study: Study) -> tuple[tuple[int, ...], ...]:
    """One table for each feature, with as many of the next features as the table may have cells."""
    sizes, cells = sizes_of(study), parameter_cells(study)
    sets = []
    for feature in range(len(sizes)):
        chosen = [feature]
        for other in range(feature + 1, len(sizes)):
            if prod(sizes[i] for i in (*chosen, other)) > cells:
                break
            chosen.append(other)
        sets.append(tuple(chosen))
    return tuple(sets)


def _forecast(study: Study, step: Step, query: EncryptedSum) -> Forecast:
    terms = sum_terms(query, step, study)
    layout = terms.layout(study.key_bits)
    variance = len(study.roster) * share_variance(shape=terms.shape, scale=terms.scale)
    unit = 4 * moment_design(study).unit ** 2 if isinstance(study.method, HpdpDp) else 1
    seconds = (study.key_bits / 3072) ** 3 * MULTIPLICATION_SECONDS * MULTIPLICATIONS
    return Forecast(
        label=step.label,
        numbers=layout.length,
        ciphertexts=layout.ciphertexts,
        bytes_per_party=layout.ciphertexts * study.key_bits // 4,
        seconds_per_party=layout.ciphertexts * seconds,
        memory_mib=(max(entry.rows for entry in study.roster) * len(study.attributes) * 2 / 2**20) + 150,
        error=math.sqrt(variance) / (unit * study.total_rows),
    )


def compare_covers(study: Study) -> list[Cover]:
    """The cover that DP-SUBN takes beside NOCD's and overlapping views as PriView has them; nothing for others."""
    if not isinstance(study.method, DpSubn) or parameter_cells(study) == 0:
        return []
    sizes, cells = sizes_of(study), study.method.max_view_cells
    covers = {"chosen": _views(study), "overlapping, as PriView's": overlapping_views(sizes, max_cells=cells)}
    if all(size == 2 for size in sizes):
        covers["NOCD"] = nocd_views(len(sizes))
    return [Cover(name, len(views), expected_variance(views, sizes)) for name, views in covers.items()]
