"""What is wrong with outside text, in words: one sentence for each broken rule, the first of them with a hint.

Pydantic's own phrases name types of Python; whoever writes YAML reads what a value must be instead.
"""

import re
from typing import Any

from pydantic import ValidationError

from synod.common.runtime.errors import SynodError, invalid
from synod.common.study.schema import RuleError

PHRASES = (
    (r"^Value error, ", ""),
    (r"^Field required$", "is required, and missing"),
    (r"^Input should be (a valid \w+), unable to .*$", r"must be \1"),
    (r"^Input should be ", "must be "),
    (r"^\w+ should have at least (\d+) items? after validation, not \d+$", r"must have \1 or more entries"),
    (r"^\w+ should have at most (\d+) items? after validation, not .*$", r"must have \1 entries or fewer"),
    (r"^String should match pattern .*$", "must be sha256: and 64 hexadecimal digits"),
    (r"a valid tuple", "a valid list"),
    (r"a valid dictionary( or instance of \w+| or object to extract fields from)?", "a mapping of keys"),
    (r"a valid integer", "a whole number"),
    (r"a valid boolean", "true or false"),
    (r"a valid string", "a text"),
    (r"greater than or equal to", "at least"),
    (r"less than or equal to", "at most"),
    (r"^Keys should be strings$", "must be a text: keys are texts"),
)
LONGEST_LIST = 50
Place = tuple[int | str, ...]


def describe_validation_error(error: ValidationError, origin: str, data: Any = None) -> SynodError:
    """One readable sentence for the first broken rule, and how many more there are; `further` holds those."""
    broken: list[dict[str, Any]] = [dict(one) for one in error.errors(include_url=False)]
    broken.sort(key=lambda one: one["type"] != "extra_forbidden")  # a misspelled key explains others
    left = [(one, _place(one["loc"])) for one in broken]
    told: list[tuple[str, str]] = []
    while left:
        place = max((other for _, other in left if other[: len(left[0][1])] == left[0][1]), key=len)
        told.append(_describe([one for one, other in left if other == place], place, data))
        left = [(one, other) for one, other in left if other != place[: len(other)]]
    (first, hint), *others = told
    more = f" ({len(others)} more after it.)" if others else ""
    further = [f"{origin}: {sentence}." for sentence, _ in others[:LONGEST_LIST]]
    return invalid(f"{origin}: {first}.{more}", hint, further)


def _describe(broken: list[dict[str, Any]], place: Place, data: Any) -> tuple[str, str]:
    """What is wrong at a place, and what to do about it."""
    where = ".".join(str(part) for part in place) + _attribute_name(place, data)
    if broken[0]["type"] == "extra_forbidden":
        return f"the key {where} is not known", "Check its spelling, or remove it."
    first, *others = (in_plain_words(one["msg"]) for one in broken)
    rule = ", or ".join([first, *(other.removeprefix("must be ") for other in others)])
    raised = broken[0].get("ctx", {}).get("error")
    hint = raised.hint if isinstance(raised, RuleError) else "Correct it and try again."
    return ": ".join(part for part in (where, rule) if part), hint


def in_plain_words(message: str) -> str:
    """A message of pydantic in the words of this project."""
    for pattern, words in PHRASES:
        message = re.sub(pattern, words, message)
    return message


def _place(place: Place) -> Place:
    """Where a value is in the document: without the types that pydantic names, of a source or of a method's key."""
    if place[:2] in (("source", "file"), ("source", "database")):
        return (place[0], *place[2:])
    if place[:1] != ("method",):
        return place
    return (*place[:2], *(part for part in place[2:] if isinstance(part, int)))


def _attribute_name(place: Place, data: Any) -> str:
    try:
        name = data["schema"][place[1]]["name"] if place[0] == "schema" else None
    except (IndexError, KeyError, TypeError):
        return ""
    return f" ({name})" if isinstance(name, str) and name.isprintable() else ""
