"""Markup: whatever comes from outside stays text."""

from collections.abc import Callable
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


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"
    assert tag("b", "x") + tag("i", "y") == "<b>x</b><i>y</i>"
    assert join([tag("b", "x"), "<"], tag("hr")) == "<b>x</b><hr></hr>&lt;"


@pytest.mark.parametrize(
    "add",
    [
        lambda markup, text: markup + text,
        lambda markup, text: text + markup,
        lambda markup, text: markup.join(["", text]),
        lambda markup, text: (markup + "%s") % text,
        lambda markup, text: (markup + "{}").format(text),
    ],
    ids=["after", "before", "join", "percent", "format"],
)
def test_text_that_is_added_to_markup_is_escaped(add: Callable[[Html, str], Html]) -> None:
    added = add(tag("b", "x"), HOSTILE)
    assert isinstance(added, Html)
    assert added.replace("<b>x</b>", "") == tag("p", HOSTILE)[3:-4]
    assert tag("p", added) == f"<p>{added}</p>"


def test_markup_in_an_attribute_is_text_like_any_other() -> None:
    assert tag("p", title=Html('"<b>')) == '<p title="&quot;&lt;b&gt;"></p>'


def test_attributes() -> None:
    assert tag("rect", class_="a", data_x=1.0, aria_hidden="true", open=None) == (
        '<rect class="a" data-x="1" aria-hidden="true"/>'
    )
    assert [write(number) for number in (0.1 + 0.2, -0.001, 3, 2.5)] == ["0.3", "0", "3", "2.5"]
