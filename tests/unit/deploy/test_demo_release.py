"""What the demo publishes looks like its tables: shares at the bounds, medians, pairs. By the recipe, in process."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synod.common.privacy.coins import Coins
from synod.common.study.attributes import plain
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, RealAttribute
from synod.common.study.study import RosterEntry, Study, load_study
from synod.curator.release.files import decode_table
from synod.deploy.demo import make_tables, write_tables
from synod.deploy.evaluate.baseline import draw_baselines
from synod.deploy.evaluate.marginals import measure_marginals
from synod.deploy.evaluate.tables import Table, bin_table
from synod.deploy.simulate import publish_in_process
from synod.party.table.encode import read_table

ROOT = Path(__file__).parents[3]
SEED = 1


@pytest.fixture(scope="module")
def study() -> Study:
    written = load_study(ROOT / "examples" / "hospitals" / "study.yaml")
    roster = tuple(
        RosterEntry(name=name, key=f"sha256:{place:064x}", rows=table.num_rows)
        for place, (name, table) in enumerate(make_tables(SEED).items())
    )
    return written.model_copy(update={"roster": roster, "seed": SEED}).resolve()


@pytest.fixture(scope="module")
def rows(study: Study, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Codes, ...]]:
    paths = write_tables(tmp_path_factory.mktemp("hospitals"), SEED)
    return [
        read_table(paths[entry.name], codings_of(study), unit=None, expected_rows=entry.rows).columns
        for entry in study.roster
    ]


@pytest.fixture(scope="module")
def published(study: Study, rows: list[tuple[Codes, ...]]) -> list[Codes]:
    coins, rng = Coins(bytes([SEED]) * 32), np.random.default_rng(SEED)
    return publish_in_process(study, rows, coins=coins, rng=rng).columns


def distance(real: Table, synthetic: Table) -> float:
    return float(measure_marginals(real, synthetic, 2, rng=np.random.default_rng(0)).total_variation.mean())


def test_pairs_are_near_and_nearer_than_columns_alone(
    study: Study, rows: list[tuple[Codes, ...]], published: list[Codes]
) -> None:
    real = bin_table(study, [np.concatenate(column) for column in zip(*rows, strict=True)])
    reached = distance(real, bin_table(study, published))
    alone = np.mean([distance(real, table) for table in draw_baselines(study, real, study.total_rows)])
    assert reached < 0.06
    assert reached < 0.7 * alone


def test_numbers_have_their_medians_and_their_shares_at_the_bounds(study: Study, published: list[Codes]) -> None:
    real = pa.concat_tables(make_tables(SEED).values()).to_pandas()
    synthetic = decode_table(study, published, coins=Coins.public(SEED, "values")).to_pandas()
    for attribute in map(plain, study.attributes):
        if isinstance(attribute, CategoricalAttribute):
            continue
        left, right = real[attribute.name], synthetic[attribute.name]
        for bound in (float(attribute.min), float(attribute.max)):
            assert abs((left == bound).mean() - (right == bound).mean()) < 0.01, attribute.name
        assert right.median() == pytest.approx(left.median(), rel=0.05), attribute.name
        assert abs(left.isna().mean() - right.isna().mean()) < 0.01, attribute.name


def test_there_are_numbers_of_both_kinds_in_the_demo(study: Study) -> None:
    """So that the test above has something to look at."""
    kinds = {type(attribute) for attribute in study.attributes}
    assert {IntegerAttribute, RealAttribute} <= kinds
