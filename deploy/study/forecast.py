"""`synod study forecast`: what a study will take and how exact it can be, from public numbers only.

Remarks on local rows are the exception; who asks for them says that they are not private.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import SumQuery
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.steps import Step
from synod.common.study.study import Study
from synod.curator.methods.base import publisher_of
from synod.curator.structure.columns import column_deviation, column_sizes

MULTIPLICATION_SECONDS = 3.0e-6  # one product modulo n^2 at 3072 bits, measured by make bench-crypto
MULTIPLICATIONS = 192
BYTES_PER_NUMBER = 24  # a count, and the two numbers whose difference is its noise
DECRYPTION_SECONDS = 0.015  # one ciphertext at 3072 bits, by the curator
ROUND_SECONDS = 2.0  # to ask, to be polled, to store and to answer


@dataclass(frozen=True, slots=True)
class Forecast:
    """One encrypted round: what it moves, how long a party works on it, and how far its numbers are off.

    `error` is the standard deviation of the noise on a share of the rows, over all parties' shares of noise.
    `cell_to_noise` is how many rows an average cell has, in deviations of its noise; None where tables are not asked
    for.
    """

    label: str
    numbers: int
    ciphertexts: int
    bytes_per_party: int
    seconds_per_party: float
    memory_mib: float
    error: float
    cell_to_noise: float | None = None


@dataclass(frozen=True, slots=True)
class ColumnsNoise:
    """The baseline: `numbers` cells of one-way tables of all columns, and the noise on a share of the rows, as in
    `Forecast.error`, if the whole budget went into them.
    """

    numbers: int
    error: float


def forecast_columns(study: Study) -> ColumnsNoise | None:
    """What a resolved study would be like with columns alone; None where every column has one cell."""
    deviation = column_deviation(study)
    return None if deviation is None else ColumnsNoise(sum(column_sizes(study)), deviation / study.total_rows)


def forecast_study(study: Study) -> list[Forecast]:
    """A forecast for each encrypted round of a resolved study whose size is known beforehand."""
    typical = publisher_of(study).typical_queries(study)
    asked = ((step, typical.get(step.label)) for step in plan_study(study).steps)
    return [_forecast(study, step, query) for step, query in asked if isinstance(query, SumQuery)]


def _forecast(study: Study, step: Step, query: SumQuery[Any]) -> Forecast:
    terms = query.terms(step, study)
    layout = terms.layout(study.key_bits)
    largest = max(entry.rows for entry in study.roster)
    seconds = (study.key_bits / 3072) ** 3 * MULTIPLICATION_SECONDS * MULTIPLICATIONS
    return Forecast(
        label=step.label,
        numbers=layout.length,
        ciphertexts=layout.ciphertexts,
        bytes_per_party=layout.ciphertexts * study.key_bits // 4,
        seconds_per_party=layout.ciphertexts * seconds,
        memory_mib=150 + (largest * len(study.attributes) * 2 + layout.length * BYTES_PER_NUMBER) / 2**20,
        error=math.sqrt(terms.variance) / (query.unit(study) * study.total_rows),
        cell_to_noise=query.cell_to_noise(step, study) if isinstance(query, SumMarginals) else None,
    )


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a study takes from the last approval on, and what a party sends, if every party is online and has one
    core like the one that was measured. `fit` is the curator's work on answers, and the parties' counting.
    """

    encryption: float
    decryption: float
    fit: float
    waiting: float
    bytes_per_party: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.encryption + self.decryption + self.fit + self.waiting


def forecast_duration(study: Study, fit: float) -> Duration:
    """The time of a resolved study whose rehearsal took `fit` seconds, without encryption."""
    rounds, steps = forecast_study(study), len(plan_study(study).steps)
    ciphertexts = sum(found.ciphertexts for found in rounds)
    return Duration(
        encryption=sum(found.seconds_per_party for found in rounds),
        decryption=ciphertexts * DECRYPTION_SECONDS * (study.key_bits / 3072) ** 3,
        fit=fit,
        waiting=steps * ROUND_SECONDS,
        bytes_per_party=sum(found.bytes_per_party for found in rounds),
    )


def compare_alternatives(study: Study) -> list[dict[str, str]]:
    """Ways to ask that the study's method weighs, one beside the other; empty where it has one way only."""
    found = publisher_of(study).alternatives(study)
    if found is None:
        return []
    headings, rows = found
    return [dict(zip(headings, row, strict=True)) for row in rows]


def remark_on(study: Study, numbers: Mapping[str, NDArray[np.float64]] | None) -> list[str]:
    """What the study's method has to say before it runs: of the schema, or of the numbers of real rows."""
    return list(publisher_of(study).advise(study, numbers))
