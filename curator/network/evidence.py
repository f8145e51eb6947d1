"""What the network methods share: evidence from released tables, parameters, synthesis, and the model's JSON form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.methods.networks import share_draws
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, Sets, SumMarginals
from synod.common.protocol.queries.noise_runs import NoiseRun
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.study.features import base_count, features_of, sizes_of, space_of
from synod.common.study.study import Study
from synod.curator.methods.base import Parties, Publication, Released
from synod.curator.network.consistency import NoisyTable, agree, reconcile
from synod.curator.network.graph import Network, Pair
from synod.curator.network.levels import PLAIN, Levels, levels_of, levels_with
from synod.curator.network.sampling import Uniforms, Word, make_word, sample_network
from synod.curator.network.tables import count_cells, marginalize, mutual_information, project_tables

Floats = NDArray[np.float64]
Features = tuple[int, ...]
TABLE_UNIT = 1000


@dataclass(frozen=True, slots=True)
class Evidence:
    """All tables that were released so far, and what they say together about a set of features.

    Tables may be about the `groupings` of a query, which are numbered after all features as in the query.
    """

    study: Study
    tables: list[Released] = field(default_factory=list)
    rows: int = 0
    groupings: tuple[Grouping, ...] = ()

    @property
    def all_rows(self) -> int:
        """How many rows the evidence is about: one party's, or the whole roster's."""
        return self.rows or self.study.total_rows

    @property
    def levels(self) -> Levels:
        """The levels of features, groupings among them."""
        return levels_with(self.study, self.groupings)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each feature has, and how many groups each grouping."""
        return (*sizes_of(self.study), *(one.size for one in self.groupings))

    @property
    def ungrouped(self) -> list[Released]:
        """The tables that are about features alone: those that readers without the groupings can use."""
        known = len(sizes_of(self.study))
        return [table for table in self.tables if max(table.features) < known]

    def add_sum(self, label: str, sets: Sets, counts: list[NDArray[np.int64]], present: Features = ()) -> None:
        """Adds the tables of an encrypted sum of even shares."""
        self.add_answer(label, SumMarginals(sets, self.groupings, present=present), counts)

    def add_answer(self, label: str, query: SumMarginals, counts: list[NDArray[np.int64]]) -> None:
        """Adds the tables of an encrypted sum, whatever its shares and weights; the query says who was present."""
        step, rows, scale = plan_study(self.study).step(label), self.study.total_rows, query.scale(self.study) ** 2
        for features, own, noise in zip(query.sets, counts, query.table_noise(step, self.study), strict=True):
            variance = scale * (noise.variance if isinstance(noise, NoiseRun) else noise.variances())
            self.tables.append(Released(features, own.astype(np.float64), rows, variance))

    def add_local(self, label: str, sets: Sets, counts: list[NDArray[np.int64]]) -> None:
        """Adds the tables of one party."""
        step = plan_study(self.study).step(label)
        (variance,) = set(LocalMarginals(sets).variances(step, self.study))
        (party,) = step.answerers
        rows = self.study.roster[self.study.index_of(party)].rows
        self.tables.extend(
            Released(s, c.astype(np.float64), rows, variance, party) for s, c in zip(sets, counts, strict=True)
        )

    def pooled(self, features: Features) -> Released | None:
        """The table of these features, in this order, from all tables that cover them: tables of the same rows are
        averaged by their precision, and those of single parties add up. Parties differ, so a few of them speak for all
        only where no table counts all rows. None where nothing covers them.
        """
        everybodys, others = self._gather(features)
        found = everybodys or others
        return average_tables(found, self.all_rows) if found else None

    def counted(self, features: Features) -> Released | None:
        """The same from tables that count all rows, alone or added up: what some parties told says nothing about
        others. None where some rows were not counted.
        """
        everybodys, _ = self._gather(features)
        return average_tables(everybodys, self.all_rows) if everybodys else None

    def _gather(self, features: Features) -> tuple[list[Released], list[Released]]:
        """Tables of these features that count all rows, and the sum of the parties' own where it does not."""
        sizes, levels = self.sizes, self.levels
        whole: list[Released] = []
        parts: dict[str, list[Released]] = {}
        for table in self.tables:
            if levels.covers(table.features, features):
                counts = marginalize(table.counts, table.features, sizes, features, levels)
                margin = Released(features, counts, table.rows, self._add_variances(table, features))
                (whole if table.rows == self.all_rows else parts.setdefault(table.party, [])).append(margin)
        if not parts:
            return whole, []
        own = [average_tables(tables, tables[0].rows) for tables in parts.values()]
        rows = sum(part.rows for part in own)
        total = np.sum([part.counts for part in own], axis=0)
        added = Released(features, total, rows, sum(part.variance for part in own))
        return ([*whole, added], []) if rows == self.all_rows else (whole, [added])

    def _add_variances(self, table: Released, features: Features) -> float | Floats:
        """The variance of a cell of a margin. Where the table's cells have one, it is that of an average cell: groups
        of different sizes add up different numbers of cells.
        """
        sizes, levels = self.sizes, self.levels
        if isinstance(table.variance, float):
            return table.variance * (len(table.counts) / count_cells(features, sizes))
        return marginalize(table.variance, table.features, sizes, features, levels)

    def score(self, feature: int, parents: Features) -> float:
        """The mutual information of a feature with its parents, as far as released tables tell."""
        if not parents:
            return 0.0
        table = self.pooled((feature, *parents))
        if table is None:
            return -np.inf
        shares = project_tables(table.counts, table.rows)
        return float(mutual_information(shares, sizes_of(self.study)[feature]))


def average_tables(tables: Sequence[Released], rows: int) -> Released:
    """One estimate of the counts over all rows, each cell weighted by its precision; a table of fewer rows is scaled
    up, noise and all.
    """
    scaled = [(t.counts * (rows / t.rows), t.variance * (rows / t.rows) ** 2) for t in tables]
    weights = np.broadcast_arrays(*(1 / np.asarray(variance) for _, variance in scaled))
    precision = np.sum(weights, axis=0)
    counts = np.sum([w * c for w, (c, _) in zip(weights, scaled, strict=True)], axis=0) / precision
    variance = 1 / precision
    return Released(tables[0].features, counts, rows, variance if np.ndim(variance) else float(variance))


def without_parents(study: Study) -> Network:
    """The network in which no feature has a parent."""
    return Network(tuple(Pair(feature, ()) for feature in range(base_count(study))), levels_of(study))


async def draw_in_turn(
    study: Study, parties: Parties, phase: str, first: int, ask: Callable[[list[Pair], int], ChooseParents]
) -> list[Pair]:
    """The first feature without parents, then each party's draws; `ask` makes the query for the pairs so far and a
    number of draws. Draws that nobody is left to make are missing.

    Guarantee: a step costs what the plan says, however many draws it has: they share its epsilon.
    """
    pairs, owed = [Pair(first, ())], 0
    for entry, count in zip(study.roster, share_draws(study), strict=True):
        if not count:
            continue
        owed += count
        chosen = await parties.ask_one(f"{phase}-{entry.name}", ask(pairs, owed))
        if chosen is not None:
            pairs.extend(Pair(feature, parents) for feature, parents in chosen)
            owed = 0
    return pairs


def left_alone(study: Study, pairs: Sequence[Pair]) -> list[Pair]:
    """The features that nobody was left to draw parents for, without any."""
    placed = {pair.feature for pair in pairs}
    return [Pair(feature, ()) for feature in range(base_count(study)) if feature not in placed]


async def learn_tables(
    study: Study, parties: Parties, label: str, network: Network, evidence: Evidence
) -> list[Floats]:
    """The tables of a network's families, asked in one sum and brought into agreement with each other."""
    sets: Sets = network.asked_sets()
    evidence.add_sum(label, sets, await parties.ask(label, SumMarginals(sets)), parties.present(label))
    return await parties.compute(partial(fit_tables, study, network, evidence, sets))


def fit_tables(study: Study, network: Network, evidence: Evidence, sets: Sets) -> list[Floats]:
    """Non-negative tables for a network's families, in the order of its pairs."""
    sizes, levels, total = evidence.sizes, evidence.levels, float(evidence.all_rows)
    pooled = [evidence.pooled(features) for features in sets]
    noisy = [NoisyTable(p.features, p.counts, p.variance) for p in pooled if p is not None]
    uncovered = [t for t in evidence.tables if not any(levels.covers(t.features, f) for f in sets)]
    others = [t for t in uncovered if t.rows == evidence.all_rows]
    noisy += [NoisyTable(t.features, t.counts, t.variance) for t in others]
    return derive_tables(study, network, sets, reconcile(noisy, sizes, total=total, levels=levels))


def fit_asked(study: Study, asked: Sequence[Released], others: Sequence[Released]) -> list[Floats]:
    """Non-negative tables for those that were asked, with what the others tell about the same features, each by its
    precision. The others are never cut at zero: tables with much noise and little else would be biased by that, and
    the tables that agree with them too.
    """
    sizes, levels, total = sizes_of(study), levels_of(study), float(study.total_rows)
    noisy = [NoisyTable(t.features, t.counts, t.variance) for t in (*asked, *others)]
    agreed = agree(noisy, sizes, total=total, levels=levels)[: len(asked)]
    combined = [replace(table, counts=counts) for table, counts in zip(noisy, agreed, strict=False)]
    return reconcile(combined, sizes, total=total, levels=levels)


def derive_tables(study: Study, network: Network, sets: Sets, fitted: Sequence[Floats]) -> list[Floats]:
    """The tables of a network's families, in the order of its pairs, out of those of the sets that were asked."""
    sizes, levels, tables = sizes_of(study), levels_of(study), []
    for pair in network.pairs:
        source = next(i for i, features in enumerate(sets) if levels.covers(features, pair.family))
        tables.append(marginalize(fitted[source], sets[source], sizes, pair.family, levels))
    return tables


def publish_network(
    study: Study, network: Network, tables: Sequence[Floats], evidence: Evidence, *, rng: np.random.Generator
) -> Publication:
    """Draws the rows, and writes the model down."""
    assert study.rows is not None
    columns = draw_network(study, network, tables, study.rows, rng=rng)
    return Publication(columns, model_to_json(study, network, tables), tables=evidence.ungrouped)


def model_to_json(study: Study, network: Network, tables: Sequence[Floats]) -> dict[str, Json]:
    """A network with its tables, in thousandths of a row; `levels` are the groups of each feature that is a coarser
    version of its attribute.
    """
    model: dict[str, Json] = {
        "features": [[f.attribute, f.size, -1 if f.bit is None else f.bit] for f in features_of(study)],
        "network": network_to_json(network),
        "tables": [[int(value) for value in np.rint(table * TABLE_UNIT)] for table in tables],
        "table_unit": TABLE_UNIT,
    }
    if network.levels != PLAIN:
        model["levels"] = [[i, list(f.groups)] for i, f in enumerate(features_of(study)) if f.level]
    return model


def draw_network(study: Study, network: Network, tables: Sequence[Floats], rows: int, *, rng: Uniforms) -> list[Any]:
    """Rows of a network as codes of the schema's attributes; bits that form no valid code are never drawn."""
    drawn = sample_network(network, tables, sizes_of(study), rows, rng=rng, words=words_of(study))
    return space_of(study).decode(drawn, rows)


def words_of(study: Study) -> list[Word]:
    """The attributes that are split into bits, some of which form no valid code."""
    sizes, features = sizes_of(study), features_of(study)
    return [
        make_word(tuple(i for i, f in enumerate(features) if f.attribute == attribute), codes, sizes)
        for attribute, codes in space_of(study).valid_codes().items()
    ]


def network_to_json(network: Network) -> Json:
    """A network as feature and parents, in drawing order."""
    return [[pair.feature, list(pair.parents)] for pair in network.pairs]


def network_from_json(data: Any, study: Study) -> Network:
    """Reads what `network_to_json` wrote."""
    return Network(tuple(Pair(int(feature), tuple(parents)) for feature, parents in data), levels_of(study))
