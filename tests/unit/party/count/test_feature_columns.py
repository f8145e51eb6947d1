"""Features in slices of rows are the features of the whole table."""

import numpy as np
import pytest

from synod.common.study.features import space_of
from synod.party.count.columns import chunks_of, feature_columns, group_codes
from tests.support.studies import categorical, draw_columns, integer, make_study

SCHEMA = [
    categorical("constant", 1),
    categorical("sex", 2),
    integer("age", 0, 299, bins=300, nullable=True),
    {"name": "place", "type": "categorical", "taxonomy": ["p", ["q", "r"], ["s", "t", "u"]]},
]


@pytest.mark.parametrize("encoding", ["vanilla", "binary", "gray", "hierarchical"])
@pytest.mark.parametrize("step", [1, 7, 40, 100])
def test_slices_are_those_of_the_whole_features(encoding: str, step: int) -> None:
    study = make_study(schema=SCHEMA, method={"name": "independent", "encoding": encoding})
    columns = draw_columns(study, "north")
    whole = space_of(study).encode(columns)
    features = feature_columns(study, columns)
    assert [len(feature) for feature in features] == [40] * len(whole)
    assert [feature.tolist() for feature in features] == [feature.tolist() for feature in whole]
    parts = [[chunk[index] for chunk in chunks_of(features, step)] for index in range(len(whole))]
    assert [np.concatenate(part).tolist() for part in parts] == [feature.tolist() for feature in whole]
    assert [part[0].dtype for part in parts] == [feature.dtype for feature in features]


def test_chunks_have_all_rows_once() -> None:
    codes = np.arange(10, dtype=np.uint8)
    assert [chunk.rows for chunk in chunks_of([codes], 4)] == [4, 4, 2]
    assert [chunk[0].tolist() for chunk in chunks_of([codes], 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(chunks_of([], 4)) == []


def test_a_chunk_makes_a_column_once() -> None:
    chunk = next(chunks_of([group_codes(np.array([1, 0, 1], dtype=np.uint8), (5, 7), 8)], 3))
    assert chunk[0] is chunk[0]
    assert chunk[0].tolist() == [7, 5, 7]
