"""What methods that count the table of all attributes share: their keys, and how large that table may be.

The limits here are a part of the plan, hence rules of a method's `version`, as those of networks.py beside this.
"""

from collections.abc import Mapping, Sequence
from math import log10, prod, sqrt
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from synod.common.crypto.packing import plan_slots
from synod.common.methods.networks import list_to_tuple
from synod.common.privacy.cost import Cost
from synod.common.privacy.laws import TABLE, noise_for
from synod.common.protocol.steps import Limit, QueryKind, Step
from synod.common.runtime.errors import refused
from synod.common.study.features import sizes_of
from synod.common.study.schema import RuleError
from synod.common.study.study import Method, Study

LARGEST_CELLS = 10_000_000
NEVER_REACHED = 10**15
# One busy core, 3,072 bits: to encrypt a ciphertext at a party, and to decrypt one at the curator. For people, rough.
ENCRYPT_SECONDS, DECRYPT_SECONDS = 0.004, 0.022

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class CellsMethod(Method):
    """The keys of a method that counts every combination of values.

    `attributes` are those that are counted and published; the study has no others, whatever its schema lists besides.
    `max_cells` is the most combinations that the study may have.
    """

    attributes: Annotated[Names | None, BeforeValidator(list_to_tuple)] = None
    max_cells: Annotated[int, Field(ge=2, le=LARGEST_CELLS)] = 1_000_000

    @classmethod
    def complete_schema(cls, keys: Mapping[str, Any], schema: Sequence[Any]) -> tuple[Any, ...]:
        """Only the named attributes, in the schema's order; what is no attribute is kept, to be refused later."""
        named = keys.get("attributes")
        if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
            return super().complete_schema(keys, schema)
        known = [_name_of(attribute) for attribute in schema]
        for name in named:
            if name not in known or named.count(name) > 1:
                what = "names an attribute twice" if name in known else "names one that the schema does not have"
                raise RuleError(f"method.attributes: {name!r} {what}", "Use names of the schema, each once.")
        kept = [one for one, name in zip(schema, known, strict=True) if name is None or name in named]
        return super().complete_schema(keys, kept)

    def resolve(self, study: Study) -> Self:
        """Writes out the attributes, which are those of the study."""
        return self.model_copy(update={"attributes": tuple(attribute.name for attribute in study.attributes)})

    def check(self, study: Study) -> None:
        """Refuses a study with more cells than `max_cells`, and says what they would take."""
        cells = count_cells(study)
        if cells > self.max_cells:
            raise refused(
                f"The table of all {len(sizes_of(study))} attributes of {study.name} has {_about(cells)} cells; "
                f"`max_cells` is {self.max_cells:,}. {_describe_load(study, cells, self.plan(study)[0].cost)}",
                f"Name fewer `attributes`, give numbers fewer bins, or raise `max_cells`, up to {LARGEST_CELLS:,}.",
            )

    def cells_step(self, study: Study, label: str, cost: Cost, most: int | None = None) -> Step:
        """A sum of one table of at most all cells, or `most`; none is larger than `max_cells`."""
        cells = min(count_cells(study), self.max_cells, most or self.max_cells)
        limit = Limit(numbers=cells, tables=1, cells=cells)
        return Step(label, label, QueryKind.SUM_MARGINALS, study.party_names, cost, limit)


def count_cells(study: Study) -> int:
    """How many combinations of values all attributes together have."""
    return prod(sizes_of(study))


def _name_of(attribute: Any) -> str | None:
    """The name that an attribute is written with, if it has one."""
    name = attribute.get("name") if isinstance(attribute, dict) else getattr(attribute, "name", None)
    return name if isinstance(name, str) else None


def _about(number: int) -> str:
    """A count for people, which may be absurd."""
    return f"{number:,}" if number < NEVER_REACHED else f"about 10^{log10(number):.0f}"


def _describe_load(study: Study, cells: int, cost: Cost) -> str:
    """What a sum of so many cells would tell and take: noise, traffic and time."""
    rows, parties = study.max_rows_per_unit, len(study.roster)
    law = noise_for(cost, TABLE, rows_per_unit=rows, parties=parties, threshold=study.collusion)
    layout = plan_slots(cells, 0, study.total_rows, law.bound(cells), study.key_bits)
    megabytes = layout.ciphertexts * study.key_bits // 4 // 10**6
    microseconds = int(10**6 * (ENCRYPT_SECONDS + DECRYPT_SECONDS)) * layout.ciphertexts * study.key_bits**3 // 3072**3
    minutes = -(-microseconds // (60 * 10**6))
    return (
        f"A cell would hold {study.total_rows / cells:.2g} rows on average against noise of {sqrt(law.variance):.2g}, "
        f"and the sum take {_about(layout.ciphertexts)} ciphertexts, {_about(megabytes)} MB from each party and "
        f"{_about(minutes)} minutes or so."
    )
