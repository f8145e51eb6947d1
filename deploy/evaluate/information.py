"""The sum of mutual information of a network: how much of the dependence between attributes its pairs hold.

A network of higher quality has pairs of attribute and parents that share more information in the real rows
(PrivBayes; HPPrivBayes compares networks by it). The same sum over the synthetic rows says how much of that survived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.jsontext import DocumentError, check_json, read_bytes
from synod.common.study.encoding import Codes
from synod.common.study.features import features_of, space_of
from synod.common.study.study import Study
from synod.curator.release.redraw import LARGEST_MODEL_BYTES

MODEL_FILE = "model.json"
Place = Annotated[int, Field(ge=0)]
Pairs = tuple[tuple[Place, tuple[Place, ...]], ...]


class _Excerpt(BaseModel):
    """What is read here of a document that holds more."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class _Part(_Excerpt):
    """One party's network."""

    network: Pairs


class _Model(_Excerpt):
    """One network, or one for each party; none if the method has none."""

    features: tuple[tuple[int, int, int], ...] | None = None
    network: Pairs | None = None
    networks: tuple[_Part, ...] = ()


class _File(_Excerpt):
    method: str
    model: _Model


@dataclass(frozen=True, slots=True)
class Information:
    """The sum over a network's pairs, in bits, on either table; a mean over networks where each party has its own."""

    networks: int
    real: float
    synthetic: float


def read_networks(path: Path, study: Study) -> tuple[Pairs, ...]:
    """The networks of a release or of its model file; none if its method learns none."""
    source = path / MODEL_FILE if path.is_dir() else path
    try:
        text = check_json(read_bytes(source, LARGEST_MODEL_BYTES), LARGEST_MODEL_BYTES)
        file = _File.model_validate_json(text)
    except DocumentError as error:
        raise invalid(f"{source} {error.reason}.", "It is model.json in a release.") from None
    except (OSError, ValidationError):
        raise invalid(f"{source} cannot be read as the model of a release.", "It is model.json in a release.") from None
    if file.method != study.method.name:
        raise _other_study(source)
    networks = (*([file.model.network] if file.model.network else []), *(part.network for part in file.model.networks))
    if networks:
        _check(file.model, networks, study, source)
    return networks


def _check(model: _Model, networks: Sequence[Pairs], study: Study, source: Path) -> None:
    """Refuses a model whose features are not those of the study."""
    features = features_of(study)
    expected = tuple((f.attribute, f.size, -1 if f.bit is None else f.bit) for f in features)
    named = {place for network in networks for feature, parents in network for place in (feature, *parents)}
    if model.features not in (None, expected) or max(named, default=0) >= len(features):
        raise _other_study(source)


def _other_study(source: Path) -> SynodError:
    return invalid(f"{source} is not a model of this study.", "Give the study that the release was made with.")


def measure_information(
    networks: Sequence[Pairs], study: Study, real: Sequence[Codes], synthetic: Sequence[Codes]
) -> Information:
    """The sum of I(feature; parents) over the pairs of each network, both tables being in the schema's bins."""
    sides = [space_of(study).encode(columns) for columns in (real, synthetic)]
    sums = [fmean(_sum_information(network, features) for network in networks) for features in sides]
    return Information(len(networks), sums[0], sums[1])


def _sum_information(network: Pairs, features: Sequence[Codes]) -> float:
    families = [(features[feature], [features[parent] for parent in parents]) for feature, parents in network]
    return sum(mutual_information(child, parents) for child, parents in families if parents)


def mutual_information(child: NDArray[Any], parents: Sequence[NDArray[Any]]) -> float:
    """I(child; parents) = H(child) + H(parents) - H(child, parents), in bits, of the rows' own distribution."""
    joint = join_columns(parents)
    return max(0.0, _entropy(join_columns([child])) + _entropy(joint) - _entropy(join_columns([child, joint])))


def join_columns(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """One column that tells rows apart exactly where any of the columns does, with codes from 0 and without gaps."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, joint = np.unique(joint * (int(column.max()) + 1) + column, return_inverse=True)
    return joint


def _entropy(codes: NDArray[np.int64]) -> float:
    chances = np.bincount(codes) / len(codes)
    return float(-(chances * np.log2(chances)).sum())
