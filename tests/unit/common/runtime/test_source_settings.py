"""`source` of a party: a path, or a table, view or query of a database; passwords in it are refused, unrepeated."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import Database, PartySettings, load_settings, read_options, read_source
from tests.support.keys import pinned

SECRET = "Zachariah"
PARTY: dict[str, Any] = {
    "name": "north",
    "address": "curator.example:7443",
    "tls": {"ca": "ca.pem", "certificate": "north.pem", "key": "north.key"},
    "state": "state",
    "curator": pinned(7),
    "dataset": "patients",
    "max_epsilon_total": 2,
}
SAFE = "postgresql://reader@db.example.org/hospital?sslmode=verify-full"


def load(folder: Path, source: Any, **changes: Any) -> PartySettings:
    path = folder / "party.yaml"
    path.write_text(yaml.safe_dump({**PARTY, "source": source, **changes}))
    return load_settings(PartySettings, path)


def refusal(folder: Path, source: Any, **changes: Any) -> SynodError:
    with pytest.raises(SynodError) as caught:
        load(folder, source, **changes)
    assert caught.value.code is Code.INVALID
    assert SECRET not in str(caught.value) + str(caught.value.further)
    return caught.value


def test_a_path_is_a_path(tmp_path: Path) -> None:
    for text in ("stays.csv", "lake", "lake/*.parquet", "a#b.csv", "c:d.csv"):
        assert load(tmp_path, text).source == tmp_path / text
    assert read_source("stays.csv", "--data") == Path("stays.csv")


def test_short_and_long_forms_are_the_same(tmp_path: Path) -> None:
    short = load(tmp_path, "duckdb:stays.duckdb#main.stays").source
    assert short == load(tmp_path, {"url": "duckdb:stays.duckdb", "table": "main.stays"}).source
    assert isinstance(short, Database)
    assert (short.file, short.table, short.name) == (
        tmp_path / "stays.duckdb",
        "main.stays",
        "main.stays of stays.duckdb",
    )
    assert short == read_source(f"duckdb:{tmp_path}/stays.duckdb#main.stays", "--data")
    server = load(tmp_path, f"{SAFE}#public.stays").source
    assert server == Database(url=SAFE, table="public.stays")
    assert (server.name, server.file) == ("public.stays of hospital", None)


def test_paths_of_a_database_are_relative_to_the_file_and_written_back(tmp_path: Path) -> None:
    keys = {"url": SAFE, "query": "SELECT 1 AS a", "password_file": "secrets/db"}
    source = load(tmp_path, keys).source
    assert isinstance(source, Database)
    assert source.password_file == tmp_path / "secrets" / "db"
    assert source.name == "the query of hospital"
    assert load(tmp_path / "..", source.written()).source == source
    assert "SELECT" not in repr(source)


LOCAL = ("", "localhost", "127.0.0.1:5433", "[::1]:5433", "localhost:1,127.0.0.2")


@pytest.mark.parametrize("host", LOCAL)
def test_this_machine_needs_no_protection(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, f"postgresql://reader@{host}/hospital#t")
    assert load(tmp_path, "postgresql:///hospital?host=/run/postgresql#t")


REMOTE = ("db.example.org", "10.0.0.1:5432", "localhost,db.example.org", "[fe80::1]:5432", "localhost.example.org")


@pytest.mark.parametrize("host", REMOTE)
def test_another_machine_does(tmp_path: Path, host: str) -> None:
    assert "sslmode=verify-full" in refusal(tmp_path, f"postgresql://reader@{host}/hospital#t").hint
    assert load(tmp_path, f"postgresql://reader@{host}/hospital?sslmode=require#t")


@pytest.mark.parametrize("options", ["hostaddr=10.0.0.1", "host=localhost&hostaddr=10.0.0.1", "service=prod"])
def test_whatever_says_where_it_is_counts(tmp_path: Path, options: str) -> None:
    assert "sslmode" in refusal(tmp_path, f"postgresql://localhost/hospital?{options}#t").hint
    assert load(tmp_path, f"postgresql://localhost/hospital?{options}&sslmode=require#t")


def test_options_are_read_as_postgresql_reads_them() -> None:
    url = "postgresql:///hospital?sslrootcert=/etc/a+b%20c.pem&sslmode="
    assert read_options(url) == {"sslrootcert": "/etc/a+b c.pem", "sslmode": ""}


PASSWORDS = (
    f"postgresql://reader:{SECRET}@localhost/hospital#t",
    f"postgresql://localhost/hospital?password={SECRET}#t",
    f"postgresql://localhost/hospital?sslpassword={SECRET}#t",
    {"url": f"postgresql://reader:{SECRET}@localhost/hospital", "table": "t"},
)


@pytest.mark.parametrize("source", PASSWORDS, ids=str)
def test_a_password_in_it_is_refused(tmp_path: Path, source: Any) -> None:
    error = refusal(tmp_path, source)
    assert "source.url: must not have a password in it" in error.sentence
    assert "password_file" in error.hint


BROKEN: dict[str, tuple[Any, str]] = {
    "no table": ("duckdb:stays.duckdb", "source: must have one of `table` and `query`"),
    "both": ({"url": SAFE, "table": "t", "query": "q"}, "source: must have one of"),
    "no file": ("duckdb:#t", "source.url: must begin with"),
    "another engine": (f"mysql://u:{SECRET}@h/d#t", "source: is the address of nothing that Synod reads"),
    "another spelling": (f"PostgreSQL://u:{SECRET}@h/d#t", "source: is the address of nothing that Synod reads"),
    "another kind of address": (
        f"jdbc:postgresql://h/d?user=u&password={SECRET}",
        "source: is the address of nothing that Synod reads",
    ),
    "no address": (f"postgresql:{SECRET}#t", "source.url: must begin with"),
    "a broken address": (f"postgresql://[{SECRET}/d#t", "source.url: cannot be read as an address"),
    "a sign in a password": (f"postgresql://u:{SECRET}#x@h/d#t", "source.url: must"),
    "a password for a file": ({"url": "duckdb:f", "table": "t", "password_file": "p"}, "source: has a password_file"),
    "another key": ({"url": SAFE, "table": "t", "password": SECRET}, "the key source.password is not known"),
    "nothing": (None, "source: must be a path, or a table of a database"),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_sources(tmp_path: Path, case: tuple[Any, str]) -> None:
    source, told = case
    assert told in refusal(tmp_path, source).sentence


def test_a_database_has_no_format(tmp_path: Path) -> None:
    told = refusal(tmp_path, "duckdb:f#t", format={"separator": ";"})
    assert "format is for CSV files" in told.sentence
