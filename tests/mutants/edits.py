"""The edits of `make mutants`: each takes away or weakens something that a row's privacy, or the soundness of a
release, rests on. Texts are short, so that they outlive other changes; one that is gone is replaced, not dropped.
"""

from tests.mutants.consoles import CONSOLES
from tests.mutants.curator_checks import CALLERS, CURATOR_CHECKS
from tests.mutants.enrolment import ENROLMENT
from tests.mutants.limits import LIMITS
from tests.mutants.losses import LOSSES
from tests.mutants.notices import HEADS, NOTICES
from tests.mutants.operations import OPERATIONS
from tests.mutants.party_checks import LEDGER, PARTY_CHECKS
from tests.mutants.privacy import ACCOUNTING, NOISE, PERSONS, SENSITIVITY
from tests.mutants.sources import SOURCES
from tests.mutants.statements import CRYPTOGRAPHY, RELEASED, STATEMENTS
from tests.mutants.tables import TABLES

EDITS = (
    *NOISE,
    *PERSONS,
    *ACCOUNTING,
    *SENSITIVITY,
    *CRYPTOGRAPHY,
    *STATEMENTS,
    *RELEASED,
    *PARTY_CHECKS,
    *LEDGER,
    *TABLES,
    *SOURCES,
    *CURATOR_CHECKS,
    *NOTICES,
    *HEADS,
    *CALLERS,
    *LIMITS,
    *OPERATIONS,
    *LOSSES,
    *ENROLMENT,
    *CONSOLES,
)
