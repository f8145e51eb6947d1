"""How many calls may be open at once: of everybody, of one name, and of all names that are on no roster.

A call over a quota is refused at once, before its method runs, so that whoever calls without end keeps nobody else
waiting. The name, and its role, are those of the certificate.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from synod.common.crypto.certificates import Holder
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.wire import caller
from synod.curator.callers.admission import Admission, Call

MOST_CALLS = 4096
MOST_CALLS_OF_A_NAME = 16  # a daemon has one; lost connections and an operator's commands add a few
MOST_CALLS_OF_STRANGERS = 256  # daemons that wait for their first study
STRANGERS = None


class Quotas(Admission):
    """The open calls, by the holder of the certificate. `is_known` says whether it is on a roster or an operator."""

    def __init__(self, is_known: Callable[[Holder], bool]) -> None:
        self._is_known = is_known
        self._open: Counter[Holder | None] = Counter()

    def admit(self, service: str, call: Call) -> AbstractContextManager[None]:
        """Every service counts alike."""
        del service
        return self.call_of(caller(call))

    @contextmanager
    def call_of(self, holder: Holder) -> Iterator[None]:
        """Counts one call while it is open; refuses one too many."""
        quotas: dict[Holder | None, int] = {holder: MOST_CALLS_OF_A_NAME}
        if not self._is_known(holder):
            quotas[STRANGERS] = MOST_CALLS_OF_STRANGERS
        if any(self._open[counted] >= most for counted, most in quotas.items()):
            raise SynodError(
                Code.UNREACHABLE,
                f"the curator has as many calls open as it takes from {holder}.",
                "Run one daemon for each name. If this name is on no roster yet, wait for its first study.",
            )
        self._open.update(quotas.keys())
        try:
            yield
        finally:
            self._open.subtract(quotas.keys())
            self._open += Counter()  # forgets names without an open call
