"""Ledgers whose entries are a function of what they say, so that the heads in T, and with them releases, come out alike
in every run of one site. Only for tests that compare releases: a ledger that was set back could state the same heads
again.
"""

import sqlite3
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast
from unittest import mock

from synod.common.crypto.canonical import Json, canonical_bytes
from synod.party import ledger as ledger_module
from tests.support.keys import seed_bytes

TIME = 1_700_000_000

Append = Callable[[sqlite3.Connection, dict[str, Json], int], None]


def without_salt(append: Append = ledger_module._append) -> Append:
    """The function that adds an entry, with a salt and a time that say nothing, and no mark of the table's place."""

    def append_alike(connection: sqlite3.Connection, fact: dict[str, Json], now: int) -> None:
        del now
        if fact["kind"] == "approved":  # copies of a site have their tables in places of their own
            _, *marks = cast("list[Json]", fact["source"])
            fact = {**fact, "source": marks}
        salt = seed_bytes(canonical_bytes(fact)).hex()
        with mock.patch.object(ledger_module, "secrets", SimpleNamespace(token_hex=lambda _: salt)):
            append(connection, fact, TIME)

    return append_alike
