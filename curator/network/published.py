"""Rows of a published network: drawn from its JSON form and the seed alone, so that anyone can draw them again.

A published model comes from outside when a release is checked; what is not sound is refused.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.encoding import Codes
from synod.common.study.features import base_count, sizes_of
from synod.common.study.study import Study
from synod.curator.network.evidence import TABLE_UNIT, draw_network, model_to_json, network_from_json
from synod.curator.network.graph import Network
from synod.curator.network.tables import Floats, count_cells

LARGEST_TOTAL = 2**53  # below it sums of whole numbers are exact in any order, and rows the same on every machine


@dataclass(frozen=True, slots=True)
class _PublicUniforms:
    """The coins of a seed, as sampling takes them."""

    coins: Coins

    def random(self, size: int, /) -> NDArray[np.float64]:
        """Numbers from 0 to 1, below 1."""
        return self.coins.draw_uniforms(size)


def draw_published(study: Study, model: Json, seed: int) -> list[Codes]:
    """The rows of a published network, a function of the model and the seed alone.

    Raises:
        SynodError: the model is not sound, or not one of this study's features.
    """
    assert study.rows is not None
    network, tables = read_model(study, model)
    return draw_network(study, network, tables, study.rows, rng=_PublicUniforms(Coins.public(seed, "rows")))


def read_model(study: Study, model: Any) -> tuple[Network, list[Floats]]:
    """A network and its tables, in thousandths of a row, out of their published form."""
    sizes = sizes_of(study)
    if not isinstance(model, dict):
        raise _unsound("it is not a mapping")
    network = _read_network(study, model.get("network"))
    written = model.get("tables")
    if not isinstance(written, list) or len(written) != len(network.pairs):
        raise _unsound("it does not have one table for each pair of its network")
    tables = []
    for pair, table in zip(network.pairs, written, strict=True):
        if not isinstance(table, list) or len(table) != count_cells(pair.family, sizes):
            raise _unsound(f"the table of feature {pair.feature} does not have one number for each cell")
        if not all(type(value) is int and value >= 0 for value in table) or sum(table) >= LARGEST_TOTAL:
            raise _unsound(f"the table of feature {pair.feature} does not hold counts")
        tables.append(np.array(table, dtype=np.float64))
    if model != model_to_json(study, network, [table / TABLE_UNIT for table in tables]):
        raise _unsound("its features are not those of the study")
    return network, tables


def _read_network(study: Study, pairs: Any) -> Network:
    """A network of the study's features that places every base feature."""
    known = range(len(sizes_of(study)))
    if not isinstance(pairs, list) or not all(_is_pair(pair, known) for pair in pairs):
        raise _unsound("its network is not a list of features with their parents")
    if sorted(feature for feature, _ in pairs) != list(range(base_count(study))):
        raise _unsound("its network does not place every feature once")
    try:
        return network_from_json(pairs, study)
    except SynodError:
        raise _unsound("its network has a parent that does not come before its feature, or comes twice") from None


def _is_pair(pair: Any, known: range) -> bool:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], list):
        return False
    return all(type(feature) is int and feature in known for feature in (pair[0], *pair[1]))


def _unsound(why: str) -> SynodError:
    return check_failed(f"model.json is not a model that rows can be drawn from: {why}.")
