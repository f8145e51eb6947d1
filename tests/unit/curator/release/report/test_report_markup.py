"""Markup: whatever comes from outside stays text."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synod.curator.release.report.markup import Html, join, outside, plain, tag, write

HOSTILE = "\"><script>alert('x')</script>&amp;"


@pytest.mark.parametrize("place", [lambda t: tag("p", t), outside, lambda t: tag("p", title=t), lambda t: join([t], t)])
def test_text_from_outside_is_escaped_everywhere(place: object) -> None:
    markup = place(HOSTILE)  # type: ignore[operator]
    assert "<script" not in markup
    assert '">' not in markup.replace('x27;)&lt;/script&gt;&amp;amp;">', "")
    assert "&lt;script&gt;" in markup


@given(st.text())
def test_any_text_comes_back_as_it_is_shown(text: str) -> None:
    visible = "".join(c for c in plain(text) if not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
    element = ElementTree.fromstring(tag("p", visible, title=visible))
    assert (element.text or "") == visible
    assert element.get("title") == visible


@pytest.mark.parametrize("steering", ["\u202e", "\u2066", "\u2069", "\x00", "\x1b", "\x85", "\x7f"])
def test_characters_that_steer_are_shown_as_such(steering: str) -> None:
    assert plain(f"a{steering}b") in ("a\ufffdb", "a b")
    assert steering not in plain(f"a{steering}b{steering}")


def test_markup_is_not_escaped_twice_and_text_added_to_it_is_text_again() -> None:
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"
    assert not isinstance(tag("b", "x") + "<", Html)


def test_attributes() -> None:
    assert tag("rect", class_="a", data_x=1.0, aria_hidden="true", open=None) == (
        '<rect class="a" data-x="1" aria-hidden="true"/>'
    )
    assert [write(number) for number in (0.1 + 0.2, -0.001, 3, 2.5)] == ["0.3", "0", "3", "2.5"]
