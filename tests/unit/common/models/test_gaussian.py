"""The published model: its JSON form, its cuts at hand-made latent rows, and codes that never leave the domain."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.models import gaussian
from synod.common.models.gaussian import (
    GRID,
    GaussianModel,
    concatenate_columns,
    cut_codes,
    draw_rows,
    latent_rows,
    parse_model,
)
from synod.common.models.moments import MomentDesign
from synod.common.protocol.queries.moments import moment_design
from synod.common.runtime.errors import Code, SynodError
from tests.support.studies import categorical, integer, make_study, real

SCHEMA = [
    categorical("binary", 2),
    integer("number", 0, 100),
    real("gap", "0", "1.5", nullable=True),
    categorical("block", 3),
    categorical("fixed", 1),
    integer("fixed-gap", 4, 4, nullable=True),
    categorical("five", 4, nullable=True),
]
DESIGN: MomentDesign = moment_design(make_study(schema=SCHEMA))
WIDTH = DESIGN.width - 1  # binary, number, gap, gap missing, fixed-gap | 3 | 5


def model(**changes: Any) -> GaussianModel:
    base = GaussianModel(np.zeros((WIDTH, 1)), 1.0, np.zeros(WIDTH), np.zeros(WIDTH))
    return replace(base, **changes)


def on_the_grid(shape: tuple[int, ...], largest: int = 4 * GRID) -> st.SearchStrategy[Any]:
    size = int(np.prod(shape))
    integers = st.lists(st.integers(-largest, largest), min_size=size, max_size=size)
    return integers.map(lambda values: np.array(values, dtype=np.int64).reshape(shape) / GRID)


@st.composite
def models(draw: st.DrawFn) -> GaussianModel:
    rank = draw(st.integers(1, WIDTH))
    noise = draw(st.integers(0, 2 * GRID)) / GRID
    loadings = draw(on_the_grid((WIDTH, rank)))
    return GaussianModel(loadings, noise, draw(on_the_grid((WIDTH,), 50 * GRID)), draw(on_the_grid((WIDTH,))))


@settings(max_examples=40, deadline=None)
@given(models())
def test_json_reads_back_to_the_same_numbers(drawn: GaussianModel) -> None:
    again = parse_model(drawn.to_json(), DESIGN)
    assert again.to_json() == drawn.to_json()
    assert again.noise == drawn.noise
    for name in ("loadings", "shift", "spread"):
        assert np.array_equal(getattr(again, name), getattr(drawn, name))


@settings(max_examples=40, deadline=None)
@given(models(), st.integers(0, 2**32))
def test_codes_stay_inside_of_the_domain(drawn: GaussianModel, seed: int) -> None:
    columns = draw_rows(DESIGN, drawn, 50, rng=np.random.default_rng(seed))
    assert len(columns) == len(SCHEMA)
    for column, coding in zip(columns, DESIGN.codings, strict=True):
        assert column.dtype == coding.dtype
        assert column.shape == (50,)
        assert int(column.max()) < coding.size
    assert not columns[4].any()


def test_cuts_by_hand() -> None:
    shift, spread = np.zeros(WIDTH), np.zeros(WIDTH)
    shift[:5] = [0.5, 0.1, -0.25, 1.0, -1.0]
    spread[1:3] = [0.2, 0.05]
    shift[5:8] = [0.0, 2.0, 0.0]
    latent = np.zeros((4, WIDTH))
    latent[:, 0] = [0.4, 0.6, 0.5, -9.0]  # above its threshold or not
    latent[:, 1] = [0.0, 1.0, 99.0, -99.0]  # 0.1, 0.3, and both clipped
    latent[:, 2] = [0.0, 1.0, 0.0, 0.0]
    latent[:, 3] = [0.9, 1.0, 1.1, 0.0]  # missing only above 1
    latent[:, 4] = [-1.1, -0.9, -1.0, 0.0]
    latent[:, 5:8] = np.array([[0, 0, 0], [2.5, 0, 0], [0, -1, 1.5], [1, -1.5, 0.9]])  # the greatest after the offsets
    latent[:, 8:] = np.eye(5)[[0, 4, 2, 3]]
    columns = cut_codes(DESIGN, model(shift=shift, spread=spread), latent)
    null = DESIGN.codings[2].null_code
    assert null == 257
    assert [column.tolist() for column in columns] == [
        [0, 1, 0, 0],
        [154, 205, 256, 0],
        [64, 77, null, 64],
        [1, 0, 2, 0],
        [0, 0, 0, 0],
        [0, 1, 0, 1],
        [0, 4, 2, 3],
    ]


def test_latent_columns_have_variance_one_and_the_loadings_correlation() -> None:
    loadings = np.zeros((WIDTH, 2))
    loadings[0], loadings[1], loadings[2] = (3.0, 0.0), (3.0, 4.0), (0.0, 0.0)
    latent = latent_rows(model(loadings=loadings, noise=0.5), 100_000, rng=np.random.default_rng(1))
    np.testing.assert_allclose(latent.var(axis=0), 1.0, atol=0.03)
    expected = 9.0 / np.sqrt((9 + 0.25) * (25 + 0.25))
    assert abs(np.corrcoef(latent[:, 0], latent[:, 1])[0, 1] - expected) < 0.02
    assert abs(np.corrcoef(latent[:, 0], latent[:, 2])[0, 1]) < 0.02


def test_a_column_without_variance_is_zero_and_not_nan() -> None:
    latent = latent_rows(model(noise=0.0), 10, rng=np.random.default_rng(1))
    assert not latent.any()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_thresholds_give_their_margins(share: float) -> None:
    shift = np.zeros(WIDTH)
    shift[0] = shift[3] = -NormalDist().inv_cdf(share)
    rows = 100_000
    columns = draw_rows(DESIGN, model(shift=shift), rows, rng=np.random.default_rng(2))
    tolerance = 5 * (share * (1 - share) / rows) ** 0.5
    assert abs(columns[0].mean() - share) < tolerance
    assert abs((columns[2] == DESIGN.codings[2].null_code).mean() - share) < tolerance


def test_numbers_have_their_mean_and_spread() -> None:
    shift, spread = np.zeros(WIDTH), np.zeros(WIDTH)
    shift[1], spread[1] = 0.1, 0.08
    columns = draw_rows(DESIGN, model(shift=shift, spread=spread), 100_000, rng=np.random.default_rng(3))
    numbers = columns[1] / 256 - 0.5
    assert abs(numbers.mean() - 0.1) < 0.002
    assert abs(numbers.std() - 0.08) < 0.002


def test_chunks_are_drawn_to_the_asked_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "DRAW_ROWS", 7)
    for rows in (0, 1, 7, 20):
        columns = draw_rows(DESIGN, model(), rows, rng=np.random.default_rng(4))
        assert [len(column) for column in columns] == [rows] * len(SCHEMA)
        assert [column.dtype for column in columns] == [coding.dtype for coding in DESIGN.codings]


def test_the_same_rng_gives_the_same_rows() -> None:
    once, again, other = (draw_rows(DESIGN, model(), 99, rng=np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    assert not np.array_equal(once[0], other[0])


def test_tables_are_stacked_in_order() -> None:
    parts = [draw_rows(DESIGN, model(), rows, rng=np.random.default_rng(rows)) for rows in (3, 0, 2)]
    stacked = concatenate_columns(DESIGN, parts)
    assert stacked[0].tolist() == [*parts[0][0].tolist(), *parts[2][0].tolist()]


SOUND = model().to_json()


@pytest.mark.parametrize(
    "changes",
    [
        {"loadings": None},
        {"loadings": "x"},
        {"loadings": [[1], [1, 2]]},
        {"noise": None},
        {"noise": [1]},
        {"noise": float("nan")},
        {"noise": float("inf")},
        {"shift": [2**70] * WIDTH},
        {"shift": None},
        {"spread": ["x"] * WIDTH},
    ],
)
def test_malformed_models_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SynodError, match="the model is malformed") as caught:
        parse_model({**SOUND, **changes}, DESIGN)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize("missing", ["loadings", "noise", "shift", "spread"])
def test_models_without_a_part_are_refused(missing: str) -> None:
    with pytest.raises(SynodError, match="the model is malformed"):
        parse_model({key: value for key, value in SOUND.items() if key != missing}, DESIGN)


@pytest.mark.parametrize("loadings", [[0] * WIDTH, [[[0]]] * WIDTH])
def test_loadings_that_are_no_matrix_are_refused(loadings: object) -> None:
    with pytest.raises(SynodError, match="the model is malformed"):
        parse_model({**SOUND, "loadings": loadings}, DESIGN)


@pytest.mark.parametrize("data", [None, [], 5, "model"])
def test_what_is_no_model_is_refused(data: object) -> None:
    with pytest.raises(SynodError, match="the model is malformed"):
        parse_model(data, DESIGN)


@pytest.mark.parametrize(
    "changes",
    [
        {"loadings": [[0]] * (WIDTH - 1)},
        {"loadings": [[]] * WIDTH},
        {"loadings": [[0] * (WIDTH + 1)] * WIDTH},
        {"shift": [0] * (WIDTH + 1)},
        {"spread": [0] * (WIDTH - 1)},
        {"spread": 0},
        {"noise": -1},
    ],
)
def test_models_of_another_schema_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SynodError, match="does not fit the study's schema"):
        parse_model({**SOUND, **changes}, DESIGN)
