"""How many bytes the parties' answers have: counted from the real encodings of the queries of a run.

`bytes` is what Synod sends: packed ciphertexts of all parties, and local answers as they are written. `paper_bytes`
is the DP-SUBN paper's way to count the same tables (V, VI-F): two ciphertexts of 1,024 bits for each cell and party.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import TypeVar

from synod.common.crypto.packing import plan_slots
from synod.common.privacy.laws import TABLE
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.base import Query, SumQuery, sum_law
from synod.common.protocol.steps import QueryKind
from synod.common.study.features import sizes_of
from synod.common.study.study import Study
from synod.curator.covers.views import design_views
from synod.deploy.simulate import InProcessParties

AnswerT = TypeVar("AnswerT")
PAPER_BYTES_PER_CELL = 2 * 1024 // 8


@dataclass(frozen=True)
class CountedParties(InProcessParties):
    """In-process parties that note the sizes of their answers."""

    sent: list[int] = field(default_factory=list)
    paper_sent: list[int] = field(default_factory=list)

    async def ask(self, label: str, query: Query[AnswerT]) -> AnswerT:
        """Implements `Parties.ask`."""
        answer = await super().ask(label, query)
        if isinstance(query, SumQuery):
            terms = query.terms(plan_study(self.study).step(label), self.study)
            parties, ciphertexts = len(self.study.roster), terms.layout(self.study.key_bits).ciphertexts
            self._note(parties * ciphertext_bytes(ciphertexts, self.study), parties * terms.length)
        else:
            cells = query.size(self.study).numbers if query.kind is QueryKind.LOCAL_MARGINALS else 0
            self._note(len(query.write_answer(answer)), cells)
        return answer

    def _note(self, sent: int, cells: int) -> None:
        self.sent.append(sent)
        self.paper_sent.append(cells * PAPER_BYTES_PER_CELL)


def ciphertext_bytes(ciphertexts: int, study: Study) -> int:
    """The bytes of Paillier ciphertexts, which are twice as long as the key's modulus."""
    return ciphertexts * study.key_bits // 4


def forecast_candidates(study: Study) -> dict[str, float]:
    """What DP-CCBN's answers would have, by its candidates: nothing is asked, so nothing is too large.

    With binary features and degree k, iteration i has (d - i) C(i, k) tables of 2^(k+1) cells (the paper's V).
    """
    degree = plan_study(study).step("parameters").limit.cells.bit_length() - 2
    features = len(sizes_of(study))
    parties = len(study.roster)
    numbers = sent = 0
    for label, tables, cells in _sums(features, degree):
        layout = plan_sum(study, label, tables, tables * cells)
        sent += parties * ciphertext_bytes(layout, study)
        numbers += tables * cells
    return {
        "bytes": sent,
        "paper_bytes": parties * numbers * PAPER_BYTES_PER_CELL,
        "degree": degree,
        "candidates": most_candidates(features, degree),
    }


def formula_of_updates(study: Study) -> float:
    """The bytes of a DP-SUBN run by section VI-F, of d binary attributes, degrees k of the network and k' of the search
    frontier, and as few views as pairs allow, of the mean size v of those that are asked: K t1 ((d - 1) 2^(k'+2) + n_v
    2^(v+2) + (d - k) 2^(k+2)) bits.
    """
    plan, sizes, parties = plan_study(study), sizes_of(study), len(study.roster)
    steps = ("parameters", f"update-{study.party_names[0]}")
    network, frontier = (plan.step(label).limit.cells.bit_length() - 2 for label in steps)
    count, views_cells = len(sizes), plan.step("correlations").limit.cells
    width = statistics.fmean(len(view) for view in design_views(sizes, views_cells))
    views = count * (count - 1) / (width * (width - 1))
    tables: float = (
        (count - 1) * 2 ** (frontier + 2) + views * 2 ** (width + 2) + (count - network) * 2 ** (network + 2)
    )
    return parties * tables * PAPER_BYTES_PER_CELL / 2


def _sums(features: int, degree: int) -> Sequence[tuple[str, int, int]]:
    """Label, number of tables and cells of each, for all encrypted sums."""
    if degree == 0:
        return [("parameters", features, 2)]
    rounds = []
    for placed in range(1, features):
        parents = min(placed, degree)
        rounds.append((f"candidates-{placed}", count_candidates(features, degree, placed), 2 ** (parents + 1)))
    return [*rounds, ("parameters", features - degree, 2 ** (degree + 1))]


def plan_sum(study: Study, label: str, tables: int, numbers: int) -> int:
    """How many ciphertexts the numbers of so many tables take in one step of the plan."""
    bound = sum_law(plan_study(study).step(label), study, TABLE.times(tables)).bound(numbers)
    return plan_slots(numbers, 0, study.total_rows, bound, study.key_bits).ciphertexts


def count_candidates(features: int, degree: int, placed: int) -> int:
    """How many attribute-parent pairs an iteration of DP-CCBN weighs."""
    return (features - placed) * comb(placed, min(placed, degree))


def most_candidates(features: int, degree: int) -> int:
    """The largest iteration's number of pairs; none where no feature has a parent."""
    return max(count_candidates(features, degree, placed) for placed in range(1, features)) if degree else 0
