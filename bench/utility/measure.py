"""One run: a table is published and compared with the real rows in the schema's bins.

Synod's methods run the same recipe code as the daemons, over in-process parties.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.central.aim import publish_aim
from bench.central.mst import publish_mst
from bench.central.place import NEIGHBOURS, Place
from bench.utility.settings import ALIKE, CENTRAL, COLUMNS, Setting, study_of
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.deploy.evaluate.baseline import publish_columns
from synod.deploy.evaluate.classifiers import TEST_SHARE, Target, classes_of, indicators_of, parse_target
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, bin_table, make_table, read_columns
from synod.deploy.simulate import publish_in_process
from synod.party.table.encode import read_table

ORDERS = (1, 2, 3)
SPLIT_SEED = 11
CENTRAL_METHODS = {"AIM": publish_aim, "MST": publish_mst}
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Source:
    """Where real rows are, and which attribute a classifier predicts, if any."""

    study: Path
    table: Path
    target: str | None = None


@lru_cache(maxsize=4)
def load_real(source: Source) -> tuple[dict[str, Any], Table]:
    """The study as written, and the real rows in its bins."""
    data = load_yaml(source.study)
    study = parse_study(data, str(source.study))
    return data, make_table(study, read_columns([source.table], study))


def measure_run(source: Source, setting: Setting, seed: int) -> Figures:
    """The figures of one run; none where the method refuses the setting."""
    data, real = load_real(source)
    try:
        study = study_of(data, real.rows, setting)
        started = process_time()
        synthetic = publish(source, setting, study, real, seed=seed)
    except SynodError:
        return {}
    figures = {"seconds": process_time() - started}
    for order in ORDERS:
        distances = measure_marginals(real, synthetic, order, rng=np.random.default_rng([seed, order]))
        if distances.sets:
            figures[f"tvd{order}"] = float(distances.total_variation.mean())
    if source.target is not None:
        figures["wrong"] = measure_wrong(real, synthetic, parse_target(source.target, study, real.names))
    return figures


def publish(source: Source, setting: Setting, study: Study, real: Table, *, seed: int) -> Table:
    """The published table in the schema's bins."""
    rng, coins = np.random.default_rng(seed), Coins(seed.to_bytes(32, "big"))
    if setting.method == COLUMNS:
        return publish_columns(study, real, real.rows, coins=coins, rng=rng)
    if setting.is_central:
        return publish_central(setting, study, real, rng=rng)
    dealt = deal_rows(source, setting, study, real, rng=rng)
    return bin_table(study, publish_in_process(study, dealt, coins=coins, rng=rng).columns)


def publish_central(setting: Setting, study: Study, real: Table, *, rng: np.random.Generator) -> Table:
    """A table by MST or AIM over the schema's bins."""
    method, neighbours = CENTRAL[setting.method]
    columns = [column.astype(np.int64) for column in real.columns]
    place = Place(columns, real.sizes, float(study.budget.rho), NEIGHBOURS[neighbours], rng)
    drawn = CENTRAL_METHODS[method](place)
    typed: tuple[Codes, ...] = tuple(new.astype(np.uint16) for new in drawn)
    return Table(real.names, real.sizes, real.values, typed)


def deal_rows(
    source: Source, setting: Setting, study: Study, real: Table, *, rng: np.random.Generator
) -> list[list[Codes]]:
    """Equal parts of the rows, in the codes of the study's method, in random order or sorted."""
    columns = read_table(source.table, codings_of(study), unit=None, expected_rows=real.rows).columns
    order = rng.permutation(real.rows)
    if setting.order != ALIKE:
        order = order[np.argsort(find_column(real, setting.order)[order], kind="stable")]
    return [[column[part] for column in columns] for part in np.array_split(order, setting.parties)]


def find_column(real: Table, name: str) -> Codes:
    """A column by its attribute's name."""
    if name not in real.names:
        raise invalid(f"there is no attribute {name!r} to sort rows by.", "Use a name of the study's schema.")
    return real.columns[real.names.index(name)]


# A classifier, trained on published rows and tested on real ones


def measure_wrong(real: Table, synthetic: Table, target: Target) -> float:
    """The share of a fifth of the real rows that a classifier gets wrong that has learned from synthetic rows."""
    _, tested = split_real(real)
    guesses = predict(synthetic, np.arange(synthetic.rows), real, tested, target)
    return float((guesses != classes_of(real, target)[tested]).mean())


def measure_references(source: Source) -> Figures:
    """The same share for a classifier that has learned from the other four fifths, and for the most frequent class."""
    if source.target is None:
        return {}
    data, real = load_real(source)
    target = parse_target(source.target, parse_study(data, str(source.study)), real.names)
    trained, tested = split_real(real)
    truth = classes_of(real, target)
    guesses = predict(real, trained, real, tested, target)
    majority = np.bincount(truth[trained]).argmax()
    return {
        "real": float((guesses != truth[tested]).mean()),
        "majority": float((majority != truth[tested]).mean()),
    }


def split_real(real: Table) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Four fifths of the rows to learn from, and a fifth to test on; the same in every run."""
    order = np.random.default_rng(SPLIT_SEED).permutation(real.rows)
    tested, trained = np.split(order, [int(real.rows * TEST_SHARE)])
    return trained, tested


def predict(
    learned: Table, rows: NDArray[np.intp], real: Table, tested: NDArray[np.intp], target: Target
) -> NDArray[np.int64]:
    """What logistic regression over indicators of the schema's cells says of the tested rows."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (an optional package)

    classes = classes_of(learned, target)[rows]
    if (classes == classes[0]).all():
        return np.full(len(tested), classes[0])
    machine = LogisticRegression(max_iter=300)
    machine.fit(indicators_of(learned, target)[rows], classes)
    guesses: NDArray[np.int64] = machine.predict(indicators_of(real, target)[tested])
    return guesses
