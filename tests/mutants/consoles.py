"""The edits of `make mutants` about the consoles: who may enter, which requests count, and what is approved."""

from tests.mutants.edit import edits_of

ATTACKS = "tests/unit/party/console/test_party_console_attacks.py"
PAGES = "tests/unit/party/console/test_party_console_pages.py"
ENTRY = "tests/unit/common/console/test_entry.py"
PLACE = "tests/unit/common/console/test_place.py"

CONSOLES = (
    *edits_of(
        "common/console/guard.py",
        ATTACKS,
        ("a rebound name is served", 'not is_own_host(self._address, headers.get("host", ""))', "False"),
        ("another site may cause requests", "if is_from_elsewhere(headers):", "if False:"),
        ("nobody has to enter", "if session is None:", "if session is None and path == '':"),
        ("another origin may send forms", "if not is_own_origin(self._address, request.headers):", "if False:"),
        (
            "a form needs no token",
            'not isinstance(token, str) or not session.take_form(token, request.scope["path"])',
            "False",
        ),
        ("pages may be framed", "\"frame-ancestors 'none'\"", '"frame-ancestors *"'),
        ("pages are kept", '"cache-control": "no-store",', '"cache-control": "private",'),
        ("scripts read the cookie", "httponly=True", "httponly=False"),
        ("the cookie travels with others' requests", 'samesite="strict"', 'samesite="none"'),
        ("a form is read without end", "or int(length) > LARGEST_FORM_BYTES", "or False"),
    ),
    *edits_of(
        "common/console/entry.py",
        ATTACKS,
        (
            "any link is good",
            "if not self._token or not hmac.compare_digest(token",
            "if not self._token or not hmac.compare_digest(self._token",
        ),
        ("a link is good for ever", "if self._clock() - self._made > LINK_SECONDS:", "if False:"),
        ("a link is good twice", "        self._is_used = True\n", ""),
        ("a session lasts for ever", "self._clock() - self._session.last_used > self._idle:", "False:"),
        (
            "any cookie is good",
            "if session is None or not hmac.compare_digest(key",
            "if session is None or not hmac.compare_digest(session.key",
        ),
        ("a form is good twice", "self.forms.pop(token, None) == path", "self.forms.get(token) == path"),
        (
            "a form is good for another path",
            "self.forms.pop(token, None) == path",
            "self.forms.pop(token, None) is not None",
        ),
    ),
    *edits_of(
        "common/console/entry.py",
        ENTRY,
        ("what was done is said again", '        self.note = ("", "")\n        return told', "        return told"),
        ("a live page keeps a session open", "        if counts:\n", "        if True:\n"),
        ("forms are kept without end", "while len(self.forms) > MOST_FORMS:", "while False:"),
    ),
    *edits_of(
        "common/console/place.py",
        PLACE,
        ("other machines need no flag", "if not is_local and not wanted.beyond:", "if False:"),
        ("other machines need no TLS", "if not is_local and wanted.certificate is None:", "if False:"),
        ("another console's socket is taken away", "if _is_answered(path):", "if False:"),
        ("everybody may use the socket", "os.umask(0o177)", "os.umask(0o000)"),
    ),
    *edits_of(
        "party/console/actions.py",
        PAGES,
        ("nobody has to type the hash", "if typed.lower() != study_hash[:TYPED_DIGITS]:", "if False:"),
        ("nobody has to mean it", "if not is_sure:", "if False:"),
    ),
    *edits_of(
        "party/console/routes.py",
        PAGES,
        ("a decision is said that the ledger does not know", "note if note == DONE.get(view.state) else", "note or"),
        ("values are shown unasked", 'bool(form_of(request).get("values"))', "True"),
        ("whoever looks waits for a writer", "settings.state, tidies=False", "settings.state, tidies=True"),
    ),
)
