"""Signals around a launch, whatever the caller did about them."""

import signal
from collections.abc import Iterator

import pytest

from synod.deploy.launch.interrupts import terminated_as_interrupted, uninterrupted

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(params=[signal.SIG_IGN, signal.default_int_handler])
def inherited(request: pytest.FixtureRequest) -> Iterator[object]:
    """What was done about both signals before."""
    before = [signal.signal(number, request.param) for number in BOTH]
    yield request.param
    for number, handler in zip(BOTH, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
def test_a_launch_is_interrupted_by_either_signal(inherited: object, number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        signal.raise_signal(number)
    assert [signal.getsignal(one) for one in BOTH] == [inherited, inherited]


@pytest.mark.parametrize("number", BOTH)
def test_cleaning_up_is_not_interrupted(inherited: object, number: signal.Signals) -> None:
    with terminated_as_interrupted():
        heard = signal.getsignal(number)
        with uninterrupted():
            signal.raise_signal(number)
        assert signal.getsignal(number) is heard
