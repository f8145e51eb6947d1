"""HPDP-DP (Gu, Zhang, Yang 2022) as a recipe: noisy pooled moments, principal components, rows from the model.

What deviates from the paper, and why, is in docs/privacy.md: the mean is paid for, latents come from the prior,
every ciphertext has masks of its own, and one noise share is enough for all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.methods.hpdp_dp import HpdpDp
from synod.common.models.gaussian import parse_model
from synod.common.models.moments import unfold
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.study.study import Study
from synod.curator.drawing.gaussian import open_gaussian
from synod.curator.inference.gaussian import Kept, fit_model
from synod.curator.inference.shapes import LARGEST_SKEWNESS, find_spike, skewness
from synod.curator.methods.base import (
    CountError,
    ModelSection,
    Numbers,
    Parties,
    Publication,
    Publisher,
    register,
    shape_keepers,
)
from synod.curator.release.report.accuracy import moment_error
from synod.curator.release.report.models.components import show_components
from synod.curator.release.report.wording import percent, plural

STRAIGHT_ONLY = (
    "Do not look for curved relations, for interactions of three columns or for impossible combinations: the model "
    "keeps means, spreads and straight relations between pairs, and nothing else."
)

BELLS_ONLY = (
    "Skewed numbers and numbers with spikes (many zeros, many at the maximum) come out wrong, as a bell cut at its "
    "bounds;"
)
LOOK = "Look for them with `synod study forecast STUDY --data TABLE`, which reads your own rows."


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Asks for the moments, fits the model, lets the parties draw rows.

    Guarantee: everything after the moments is post-processing of them; the study costs each party what the step
    `moments` costs.
    """
    method, design = _method(study), moment_design(study)
    moments = await parties.ask("moments", SumMoments())
    gram = unfold(design, moments, study.total_rows)
    kept = Kept(float(method.contribution), method.kept_components)
    fitted = await parties.remember(
        "model", lambda: fit_model(design, gram, study.total_rows, kept=kept, link=method.link, rng=rng).to_json()
    )
    model = parse_model(fitted, design)
    columns = await parties.ask("rows", Synthesize(model, share_rows(study)))
    return Publication(columns, model.to_json(), moments=moments, present=parties.present("moments"))


def describe(study: Study, publication: Publication) -> ModelSection:
    """The principal components."""
    method = _method(study)
    asked, many = f"{percent(float(method.contribution))} were", method.kept_components
    if many is not None:
        asked = f"{plural(many, 'direction')} {'was' if many == 1 else 'were'}"
    return ModelSection("Principal components", show_components(study, publication, asked=f"{asked} asked for"))


def expected_error(study: Study, publication: Publication) -> CountError:
    """From the noise of the moments alone."""
    return moment_error(study, publication.present)


def warnings(study: Study) -> Sequence[str]:
    """What a Gaussian model cannot express."""
    del study
    return (STRAIGHT_ONLY,)


def warn_of_bells() -> str:
    """What a Gaussian does to numbers that are no bell, and which method does not."""
    return f"{BELLS_ONLY} {_kept_by()} {LOOK}"


def _kept_by() -> str:
    return f"the method `{' or '.join(shape_keepers())}` keeps such columns."


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """Which numbers are no bell: a general sentence, or one for each column of real rows where it is so."""
    if numbers is None:
        return (warn_of_bells(),) if moment_design(study).numbers else ()
    said = ((name, _shape(values)) for name, values in numbers.items())
    return [
        f"{name} {shape}: it would come out as a bell cut at its bounds; {_kept_by()}" for name, shape in said if shape
    ]


def _shape(values: NDArray[np.float64]) -> str:
    """What a Gaussian cannot have of these values; empty where there is nothing."""
    skew, spike, words = skewness(values), find_spike(values), []
    if abs(skew) > LARGEST_SKEWNESS:
        words.append(f"is skewed (skewness {skew:.1f})")
    if spike is not None:
        end = f", its {spike.end}" if spike.end else ""
        words.append(f"has a spike ({spike.share:.1%} of its values are {spike.value:.6g}{end})")
    return " and ".join(words)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """The one sum, which the study fixes."""
    del study
    return {"moments": SumMoments()}


def _method(study: Study) -> HpdpDp:
    assert isinstance(study.method, HpdpDp)
    return study.method


register(
    "hpdp-dp",
    Publisher(
        title="HPDP-DP, a Gaussian model with principal components",
        publish=publish,
        describe=describe,
        expected_error=expected_error,
        warnings=warnings,
        typical_queries=typical_queries,
        advise=advise,
        open_model=open_gaussian,
    ),
)
