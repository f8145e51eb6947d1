"""Studies, identities and releases that the unit tests of common/ start from."""

from copy import deepcopy
from typing import Any

from synod.common.study.study import Study, parse_study

PARTIES = ("north", "south", "west")


def pinned(index: int) -> str:
    """A well-formed fingerprint that belongs to nobody."""
    return f"sha256:{index:064x}"


_DOCUMENT: dict[str, Any] = {
    "name": "care-survey",
    "method": {"name": "hpdp-dp"},
    "epsilon": "0.8",
    "key_bits": 2048,
    "roster": [{"name": name, "key": pinned(i), "rows": 2**i} for i, name in enumerate(PARTIES)],
    "schema": [
        {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
        {"name": "age", "type": "integer", "min": 17, "max": 90},
        {"name": "income", "type": "real", "min": 0, "max": "2.5", "nullable": True, "out_of_domain": "clip"},
        {"name": "work", "type": "categorical", "taxonomy": [["federal", "state"], "private"]},
    ],
}


def study_document(**changes: Any) -> dict[str, Any]:
    """A sound study as YAML would give it, with some keys changed; None removes a key."""
    document = deepcopy(_DOCUMENT) | changes
    return {key: value for key, value in document.items() if value is not None}


def make_study(**changes: Any) -> Study:
    """A resolved study."""
    return parse_study(study_document(**changes), "the sample").resolve()


def categorical(name: str, size: int, *, nullable: bool = False) -> dict[str, Any]:
    """A categorical attribute of a schema, as written."""
    categories = [f"c{i}" for i in range(size)]
    return {"name": name, "type": "categorical", "categories": categories, "nullable": nullable}


def integer(name: str, low: int, high: int, *, nullable: bool = False) -> dict[str, Any]:
    """An integer attribute of a schema, as written."""
    return {"name": name, "type": "integer", "min": low, "max": high, "nullable": nullable}


def real(name: str, low: str, high: str, *, nullable: bool = False) -> dict[str, Any]:
    """A real attribute of a schema, as written."""
    return {"name": name, "type": "real", "min": low, "max": high, "nullable": nullable}
