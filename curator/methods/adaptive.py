"""Adaptive's recipe: one-way tables, a look at all pairs, the tables that tell the most, a fitted model, its rows.

Everything but the encrypted sums is post-processing of released numbers. What shapes a query, and the model, is
remembered, so that a restart asks the same questions and publishes the same rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.canonical import Json
from synod.common.methods.adaptive import USUAL_GROUPS, Adaptive, asks_everything, is_too_noisy, noise_in_groups
from synod.common.methods.networks import resolved
from synod.common.privacy.laws import TABLE
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import Agreements, SumAgreements, unpack_signs
from synod.common.protocol.queries.base import Query, sum_law
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.protocol.steps import Step
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.drawing.trees import open_tree
from synod.curator.inference.measurements import Measurement, SignedSums
from synod.curator.methods.base import Numbers, Parties, Publication, Publisher, Released, register, sum_variances
from synod.curator.release.report.models.cliques import clique_error, describe_cliques
from synod.curator.structure.grouped import GroupedFeatures, orders_of, similarity_orders_of
from synod.curator.structure.groups import OneWay, estimate_shares, group_values
from synod.curator.structure.growth import grow_pairs
from synod.curator.structure.known import Known
from synod.curator.structure.model import draw_model, write_model
from synod.curator.structure.parts import part_power
from synod.curator.structure.selection import Room, choose_pairs, score_pairs
from synod.curator.structure.smoothing import smooth_sums
from synod.curator.structure.splits import choose_signs

Floats = NDArray[np.float64]
STAGE_ITERATIONS = 150
FINAL_ITERATIONS = (150, 1000)
ITERATIONS_PER_SIGNAL = 1.3
ONES_WEIGHT = 2
LEAST_CELL = 0.25  # below this, noise outweighs what finer numbers tell
PAIRS_ONLY = (
    "Do not look for what only three or more columns together tell, nor for relations between columns that were not "
    "counted together: the model keeps single columns and the pairs that it counted."
)


async def publish(study: Study, parties: Parties, *, rng: np.random.Generator) -> Publication:
    """Asks for everything at once where all attributes have two values; else for one-way tables, and then, stage by
    stage, for a look at all pairs and for the tables that tell the most.

    Guarantee: each step costs what the plan says; the rest is post-processing.
    """
    seeds = rng.integers(2**53, size=len(plan_study(study).steps)).tolist()
    rounds = resolved(_method(study).rounds)
    if rounds == 1 and asks_everything(study):
        known, released = await _ask_everything(study, parties)
        finish = partial(_finish_binary, study)
    else:
        known, released = await _ask_ones(study, parties)
        finish = partial(_finish, study)
        for stage in range(1, rounds // 2 + 1):
            known = await _look(study, parties, known, stage, seeds[2 * stage - 1])
            known = await _ask_tables(study, parties, known, stage, last=stage == rounds // 2)
    model = await parties.remember("model", partial(finish, known))
    return Publication([], model, tables=released)


# One-way tables


async def _ask_ones(study: Study, parties: Parties) -> tuple[Known, list[Released]]:
    """Fine one-way tables, larger ones with larger parts of the budget, and the groups that follow from them."""
    query = SumMarginals.from_json(await parties.remember("ones", lambda: _ask_one_ways(study).to_json()))
    counts = await parties.ask("ones", query)
    deviations = [variance**0.5 for variance in sum_variances(study, parties, "ones", query)]
    one_ways = [
        OneWay(values.astype(np.float64), deviation, order)
        for values, deviation, order in zip(counts, deviations, orders_of(study), strict=True)
    ]
    least = _least_mass(study)
    noted = await parties.remember("groups", lambda: [list(group_values(one, least=least)) for one in one_ways])
    groups = tuple(tuple(own) for own in _as_list(noted))
    shares = tuple(estimate_shares(one, study.total_rows) for one in one_ways)
    grouped = GroupedFeatures(groups, shares)
    tables = tuple(_measure_one_way(grouped, feature, one) for feature, one in enumerate(one_ways))
    released = [
        Released((feature,), one.counts, study.total_rows, one.deviation**2) for feature, one in enumerate(one_ways)
    ]
    return Known(grouped, study.total_rows, tables), released


def _ask_one_ways(study: Study) -> SumMarginals:
    sizes = sizes_of(study)
    plain = GroupedFeatures(tuple(tuple(range(size)) for size in sizes), ())
    power = part_power(study)
    return plain.ask_tables([(feature,) for feature in range(len(sizes))], [size**power for size in sizes])


def _measure_one_way(grouped: GroupedFeatures, feature: int, one: OneWay) -> Measurement:
    members = grouped.add_up(feature, np.ones(len(one.counts)))
    return Measurement((feature,), grouped.add_up(feature, one.counts), one.deviation**2 * members)


def _least_mass(study: Study) -> float:
    """The rows of a group of numbers at which a cell of two such groups holds `LEAST_CELL` deviations of its noise."""
    steps = [step for step in plan_study(study).steps if step.phase == "tables"]
    if not steps:
        return 0.0
    noise = _deviation(study, steps[0], 1 / len(sizes_of(study)))
    return float((LEAST_CELL * noise * study.total_rows) ** 0.5)


def _deviation(study: Study, step: Step, part: float) -> float:
    """The deviation of the noise on a table with this part of a step's budget."""
    whole = sum_law(step, study, TABLE).variance ** 0.5
    return float(whole / part if study.delta is None else whole / part**0.5)


# A look at all pairs


async def _look(study: Study, parties: Parties, known: Known, stage: int, seed: int) -> Known:
    """Agreements under new splits, beside all that is known."""
    label = f"agreements-{stage}"
    noted = await parties.remember(f"splits-{stage}", partial(_choose_splits, study, known, stage, seed))
    query = SumAgreements(tuple(bytes.fromhex(split) for split in _as_list(noted)))
    answer = await parties.ask(label, query)
    variance = _agreement_variance(study, parties, label, query)
    return replace(known, sums=(*known.sums, *_signed_sums(study, known.grouped, query, answer, variance)))


def _agreement_variance(study: Study, parties: Parties, label: str, query: SumAgreements) -> float:
    """The variance of the noise on each number of an answered look at all pairs."""
    asked = query.asked_of(parties.present(label), study)
    return asked.variance(plan_study(study).step(label), study) * asked.scale(study) ** 2


def _choose_splits(study: Study, known: Known, stage: int, seed: int) -> list[Json]:
    """Several splits see more if unlike; a single one goes by taxonomies too, and is another in the second stage."""
    rng, grouped, splits = np.random.default_rng(seed), known.grouped, resolved(_method(study).splits)
    orders = similarity_orders_of(study) if splits == 1 else orders_of(study)
    numbers = [stage - 1] if splits == 1 else range(splits)
    grouped_orders = [grouped.group_order(feature, order) for feature, order in enumerate(orders)]
    signs = [
        [
            choose_signs(shares, order, number, rng=rng)
            for shares, order in zip(known.base(), grouped_orders, strict=True)
        ]
        for number in numbers
    ]
    return [split.hex() for split in grouped.ask_agreements(signs).splits]


def _signed_sums(
    study: Study, grouped: GroupedFeatures, query: SumAgreements, answer: Agreements, variance: float
) -> list[SignedSums]:
    """Agreements as sums of signs: of n rows, a agree and n - a do not, which makes 2a - n."""
    firsts = [np.unique(groups, return_index=True)[1] for groups in grouped.groups]
    signs = [unpack_signs(split, sizes_of(study)) for split in query.splits]
    by_feature = [np.array([split[f][own] for split in signs], dtype=np.float64) for f, own in enumerate(firsts)]
    sums = 2 * answer.pairs.astype(np.float64) - study.total_rows
    pairs = combinations(range(len(firsts)), 2)
    return [
        SignedSums(pair, by_feature[pair[0]], by_feature[pair[1]], sums[:, place], 4 * variance)
        for place, pair in enumerate(pairs)
    ]


# Tables


async def _ask_tables(study: Study, parties: Parties, known: Known, stage: int, *, last: bool) -> Known:
    """The tables that tell the most beside what is known, or the one-way tables again where none does."""
    label = f"tables-{stage}"
    step = plan_study(study).step(label)
    noted = await parties.remember(label, partial(_choose_tables, study, known, step, last=last))
    query = SumMarginals.from_json(noted)
    sets = _sets_of(study, query)
    counts = await parties.ask(label, query)
    sizes = query.entry_sizes(study)
    tables = [
        Measurement(own, values.reshape([sizes[entry] for entry in entries]).astype(np.float64), variance)
        for own, entries, values, variance in zip(
            sets, query.sets, counts, sum_variances(study, parties, label, query), strict=True
        )
    ]
    known = replace(known, tables=(*known.tables, *tables))
    return known if last else await parties.compute(partial(known.fitted, known.pairs, STAGE_ITERATIONS))


def _choose_tables(study: Study, known: Known, step: Step, *, last: bool) -> Json:
    room = _room(study, known, step, last=last)
    expected = known.expected()
    stage_sums = known.sums[-len(expected) :]
    scores = score_pairs(stage_sums, expected, known.rows)
    least = float(np.mean(stage_sums[0].variance)) ** 0.5
    pairs = choose_pairs(scores, least, expected, known.pairs, room)
    if not pairs:
        ones = [(feature,) for feature in range(len(room.sizes))]
        return known.grouped.ask_tables(ones, [size**room.power for size in room.sizes]).to_json()
    return known.grouped.ask_tables(pairs, room.parts(pairs).tolist()).to_json()


def _room(study: Study, known: Known, step: Step, *, last: bool) -> Room:
    cells = resolved(_method(study).max_model_cells)
    return Room(
        sizes=known.grouped.sizes,
        rows=known.rows,
        model_cells=cells if last else cells // 2,
        tables=step.limit.tables,
        numbers=step.limit.numbers,
        table_cells=step.limit.cells,
        deviation=partial(_deviation, study, step),
        power=part_power(study),
        forest=not last,
    )


def _sets_of(study: Study, query: SumMarginals) -> list[tuple[int, ...]]:
    features = query.entry_features(study)
    return [tuple(features[entry] for entry in entries) for entries in query.sets]


def _finish(study: Study, known: Known) -> Json:
    """The last fit: the more the signal of the tables exceeds their noise, the longer."""
    asked = known.tables[len(known.grouped.groups) :]
    return _write(study, known.fitted(known.pairs, _final_iterations(known, asked)))


def _final_iterations(known: Known, asked: Sequence[Measurement | SignedSums]) -> int:
    """More of them the more the rows exceed the noise; converging further would fit noise."""
    deviations = [float(np.mean(one.variance)) ** 0.5 for one in asked]
    wanted = ITERATIONS_PER_SIGNAL * known.rows / float(np.mean(deviations)) if deviations else 0.0
    return int(np.clip(wanted, *FINAL_ITERATIONS))


def _write(study: Study, known: Known) -> Json:
    assert known.model is not None
    counted = [(one.attributes, float(np.mean(one.variance)) ** 0.5) for one in known.tables]
    if len(plan_study(study).steps) == 1:
        counted += [(one.attributes, _cell_deviation(known, one)) for one in known.sums]
    return write_model(study, known.grouped, known.model.tree, known.model.tables, counted)


def _cell_deviation(known: Known, sums: SignedSums) -> float:
    """A cell of two values is a quarter of the rows, of both sums of ones and of the sum of signs, each with its sign.

    A sum of ones, twice a count less the rows, has four times the count's variance, a one-way table twice.
    """
    ones = sum(2 * float(np.mean(known.tables[feature].variance)) for feature in sums.attributes)
    return math.sqrt(float(np.mean(sums.variance)) + ones) / 4


# All attributes with two values: one sum


async def _ask_everything(study: Study, parties: Parties) -> tuple[Known, list[Released]]:
    """The ones of every attribute and the agreements of all pairs, in one sum."""
    sizes, rows = sizes_of(study), study.total_rows
    groups = tuple(tuple(range(size)) for size in sizes)
    query = _ask_all_agreements(study)
    answer = await parties.ask("agreements", query)
    variance = _agreement_variance(study, parties, "agreements", query)
    ones = answer.ones / query.ones
    deviation = variance**0.5 / query.ones
    tables = [np.array([rows - count, count]) for count in ones]
    shares = tuple(np.clip(table, 1.0, rows - 1.0) / rows for table in tables)
    grouped = GroupedFeatures(groups, shares)
    measured = tuple(Measurement((f,), table, 2 * deviation**2) for f, table in enumerate(tables))
    sums = tuple(_signed_sums(study, grouped, query, answer, variance))
    released = [Released((f,), table, rows, deviation**2) for f, table in enumerate(tables)]
    return Known(grouped, rows, measured, sums), released


def _ask_all_agreements(study: Study) -> SumAgreements:
    sizes = sizes_of(study)
    plain = GroupedFeatures(tuple(tuple(range(size)) for size in sizes), ())
    return plain.ask_agreements([[np.array([-1.0, 1.0])] * len(sizes)], ones=ONES_WEIGHT)


def _finish_binary(study: Study, known: Known) -> Json:
    """Smooths agreements, grows the model by pairs, all of which have one, and fits it once more."""
    known = replace(known, sums=smooth_sums(known.sums, known.base(), known.rows))
    known, pairs = grow_pairs(known, resolved(_method(study).max_model_cells), STAGE_ITERATIONS)
    return _write(study, known.fitted(pairs, _final_iterations(known, known.sums)))


def _method(study: Study) -> Adaptive:
    assert isinstance(study.method, Adaptive)
    return study.method


def _as_list(noted: Json) -> list[Any]:
    assert isinstance(noted, list)
    return noted


def warnings(study: Study) -> Sequence[str]:
    """What a model of pairs cannot express."""
    del study
    return (PAIRS_ONLY,)


def typical_queries(study: Study) -> Mapping[str, Query[Any]]:
    """One-way tables, looks, and as many pairs as columns, in up to sixteen groups each."""
    sizes, typical = sizes_of(study), dict[str, Query[Any]]()
    groups = tuple(tuple(value * min(size, USUAL_GROUPS) // size for value in range(size)) for size in sizes)
    grouped = GroupedFeatures(groups, ())
    chain = [(feature, feature + 1) for feature in range(len(sizes) - 1)]
    signs = [np.where(np.arange(size) < size / 2, 1.0, -1.0) for size in grouped.sizes]
    for step in plan_study(study).steps:
        if step.phase == "agreements":
            alone = len(plan_study(study).steps) == 1
            pairs = grouped.ask_agreements([signs] * step.limit.tables)
            typical[step.label] = _ask_all_agreements(study) if alone else pairs
        elif step.phase == "tables":
            typical[step.label] = grouped.ask_tables(chain, [1.0] * len(chain))
        else:
            typical[step.label] = _ask_one_ways(study)
    return typical


MOSTLY_NOISE = (
    "Tables of two columns would be mostly noise: even in single columns, were they asked for alone, noise would "
    "misplace {:.0%} of the rows. Publish columns alone with `rounds: 1`, or give the study more rows or epsilon."
)
COLUMNS_ONLY = (
    "Only single columns are counted, so the release keeps nothing of what columns have to do with each other: "
    "`rounds: 1` asks for that, and `rounds: auto` takes it where rows or epsilon are too few for pairs."
)


def advise(study: Study, numbers: Numbers | None) -> Sequence[str]:
    """That pairs are not asked for, or should not be; of real rows there is nothing to say."""
    sizes = sizes_of(study)
    if numbers is not None or asks_everything(study) or len(sizes) < 2:
        return ()
    if len(plan_study(study).steps) == 1:
        return (COLUMNS_ONLY,)
    if not is_too_noisy(study, sizes):
        return ()
    return (MOSTLY_NOISE.format(float(noise_in_groups(study, sizes))),)


register(
    "adaptive",
    Publisher(
        title="Adaptive, a junction tree of encrypted tables",
        publish=publish,
        describe=describe_cliques,
        expected_error=clique_error,
        warnings=warnings,
        typical_queries=typical_queries,
        advise=advise,
        draw=draw_model,
        keeps_shapes=True,
        open_model=open_tree,
    ),
)
