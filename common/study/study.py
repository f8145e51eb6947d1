"""The study: what is published, by whom, with which method and budget; and its resolved, hashable form.

The resolved study (every default written out, numbers as exact decimals, canonical JSON) is what is hashed and
approved. Resolving is deterministic, so that everybody who has the same file gets the same hash.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from synod.common.crypto.canonical import Json, canonical_hash
from synod.common.methods.base import HpdpDp, Method
from synod.common.privacy.cost import Cost
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.schema import Attribute, ExactDecimal, Strict, varies

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LARGEST_ROSTER = 500
LARGEST_SCHEMA = 1_000
LARGEST_ROWS = 10**9


def _check_slug(name: str) -> str:
    if not SLUG.fullmatch(name):
        raise ValueError("a name is 1 to 63 small letters, digits and inner hyphens")
    return name


Slug = Annotated[str, AfterValidator(_check_slug)]
Fingerprint = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class RosterEntry(Strict):
    """One organization: its name, the fingerprint of its identity key, and its public number of rows."""

    name: Slug
    key: Fingerprint
    rows: Annotated[int, Field(ge=1, le=LARGEST_ROWS)]


class Study(Strict):
    """A study as written, every default filled in but for what the roster decides (see `resolve`)."""

    format: Literal["synod/study/v1"] = "synod/study/v1"
    name: Slug
    method: Method
    epsilon: ExactDecimal
    collusion: Annotated[int, Field(ge=0)] = 1
    rows: Annotated[int, Field(ge=1, le=LARGEST_ROWS)] | None = None
    key_bits: Annotated[int, Field(ge=2048, le=8192, multiple_of=8)] = 3072
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    roster: tuple[RosterEntry, ...] = Field(default=(), max_length=LARGEST_ROSTER)
    attributes: tuple[Attribute, ...] = Field(alias="schema", min_length=1, max_length=LARGEST_SCHEMA)

    @model_validator(mode="before")
    @classmethod
    def _lists_to_tuples(cls, data: Any) -> Any:
        return (
            {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()} if isinstance(data, dict) else data
        )

    @model_validator(mode="after")
    def _check(self) -> "Study":
        if not 0 < self.epsilon <= 1000:
            raise ValueError("epsilon must be above 0 and at most 1000")
        _refuse_repeats("attribute", [attribute.name for attribute in self.attributes])
        binned = not isinstance(self.method, HpdpDp)
        if not any(varies(attribute, binned=binned) for attribute in self.attributes):
            raise ValueError("schema: every attribute has a single value, so there is nothing to publish")
        _refuse_repeats("party", [entry.name for entry in self.roster])
        _refuse_repeats("key", [entry.key for entry in self.roster])
        if self.roster and self.collusion >= len(self.roster):
            raise ValueError(f"collusion must be below the number of parties, which is {len(self.roster)}")
        return self

    @property
    def total_rows(self) -> int:
        """n, the public number of rows over the whole roster."""
        return sum(entry.rows for entry in self.roster)

    @property
    def budget(self) -> Cost:
        """The most that the study may cost each party."""
        return Cost.of_decimal(self.epsilon)

    def resolve(self) -> "Study":
        """The study with nothing left open; refuses one without a roster."""
        if not self.roster:
            raise invalid(f"the study {self.name} has no roster.", "Add one, or let `synod launch` fill it.")
        rows = self.rows or self.total_rows
        if rows > LARGEST_ROWS:
            raise invalid(f"the roster of {self.name} has more than {LARGEST_ROWS} rows.", "Say how many with `rows`.")
        return self.model_copy(update={"rows": rows})

    def to_json(self) -> dict[str, Json]:
        """The canonical JSON value; floats do not occur in it."""
        return self.model_dump(mode="json", by_alias=True)

    def digest(self) -> bytes:
        """The hash that parties approve; only a resolved study has one."""
        assert self.roster, "only a resolved study is hashed"
        assert self.rows is not None, "only a resolved study is hashed"
        return canonical_hash(self.to_json())

    def index_of(self, party: str) -> int:
        """The position of a party in the roster."""
        return [entry.name for entry in self.roster].index(party)


def _refuse_repeats(what: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the {what} {repeated[0]} stands twice")


def parse_study(data: Any, origin: str) -> Study:
    """Parses outside data into a study; the error names the key, the rule and the origin."""
    if not isinstance(data, dict):
        raise invalid(f"{origin} is not a study: it must be a mapping of keys.")
    try:
        return Study.model_validate(data)
    except ValidationError as error:
        raise describe_validation_error(error, origin, data) from None


def load_study(path: Path) -> Study:
    """Reads a study from a YAML (or JSON) file."""
    return parse_study(load_yaml(path), str(path))


def describe_validation_error(error: ValidationError, origin: str, data: Any = None) -> SynodError:
    """One readable sentence for the first broken rule, and how many more there are."""
    broken = error.errors(include_url=False, include_context=False)
    first, *rest = sorted(broken, key=lambda one: one["type"] != "extra_forbidden")  # a misspelled key explains others
    place = first["loc"]
    if place[:1] == ("method",):
        place = ("method", *place[2:3])  # without the name of the method, which is no key of the document
    where = ".".join(str(part) for part in place) + _attribute_name(place, data) or "the whole"
    rule = first["msg"].removeprefix("Value error, ")
    more = f" ({len(rest)} more after it.)" if rest else ""
    if first["type"] == "extra_forbidden":
        return invalid(f"{origin}: the key {where} is not known.{more}", "Check its spelling, or remove it.")
    return invalid(f"{origin}: {where}: {rule}.{more}", "Mend it and try again.")


def _attribute_name(place: tuple[int | str, ...], data: Any) -> str:
    try:
        name = data["schema"][place[1]]["name"] if place[0] == "schema" else None
    except (IndexError, KeyError, TypeError):
        return ""
    return f" ({name})" if isinstance(name, str) and name.isprintable() else ""
