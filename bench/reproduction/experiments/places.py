"""A release of some rows by some parties, as an experiment needs it: with other keys, of a part, or without noise."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.reproduction.messages import CountedParties
from bench.reproduction.tables import Rows, deal_rows, study_for
from synod.common.privacy.coins import Coins
from synod.common.protocol.queries.base import Query
from synod.common.study.encoding import Codes, to_bins
from synod.common.study.study import Study
from synod.curator.methods.base import Publication, publish
from synod.deploy.simulate import InProcessParties

AnswerT = TypeVar("AnswerT")
NEARLY_UNLIMITED = Decimal(1_000_000)


@dataclass(frozen=True)
class WatchedParties(CountedParties):
    """Parties that note the labels of what they are asked, and answer some steps nearly without noise.

    NOT private where `unlimited` is not empty: steps whose label begins so have an epsilon of a million.
    """

    unlimited: str = ""
    labels: list[str] = field(default_factory=list)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        self.labels.append(label)
        if self.unlimited and label.startswith(self.unlimited):
            study = self.study.model_copy(update={"epsilon": NEARLY_UNLIMITED})
            return await InProcessParties(study, self.tables, self.coins, self.rng).ask(label, query)
        return await super().ask(label, query)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """What was published, its columns in the schema's bins, and what the parties were asked."""

    study: Study
    publication: Publication
    columns: Sequence[Codes]
    parties: WatchedParties


def release(
    rows: Rows,
    keys: Mapping[str, Any],
    parties: int,
    epsilon: str,
    *,
    seed: int,
    kept: NDArray[np.intp] | None = None,
    unlimited: str = "",
) -> Released:
    """Publishes all rows, or those that are `kept`, dealt to so many parties with threshold 0."""
    order = np.arange(rows.count) if kept is None else kept
    part = Rows(rows.name, rows.data, tuple(column[order] for column in rows.columns), rows.targets, rows.file)
    study = study_for(part, dict(keys), parties, epsilon)
    codes = [column[order] for column in rows.codes_for(study)]
    rng = np.random.default_rng(seed)
    coins = Coins(seed.to_bytes(32, "big"))
    watched = WatchedParties(study, deal_rows(codes, parties, rng=rng), coins, rng, unlimited=unlimited)
    publication = asyncio.run(_publish(study, watched))
    return Released(study, publication, to_bins(study, publication.columns), watched)


async def _publish(study: Study, parties: WatchedParties) -> Publication:
    return await publish(study, parties, seed=int(parties.rng.integers(2**53)))
