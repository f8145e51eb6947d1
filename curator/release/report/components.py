"""The principal components of HPDP-DP's model, read off the published loadings."""

from dataclasses import dataclass

import numpy as np

from synod.common.models.gaussian import parse_model
from synod.common.protocol.queries import moment_design
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.release.report.wording import MISSING


@dataclass(frozen=True, slots=True)
class Loading:
    """How strongly one column goes with a component, from -1 to 1."""

    attribute: str
    value: str
    weight: float


@dataclass(frozen=True, slots=True)
class Components:
    """The share of variance of each kept component, how many were left out, their mean share, and the loadings of
    the first component, the heaviest first.
    """

    kept: tuple[float, ...]
    dropped: int
    dropped_share: float
    first: tuple[Loading, ...]


def read_components(study: Study, publication: Publication) -> Components:
    """With W's columns w_j and sigma, the variances are |w_j|^2 + sigma^2 for the kept ones and sigma^2 for others."""
    model = parse_model(publication.model, moment_design(study))
    width, rank = model.loadings.shape
    noise = model.noise**2
    variances = (model.loadings**2).sum(axis=0) + noise
    total = float(variances.sum() + (width - rank) * noise) or 1.0
    spread = np.sqrt((model.loadings**2).sum(axis=1) + noise)
    weights = model.loadings[:, 0] / np.where(spread > 0, spread, 1.0)
    loadings = [Loading(*name, float(weight)) for name, weight in zip(name_columns(study), weights, strict=True)]
    loadings.sort(key=lambda loading: -round(abs(loading.weight), 6))
    kept = tuple(float(variance) / total for variance in variances)
    return Components(kept, width - rank, noise / total if width > rank else 0.0, tuple(loadings))


def name_columns(study: Study) -> list[tuple[str, str]]:
    """The attribute and the value, if it is of one, of each column of the design after the constant."""
    design = moment_design(study)
    names = []
    for column in design.signed:
        coding = design.codings[column.attribute]
        values = {"number": "", "missing": MISSING, "binary": _value(column.attribute, 1, study)}
        names.append((coding.attribute.name, values[column.role]))
    for block in design.blocks:
        name = design.codings[block.attribute].attribute.name
        names.extend((name, _value(block.attribute, code, study)) for code in range(block.size))
    return names


def _value(attribute: int, code: int, study: Study) -> str:
    categories = getattr(study.attributes[attribute], "categories", ())
    return categories[code] if code < len(categories) else MISSING
