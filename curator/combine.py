"""From the parties' answers to a round to the one answer of the roster: one function for each kind of query. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synod.common.crypto.packing import unpack
from synod.common.crypto.paillier import SecretKey, add_all, decrypt_all
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.base import SumQuery, SumTerms
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize, stack_rows
from synod.common.protocol.steps import QueryKind, Step
from synod.common.study.study import Study
from synod.curator.checks import check_agreements, check_local_marginals, check_marginals, check_moments

Payloads = Iterable[bytes]


def combine(query: AnyQuery, step: Step, study: Study, payloads: Payloads, *, key: SecretKey, workers: int) -> Any:
    """The answer of all who take part out of their own, in the roster's order.

    Guarantee: of an encrypted sum nothing is decrypted but the product over all present, in which the masks cancel.
    """
    if isinstance(query, SumQuery):
        return query.split(add_up(query, step, study, payloads, key=key, workers=workers), study)
    return COMBINED[query.kind](query, step, study, payloads)


def add_up(
    query: SumQuery[Any], step: Step, study: Study, payloads: Payloads, *, key: SecretKey, workers: int
) -> NDArray[np.int64]:
    """Multiplies the parties' ciphertexts, decrypts, unpacks, and checks the sums (6)."""
    total = add_all(key.public, payloads)
    plain = decrypt_all(key, total, workers)
    terms = query.terms(step, study)
    sums = unpack(terms.layout(study.key_bits), plain, key.public.n)
    CHECKED[query.kind](query, study, terms, sums)
    return sums


def _check_moments(query: SumMoments, study: Study, terms: SumTerms, sums: NDArray[np.int64]) -> None:
    check_moments(study, terms, sums, query.present_rows(study))


def _check_marginals(query: SumMarginals, study: Study, terms: SumTerms, sums: NDArray[np.int64]) -> None:
    check_marginals(study, terms, query, query.split(sums, study))


def _check_agreements(query: SumAgreements, study: Study, terms: SumTerms, sums: NDArray[np.int64]) -> None:
    check_agreements(study, terms, query.split(sums, study), query.present_rows(study))


def _read_marginals(query: LocalMarginals, step: Step, study: Study, payloads: Payloads) -> Any:
    """One party's own counts, checked (6) as the sums are."""
    ((payload, party),) = zip(payloads, step.answerers, strict=True)
    tables = query.read_answer(payload, study, party)
    check_local_marginals(party, step, study, query, tables)
    return tables


def _read_parents(query: ChooseParents, step: Step, study: Study, payloads: Payloads) -> Any:
    """One party's own choices; each was among its options (4), and nothing more can be told of a random draw."""
    ((payload, party),) = zip(payloads, step.answerers, strict=True)
    return query.read_answer(payload, study, party)


def _stack(query: Synthesize, step: Step, study: Study, payloads: Payloads) -> Any:
    del step
    pairs = zip(payloads, query.answerers(study), strict=True)
    return stack_rows([query.read_answer(payload, study, party) for payload, party in pairs])


CHECKED: Mapping[QueryKind, Callable[[Any, Study, SumTerms, NDArray[np.int64]], None]] = {
    QueryKind.SUM_MARGINALS: _check_marginals,
    QueryKind.SUM_AGREEMENTS: _check_agreements,
    QueryKind.SUM_MOMENTS: _check_moments,
}
COMBINED: Mapping[QueryKind, Callable[[Any, Step, Study, Payloads], Any]] = {
    QueryKind.LOCAL_MARGINALS: _read_marginals,
    QueryKind.CHOOSE_PARENTS: _read_parents,
    QueryKind.SYNTHESIZE: _stack,
}
