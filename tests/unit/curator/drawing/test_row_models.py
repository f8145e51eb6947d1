"""Rows of each kind of published model, under conditions, beside laws that are written out cell by cell."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import SynodError
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.features import sizes_of, space_of
from synod.common.study.study import Study, known_methods
from synod.curator.drawing import elimination
from synod.curator.drawing.base import RowModel
from synod.curator.drawing.networks import model_network
from synod.curator.drawing.trees import open_cells, open_tree
from synod.curator.inference.junction import build_tree
from synod.curator.methods.base import publisher_of
from synod.curator.network.evidence import words_of
from synod.curator.network.graph import Network, Pair
from synod.curator.network.levels import levels_of
from synod.curator.release.redraw import read_model
from synod.curator.structure.cells import write_cells
from synod.curator.structure.grouped import GroupedFeatures
from synod.curator.structure.model import write_model
from tests.support.keep_releases import kept_folder
from tests.support.studies import categorical, integer, make_study

LEAST_P = 1e-6
Law = NDArray[np.float64]


def study_of(method: str, *, encoding: str | None = None) -> Study:
    """Three, five and two values, one of the five missing; a bit of the three forms no valid code."""
    schema = [categorical("a", 3), integer("b", 0, 3, bins=4, nullable=True), categorical("c", 2), categorical("d", 1)]
    return make_study(
        method={"name": method, **({"encoding": encoding} if encoding else {})}, schema=schema, rows=(400, 500, 600)
    )


def forget(label: str) -> None:
    raise AssertionError(f"{label} is not needed")


# Laws, written out


def network_law(study: Study, network: Network, tables: Sequence[NDArray[np.float64]]) -> Law:
    """The chance of each row of codes: feature by feature, as sampling.py says, over all rows of features."""
    sizes, words = sizes_of(study), words_of(study)
    placed = network.features
    law = np.zeros([coding.size for coding in codings_of(study)])
    for values in product(*(range(sizes[feature]) for feature in placed)):
        row = dict(zip(placed, values, strict=True))
        chance = 1.0
        for place, (pair, table) in enumerate(zip(network.pairs, tables, strict=True)):
            cube = table.reshape([sizes[i] for i in pair.family])
            parents = tuple(level_of(study, row, parent) for parent in pair.parents)
            fitting = [v for v in range(sizes[pair.feature]) if fits(words, placed[:place], row, pair.feature, v)]
            weights = [float(cube[(v, *parents)]) if v in fitting else 0.0 for v in range(sizes[pair.feature])]
            if not any(weights):
                weights = [float(cube[v].sum()) if v in fitting else 0.0 for v in range(sizes[pair.feature])]
            if not any(weights):
                weights = [float(v in fitting) for v in range(sizes[pair.feature])]
            chance *= weights[row[pair.feature]] / sum(weights)
            if not chance:
                break  # digits of no code, which are never drawn
        if chance:
            codes = space_of(study).decode([np.array([row[i]], dtype=np.uint8) for i in sorted(row)], 1)
            law[tuple(int(column[0]) for column in codes)] += chance
    return law


def level_of(study: Study, row: dict[int, int], feature: int) -> int:
    levels = levels_of(study)
    base = levels.base(feature)
    return row[base] if base == feature else int(levels.coarsen(base, feature, sizes_of(study)[base])[row[base]])


def fits(words: Sequence[object], drawn: Sequence[int], row: dict[int, int], feature: int, value: int) -> bool:
    """Whether some valid code has the digits drawn so far, and this one."""
    for word in words:
        features, valid = word.features, word.valid.reshape([2] * len(word.features))  # type: ignore[attr-defined]
        if feature in features:
            known = {**{other: row[other] for other in drawn}, feature: value}
            return any(
                valid[digits]
                for digits in product((0, 1), repeat=len(features))
                if all(known.get(f, d) == d for f, d in zip(features, digits, strict=True))
            )
    return True


def tree_law(study: Study, model: dict) -> Law:  # type: ignore[type-arg]
    """The chance of each row of codes under a published junction tree: each clique's table over what it shares with
    those before it, times the share of each value in its group.
    """
    attributes, cliques = model["attributes"], model["cliques"]
    sizes = [max(own["groups"]) + 1 for own in attributes]
    tables = [np.array(c["weights"], dtype=float).reshape([sizes[a] for a in c["attributes"]]) for c in cliques]
    law = np.zeros([coding.size for coding in codings_of(study)])
    for codes in product(*(range(len(own["groups"])) for own in attributes)):
        groups = [own["groups"][code] for own, code in zip(attributes, codes, strict=True)]
        chance, seen = 1.0, set[int]()
        for clique, table in zip(cliques, tables, strict=True):
            own = clique["attributes"]
            shared = tuple(groups[a] if a in seen else slice(None) for a in own)
            part = table[shared]
            chance *= float(table[tuple(groups[a] for a in own)] / part.sum())
            seen.update(own)
        for own_attribute, code in zip(attributes, codes, strict=True):
            members = [i for i, g in enumerate(own_attribute["groups"]) if g == own_attribute["groups"][code]]
            weights = [own_attribute["weights"][i] for i in members]
            chance *= own_attribute["weights"][code] / sum(weights)
        law[codes] += chance
    return law


# Models


@cache
def make_network(encoding: str) -> tuple[Study, RowModel, Law]:
    study = study_of("dp-subn", encoding=encoding)
    rng, sizes = np.random.default_rng(3), sizes_of(study)
    bases = [i for i in range(len(sizes)) if levels_of(study).base(i) == i]
    order = [*bases[1:], bases[0]]
    levels = levels_of(study)
    pairs = []
    for place, feature in enumerate(order):
        parents = tuple(levels.chain(parent)[-1] for parent in order[max(0, place - 2) : place])
        pairs.append(Pair(feature, parents))
    network = Network(tuple(pairs), levels)
    tables = [rng.integers(0, 30, prod(sizes[i] for i in pair.family)).astype(float) for pair in pairs]
    tables[-1].reshape(sizes[order[-1]], -1)[:, 0] = 0.0  # a configuration without mass: the margin steps in
    return study, model_network(study, network, tables), network_law(study, network, tables)


@cache
def make_tree() -> tuple[Study, RowModel, Law]:
    study = study_of("adaptive")
    rng = np.random.default_rng(4)
    sizes = sizes_of(study)
    groups = ((0, 1, 0), tuple(v % 3 for v in range(sizes[1])), (0, 1))
    tree = build_tree((2, 3, 2), [(0, 1), (1, 2)])
    joint = rng.random((2, 3, 2))
    joint /= joint.sum()
    tables = [joint.sum(axis=tuple({0, 1, 2} - set(clique))) for clique in tree.cliques]
    shares = tuple(rng.dirichlet(np.ones(size)) for size in sizes)
    model = write_model(study, GroupedFeatures(groups, shares), tree, tables, [])
    return study, open_tree(study, model, forget), tree_law(study, model)  # type: ignore[arg-type]


@cache
def make_cells() -> tuple[Study, RowModel, Law]:
    study = study_of("histogram")
    sizes = sizes_of(study)
    rng = np.random.default_rng(6)
    groups = [(0, 1, 0), tuple(min(v, 2) for v in range(sizes[1])), (0, 1)]
    shares = rng.dirichlet(np.full(12, 0.5))
    inside = [rng.random(size) for size in sizes]
    inside = [own / np.bincount(part, own)[np.array(part)] for own, part in zip(inside, groups, strict=True)]
    law = np.zeros((*sizes, 1))
    for codes in product(*map(range, sizes)):
        cell = np.ravel_multi_index([g[v] for g, v in zip(groups, codes, strict=True)], (2, 3, 2))
        law[codes] = shares[cell] * prod(float(own[v]) for own, v in zip(inside, codes, strict=True))
    model = write_cells(study, groups, shares, 1.0, inside)
    return study, open_cells(study, model, forget), law


MODELS: dict[str, Callable[[], tuple[Study, RowModel, Law]]] = {
    "network": lambda: make_network("vanilla"),
    "network of bits": lambda: make_network("binary"),
    "network of Gray bits": lambda: make_network("gray"),
    "network with levels": lambda: make_network("hierarchical"),
    "junction tree": make_tree,
    "cells": make_cells,
}
ALLOWED: list[list[NDArray[np.bool_] | None]] = [
    [None, None, None, None],
    [np.array([True, False, True]), None, None, None],
    [None, np.array([False, True, False, False, True]), np.array([False, True]), None],
    [np.array([False, False, True]), None, np.array([True, False]), np.array([True])],
]


@pytest.mark.parametrize("kind", MODELS)
def test_its_tables_are_those_of_its_law(kind: str) -> None:
    _, model, law = MODELS[kind]()
    assert law.sum() == pytest.approx(1, abs=1e-9)
    for attributes in ([0], [1], [2, 0], [1, 2], [0, 1, 2], [3, 1]):
        found = model.table(attributes)
        assert found is not None
        others = tuple({0, 1, 2, 3} - set(attributes))
        kept = [attribute for attribute in range(4) if attribute in attributes]
        expected = law.sum(axis=others).transpose([kept.index(attribute) for attribute in attributes])
        assert np.allclose(found, expected, atol=1e-6)  # published numbers are rounded


@pytest.mark.parametrize("allowed", ALLOWED)
@pytest.mark.parametrize("kind", MODELS)
def test_rows_under_conditions_have_its_law_given_these(kind: str, allowed: list[NDArray[np.bool_] | None]) -> None:
    _, model, law = MODELS[kind]()
    left = law.copy()
    for axis, own in enumerate(allowed):
        if own is not None:
            left *= own.reshape([-1 if place == axis else 1 for place in range(4)])
    assert model.chance(allowed) == pytest.approx(float(left.sum()), abs=1e-6)
    rows = model.draw(20_000, allowed, rng=np.random.default_rng(8))
    check_law(rows, left)


def check_law(rows: list[Codes], weights: Law) -> None:
    """A chi-square test of rows of codes against the law of these weights; cells of few rows are taken together."""
    cells = np.ravel_multi_index(list(rows), weights.shape)
    counts, expected = np.bincount(cells, minlength=weights.size), weights.ravel() / weights.sum() * len(cells)
    assert counts[expected == 0].sum() == 0
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 5:
        seen, wanted = np.append(seen[:-2], seen[-2:].sum()), np.append(wanted[:-2], wanted[-2:].sum())
    if len(wanted) > 1:
        assert stats.chisquare(seen, wanted * (seen.sum() / wanted.sum())).pvalue > LEAST_P


def test_what_is_too_large_to_condition_is_drawn_without(monkeypatch: pytest.MonkeyPatch) -> None:
    _, model, law = make_network("vanilla")
    monkeypatch.setattr(elimination, "MOST_CELLS", 1)
    assert model.table([0, 1]) is None
    assert model.chance(ALLOWED[1]) is None
    check_law(model.draw(20_000, ALLOWED[1], rng=np.random.default_rng(9)), law)


def test_rows_that_have_no_chance_are_refused() -> None:
    study, _, _ = make_cells()
    shares = np.zeros(12)
    shares[0] = 1.0
    model = open_cells(study, write_cells(study, [(0, 1, 0), (0, 1, 2, 2, 2), (0, 1)], shares, 1.0), forget)
    with pytest.raises(SynodError, match="any chance"):
        model.draw(5, [np.array([False, True, False]), None, None, None], rng=np.random.default_rng(1))


# Kept releases: every method


@cache
def open_kept(method: str) -> tuple[Study, RowModel]:
    folder = kept_folder(method)
    verdict = verify_release(folder, None)
    answers = ReleasedAnswers(folder / ANSWERS_FILE, verdict.study, verdict.queries)
    open_model = publisher_of(verdict.study).open_model
    assert open_model is not None, "every method has a model that rows can be drawn from"
    return verdict.study, open_model(verdict.study, read_model(folder, verdict.study), answers.read)


@pytest.mark.parametrize("method", sorted(known_methods()))
def test_every_method_opens_its_model_and_draws_under_conditions(method: str) -> None:
    study, model = open_kept(method)
    allowed = [np.array([True, False]), None, np.array([False, True, False]), None]
    rng = np.random.default_rng(2)
    free = model.draw(40_000, [None] * 4, rng=rng)
    bound = model.draw(20_000, allowed, rng=rng)
    assert [column.dtype for column in bound] == [coding.dtype for coding in codings_of(study)]
    keep = (bound[0] == 0) & (bound[2] == 1)
    if model.chance(allowed) is not None:
        assert keep.all()
    wanted = (free[0] == 0) & (free[2] == 1)
    bins = np.linspace(0, codings_of(study)[1].size, 6).astype(int)
    table = [np.histogram(column[own], bins)[0] for column, own in ((free[1], wanted), (bound[1], keep))]
    assert stats.chi2_contingency(np.array(table) + 1).pvalue > LEAST_P


@pytest.mark.parametrize("method", ["independent", "adaptive", "privbayes"])
def test_a_methods_tables_agree_with_its_rows(method: str) -> None:
    _, model = open_kept(method)
    table = model.table([2, 0])
    assert table is not None
    rows = model.draw(40_000, [None] * 4, rng=np.random.default_rng(3))
    counts = np.bincount(rows[2].astype(int) * 2 + rows[0], minlength=6)
    assert stats.chisquare(counts, table.ravel() / table.sum() * 40_000).pvalue > LEAST_P


def test_the_model_of_single_parties_is_refused_where_it_is_of_others() -> None:
    folder = kept_folder("independent")
    verdict = verify_release(folder, None)
    model = read_model(folder, verdict.study)
    open_model = publisher_of(verdict.study).open_model
    assert open_model is not None
    one = model["networks"][0]
    for networks in ([], [one, one], [{**one, "party": "nobody"}], [{**one, "network": one["network"][:-1]}], "x"):
        with pytest.raises(SynodError, match="networks of the study's parties"):
            open_model(verdict.study, {"networks": networks}, forget)
