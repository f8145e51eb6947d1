"""Small readers for values that come from outside as JSON: an integer is an integer, never a text or a truth value."""

from collections.abc import Sequence
from typing import Any


def read_whole(value: Any) -> int:
    """An integer that is not a boolean."""
    if type(value) is not int:
        raise TypeError("not an integer")
    return value


def read_wholes(values: Any) -> tuple[int, ...]:
    """A list of integers."""
    return tuple(read_whole(value) for value in values)


def is_ascending(features: Sequence[int], known: int) -> bool:
    """Whether these are indices below `known`, each once and in order."""
    return all(0 <= feature < known for feature in features) and list(features) == sorted(set(features))
