"""HPDP-DP (Gu, Zhang, Yang 2022) as a recipe: noisy pooled moments, principal components, rows from the model.

What deviates from the paper, and why, is in docs/privacy.md: the mean is paid for, latents come from the prior,
every ciphertext has masks of its own, and one noise share is enough for all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synod.common.methods.hpdp_dp import HpdpDp
from synod.common.models.gaussian import parse_model
from synod.common.models.moments import unfold
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.study.study import Study
from synod.curator.inference.gaussian import fit_model
from synod.curator.methods.base import CountError, ModelSection, Parties, Publication, Publisher, register
from synod.curator.release.report.accuracy import moment_error
from synod.curator.release.report.models.components import show_components

STRAIGHT_ONLY = (
    "Do not look for curved relations, for interactions of three columns or for impossible combinations: the model "
    "keeps means, spreads and straight relations between pairs, and nothing else."
)


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Asks for the moments, fits the model, lets the parties draw rows.

    Guarantee: everything after the moments is post-processing of them; the study costs each party what the step
    `moments` costs.
    """
    method, design = _method(study), moment_design(study)
    moments = await parties.ask("moments", SumMoments())
    gram = unfold(design, moments, study.total_rows)
    fitted = await parties.remember(
        "model",
        lambda: fit_model(
            design,
            gram,
            study.total_rows,
            contribution=float(method.contribution),
            link=method.link,
            rng=rng,
        ).to_json(),
    )
    model = parse_model(fitted, design)
    columns = await parties.ask("rows", Synthesize(model, share_rows(study)))
    return Publication(columns, model.to_json(), moments=moments)


def describe(study: Study, publication: Publication) -> ModelSection:
    """The principal components."""
    content = show_components(study, publication, asked=float(_method(study).contribution))
    return ModelSection("Principal components", content)


def expected_error(study: Study, publication: Publication) -> CountError:
    """From the noise of the moments alone."""
    del publication
    return moment_error(study)


def warnings(study: Study) -> Sequence[str]:
    """What a Gaussian model cannot express."""
    del study
    return (STRAIGHT_ONLY,)


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
    ),
)
