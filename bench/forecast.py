"""Whether forecasts come true: studies over real and invented tables, each rehearsed on invented rows and then run.

    python -m bench.forecast DATA [--cases settled|fresh|later] [--out FILE]

`settled` are the ten studies on which the words were settled, `fresh` ten others, by which it was settled what counts
as near a border, and `later` ten that nothing was settled on. DATA holds `adult/` and `nltcs/`, each with its
`study.yaml` and table. A study is run in one process by the same recipes as daemons run, and what comes out is measured
by `synod evaluate`'s own code, numbers in at most eight bins. The last line is one JSON object: how many of all words
came true, of those not near a border too, and each study's figures.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.invented import TABLES, write_invented
from synod.common.privacy.coins import Coins
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import Codes, codings_of
from synod.common.study.study import Study, parse_study
from synod.deploy.demo import write_tables
from synod.deploy.evaluate.measure import Evaluation, Request, average, evaluate
from synod.deploy.evaluate.tables import bin_table, fill_columns
from synod.deploy.simulate import publish_in_process
from synod.deploy.study.advice import Verdict, judge_column, judge_pair, near_column, near_pair
from synod.deploy.study.rehearsal import COARSE_BINS, Rehearsal, coarsen, rehearse
from synod.party.table.encode import read_table
from synod.party.table.source import count_rows

PARTIES = 3
SEEDS = (1,)


@dataclass(frozen=True, slots=True)
class Case:
    """One study: a table, how many of its rows, the keys of the study, and which columns, where not all."""

    table: str
    rows: int | None
    keys: dict[str, Any]
    columns: tuple[str, ...] = ()

    def describe(self) -> str:
        """In a few words."""
        rest = ", ".join(f"{key} {value}" for key, value in self.keys.items() if key not in ("method", "delta"))
        pure = "" if "delta" in self.keys else ", pure"
        columns = f", {len(self.columns)} columns" if self.columns else ""
        return f"{self.table}{columns}, {self.keys['method']['name']}, {rest}{pure}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a study's forecast said, and what came: parts of the rows misplaced in columns, and of relations kept."""

    study: str
    rows: int
    columns_forecast: float
    columns_measured: float
    columns_verdict: str
    columns_came_true: bool
    columns_near: bool
    pairs_forecast: float
    pairs_measured: float
    pairs_verdict: str
    pairs_came_true: bool
    pairs_near: bool

    @property
    def verdicts(self) -> tuple[tuple[bool, bool], ...]:
        """Of columns and of pairs: whether the word came true, and whether it was said to be near a border."""
        return (self.columns_came_true, self.columns_near), (self.pairs_came_true, self.pairs_near)


def _case(
    table: str,
    epsilon: str,
    method: str = "adaptive",
    rows: int | None = None,
    columns: tuple[str, ...] = (),
    **keys: Any,
) -> Case:
    delta = {} if keys.pop("pure", False) else {"delta": "1e-9"}
    return Case(table, rows, {"method": {"name": method}, "epsilon": epsilon, **delta, **keys}, columns)


WORK = ("age", "workclass", "education", "marital-status", "occupation", "sex", "hours-per-week", "income")
MONEY = ("age", "education-num", "capital-gain", "sex", "income")
SETTLED = (
    _case("adult", "0.02"),
    _case("adult", "0.2"),
    _case("adult", "0.8"),
    _case("adult", "0.8", pure=True),
    _case("adult", "0.8", "hpdp-dp"),
    _case("nltcs", "0.01"),
    _case("nltcs", "0.8"),
    _case("nltcs", "0.2", "privbayes"),
    _case("hospitals", "1"),
    _case("hospitals", "1", rows=1_800, max_rows_per_unit=2),
)
FRESH = (
    _case("adult", "0.5", rows=12_000, columns=WORK),
    _case("adult", "1", rows=3_000),
    _case("adult", "0.3", columns=MONEY, pure=True),
    _case("adult", "1.6", "dp-subn", rows=20_000),
    _case("nltcs", "0.4", rows=5_000),
    _case("nltcs", "0.3", rows=10_000, max_rows_per_unit=2),
    _case("hospitals", "1", "hpdp-dp"),
    _case("shops", "0.5"),
    _case("shops", "2", "privbayes", rows=8_000),
    _case("schools", "1", rows=400),
)
LATER = (
    _case("adult", "0.6", rows=30_000, columns=WORK, pure=True),
    _case("adult", "2", rows=6_000, columns=MONEY),
    _case("adult", "0.4", "privbayes"),
    _case("adult", "1", "hpdp-dp", rows=15_000, columns=MONEY),
    _case("nltcs", "0.05", rows=8_000),
    _case("nltcs", "1", "dp-subn", rows=3_000),
    _case("hospitals", "0.3", rows=9_000),
    _case("hospitals", "2", "independent", max_rows_per_unit=2),
    _case("shops", "1", rows=2_000),
    _case("schools", "0.8", "histogram", pure=True),
)
CASES = {"settled": SETTLED, "fresh": FRESH, "later": LATER}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs all studies and prints what came of their forecasts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", choices=sorted(CASES), default="settled")
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    asked = parser.parse_args(arguments)
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES[asked.cases]:
            outcome = measure_case(case, asked.data, Path(folder))
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
    verdicts = [verdict for one in outcomes for verdict in one.verdicts]
    clear = [came_true for came_true, near in verdicts if not near]
    found = {
        "came_true": sum(came_true for came_true, _ in verdicts),
        "verdicts": len(verdicts),
        "clear_came_true": sum(clear),
        "clear": len(clear),
        "studies": [asdict(one) for one in outcomes],
    }
    text = json.dumps(found)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def _line(one: Outcome) -> str:
    columns = f"columns {one.columns_verdict}: {one.columns_forecast:.3f} forecast, {one.columns_measured:.3f} measured"
    pairs = f"pairs {one.pairs_verdict}: {one.pairs_forecast:.2f} kept forecast, {one.pairs_measured:.2f} measured"
    wrong = "" if one.columns_came_true and one.pairs_came_true else "  NOT SO"
    return f"{one.study}\n  {columns}; {pairs}{wrong}"


def measure_case(case: Case, data: Path, folder: Path) -> Outcome:
    """The forecast of one study and what came of it, the mean over the seeds."""
    document, table = find_table(case.table, data, folder)
    study, rows = prepare(document, case, table)
    rehearsal = rehearse(study, seed=0)
    runs = [_measure(study, rows, seed) for seed in SEEDS]
    columns = float(np.mean([average(run.distances[0])[0] for run in runs]))
    kept = float(np.mean([kept_of(run) for run in runs]))
    columns_verdict, pairs_verdict = judge_columns(rehearsal), judge_pair(rehearsal.kept or 0.0)
    return Outcome(
        study=case.describe(),
        rows=study.total_rows,
        columns_forecast=float(rehearsal.coarse_columns.mean()),
        columns_measured=columns,
        columns_verdict=columns_verdict.value,
        columns_came_true=judge_column(columns, columns) is columns_verdict,
        columns_near=bool(near_column(float(rehearsal.coarse_columns.mean()))),
        pairs_forecast=rehearsal.kept or 0.0,
        pairs_measured=kept,
        pairs_verdict=pairs_verdict.value,
        pairs_came_true=judge_pair(kept) is pairs_verdict,
        pairs_near=bool(near_pair(rehearsal.kept or 0.0)),
    )


def judge_columns(rehearsal: Rehearsal) -> Verdict:
    """Of all columns together, in at most eight bins."""
    misplaced = float(rehearsal.coarse_columns.mean())
    return judge_column(misplaced, misplaced)


def kept_of(run: Evaluation) -> float:
    """What part of the relations came through, beside columns published independently at the same cost."""
    published, alone = (average(distances[1])[0] for distances in (run.distances, run.alone.distances))
    assert published is not None
    assert alone
    return 1 - published / alone


def find_table(name: str, data: Path, folder: Path) -> tuple[dict[str, Any], list[Path]]:
    """A study as written, and its tables; the hospitals are the demo's, others are invented here or in DATA."""
    if name in TABLES:
        return {"name": name, "schema": TABLES[name]}, [write_invented(name, folder, seed=1)]
    if name != "hospitals":
        return load_yaml(data / name / "study.yaml"), [data / name / f"{name}.csv"]
    if not (folder / "tables").exists():
        write_tables(folder / "tables", 1)
    written = load_yaml(Path(__file__).resolve().parents[1] / "examples" / "hospitals" / "study.yaml")
    return written, sorted((folder / "tables").iterdir())


def prepare(document: dict[str, Any], case: Case, tables: Sequence[Path]) -> tuple[Study, list[list[Codes]]]:
    """The resolved study, and rows in its codes, dealt to three parties."""
    keys = {key: value for key, value in document.items() if key in ("name", "schema", "collusion")} | case.keys
    if case.columns:
        keys["schema"] = [one for one in keys["schema"] if one["name"] in case.columns]
    codings = codings_of(parse_study(keys, "bench"))
    parts = [read_table(path, codings, unit=None, expected_rows=count_rows(path)).columns for path in tables]
    columns = [np.concatenate(own) for own in zip(*parts, strict=True)]
    order = np.random.default_rng(0).permutation(len(columns[0]))[: case.rows]
    dealt = np.array_split(order, PARTIES)
    roster = [{"name": f"p{i}", "key": f"sha256:{i:064x}", "rows": len(own)} for i, own in enumerate(dealt)]
    study = parse_study({**keys, "roster": roster}, "bench").resolve()
    return study, [[column[own] for column in columns] for own in dealt]


def _measure(study: Study, rows: list[list[Codes]], seed: int) -> Evaluation:
    """One run and its evaluation."""
    coins, rng = Coins(seed.to_bytes(32, "big")), np.random.default_rng(seed)
    published = publish_in_process(study, rows, coins=coins, rng=rng)
    real = [np.concatenate(own) for own in zip(*rows, strict=True)]
    coarse = coarse_study(study)
    tables = [coarsen(study, bin_table(study, columns)) for columns in (real, published.columns)]
    request = Request("bins", 0, (), (), seed)
    both = [fill_columns(coarse, table) for table in tables]
    return evaluate(coarse, both[0], both[1], request, progress=lambda _: None)


def coarse_study(study: Study) -> Study:
    """The study with numbers in at most eight bins, for its schema and its budget alone."""
    written: Any = study.to_json()
    schema = [
        {**one, "bins": min(one["bins"], COARSE_BINS), "spikes": []} if "bins" in one else one
        for one in written["schema"]
    ]
    return parse_study({**written, "schema": schema}, "bench")


if __name__ == "__main__":
    main()
