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
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

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
        moved = {name: folder / path for name, path in self if isinstance(path, Path)}
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


class PartySettings(_Settings):
    """A party's daemon: who it is, whom it dials, which table it answers from, and the policy for that table."""

    name: Slug
    address: Address
    state: _PathText
    curator: Fingerprint
    dataset: Slug
    source: _PathText
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
