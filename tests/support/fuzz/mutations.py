"""Documents that are nearly sound: a sound one with a few values or bytes exchanged, removed, doubled or moved."""

import json
from random import Random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**39, 0.5, 1e308, "", "0", "-1", "a",
    "null", "1e-9", "1e999999999", "1/0", "nan", "\ud800", "\x1b[2J", "\n", "x" * 300, "ff" * 32, "=1+1", [], {}, [[]],
    [None], {"": None}, {"name": "adaptive"}, {"a": {"b": {"c": []}}}, [0] * 300, list(range(40)),
)  # fmt: skip
ODD_BYTES = (
    b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b'"', b"'", b"\\", b"[", b"]", b"{", b"}", b": ", b", ",
    b"- ", b"? ", b"&a ", b"*a", b"<<: ", b"!!int ", b"!", b"|\n", b">\n", b"#", b"%YAML 1.1\n---\n", b"...\n", b"0x_",
    b"1e999", b".inf", b"~", b"yes", b"2001-99-99", b"1:59:59", b"=", b"null", b"9" * 5_000, b"[" * 400, b"a,",
    b"\xf0\x9f\x98\x80", b"\\ud800", b"\xff\xff\xff\xff\x0f", b"\x08\x96\x01",
)  # fmt: skip


def mutate(data: bytes, *, rng: Random) -> bytes:
    """The data with one to four changes: of its values, if it is JSON, else or now and then of its bytes."""
    if rng.random() < 0.7:
        try:
            value = json.loads(data)
        except (RecursionError, ValueError):
            pass
        else:
            for _ in range(rng.randint(1, 4)):
                value = _change_value(value, rng)
            return json.dumps(value, separators=(",", ":")).encode()
    for _ in range(rng.randint(1, 4)):
        data = _change_bytes(data, rng)
    return data


def _change_value(value: Any, rng: Random) -> Any:
    """The value with one place in it changed; deep places are as likely as those near the top."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return _change_leaf(value, rng)
    places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    place = rng.choice(places)
    changed: Any = value.copy()
    match rng.randrange(8):
        case 0:
            del changed[place]
        case 1 if isinstance(changed, dict):
            changed[rng.choice(["", "name", "extra", *places])] = changed[place]
        case 1:
            changed.insert(place, changed[rng.choice(places)])
        case 2:
            other = rng.choice(places)
            changed[place], changed[other] = changed[other], changed[place]
        case _:
            changed[place] = _change_value(changed[place], rng)
    return changed


def _change_leaf(value: Any, rng: Random) -> Any:
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice([-1, 1, 2**20, -(2**20)])
    if isinstance(value, str) and value and rng.random() < 0.5:
        cut = rng.randrange(len(value))
        return value[:cut] + rng.choice(["", "0", "é", value]) + value[cut + 1 :]
    return rng.choice(ODD_VALUES)


def _change_bytes(data: bytes, rng: Random) -> bytes:
    start, end = sorted(rng.randint(0, len(data)) for _ in range(2))
    end = min(end, start + 64)
    match rng.randrange(5):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:end] + data[start:end] * rng.choice([1, 2, 50]) + data[end:]
        case 2:
            return data[:start] + bytes(rng.randrange(256) for _ in range(rng.randint(1, 4))) + data[start + 1 :]
        case _:
            return data[:start] + rng.choice(ODD_BYTES) + data[rng.choice([start, end]) :]
