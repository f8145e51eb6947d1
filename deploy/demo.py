"""The demo's tables: three invented hospitals, drawn from a model of our own with real dependencies in it.

Everything here is fiction: no row comes from a person, a hospital or a published table, so the generator is
seeded and public. Its seed must never reach noise, keys or masks, and nothing that handles real rows imports
this module. Public domains: `examples/hospitals/study.yaml`. Dependencies: `docs/demo-table.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Numbers = NDArray[Any]


class Diagnosis(NamedTuple):
    """What one diagnosis does: the log-odds of getting it (`age`: per 20 years over 60); from `urgency` on,
    its effect on admission (log-odds), severity (latent score), stay (log of days) and the bill's fixed part.
    """

    weight: float
    age: float
    male: float
    smoker: float
    diabetes: float
    urgency: float
    severity: float
    log_days: float
    cost: float


DIAGNOSES: dict[str, Diagnosis] = {
    "coronary": Diagnosis(0.3, 0.5, 0.6, 0.6, 0.5, 0.6, 0.1, 0.0, 6500),
    "heart-failure": Diagnosis(-0.2, 1.3, 0.1, 0.2, 0.6, 0.4, 0.7, 0.4, 3800),
    "stroke": Diagnosis(-0.5, 1.0, 0.1, 0.5, 0.3, 2.2, 1.1, 0.6, 5600),
    "pneumonia": Diagnosis(0.2, 0.6, 0.1, 0.4, 0.0, 1.2, 0.4, 0.3, 2300),
    "copd": Diagnosis(-1.0, 0.5, 0.1, 1.9, -0.1, 0.6, 0.4, 0.2, 2100),
    "digestive": Diagnosis(0.8, -0.5, 0.0, 0.1, 0.0, 0.3, -0.5, -0.3, 2700),
    "metabolic": Diagnosis(-0.9, -0.1, 0.0, -0.2, 2.2, -0.2, -0.2, 0.0, 1700),
    "fracture": Diagnosis(-0.4, 0.4, 0.2, 0.0, -0.1, 1.8, -0.2, 0.1, 4700),
    "joint": Diagnosis(0.2, 0.4, -0.3, -0.3, -0.1, -2.6, -0.9, 0.0, 7800),
    "cancer": Diagnosis(-0.1, 0.5, 0.0, 0.5, -0.1, -1.4, 0.6, 0.3, 8600),
}

YES_OR_NO = ("no", "yes")
CATEGORIES: dict[str, tuple[str, ...]] = {
    "sex": ("F", "M"),
    "region": ("coast", "city", "suburbs", "plain", "hills"),
    "insurance": ("public", "private", "mixed", "self-pay"),
    "smoker": YES_OR_NO,
    "diabetes": YES_OR_NO,
    "diagnosis": tuple(DIAGNOSES),
    "admission_type": ("emergency", "urgent", "planned"),
    "discharge_to": ("home", "home-care", "rehab", "nursing-home", "other-hospital"),
    "readmitted_30d": YES_OR_NO,
}


@dataclass(frozen=True, slots=True)
class Hospital:
    """One organization and its case mix: `age` is the pair of a beta law's parameters; shifts, log-odds."""

    rows: int
    male: float
    age: tuple[float, float]
    regions: tuple[float, ...]
    bmi_missing: float
    cost_factor: float
    smoking: float = 0.0
    self_pay: float = 0.0
    urgency: float = 0.0
    diagnoses: Mapping[str, float] = field(default_factory=dict)


HOSPITALS: dict[str, Hospital] = {
    "north": Hospital(
        rows=12_000, male=0.48, age=(2.3, 1.9), regions=(0.10, 0.42, 0.30, 0.12, 0.06),
        bmi_missing=0.03, cost_factor=1.10, smoking=-0.1, urgency=-0.3,
        diagnoses={"cancer": 0.5, "stroke": 0.3, "coronary": 0.2},
    ),
    "harbour": Hospital(
        rows=8_000, male=0.55, age=(2.0, 2.4), regions=(0.55, 0.24, 0.12, 0.06, 0.03),
        bmi_missing=0.05, cost_factor=1.00, smoking=0.4, self_pay=0.7, urgency=0.4,
        diagnoses={"fracture": 0.5, "digestive": 0.2},
    ),
    "valley": Hospital(
        rows=4_000, male=0.46, age=(3.1, 1.8), regions=(0.03, 0.06, 0.14, 0.37, 0.40),
        bmi_missing=0.09, cost_factor=0.90, self_pay=-0.3,
        diagnoses={"heart-failure": 0.4, "joint": 0.3, "cancer": -0.4},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class People:
    """Who comes: the first columns of the table in its order; categories as codes, flags as booleans."""

    sex: Numbers
    age: Ints
    region: Ints
    insurance: Ints
    smoker: Numbers
    bmi: Reals
    diabetes: Numbers
    systolic_bp: Ints
    comorbidities: Ints


@dataclass(frozen=True, slots=True)
class Stays:
    """What happens to them: the other columns."""

    diagnosis: Ints
    admission_type: Ints
    severity: Ints
    length_of_stay: Ints
    cost: Reals
    discharge_to: Ints
    readmitted_30d: Numbers


def make_tables(seed: int) -> dict[str, pa.Table]:
    """The three hospitals' tables by name, in the columns, types and domains of the demo's study."""
    streams = SeedSequence(seed).spawn(len(HOSPITALS))
    return {
        name: _make_table(hospital, rng=default_rng(stream))
        for (name, hospital), stream in zip(HOSPITALS.items(), streams, strict=True)
    }


def write_tables(directory: Path, seed: int) -> dict[str, Path]:
    """Write `make_tables` to north.csv, harbour.csv and valley.parquet; in CSV a null is an empty field."""
    directory.mkdir(parents=True, exist_ok=True)
    tables = make_tables(seed)
    paths = {name: directory / f"{name}.csv" for name in ("north", "harbour")}
    for name, path in paths.items():
        pa.csv.write_csv(tables[name], path)
    paths["valley"] = directory / "valley.parquet"
    pa.parquet.write_table(tables["valley"], paths["valley"])
    return paths


def _make_table(hospital: Hospital, *, rng: Generator) -> pa.Table:
    people = _draw_people(hospital, rng=rng)
    stays = _draw_stays(hospital, people, rng=rng)
    missing = hospital.bmi_missing * np.array([2.0, 1.0, 0.3])[stays.admission_type]
    people = replace(people, bmi=np.where(rng.random(hospital.rows) < missing, np.nan, people.bmi))
    columns = {f.name: getattr(part, f.name) for part in (people, stays) for f in fields(part)}
    return pa.table({name: _column(name, values) for name, values in columns.items()})


def _column(name: str, values: Numbers) -> pa.Array:
    if name in CATEGORIES:
        return pa.array(CATEGORIES[name]).take(pa.array(values.astype(np.int64)))
    return pa.array(values, from_pandas=True)


def _draw_people(hospital: Hospital, *, rng: Generator) -> People:
    rows = hospital.rows
    region = rng.choice(len(CATEGORIES["region"]), size=rows, p=hospital.regions)
    male = rng.random(rows) < hospital.male
    age = _whole(18 + 80 * rng.beta(*hospital.age, size=rows), 18, 97)
    insurance = _draw_insurance(hospital, region, age, rng=rng)
    smoker = _flip(-0.9 + hospital.smoking + 0.5 * male - ((age - 42) / 26) ** 2, rng=rng)
    bmi = 16 + rng.gamma(5.5, size=rows) * (2.2 - ((age - 58) / 45) ** 2 - 0.15 * smoker)
    bmi = np.clip(bmi, 14.0, 53.9).round(1)
    diabetes = _flip(-1.9 + 0.17 * (bmi - 27) + 0.035 * (age - 60), rng=rng)
    pressure = rng.normal(128 + 0.45 * (age - 55) + 0.9 * (bmi - 27) + 4 * male + 5 * diabetes, 14)
    burden = -2.0 + 0.035 * (age - 60) + 0.7 * diabetes + 0.5 * smoker + 0.03 * (bmi - 27)
    comorbidities = rng.binomial(8, _probability(rng.normal(burden, 0.4)))
    systolic_bp = _whole(pressure, 80, 229)
    return People(male, age, region, insurance, smoker, bmi, diabetes, systolic_bp, comorbidities)


def _draw_insurance(hospital: Hospital, region: Ints, age: Ints, *, rng: Generator) -> Ints:
    retired, wealth = age >= 65, np.array([0.0, 0.3, 0.8, -0.2, -0.4])[region]
    private, mixed = 0.4 + wealth - 1.2 * retired, -0.9 + wealth + 0.5 * retired
    self_pay = -1.2 + hospital.self_pay - 1.8 * retired
    return _choose((1.6 * retired, private, mixed, self_pay), rng=rng)


def _draw_stays(hospital: Hospital, people: People, *, rng: Generator) -> Stays:
    diagnosis = _draw_diagnosis(hospital, people, rng=rng)
    rush, harm, drag, fixed_cost = np.array([law[-4:] for law in DIAGNOSES.values()])[diagnosis].T
    decades = (people.age - 60) / 10
    urgency = rush + hospital.urgency + 0.1 * decades
    admission = _choose((urgency - 0.1, np.zeros(hospital.rows), 0.1 - urgency), rng=rng)
    illness = harm + 0.15 * decades + 0.35 * people.comorbidities - 0.35 * admission
    severity = 1 + np.digitize(rng.logistic(illness, 0.6), (0.1, 1.1, 2.2))
    log_days = 0.7 + drag + 0.42 * (severity - 1) + 0.06 * decades
    days = _whole(1 + rng.gamma(2.5, np.exp(log_days) / 2.5), 1, 40)
    bill = (fixed_cost + 520 * days + 400 * severity**2) * hospital.cost_factor
    cost = np.clip(bill * rng.lognormal(0, 0.22, size=hospital.rows), 0, 59_999).round(2)
    discharge = _draw_discharge(people, drag, severity, rng=rng)
    at_home = discharge < CATEGORIES["discharge_to"].index("rehab")
    risk = -4.1 + 0.6 * severity + 0.25 * people.comorbidities + 0.3 * people.smoker + 0.4 * at_home
    return Stays(diagnosis, admission, severity, days, cost, discharge, _flip(risk, rng=rng))


def _draw_diagnosis(hospital: Hospital, people: People, *, rng: Generator) -> Ints:
    elder = (people.age - 60) / 20
    extra = {"fracture": 0.6 * elder**2, "stroke": 0.02 * (people.systolic_bp - 130)}
    odds = [
        law.weight + hospital.diagnoses.get(name, 0.0) + extra.get(name, 0.0) + law.age * elder
        + law.male * people.sex + law.smoker * people.smoker + law.diabetes * people.diabetes
        for name, law in DIAGNOSES.items()
    ]  # fmt: skip
    return _choose(odds, rng=rng)


def _draw_discharge(people: People, drag: Numbers, severity: Ints, *, rng: Generator) -> Ints:
    frail = 0.6 * (severity - 2) + 0.5 * (people.age - 65) / 10
    home, rehab = np.full(len(frail), 1.6), -0.6 + 2.5 * drag + 0.6 * (severity - 2)
    return _choose((home, 0.1 + frail, rehab, -0.6 + 1.5 * frail, -1.0 + 0.3 * severity), rng=rng)


def _choose(log_odds: Sequence[Numbers], *, rng: Generator) -> Ints:
    """One code per row, each with probability proportional to exp of its log-odds (the Gumbel trick)."""
    odds = np.stack(log_odds)
    codes: Ints = np.argmax(odds + rng.gumbel(size=odds.shape), axis=0)
    return codes


def _flip(log_odds: Numbers, *, rng: Generator) -> Numbers:
    return rng.random(len(log_odds)) < _probability(log_odds)


def _probability(log_odds: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-log_odds))


def _whole(values: Numbers, least: int, most: int) -> Ints:
    return np.clip(np.floor(values), least, most).astype(np.int64)
