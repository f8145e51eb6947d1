"""Signals around a launch: SIGTERM ends it as Ctrl-C does, and neither cuts its cleaning up short."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGINT and SIGTERM raise `KeyboardInterrupt` in the block, also where the caller had SIGINT ignored.

    A shell without job control starts its background jobs so (`make test &` in a script).
    """
    with _handling(_interrupt, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Neither SIGINT nor SIGTERM is heard in the block."""
    with _handling(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def _handling(handler: Callable[..., Any] | signal.Handlers, *numbers: signal.Signals) -> Iterator[None]:
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in zip(numbers, before, strict=True):
            signal.signal(number, earlier)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
