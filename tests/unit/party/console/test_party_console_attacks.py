"""Whoever is not the operator is shown nothing and changes nothing: each attack over real HTTP, with a real ledger."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection

import pytest

from synod.common.console.entry import IDLE_SECONDS, LINK_SECONDS
from tests.support.consoles import Answer, House, Served, Visitor, make_house

SECRET = "private-study-name"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = make_house(tmp_path_factory.mktemp("house"))
    house.announce(SECRET)
    return house


@pytest.fixture(scope="module")
def study_path(house: House) -> str:
    return f"/studies/{house.announce(SECRET).digest().hex()}"


@pytest.fixture(scope="module")
def console(house: House) -> Iterator[Served]:
    with house.serving() as served:
        yield served


@pytest.fixture
def served(console: Served, house: House) -> Iterator[Served]:
    """For each test nobody has entered yet, and the ledger is as it was at the end."""
    console.begin_anew()
    yield console
    assert house.kinds() == ["opened"], "the ledger was changed"


def approval(path: str) -> dict[str, str]:
    return {"typed": path.removeprefix("/studies/")[:8]}


def assert_shown_nothing(answer: Answer, status: int) -> None:
    assert answer.status == status, answer.text
    assert SECRET not in answer.body
    assert "set-cookie" not in answer.headers
    assert_headers(answer)


def assert_headers(answer: Answer) -> None:
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; script-src 'self'; style-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer")


def test_the_operator_enters_and_sees_what_waits(served: Served) -> None:
    visitor = served.visitor()
    entered = visitor.enter(served.links[0])
    assert entered.status == 200
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"synod-party-{served.address.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert entered.headers["refresh"] == "0; url=/"
    assert entered.headers["referrer-policy"] == "no-referrer", "the token is in this page's address"
    inbox = visitor.ask("/")
    assert inbox.status == 200
    assert SECRET in inbox.body
    assert_headers(inbox)
    assert "<script>" not in inbox.body
    assert " style=" not in inbox.body


@pytest.mark.parametrize("path", ["/", "/ledger", "/doctor", "/nowhere", "/enter", "//static/"])
def test_without_the_link_there_is_nothing(served: Served, path: str) -> None:
    answer = served.visitor().ask(path)
    assert_shown_nothing(answer, 403)
    assert "north" not in answer.body, "not even whose console it is"


@pytest.mark.parametrize(
    "path", ["../ledger", "%2e%2e/ledger", "../../party.yaml", "..%2ftemplates%2fbase.html", "%3F/../ledger", ""]
)
def test_nothing_is_reached_through_the_static_files(served: Served, path: str) -> None:
    answer = served.visitor().ask(f"/static/{path}")
    assert_shown_nothing(answer, 404)
    assert "north" not in answer.body


def test_a_link_is_good_once(served: Served) -> None:
    served.entered()
    thief = served.visitor()
    assert_shown_nothing(thief.enter(served.links[0]), 403)
    assert thief.cookie == ""
    assert len(served.links) == 1


def test_an_old_link_is_worth_nothing_and_a_new_one_is_printed(served: Served) -> None:
    served.clock.seconds += LINK_SECONDS + 1
    visitor = served.visitor()
    answer = visitor.enter(served.links[0])
    assert_shown_nothing(answer, 403)
    assert "too old" in answer.text
    assert len(served.links) == 2
    assert_shown_nothing(visitor.enter(served.links[0]), 403)
    assert visitor.enter(served.links[1]).status == 200


@pytest.mark.parametrize("token", ["", "x", "é", "%00", "x" * 43])
def test_a_guessed_link(served: Served, token: str) -> None:
    assert_shown_nothing(served.visitor().ask(f"/enter?token={token.replace('é', '%C3%A9')}"), 403)
    assert served.entered()


def test_a_session_without_requests_ends(served: Served) -> None:
    visitor = served.entered()
    served.clock.seconds += IDLE_SECONDS - 1
    assert visitor.ask("/").status == 200
    served.clock.seconds += IDLE_SECONDS - 1
    assert visitor.ask("/").status == 200, "a request keeps it open"
    assert len(served.links) == 1
    served.clock.seconds += IDLE_SECONDS + 1
    assert_shown_nothing(visitor.ask("/"), 403)
    served.clock.seconds -= IDLE_SECONDS + 1
    assert_shown_nothing(visitor.ask("/"), 403)
    assert len(served.links) == 2, "a new link is printed, once"


def test_whoever_leaves_is_out(served: Served) -> None:
    visitor = served.entered()
    left = visitor.send("/", "/leave")
    assert (left.status, "You have left." in left.text) == (200, True)
    assert "north" not in left.body
    assert "/leave" not in left.body, "there is nothing to leave any more"
    deleted = left.headers["set-cookie"]
    assert deleted.startswith(f'{visitor.cookie.partition("=")[0]}=""; ')
    assert "Max-Age=0" in deleted
    assert_headers(left)
    assert_shown_nothing(visitor.ask("/"), 403)
    assert len(served.links) == 2


def test_whoever_has_lost_the_cookie_is_let_in_again(served: Served) -> None:
    """Once the session is idle, any request has a new link printed, also one without its cookie."""
    served.entered()
    stranger = served.visitor()
    served.clock.seconds += IDLE_SECONDS - 1
    assert_shown_nothing(stranger.ask("/"), 403)
    assert len(served.links) == 1
    served.clock.seconds += 2
    for path in ("/", "/"):
        assert_shown_nothing(stranger.ask(path), 403)
    assert len(served.links) == 2, "a new link is printed, once"
    assert stranger.enter(served.links[1]).status == 200


def test_the_used_link_of_an_idle_session_has_a_new_one_printed(served: Served) -> None:
    served.entered()
    served.clock.seconds += IDLE_SECONDS + 1
    assert_shown_nothing(served.visitor().enter(served.links[0]), 403)
    assert len(served.links) == 2


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
def test_a_rebound_host(served: Served, study_path: str, host: str) -> None:
    """A name of somebody else's that resolves to this machine makes the browser send another Host."""
    visitor = served.entered()
    token = visitor.ask(study_path).form(f"{study_path}/approve")
    name = host.format(port=served.address.port)
    origin = f"http://{name}"
    assert_shown_nothing(visitor.ask("/", host=name), 421)
    form = {"form": token, **approval(study_path)}
    assert_shown_nothing(visitor.ask(f"{study_path}/approve", form, host=name, origin=origin), 421)
    assert visitor.ask("/static/console.css", host=name).status == 421


def test_localhost_is_the_same_console(served: Served) -> None:
    assert served.entered().ask("/", host=f"localhost:{served.address.port}").status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_another_page_causes_a_request(served: Served, study_path: str, site: str) -> None:
    """`same-site` is another port of this very machine: the browser would send the cookie along."""
    visitor = served.entered()
    token = visitor.ask(study_path).form(f"{study_path}/approve")
    assert_shown_nothing(visitor.ask("/", sec_fetch_site=site), 403)
    form = {"form": token, **approval(study_path)}
    assert_shown_nothing(visitor.ask(f"{study_path}/approve", form, sec_fetch_site=site), 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", None, "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_another_origin_sends_a_form(served: Served, study_path: str, origin: str | None) -> None:
    """Even where a browser does not say which site it is."""
    visitor = served.entered()
    token = visitor.ask(study_path).form(f"{study_path}/approve")
    named = origin and origin.format(port=served.address.port)
    form = {"form": token, **approval(study_path)}
    answer = visitor.ask(f"{study_path}/approve", form, origin=named, sec_fetch_site=None)
    assert_shown_nothing(answer, 403)


def test_a_forged_form(served: Served, study_path: str) -> None:
    visitor, path = served.entered(), f"{study_path}/approve"
    page = visitor.ask(study_path)
    for token in (None, "", "x" * 32, page.form(f"{study_path}/table"), page.form("/leave")):
        form = {**approval(study_path), **({} if token is None else {"form": token})}
        assert_shown_nothing(visitor.ask(path, form), 403)


def test_a_form_that_is_sent_again(served: Served, study_path: str) -> None:
    visitor, path = served.entered(), f"{study_path}/table"
    form = {"form": visitor.ask(study_path).form(path)}
    first = visitor.ask(path, form)
    assert "It fits, and would cost epsilon 1. Nothing was reserved." in first.text
    assert_shown_nothing(visitor.ask(path, form), 403)


def test_the_form_of_another_session(served: Served, study_path: str) -> None:
    before = served.entered()
    token = before.ask(study_path).form(f"{study_path}/approve")
    before.send("/", "/leave")
    after = served.entered()
    answer = after.ask(f"{study_path}/approve", {"form": token, **approval(study_path)})
    assert_shown_nothing(answer, 403)


def test_the_cookie_of_another_console(served: Served, house: House) -> None:
    """While the operator is in: what opens the one console is worth nothing at the other."""
    operator = served.entered()
    with house.serving() as other:
        foreign = other.entered()
        name, _, key = foreign.cookie.partition("=")
        assert foreign.ask("/").status == 200
    for cookie in (foreign.cookie, f"synod-party-{served.address.port}={key}", f"{name}=", "x"):
        assert_shown_nothing(Visitor(served.address, cookie).ask("/"), 403)
    assert operator.ask("/").status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods(served: Served, method: str) -> None:
    visitor = served.entered()
    connection = HTTPConnection("127.0.0.1", served.address.port or 0, timeout=10)
    connection.request(method, "/", headers={"Cookie": visitor.cookie})
    with connection.getresponse() as response:
        assert response.status == 405
        assert SECRET not in response.read().decode()
    connection.close()


def test_a_form_of_no_end_is_not_read(served: Served, study_path: str) -> None:
    visitor = served.entered()
    path = f"{study_path}/approve"
    assert_shown_nothing(visitor.ask(path, {"form": "x"}, content_length=str(1 << 30)), 413)
    for length in ("x", "-1"):
        # An unreadable length is the server's own to refuse, and it may hang up before it has read the rest.
        with suppress(ConnectionResetError):
            answer = visitor.ask(path, {"form": "x"}, content_length=length)
            assert answer.status == 400
            assert SECRET not in answer.body


def test_nothing_of_the_link_is_logged(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    served.entered().ask("/")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")


def test_a_defect_tells_its_kind_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("row value 4711")

    monkeypatch.setattr("synod.party.console.routes.list_views", fail)
    answer = served.entered().ask("/")
    assert (answer.status, "A defect: ValueError." in answer.text) == (500, True)
    assert "4711" not in answer.body
    assert_headers(answer)
    (line,) = capfd.readouterr().err.splitlines()
    written = json.loads(line)
    assert (written["level"], written["error"]) == ("error", "ValueError")
    assert written["frames"][-1].startswith("fail (test_party_console_attacks.py:"), "whoever reports it can say where"
    assert "4711" not in line
