"""Released answers: what is written is read back, by anybody; every kind of query; and nothing else passes for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from synod.common.protocol import answers as answers_module
from synod.common.protocol.answers import SCHEMA, ReleasedAnswers, party_payloads, write_answers
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements, pack_signs
from synod.common.protocol.queries.marginals import Grouping, LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments, moment_design
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from tests.support.studies import binary, categorical, draw_columns, integer, make_model, make_study

FEATURES = [binary("sex"), categorical("ward", 3), integer("age", 0, 63, bins=4)]
TABLES: Study = make_study(schema=FEATURES, method={"name": "adaptive", "rounds": 3}, epsilon="20")
CHOICES: Study = make_study(schema=FEATURES, method={"name": "independent", "encoding": "vanilla"}, epsilon="50")
MOMENTS: Study = make_study(schema=FEATURES)
Asked = dict[str, tuple[AnyQuery, Any]]


def asked_of_tables() -> Asked:
    ones = SumMarginals(((0,), (1,), (2,)), shares=(1, 2, 3))
    signs = [np.array([1, -1] * size, dtype=np.int8)[:size] for size in sizes_of(TABLES)]
    agreements = SumAgreements((pack_signs(signs), pack_signs(signs)), ones=2)
    pairs = SumMarginals(((0, 3), (1, 2)), (Grouping(2, (0, 0, 1, 1)),))
    queries: dict[str, Any] = {"ones": ones, "agreements-1": agreements, "tables-1": pairs}
    sizes = {label: query.size(TABLES).numbers for label, query in queries.items()}
    return {label: (q, q.split(np.arange(sizes[label]) * 7 - 5, TABLES)) for label, q in queries.items()}


def asked_of_choices() -> Asked:
    asked: Asked = {}
    for step in plan_study(CHOICES).steps:
        if step.label.startswith("choose"):
            asked[step.label] = (ChooseParents((0,), ((1, (0,)), (2, (0, 1))), 2, 24, "R"), [(1, (0,)), (2, (0, 1))])
        else:
            query = LocalMarginals(((0, 1), (0, 2)))
            asked[step.label] = (query, query.split_tables(np.arange(6 + 8) - 3, CHOICES))
    return asked


def asked_of_moments() -> Asked:
    rows = [
        np.concatenate(parts) for parts in zip(*(draw_columns(MOMENTS, n) for n in MOMENTS.party_names), strict=True)
    ]
    moments = np.arange(moment_design(MOMENTS).length)
    return {"moments": (SumMoments(), moments), "rows": (Synthesize(make_model(MOMENTS), share_rows(MOMENTS)), rows)}


STUDIES: dict[str, tuple[Study, Asked]] = {
    "tables": (TABLES, asked_of_tables()),
    "choices": (CHOICES, asked_of_choices()),
    "moments": (MOMENTS, asked_of_moments()),
}


def write(path: Path, study: Study, asked: Asked) -> Path:
    steps = plan_study(study).steps
    assert [step.label for step in steps] == list(asked)
    write_answers(path, study, ((step, *asked[step.label]) for step in steps))
    return path


def read(path: Path, study: Study, asked: Asked) -> dict[str, Any]:
    answers = ReleasedAnswers(path, study, {label: query for label, (query, _) in asked.items()})
    return {label: answers.read(label) for label in asked}


def read_frame(path: Path) -> Any:
    """As `pandas.read_parquet` gives it."""
    return pa.parquet.read_table(path).to_pandas()


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("rows", [1 << 20, 5])
def test_what_is_written_is_read_back(name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte as the log has it; also where an answer takes several groups of rows."""
    monkeypatch.setattr(answers_module, "GROUP_ROWS", rows if name != "choices" else 50)
    study, asked = STUDIES[name]
    found = read(write(tmp_path / "a.parquet", study, asked), study, asked)
    for label, (query, answer) in asked.items():
        assert query.write_answer(found[label]) == query.write_answer(answer)


@pytest.mark.parametrize("name", STUDIES)
def test_the_same_answers_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    study, asked = STUDIES[name]
    one, other = (write(tmp_path / which, study, asked).read_bytes() for which in ("a", "b"))
    assert one == other


def test_an_analyst_reads_tables_with_their_names_and_noise(tmp_path: Path) -> None:
    study, asked = STUDIES["tables"]
    table = read_frame(write(tmp_path / "a.parquet", study, asked))
    pair = table[(table["round"] == "tables-1") & (table["table"] == 0)]
    assert set(pair["of"]) == {"sex x age (in 2 groups)"}
    query, answer = asked["tables-1"]
    assert isinstance(query, SumMarginals)
    assert pair["value"].to_numpy().reshape(2, 2).tolist() == answer[0].reshape(2, 2).tolist()
    step = plan_study(study).step("tables-1")
    assert pair["deviation"].to_numpy() == pytest.approx(np.sqrt(query.cell_variances(step, study)[0]))
    assert table["party"].isna().all()
    seen = table[table["round"] == "agreements-1"]
    assert seen["of"].tolist()[:4] == ["sex = 1", "sex = ward", "sex = age", "ward = age"]
    assert seen["table"].tolist() == [0, 1, 1, 1, 2, 2, 2]


def test_answers_of_single_parties_are_named(tmp_path: Path) -> None:
    study, asked = STUDIES["choices"]
    table = read_frame(write(tmp_path / "a.parquet", study, asked))
    chosen = table[table["round"] == "choose-harbour"]
    assert set(chosen["party"]) == {"harbour"}
    assert list(zip(chosen["table"], chosen["cell"], chosen["of"], strict=True)) == [
        (0, 0, "ward"), (0, 1, "sex"), (1, 0, "age"), (1, 1, "sex"), (1, 2, "ward"),
    ]  # fmt: skip
    assert chosen["deviation"].isna().all()


def test_rows_name_who_drew_them_and_moments_what_they_multiply(tmp_path: Path) -> None:
    study, asked = STUDIES["moments"]
    table = read_frame(write(tmp_path / "a.parquet", study, asked))
    drawn = table[(table["round"] == "rows") & (table["of"] == "ward")]
    assert drawn["party"].value_counts().to_dict() == dict(zip(study.party_names, share_rows(study), strict=True))
    assert drawn["value"].tolist() == asked["rows"][1][1].tolist()
    moments = table[table["round"] == "moments"]["of"].tolist()
    assert moments[:3] == ["1 * sex", "1 * age", "sex * age"]
    assert moments[-1] == "ward (code 2) * ward (code 2)"


def test_payloads_are_what_each_party_sent(tmp_path: Path) -> None:
    del tmp_path
    study, asked = STUDIES["moments"]
    query, rows = asked["rows"]
    sent = dict(party_payloads(query, plan_study(study).step("rows"), rows))
    start = 0
    for party, count in zip(study.party_names, share_rows(study), strict=True):
        assert sent[party] == query.write_answer([column[start : start + count] for column in rows])
        start += count
    assert dict(party_payloads(*_step(study, "moments"), asked["moments"][1])) == {}


def _step(study: Study, label: str) -> tuple[AnyQuery, Step]:
    return STUDIES["moments"][1][label][0], plan_study(study).step(label)


# What is none


def refusal(path: Path, study: Study, asked: Asked) -> str:
    with pytest.raises(SynodError) as caught:
        read(path, study, asked)
    assert caught.value.code is Code.CHECK_FAILED
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


def rewrite(path: Path, alter: Callable[[dict[str, list[Any]]], Any]) -> None:
    """The same groups of rows with other values."""
    file = pa.parquet.ParquetFile(path)
    groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    columns = file.read().to_pydict()
    alter(columns)
    table, start = pa.table(columns, schema=SCHEMA), 0
    with pa.parquet.ParquetWriter(path, SCHEMA) as writer:
        for rows in groups:
            writer.write_table(table.slice(start, rows))
            start += rows


@pytest.mark.parametrize("name", STUDIES)
def test_every_other_column_follows_from_the_query(name: str, tmp_path: Path) -> None:
    study, asked = STUDIES[name]
    path = write(tmp_path / "a.parquet", study, asked)
    whole = path.read_bytes()
    rewrite(path, lambda _: None)
    read(path, study, asked)
    others: dict[str, Any] = {
        "round": "other", "party": "valley", "table": 77, "of": "other", "cell": 77, "deviation": 0.25,
    }  # fmt: skip
    rows = pa.parquet.read_metadata(path).num_rows
    for column, value in others.items():
        for place in (0, rows // 2, rows - 1):
            path.write_bytes(whole)
            before = pa.parquet.read_table(path)[column].to_pylist()[place]
            other = (None if before == value else value) if column != "party" or before is None else None
            rewrite(path, lambda columns, c=column, p=place, v=other: columns[c].__setitem__(p, v))  # type: ignore[misc]
            assert "the released answer to" in refusal(path, study, asked), (column, place)


@pytest.mark.parametrize("value", [None, -1, 258, 1 << 40, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize(("name", "label"), [("choices", "choose-north"), ("moments", "rows")])
def test_numbers_that_no_such_answer_has(name: str, label: str, value: int | None, tmp_path: Path) -> None:
    study, asked = STUDIES[name]
    path = write(tmp_path / "a.parquet", study, asked)
    place = pa.parquet.read_table(path)["round"].to_pylist().index(label)
    rewrite(path, lambda columns: columns["value"].__setitem__(place, value))
    assert refusal(path, study, asked).startswith(f"the released answer to {label} is not sound: ")


@pytest.mark.parametrize("value", [0, 2, 3])
def test_choices_that_were_not_offered(value: int, tmp_path: Path) -> None:
    """The first draw takes the only feature that is placed, one that it leaves to the second, or one that is not."""
    study, asked = STUDIES["choices"]
    path = write(tmp_path / "a.parquet", study, asked)
    place = pa.parquet.read_table(path)["round"].to_pylist().index("choose-north")
    rewrite(path, lambda columns: columns["value"].__setitem__(place, value))
    assert "the released answer to choose-north is not sound: an answer chooses" in refusal(path, study, asked)


def test_a_number_less_or_more(tmp_path: Path) -> None:
    study, asked = STUDIES["tables"]
    path = write(tmp_path / "a.parquet", study, asked)
    table = pa.parquet.read_table(path)
    sizes = [query.size(study).numbers for query, _ in asked.values()]
    for first, second in ((sizes[0] - 1, sizes[1] + 1), (sizes[0] + 1, sizes[1] - 1)):
        with pa.parquet.ParquetWriter(path, SCHEMA) as writer:
            starts = [0, first, first + second]
            for start, rows in zip(starts, (first, second, sizes[2]), strict=True):
                writer.write_table(table.slice(start, rows))
        assert refusal(path, study, asked).endswith("it does not have as many numbers as were asked for.")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PAR1" * 9),
        lambda path: path.write_bytes(path.read_bytes()[:-50]),
        lambda path: path.unlink(),
        lambda path: pa.parquet.write_table(pa.table({"value": [1]}), path),
        lambda path: pa.parquet.write_table(pa.parquet.read_table(path), path),
    ],
    ids=["empty", "no table", "cut off", "missing", "other columns", "one group"],
)
def test_a_file_that_is_none(spoil: Callable[[Path], Any], tmp_path: Path) -> None:
    study, asked = STUDIES["tables"]
    path = write(tmp_path / "a.parquet", study, asked)
    spoil(path)
    assert refusal(path, study, asked).startswith("answers.parquet ")


def test_many_numbers_are_compact(tmp_path: Path) -> None:
    """Places and names take next to nothing: a number takes about the bits of its noise."""
    side = 1 << 9
    schema = [integer(name, 0, side - 1, bins=side) for name in "ab"]
    study = make_study(schema=schema, method={"name": "histogram"}, epsilon="1")
    (step,) = plan_study(study).steps
    noise = np.random.default_rng(0).integers(-8, 8, side**2)
    write_answers(tmp_path / "a.parquet", study, iter([(step, SumMarginals(((0, 1),)), [noise])]))
    assert (tmp_path / "a.parquet").stat().st_size < side**2
