"""Independent: PrivBayes at each party on its own rows, and the union of the samples. The papers' baseline.

Each party answers alone, with its own full noise; nothing is pooled but the published rows.
"""

from functools import partial

import numpy as np

from synod.common.methods.base import Independent
from synod.common.models.usefulness import own_cells
from synod.common.protocol.queries import ChooseParents, share_rows
from synod.common.study.encoding import Codes
from synod.common.study.features import sizes_of
from synod.common.study.study import RosterEntry, Study
from synod.curator.methods.base import Parties, Publication, Released, Sets
from synod.curator.network.evidence import (
    Evidence,
    draw_network,
    fit_tables,
    network_to_json,
    resolve_score,
    shortlist_without_data,
    without_parents,
)
from synod.curator.network.graph import Network, Pair


async def publish_independent(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """For each party: a network from its own draws, tables from its own counts, rows from both.

    Guarantee: each party's two steps cost what the plan says; the rest is post-processing.
    """
    samples: list[list[Codes]] = []
    released: list[Released] = []
    networks = []
    for entry, rows in zip(study.roster, share_rows(study), strict=True):
        network = await _choose_network(study, parties, entry, rng=rng)
        sets: Sets = tuple(tuple(sorted(family)) for family in network.asked_families())
        evidence = Evidence(study, rows=entry.rows)
        evidence.add_local(f"tables-{entry.name}", sets, await parties.local_marginals(f"tables-{entry.name}", sets))
        tables = await parties.compute(partial(fit_tables, study, network, evidence, sets))
        samples.append(await parties.compute(partial(draw_network, study, network, tables, rows, rng=rng)))
        released += evidence.tables
        networks.append({"party": entry.name, "network": network_to_json(network)})
    columns: list[Codes] = [np.concatenate(parts) for parts in zip(*samples, strict=True)]
    return Publication(columns, {"networks": networks}, tables=released)


async def _choose_network(study: Study, parties: Parties, entry: RosterEntry, *, rng: np.random.Generator) -> Network:
    assert isinstance(study.method, Independent)
    sizes, cells = sizes_of(study), own_cells(study, entry.rows)
    if cells == 0:
        return without_parents(sizes)
    first = int(rng.integers(len(sizes)))
    candidates = shortlist_without_data(study, cells, first)
    query = ChooseParents((first,), candidates, len(sizes) - 1, cells, resolve_score(study))
    chosen = await parties.choose_parents(f"choose-{entry.name}", query)
    return Network((Pair(first, ()), *(Pair(feature, parents) for feature, parents in chosen)))
