"""Neighbouring tables as CSV files, read as a party reads them, and the studies that they are for."""

import csv
import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from synod.common.crypto.identity import Identity
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study, parse_study
from synod.party.answer import Secrets
from synod.party.table.encode import read_table
from synod.party.table.snapshot import Snapshot

Row = tuple[str, ...]
Rows = tuple[Row, ...]
VALUES = ("no", "yes")
COLUMNS = 3
EVERY_ROW: Rows = tuple(product(VALUES, repeat=COLUMNS))
OTHERS: Rows = (*EVERY_ROW[:5], *EVERY_ROW[:3])
"""What the parties without a canary hold."""


def seed_bytes(*parts: object) -> bytes:
    """32 bytes that are a function of `parts`: the same audit draws the same coins whenever it is run."""
    return hashlib.sha256(repr(("synod/audit", *parts)).encode()).digest()


def identity_of(name: str) -> Identity:
    """The identity of a party, or of the curator."""
    return Identity(Ed25519PrivateKey.from_private_bytes(seed_bytes("identity", name)))


def binary_schema(columns: int = COLUMNS) -> list[dict[str, Any]]:
    """Columns of two values."""
    return [{"name": f"c{place}", "type": "categorical", "categories": list(VALUES)} for place in range(columns)]


def make_study(name: str, parties: int, collusion: int, rows: int, **keys: Any) -> Study:
    """A resolved study of so many parties with so many rows each."""
    names = [f"party-{index}" for index in range(parties)]
    roster = [{"name": name, "key": identity_of(name).fingerprint, "rows": rows} for name in names]
    usual = {
        "name": "audit",
        "method": {"name": name},
        "epsilon": "1",
        "key_bits": 2048,
        "seed": 7,
        "collusion": collusion,
        "roster": roster,
        "schema": binary_schema(),
    }
    return parse_study({**usual, **keys}, "the audit's study").resolve()


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Row]) -> Path:
    """A table as a party keeps it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def read_rows(study: Study, rows: Rows) -> Snapshot:
    """These rows, written as a CSV file and read for the study as a party's approval reads them."""
    names = [attribute.name for attribute in study.attributes]
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "table.csv", names, rows)
        return read_table(path, codings_of(study), unit=None, expected_rows=len(rows))


def replace_first(rows: Rows, canary: Row) -> Rows:
    """The neighbouring table: its first row is the canary."""
    return (canary, *rows[1:])


def cut_rows(rows: Rows, columns: int) -> Rows:
    """The rows' first columns."""
    return tuple(row[:columns] for row in rows)


@dataclass(frozen=True, slots=True)
class Ledgers:
    """Fresh ledgers of a study's parties for every run, by their secrets."""

    study_hash: bytes
    digests: tuple[bytes, ...]

    @staticmethod
    def of(study: Study, snapshots: Sequence[Snapshot]) -> "Ledgers":
        """Of parties that have approved these tables."""
        return Ledgers(study.digest(), tuple(snapshot.digest() for snapshot in snapshots))

    def secrets(self, index: int, *run: object) -> Secrets:
        """What a party derives its coins from in one run."""
        return Secrets(seed_bytes("root", index, *run), self.study_hash, self.digests[index])
