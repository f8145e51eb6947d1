"""Independent: PrivBayes at each party on its own rows, and the union of the samples. The papers' baseline.

Each party answers alone, with its own full noise; nothing is pooled but the published rows.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.methods.independent import Independent
from synod.common.methods.networks import resolved
from synod.common.protocol.queries.base import Query
from synod.common.protocol.queries.marginals import LocalMarginals, Sets
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.rows import share_rows, stack_rows
from synod.common.runtime.errors import SynodError, check_failed
from synod.common.study.encoding import Codes
from synod.common.study.features import base_count, base_sizes
from synod.common.study.study import RosterEntry, Study
from synod.curator.drawing.base import Answers, RowModel
from synod.curator.drawing.mixtures import Mixture
from synod.curator.drawing.networks import model_network
from synod.curator.methods.base import Parties, Publication, Publisher, Released, register
from synod.curator.network.evidence import (
    Evidence,
    draw_network,
    fit_tables,
    network_from_json,
    network_to_json,
    without_parents,
)
from synod.curator.network.graph import Network, Pair
from synod.curator.network.levels import levels_of
from synod.curator.network.shortlists import shortlist_parents
from synod.curator.release.report.accuracy import table_error
from synod.curator.release.report.models.networks import UNCONNECTED, describe_networks


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """For each party: a network from its own draws, tables from its own counts, rows from both. A lost party that has
    not been counted has none, and the others draw its rows.

    Guarantee: each party's two steps cost what the plan says; the rest is post-processing.
    """
    samples: list[list[Codes]] = []
    released: list[Released] = []
    networks = []
    shares, fitted = share_rows(study), dict[int, tuple[Network, list[NDArray[np.float64]]]]()
    for place, entry in enumerate(study.roster):
        network = await _choose_network(study, parties, entry, rng=rng)
        sets: Sets = network.asked_sets()
        evidence, label = Evidence(study, rows=entry.rows), f"tables-{entry.name}"
        counts = await parties.ask_one(label, LocalMarginals(sets))
        if counts is not None:
            evidence.add_local(label, sets, counts)
            tables = await parties.compute(partial(fit_tables, study, network, evidence, sets))
            drawn = partial(draw_network, study, network, tables, shares[place], rng=rng)
            samples.append(await parties.compute(drawn))
            fitted[place] = network, tables
            released += evidence.tables
            networks.append({"party": entry.name, "network": network_to_json(network)})
    for place, (network, tables) in fitted.items() if len(fitted) < len(study.roster) else ():
        more = share_rows(study, tuple(fitted))[place] - shares[place]
        samples.append(await parties.compute(partial(draw_network, study, network, tables, more, rng=rng)))
    return Publication(stack_rows(samples), {"networks": networks}, tables=released)


async def _choose_network(study: Study, parties: Parties, entry: RosterEntry, *, rng: np.random.Generator) -> Network:
    method, sizes = _method(study), base_sizes(study)
    cells = resolved(method.table_cells)[study.index_of(entry.name)]
    if cells == 0:
        return without_parents(study)
    first = int(rng.integers(len(sizes)))
    candidates = await parties.compute(partial(shortlist_parents, study, first, cells, method.max_candidates))
    query = ChooseParents((first,), candidates, len(sizes) - 1, cells, method.chosen_score)
    chosen = await parties.ask_one(f"choose-{entry.name}", query)
    if chosen is None:
        return without_parents(study)
    return Network((Pair(first, ()), *(Pair(feature, parents) for feature, parents in chosen)), levels_of(study))


def open_model(study: Study, model: Json, answers: Answers) -> RowModel:
    """The parties' own models as one, each with its share of the rows; the tables are fitted to its answer again.

    Raises:
        SynodError: the model is not one of this study's parties and features.
    """
    models = {}
    for party, network in _read_networks(study, model):
        evidence, sets = Evidence(study, rows=study.roster[study.index_of(party)].rows), network.asked_sets()
        evidence.add_local(f"tables-{party}", sets, answers(f"tables-{party}"))
        models[study.index_of(party)] = model_network(study, network, fit_tables(study, network, evidence, sets))
    shares = share_rows(study, tuple(models) if len(models) < len(study.roster) else ())
    return Mixture(tuple(models.values()), tuple(float(shares[place]) for place in models))


def _read_networks(study: Study, model: Any) -> list[tuple[str, Network]]:
    try:
        found = [(one["party"], network_from_json(one["network"], study)) for one in model["networks"]]
        places = [study.index_of(party) for party, _ in found]
    except (KeyError, TypeError, ValueError, IndexError, SynodError):
        raise _unsound() from None
    if not places or places != sorted(set(places)):
        raise _unsound()
    if any(sorted(network.features) != list(range(base_count(study))) for _, network in found):
        raise _unsound()
    return found


def _unsound() -> SynodError:
    return check_failed("model.json does not hold networks of the study's parties and features.")


def warnings(study: Study) -> Sequence[str]:
    """What networks of single parties cannot express."""
    parties = "Do not compare the parties with each other by single rows: each party's part has noise of its own."
    return (UNCONNECTED, parties) if len(study.roster) > 1 else (UNCONNECTED,)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """Nothing is encrypted."""
    del study
    return {}


def _method(study: Study) -> Independent:
    assert isinstance(study.method, Independent)
    return study.method


register(
    "independent",
    Publisher(
        title="Independent, a Bayesian network of each party's own",
        publish=publish,
        describe=describe_networks,
        expected_error=table_error,
        warnings=warnings,
        typical_queries=typical_queries,
        open_model=open_model,
    ),
)
