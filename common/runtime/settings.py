"""The configuration files of the three programs: a party's (with its policy), a curator's and an operator's.

Paths in a file are relative to the file. Unknown keys are refused.
"""

import re
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from synod.common.privacy.conversion import largest_rho
from synod.common.privacy.cost import FREE, Cost
from synod.common.runtime.errors import invalid
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.broken import describe_validation_error
from synod.common.study.promise import USUAL_DELTA
from synod.common.study.schema import ExactDecimal, RuleError, Strict
from synod.common.study.study import Fingerprint, Slug

_PathText = Annotated[Path, BeforeValidator(lambda value: Path(value) if isinstance(value, str) else value)]
_Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
Epsilon = Annotated[ExactDecimal, Field(ge=0)]
_ADDRESS = re.compile(r"([^\s:/\[\]]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})")


def _check_address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[2]) > 65_535:
        raise ValueError("must be HOST:PORT, such as curator.example.org:7443")
    return text


Address = Annotated[str, AfterValidator(_check_address)]


def _check_metrics(text: str) -> str:
    """Whoever can connect there is shown everything, so it must be a place that only this machine can reach."""
    if re.fullmatch(r"unix:/\S{1,99}", text):
        return text
    host = _check_address(text).rpartition(":")[0].strip("[]")
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise RuleError(
            "must be an address of loopback, or a Unix socket",
            "Write such as 127.0.0.1:9464, [::1]:9464 or unix:/run/synod/metrics.sock.",
        )
    return text


Metrics = Annotated[str, AfterValidator(_check_metrics)]
# gRPC dials directly, and says so only in its own log, where it cannot read a proxy's address: refuse that here.
Proxy = Annotated[str, Field(pattern=r"^http://([^\s/@]+@)?[^\s/:@]+:[0-9]{1,5}$")]


def _check_webhook(text: str) -> str:
    """Events name studies and organizations, so they go to another machine under TLS alone."""
    parts, is_local = urlsplit(text), False
    is_whole = bool(parts.hostname) and parts.username is None and parts.port != 0  # a broken port is a ValueError
    with suppress(ValueError):
        is_local = ip_address(parts.hostname or "").is_loopback
    if not is_whole or parts.scheme not in ("https", "http" if is_local else ""):
        raise RuleError(
            "must be an address of https, or of http on loopback, without a user's name",
            "Write such as https://chat.example.org/hooks/synod or http://127.0.0.1:8080/synod.",
        )
    return text


Webhook = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2_000), AfterValidator(_check_webhook)]


class TlsFiles(Strict):
    """The transport authority's certificate, and one's own certificate and key, all PEM; and the file of the passphrase
    that the key is encrypted with, if it is.
    """

    ca: _PathText
    certificate: _PathText
    key: _PathText
    passphrase_file: _PathText | None = None


class _Settings(Strict):
    tls: TlsFiles

    def relative_to(self, folder: Path) -> Self:
        """The same settings with every path made absolute."""
        files = TlsFiles(**{name: folder / path for name, path in self.tls if path is not None})
        moved: dict[str, Path | Database] = {name: folder / path for name, path in self if isinstance(path, Path)}
        moved |= {name: value.relative_to(folder) for name, value in self if isinstance(value, Database)}
        return self.model_copy(update={"tls": files, **moved})


class RhoCap(Strict):
    """The most rho that a policy allows, as people think of it: what keeps within this epsilon at this delta."""

    epsilon: Annotated[ExactDecimal, Field(gt=0, le=1000)]
    delta: Annotated[ExactDecimal, Field(gt=0, lt=1)]

    @property
    def cost(self) -> Cost:
        """The rho that it stands for.

        Guarantee: whatever costs at most this is (epsilon, delta)-DP, whatever the deltas of the studies are.
        """
        rho, _ = largest_rho(Fraction(self.epsilon), Fraction(self.delta))
        return Cost.concentrated(max(rho, Decimal(0)))


def _require_pair(value: Any) -> Any:
    if not isinstance(value, dict | RhoCap):
        raise RuleError("must be {epsilon: ..., delta: ...}", "Write such as {epsilon: 0.8, delta: 1e-9}.")
    return value


Pair = Annotated[RhoCap, BeforeValidator(_require_pair)]


def _check_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise RuleError("is no encoding of text", "Write such as utf-8, iso-8859-1, cp1252 or utf-16.") from None
    return name


class CsvFormat(Strict):
    """How a CSV file is written. An empty field is always a missing value; `nulls` are texts that stand for one, too.

    `compression` follows from the file's name where it is not given; `date_order` is that of day, month and year.
    """

    separator: Annotated[str, Field(pattern=r'^[^"\r\n0-9A-Za-z.+-]$')] = ","
    encoding: Annotated[str, AfterValidator(_check_encoding)] = "utf-8"
    decimal: Literal[".", ","] = "."
    nulls: _Names = ()
    compression: Literal["none", "gzip", "zstd"] | None = None
    quoted_newlines: bool = False
    date_order: Literal["ymd", "dmy", "mdy"] = "ymd"

    @model_validator(mode="after")
    def _check_signs(self) -> "CsvFormat":
        if self.separator == self.decimal:
            raise ValueError("separator and decimal are the same sign")
        return self


TABLE_FORMS = "Write duckdb:FILE#TABLE, postgresql://USER@HOST/DATABASE#SCHEMA.TABLE, or the path of a file or folder."
ELSEWHERE = "Put the password into a file of its own, and write `source: {url: ..., table: ..., password_file: ...}`."


def _check_database(url: str) -> str:
    """The error quotes nothing of it: people write passwords into such texts."""
    if url.startswith("duckdb:") and url != "duckdb:" and "#" not in url:
        return url
    try:
        parts = urlsplit(url)
        options = read_options(url)
        has_password = parts.password is not None or any("password" in key.lower() for key in options)
        places = (parts.netloc.rpartition("@")[2], options.get("host", ""), options.get("hostaddr", ""))
        is_near = "service" not in options and all(_is_local(host) for hosts in places for host in hosts.split(","))
    except ValueError:
        raise RuleError("cannot be read as an address", TABLE_FORMS) from None
    if has_password:
        raise RuleError("must not have a password in it", ELSEWHERE)
    if parts.scheme != "postgresql" or parts.fragment or not url.startswith("postgresql://"):
        raise RuleError("must begin with duckdb: or postgresql://, and the table is another key", TABLE_FORMS)
    if "sslmode" not in options and not is_near:
        raise RuleError(
            "must say how the way to another machine is protected",
            "Add ?sslmode=verify-full&sslrootcert=/FILE to it: by default PostgreSQL goes on without encryption.",
        )
    return url


def read_options(url: str) -> dict[str, str]:
    """What an address has behind its question mark, as PostgreSQL reads it: a plus is a plus."""
    parts = (part.partition("=") for part in urlsplit(url).query.split("&") if part)
    return {unquote(key): unquote(value) for key, _, value in parts}


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if re.search(r":[0-9]*$", host) and not host.startswith("/") else host
    with suppress(ValueError):
        return ip_address(name.strip("[]")).is_loopback
    return name in ("", "localhost") or name.startswith("/")


class Database(Strict):
    """A table, a view or a query of a database, as `source`: `duckdb:FILE` or `postgresql://USER@HOST/DATABASE`.

    `table` has its schema before a point, and is spelled exactly as the database spells it. The password is the first
    line of `password_file`, or what PostgreSQL's own ways (`PGPASSWORD`, `.pgpass`) give.
    """

    url: Annotated[str, AfterValidator(_check_database)]
    table: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    query: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(default=None, repr=False)
    password_file: _PathText | None = None

    @model_validator(mode="after")
    def _check_one(self) -> "Database":
        if (self.table is None) == (self.query is None):
            raise RuleError("must have one of `table` and `query`", TABLE_FORMS)
        if self.file is not None and self.password_file is not None:
            raise RuleError("has a password_file, which DuckDB has no use for", "Remove it.")
        return self

    @property
    def file(self) -> Path | None:
        """The file of DuckDB; None for a server."""
        return Path(self.url.removeprefix("duckdb:")) if self.url.startswith("duckdb:") else None

    @property
    def name(self) -> str:
        """How it is named to people."""
        place = self.file.name if self.file else urlsplit(self.url).path.strip("/") or "PostgreSQL"
        return f"{self.table or 'the query'} of {place}"

    def relative_to(self, folder: Path) -> "Database":
        """The same with every path made absolute."""
        moved = {"url": f"duckdb:{folder / self.file}"} if self.file else {}
        secret = {"password_file": folder / self.password_file} if self.password_file else {}
        return self.model_copy(update={**moved, **secret})

    def written(self) -> dict[str, str]:
        """The keys to write as `source`."""
        return {name: str(value) for name, value in self if value is not None}


def _split_source(value: Any) -> Any:
    """`duckdb:FILE#TABLE` and `postgresql://...#TABLE` are short for the two keys; every other text is a path."""
    if isinstance(value, Path | Database | dict):
        return value
    if not isinstance(value, str):
        raise RuleError("must be a path, or a table of a database", TABLE_FORMS)
    if value.startswith(("duckdb:", "postgresql:")):
        url, mark, table = value.rpartition("#")
        return {"url": url, "table": table} if mark else {"url": value}
    if "://" in value:  # never taken for a path, which errors quote: people write passwords into addresses
        raise RuleError("is the address of nothing that Synod reads", TABLE_FORMS)
    return Path(value)


Source = Annotated[
    Annotated[Path, Tag("file")] | Annotated[Database, Tag("database")],
    Discriminator(lambda value: "file" if isinstance(value, Path) else "database"),
    BeforeValidator(_split_source),
]


class _Named(Strict):
    source: Source


def read_source(text: str, origin: str) -> Path | Database:
    """A source out of one text, as a command takes it."""
    try:
        return _Named.model_validate({"source": text}).source
    except ValidationError as error:
        raise describe_validation_error(error, origin) from None


class PartySettings(_Settings):
    """A party's daemon: who it is, whom it dials, which table it answers from, and the policy for that table."""

    name: Slug
    address: Address
    state: _PathText
    curator: Fingerprint
    dataset: Slug
    source: Source
    format: CsvFormat | None = None
    unit: str | None = None
    columns: _Names | None = None
    max_epsilon_total: Epsilon
    max_epsilon_per_study: Epsilon | None = None
    max_rho_total: Pair | None = None
    max_rho_per_study: Pair | None = None
    min_collusion: Annotated[int, Field(ge=0)] = 1
    min_parties: Annotated[int, Field(ge=1)] = 2
    min_key_bits: Annotated[int, Field(ge=2048)] = 3072
    methods: _Names | None = None
    allow_local_queries: bool = False
    max_cells: Annotated[int, Field(ge=1)] = 10_000_000
    approve: Literal["ask", "auto"] = "ask"
    proxy: Proxy | None = None
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    health: _PathText | None = None
    metrics: Metrics | None = None
    passphrase_file: _PathText | None = None

    @model_validator(mode="after")
    def _check_format(self) -> "PartySettings":
        if self.format is not None and isinstance(self.source, Database):
            raise RuleError(
                "format is for CSV files", "Remove it: a database has types, and a `query` may convert texts."
            )
        return self

    @property
    def cap(self) -> Cost:
        """The most that the dataset may ever spend, of each kind."""
        return Cost.pure(self.max_epsilon_total) + (self.max_rho_total.cost if self.max_rho_total else FREE)

    @property
    def shown_delta(self) -> Decimal:
        """The delta at which rho is shown as an epsilon: the policy's, or the usual one where it has none."""
        return self.max_rho_total.delta if self.max_rho_total else USUAL_DELTA


class CuratorSettings(_Settings):
    """A curator's service: where it listens, what it keeps, and who may submit studies."""

    listen: Address
    state: _PathText
    operators: _Names | None = None
    revoked: _PathText | None = None
    webhook: Webhook | None = None
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    health: _PathText | None = None
    metrics: Metrics | None = None
    passphrase_file: _PathText | None = None


class OperatorSettings(_Settings):
    """How the curator's operator reaches the curator."""

    address: Address
    proxy: Proxy | None = None


SettingsT = TypeVar("SettingsT", bound=_Settings)


def load_settings(kind: type[SettingsT], path: Path) -> SettingsT:
    """Reads and checks a configuration file."""
    return parse_settings(kind, load_yaml(path), str(path)).relative_to(path.resolve().parent)


def parse_settings(kind: type[SettingsT], data: Any, origin: str) -> SettingsT:
    """Parses outside data into a configuration; the error names the key, the rule and the origin."""
    if not isinstance(data, dict):
        raise invalid(f"{origin} is not a configuration: it must be a mapping of keys.")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise describe_validation_error(error, origin) from None
