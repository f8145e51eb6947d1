"""HPDP-DP (Gu, Zhang, Yang 2022) as a recipe: noisy pooled moments, principal components, rows from the model.

What deviates from the paper, and why, is in docs/privacy.md: the mean is paid for, latents come from the prior,
every ciphertext has masks of its own, and one noise share is enough for all.
"""

import numpy as np

from synod.common.methods.base import HpdpDp
from synod.common.models.gaussian import parse_model
from synod.common.models.moments import unfold
from synod.common.protocol.queries import moment_design
from synod.common.study.study import Study
from synod.curator.inference.gaussian import fit_model
from synod.curator.methods.base import Parties, Publication


async def publish_hpdp_dp(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Asks for the moments, fits the model, lets the parties draw rows.

    Guarantee: everything after the moments is post-processing of them; the study costs each party what the step
    `moments` costs.
    """
    assert isinstance(study.method, HpdpDp)
    method, design = study.method, moment_design(study)
    moments = await parties.sum_moments("moments")
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
    columns = await parties.synthesize("rows", model)
    return Publication(columns, model.to_json(), moments=moments)
