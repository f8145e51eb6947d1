"""The study: what is published, by whom, with which method and budget; and its resolved, hashable form.

The resolved study (every default written out, numbers as exact decimals, canonical JSON) is what is hashed and
approved. Resolving is deterministic, so that everybody who has the same file gets the same hash. `Method` is here
because the two need each other: a study names a method, and a method resolves, checks and plans a study.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator

from synod.common.crypto.canonical import Json, canonical_hash
from synod.common.privacy.conversion import is_within, largest_rho
from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import LEAST_RHO
from synod.common.protocol.steps import Step
from synod.common.runtime.discovery import load_modules
from synod.common.runtime.errors import invalid
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.attributes import Attribute, varies
from synod.common.study.broken import describe_validation_error
from synod.common.study.losses import check_losses
from synod.common.study.schema import ExactDecimal, RuleError, Strict, write_decimal, write_delta

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LARGEST_ROSTER = 500
CURATOR_NAME = "curator"
LARGEST_SCHEMA = 1_000
LARGEST_ROWS = 10**9
MOST_SYNTHETIC_ROWS = 1_000_000
MOST_ROWS_PER_UNIT = 1_000
ROWS_PER_DELTA = 10
FOLLOW = "Leave rho and order out to have them follow."
FeatureEncoding = Literal["vanilla", "binary", "gray", "hierarchical"]


def _check_slug(name: str) -> str:
    if not SLUG.fullmatch(name):
        raise ValueError("a name is 1 to 63 small letters, digits and inner hyphens")
    return name


Slug = Annotated[str, AfterValidator(_check_slug)]
Fingerprint = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


def _check_delta(delta: Decimal | None) -> Decimal | None:
    """No delta and a delta of 0 are the same: pure epsilon."""
    if delta is not None and not 0 <= delta < 1:
        raise ValueError("must be at least 0 and below 1, such as 1e-9")
    return delta or None


Delta = Annotated[ExactDecimal | None, AfterValidator(_check_delta)]


class RosterEntry(Strict):
    """One organization: its name, the fingerprint of its identity key, and its public number of rows."""

    name: Slug
    key: Fingerprint
    rows: Annotated[int, Field(ge=1, le=LARGEST_ROWS)]


class Method(Strict):
    """A publishing method as a study names it: its keys, how they are resolved, and the plan that follows from them.

    A subclass with a literal `name` registers itself. Its file in common/methods says all that both sides must agree
    on; the recipe of the same name in curator/methods says how to publish. `version` selects the rules that a study is
    planned under: a rule that would change the plan of an older study is a new version beside the old one.
    """

    name: str
    version: int
    allows_losses: ClassVar[bool] = False  # whether the recipe goes on where parties are lost (`may_lose`)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Registers a method under the name that studies write."""
        super().__pydantic_init_subclass__(**kwargs)
        names = get_args(cls.model_fields["name"].annotation)
        for name in names:
            if name in METHODS and METHODS[name].__qualname__ != cls.__qualname__:
                raise TypeError(f"two methods are called {name}")
            METHODS[name] = cls

    @property
    def number_levels(self) -> int | None:
        """Into how many steps a number's range is divided; None for methods that see a number's bin only."""
        return None

    @property
    def feature_encoding(self) -> FeatureEncoding:
        """How attributes become the features that are counted."""
        return "vanilla"

    @classmethod
    def complete_attribute(cls, attribute: Any) -> Any:
        """An attribute as it was written, with what this method assumes where the attribute does not say."""
        return attribute

    @classmethod
    def complete_schema(cls, keys: Mapping[str, Any], schema: Sequence[Any]) -> tuple[Any, ...]:
        """The schema as it was written, as this method takes it: attributes completed, and, where a key of the method
        says so, only some of them.
        """
        del keys
        return tuple(cls.complete_attribute(attribute) for attribute in schema)

    def resolve(self, study: "Study") -> Self:
        """The method with every default written out as a number, for a study that is resolved but for this."""
        del study
        return self

    def check(self, study: "Study") -> None:
        """Refuses a resolved study that this method cannot serve, before anybody approves it."""
        del study

    def plan(self, study: "Study") -> tuple[Step, ...]:
        """The steps of a resolved study, in order."""
        raise NotImplementedError


METHODS: dict[str, type[Method]] = {}


def known_methods() -> dict[str, type[Method]]:
    """Every method that a study may name."""
    load_modules("synod.common.methods")
    return METHODS


def _read_method(value: Any) -> Any:
    if isinstance(value, Method):
        return value
    known = known_methods()
    if not isinstance(value, dict):
        raise ValueError(f"is a mapping with a name, one of {', '.join(sorted(known))}")
    name = value.get("name")
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"name must be one of {', '.join(sorted(known))}")
    return known[name].model_validate(value)


def _complete_schema(data: dict[str, Any]) -> dict[str, Any]:
    """The study with the schema as its method takes it."""
    named, schema = data.get("method"), data.get("schema")
    keys = named.model_dump() if isinstance(named, Method) else named if isinstance(named, dict) else {}
    name = keys.get("name")
    if not isinstance(schema, list | tuple) or not isinstance(name, str) or name not in known_methods():
        return data
    return {**data, "schema": known_methods()[name].complete_schema(keys, schema)}


class Study(Strict):
    """A study as written, every default filled in but for what the roster decides (see `resolve`).

    `rho` and `order` follow from epsilon and delta and are written by `resolve`; with no delta all three are None. The
    unit of privacy, such as a person, has up to `max_rows_per_unit` rows in the table of a party, which checks that.

    Guarantee: where `rho` is set, whatever is rho-zCDP is (epsilon, delta)-DP: whoever parses a study checks the
    inequality of common/privacy/conversion.py at `order`.
    """

    format: Literal["synod/study/v1"] = "synod/study/v1"
    name: Slug
    method: Annotated[SerializeAsAny[Method], BeforeValidator(_read_method)]
    epsilon: ExactDecimal
    delta: Delta = None
    rho: ExactDecimal | None = None
    order: ExactDecimal | None = None
    collusion: Annotated[int, Field(ge=0)] = 1
    max_rows_per_unit: Annotated[int, Field(ge=1, le=MOST_ROWS_PER_UNIT)] = 1
    may_lose: Annotated[int, Field(ge=0)] = 0
    rows: Annotated[int, Field(ge=1, le=LARGEST_ROWS)] | None = None
    key_bits: Annotated[int, Field(ge=2048, le=8192, multiple_of=8)] = 3072
    seed: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    roster: tuple[RosterEntry, ...] = Field(default=(), max_length=LARGEST_ROSTER)
    attributes: tuple[Attribute, ...] = Field(alias="schema", min_length=1, max_length=LARGEST_SCHEMA)

    @model_validator(mode="before")
    @classmethod
    def _lists_to_tuples(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: tuple(v) if isinstance(v, list) else v for key, v in _complete_schema(data).items()}

    @model_validator(mode="after")
    def _check(self) -> "Study":
        if not 0 < self.epsilon <= 1000:
            raise ValueError("epsilon must be above 0 and at most 1000")
        _check_rho(self)
        _refuse_repeats("attribute", [attribute.name for attribute in self.attributes])
        binned = self.method.number_levels is None
        if not any(varies(attribute, binned=binned) for attribute in self.attributes):
            raise ValueError("schema: every attribute has a single value, so there is nothing to publish")
        _refuse_unused_spikes(self)
        _refuse_repeats("party", [entry.name for entry in self.roster])
        _refuse_repeats("key", [entry.key for entry in self.roster])
        if CURATOR_NAME in self.party_names:
            raise ValueError(f"no party can be called {CURATOR_NAME}: trust files name the curator so")
        if self.roster and self.collusion >= len(self.roster):
            raise ValueError(f"collusion must be below the number of parties, which is {len(self.roster)}")
        if self.roster:
            check_losses(len(self.roster), self.collusion, self.may_lose)
        if self.roster and self.delta is not None and is_large_delta(self.delta, self.total_rows):
            raise RuleError(*explain_large_delta(self.delta, self.total_rows))
        return self

    @property
    def party_names(self) -> tuple[str, ...]:
        """The names on the roster, in order."""
        return tuple(entry.name for entry in self.roster)

    @property
    def total_rows(self) -> int:
        """n, the public number of rows over the whole roster."""
        return sum(entry.rows for entry in self.roster)

    @property
    def budget(self) -> Cost:
        """The most that the study may cost each party: rho where there is a delta, else pure epsilon."""
        if self.delta is None:
            return Cost.pure(self.epsilon)
        assert self.rho is not None, "only a resolved study has a budget"
        return Cost.concentrated(self.rho)

    @property
    def fewest_parties(self) -> int:
        """How many parties take part in every sum, whoever is lost."""
        return len(self.roster) - self.may_lose

    def resolve(self) -> "Study":
        """The study with nothing left open; refuses one without a roster."""
        if not self.roster:
            raise invalid(f"the study {self.name} has no roster.", "Add one, or let `synod launch` fill it.")
        rows = self.rows or self.total_rows
        if rows > LARGEST_ROWS:
            raise invalid(f"the roster of {self.name} has more than {LARGEST_ROWS} rows.", "Say how many with `rows`.")
        if rows > max(MOST_SYNTHETIC_ROWS, 100 * self.total_rows):
            raise invalid(
                f"{self.name} asks for {rows:,} synthetic rows out of {self.total_rows:,} real ones.",
                "More than a hundred times as many add nothing; ask for fewer `rows`.",
            )
        counted = self.model_copy(update={"rows": rows, **self._resolve_rho()})
        resolved = counted.model_copy(update={"method": self.method.resolve(counted)})
        assert parse_study(resolved.to_json(), "the resolved study") == resolved
        return resolved

    def _resolve_rho(self) -> dict[str, Decimal | None]:
        """Rho and its order, as written or as large as epsilon and delta allow; refused where no noise is so large."""
        rho, order = self.rho, self.order
        if self.delta is not None and rho is None:
            rho, order = follow_rho(self.epsilon, self.delta, self.name)
        if rho is not None:
            _refuse_little_rho(rho, self.name)
        return {"rho": rho, "order": order}

    def to_json(self) -> dict[str, Json]:
        """The canonical JSON value; floats do not occur in it. A study that may lose nobody does not mention it."""
        written = self.model_dump(mode="json", by_alias=True)
        return written if self.may_lose else {key: value for key, value in written.items() if key != "may_lose"}

    def digest(self) -> bytes:
        """The hash that parties approve; only a resolved study has one."""
        assert self.roster, "only a resolved study is hashed"
        assert self.rows is not None, "only a resolved study is hashed"
        assert (self.delta is None) == (self.rho is None), "only a resolved study is hashed"
        return canonical_hash(self.to_json())

    def pins(self, key: str) -> bool:
        """Whether the identity key of this fingerprint is a party's."""
        return any(entry.key == key for entry in self.roster)

    def index_of(self, party: str) -> int:
        """The position of a party in the roster."""
        return self.party_names.index(party)


def _check_rho(study: Study) -> None:
    """Refuses rho and order that are not shown to be within epsilon and delta."""
    if study.rho is None and study.order is None:
        return
    if study.rho is None or study.order is None or study.delta is None:
        raise RuleError("rho and order are of a study with delta, and go together", FOLLOW)
    numbers = {key: Fraction(getattr(study, key)) for key in ("rho", "order", "epsilon", "delta")}
    if study.rho <= 0 or not is_within(**numbers):
        raise RuleError(
            f"rho {write_decimal(study.rho)} at order {write_decimal(study.order)} is not within epsilon "
            f"{write_decimal(study.epsilon)} and delta {write_delta(study.delta)}",
            FOLLOW,
        )


def _refuse_unused_spikes(study: Study) -> None:
    """Spikes have codes beside those of the bins, so only a method that counts bins can keep them."""
    spiked = [attribute.name for attribute in study.attributes if getattr(attribute, "spikes", ())]
    if spiked and study.method.number_levels is not None:
        raise RuleError(
            f"schema: {spiked[0]} has spikes, but {study.method.name} does not count bins, so it cannot keep them",
            "Remove `spikes`, or choose another method.",
        )


def is_large_delta(delta: Decimal, rows: int) -> bool:
    """Whether so many rows allow no such delta.

    Why: a mechanism that publishes one row in delta n of all cases, and else nothing, is (0, delta)-DP.
    """
    return Fraction(delta) * ROWS_PER_DELTA * rows > 1


def explain_large_delta(delta: Decimal, rows: int) -> tuple[str, str]:
    """Why such a delta is too large, and what to write instead."""
    most = Context(prec=1, rounding=ROUND_FLOOR).divide(Decimal(1), Decimal(ROWS_PER_DELTA * rows))
    why = "because somebody's row could be published outright with such a delta"
    return (
        f"delta {write_delta(delta)} is too large for {rows:,} rows, {why}",
        f"Write 1e-9, or at most {write_delta(most)}.",
    )


def follow_rho(epsilon: Decimal, delta: Decimal, name: str) -> tuple[Decimal, Decimal]:
    """The rho that follows from epsilon and delta, and its order; refused where no noise is so large."""
    rho, order = largest_rho(Fraction(epsilon), Fraction(delta))
    _refuse_little_rho(rho, name)
    return rho, order


def _refuse_little_rho(rho: Decimal, name: str) -> None:
    if rho < LEAST_RHO:
        raise invalid(f"{name} has so little epsilon and delta that no noise is large enough.", "Give it more epsilon.")


def _refuse_repeats(what: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the {what} {repeated[0]} appears twice")


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
