"""A session's forms and links, without a network; how they serve a console is in tests/unit/party/console."""

from synod.common.console.entry import MOST_FORMS, Entrance, Session
from tests.support.consoles import Clock


def test_of_many_forms_the_oldest_are_forgotten() -> None:
    session = Session("key", 0.0)
    tokens = [session.give_form("/a") for _ in range(MOST_FORMS + 2)]
    assert len(set(tokens)) == len(tokens)
    assert [session.take_form(token, "/a") for token in (tokens[0], tokens[1], tokens[2])] == [False, False, True]


def test_a_form_is_for_one_path_and_one_time() -> None:
    session = Session("key", 0.0)
    token = session.give_form("/a")
    assert not session.take_form(token, "/b")
    assert not session.take_form(token, "/a"), "whoever tries it elsewhere has used it up"
    again = session.give_form("/a")
    assert session.take_form(again, "/a")
    assert not session.take_form(again, "/a")


def test_nothing_of_a_session_is_in_its_repr() -> None:
    session = Session("key-4711", 0.0)
    assert session.give_form("/a") not in repr(session)
    assert "4711" not in repr(session)


def test_links_and_keys_are_long_and_never_the_same() -> None:
    links: list[str] = []
    entrance = Entrance("http://x", clock=Clock(), announce=links.append)
    assert entrance.admit("") == "This link is not the one that the console printed last."
    for _ in range(50):
        entrance.open()
    tokens = {link.removeprefix("http://x/enter?token=") for link in links}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 43
    session = entrance.admit(links[-1].partition("=")[2])
    assert isinstance(session, Session)
    assert len(session.key) >= 43
    assert isinstance(entrance.admit(links[-2].partition("=")[2]), str), "the one before is worth nothing"


def test_a_live_page_does_not_keep_a_session_open() -> None:
    clock, links = Clock(), list[str]()
    entrance = Entrance("http://x", clock=clock, announce=links.append, idle_seconds=100)
    entrance.open()
    session = entrance.admit(links[-1].partition("=")[2])
    assert isinstance(session, Session)
    clock.seconds += 80
    assert entrance.find(session.key, counts=False) is session
    clock.seconds += 80
    assert entrance.find(session.key, counts=False) is None


def test_what_was_done_is_said_once_and_on_its_page() -> None:
    session = Session("key", 0.0, note=("/a", "Approved."))
    assert [session.take_note(path) for path in ("/b", "/a", "/a")] == ["", "Approved.", ""]
