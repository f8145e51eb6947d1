"""Markup: elements with their text escaped. Text is escaped unless it is markup already, so nothing can be forgotten.

Names and categories come from outside. Characters that steer a page or a line instead of being read (controls,
overrides of the direction of writing) are shown as one that says that something is there.
"""

from collections.abc import Iterable
from html import escape
from typing import Any, Self

from markupsafe import Markup

Attribute = str | int | float | None
STEERING = dict.fromkeys((*range(32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)), "�")
EMPTY = frozenset({"meta", "path", "rect", "line", "circle"})


class Html(Markup):
    """Text that is markup already. Text that is added to it, on either side, is escaped."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Self:
        """Markup as it is, and text escaped in the one spelling of the page."""
        return cls(s if hasattr(s, "__html__") else escape(str(s)))


def plain(text: str) -> str:
    """Outside text with nothing in it that steers; line breaks become spaces."""
    return " ".join(text.splitlines()).translate(STEERING)


def outside(text: str) -> Html:
    """Outside text as an element of its own, so that writing from right to left does not spread."""
    return tag("bdi", plain(text))


def tag(element: str, /, *children: str, **attributes: Attribute) -> Html:
    """An element; `class_` stands for class, and underscores for hyphens. An attribute that is None is left out."""
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(write(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if element in EMPTY:
        return Html(f"<{element}{listed}/>")
    return Html(f"<{element}{listed}>{join(children)}</{element}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """Markup one after the other; plain text among it is escaped."""
    return Html.escape(between).join(parts)


def write(value: Attribute) -> str:
    """A value of an attribute; a number has at most two decimals, so that its last bits never show."""
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value)
