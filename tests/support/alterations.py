"""JSON values with one place altered: another value, nothing, or the same items in another order."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Place = tuple[str | int, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place of a JSON value, inner ones too, but for the root."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def alterations(document: dict[str, Any], place: Place) -> Iterator[dict[str, Any]]:
    """The document with another value at this place, without it, and, if it is a list, with two items exchanged."""
    value = _holder(document, place)[place[-1]]
    yield _with(document, place, _other(value))
    dropped = deepcopy(document)
    del _holder(dropped, place)[place[-1]]
    yield dropped
    if isinstance(value, list) and value and value[0] != value[-1]:
        yield _with(document, place, [value[-1], *value[1:-1], value[0]])


def _with(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    changed = deepcopy(document)
    _holder(changed, place)[place[-1]] = value
    return changed


def _holder(document: Any, place: Place) -> Any:
    for key in place[:-1]:
        document = document[key]
    return document


def _other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case None:
            return 0
        case str():
            return value[:-1] + ("1" if value.endswith("0") else "0")
        case list():
            return value[:-1] if value else [0]
        case _:
            return {**value, "more": "0"}
