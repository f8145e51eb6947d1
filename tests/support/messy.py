"""A hospital's export as it comes: semicolons, Latin-1, `NA`, decimal commas, dates with the day first, an identifier,
free text over several lines, codes for a missing value, outliers, and 600 different diagnoses.

Every identifier and every text is a canary: none of it may leave the house.
"""

import math
import random
from datetime import date, timedelta
from pathlib import Path

HEADER = "patient_id;aufnahme;geschlecht;alter;kosten;diagnose;notfall;größe_cm;bemerkung"
DIAGNOSES = [f"{'ABCDEFGHIJ'[i % 10]}{i // 10:02}.{i % 7}" for i in range(600)]
CANARY = "Zachariä"
NAMES = ("klinik-nord.csv", "klinik-mitte.csv", "klinik-süd.csv")


def draw_row(number: int, rng: random.Random) -> list[str]:
    """One stay, with dependence between its columns."""
    sex = "m" if rng.random() < 0.48 else "w"
    age = round(min(100, max(0, rng.gauss(58 if sex == "m" else 62, 18))))
    urgent = rng.random() < (0.7 if age > 75 else 0.2)
    cost = math.exp(rng.gauss(6.5 + 0.015 * age + 0.8 * urgent, 0.9))
    code = DIAGNOSES[number // 3 % 600] if number % 3 == 0 else DIAGNOSES[min(599, int(rng.expovariate(0.2)))]
    height = rng.gauss(177 if sex == "m" else 164, 7)
    note = f'"{CANARY}-{number} kam um {rng.randrange(24)} Uhr;\nentlassen nach ""Visite"""'
    return [
        f"PID{number:07}{CANARY}" if number % 50 == 0 else f"PID{number:07}",
        (date(2021, 1, 1) + timedelta(days=rng.randrange(3 * 365))).strftime("%d.%m.%Y"),
        sex,
        "NA" if number % 33 == 0 else "999" if number % 250 == 1 else str(age),
        ("7500000.00" if number % 500 == 7 else f"{cost:.2f}").replace(".", ","),
        code,
        "yes" if urgent else "no",
        "NA" if rng.random() < 0.05 else f"{height:.1f}".replace(".", ","),
        note if number % 3 else f"ohne Befund, Zimmer {number} {CANARY}",
    ]


def write_messy(folder: Path, rows: int) -> list[Path]:
    """A table for each of three hospitals."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(20_260_101)
    paths = []
    for place, name in enumerate(NAMES):
        lines = [HEADER, *(";".join(draw_row(place * rows + number, rng)) for number in range(rows))]
        paths.append(folder / name)
        paths[-1].write_bytes(("\r\n".join(lines) + "\r\n").encode("iso-8859-1"))
    return paths
