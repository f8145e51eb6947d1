"""Edits of what the two sides tell each other beside queries and answers: ends, declines, heads of ledgers."""

from tests.mutants.edit import edits_of

PROTOCOL = "tests/unit/common/protocol"
PARTY = "tests/unit/party"
CURATOR = "tests/unit/curator"

NOTICES = (
    *edits_of(
        "common/protocol/notices.py",
        "tests/adversary/test_signed_notices.py",
        ("an announcement is of any study", 'return {"study": study_hash.hex()}', 'return {"study": ""}'),
        (
            "an end is of any study",
            'return {"study": study_hash.hex(), "outcome": outcome}',
            'return {"outcome": outcome}',
        ),
        (
            "an end is of any kind",
            'return {"study": study_hash.hex(), "outcome": outcome}',
            'return {"study": study_hash.hex(), "outcome": ""}',
        ),
        (
            "a decline is of any study",
            'return {"party": party, "study": study_hash.hex(), "reason": reason}',
            'return {"party": party, "reason": reason}',
        ),
        (
            "a decline is for any reason",
            'return {"party": party, "study": study_hash.hex(), "reason": reason}',
            'return {"party": party, "study": study_hash.hex()}',
        ),
        (
            "an acknowledgement is of any study",
            'return {"party": party, "study": study_hash.hex(), "outcome": outcome}',
            'return {"party": party, "outcome": outcome}',
        ),
        (
            "an acknowledgement is of any end",
            'return {"party": party, "study": study_hash.hex(), "outcome": outcome}',
            'return {"party": party, "study": study_hash.hex()}',
        ),
    ),
    *edits_of(
        "curator/party_handler.py",
        ("tests/adversary/test_signed_notices.py", f"{CURATOR}/test_party_handler.py"),
        (
            "a decline needs no signature",
            "        require_decline(notice.identity, notice.party, notice.study_hash, reason, notice.signature)\n",
            "",
        ),
        (
            "an acknowledgement needs no signature",
            "        require_acknowledgement(notice.identity,",
            "        str(),(notice.identity,",
        ),
        (
            "anyone's identity speaks for a party",
            "if not follows(self._store, party, study.roster",
            "if False and follows(self._store, party, study.roster",
        ),
        (
            "heads are told to anybody",
            "return told if self._note_head(party, identity, head) else",
            "return told if [self._note_head(party, identity, head)] else",
        ),
        (
            "heads of strangers are kept",
            "if not self._store.is_pinned(party, fingerprint(identity)) or not",
            "if not",
        ),
    ),
    *edits_of(
        "curator/records.py",
        f"{CURATOR}/test_party_handler.py",
        ("a head may have any size", "or not head.is_sound():", "or False:"),
        (
            "a head needs no signature",
            'return verify(identity, "head", head.statement(), self.signature)',
            "return True",
        ),
    ),
    *edits_of(
        "curator/store.py",
        (f"{CURATOR}/test_store.py", f"{CURATOR}/test_party_handler.py"),
        (
            "an end is told to whom it does not concern",
            "WHERE party = ? AND key = ? AND",
            "WHERE party = ? AND ? <> '' AND",
        ),
    ),
    *edits_of(
        "party/daemon.py",
        "tests/adversary/test_signed_notices.py",
        (
            "anybody announces studies",
            "            require_announcement(self._curator_key,",
            "            str(),(self._curator_key,",
        ),
        ("anybody ends studies", "            require_end(self._curator_key,", "            str(),(self._curator_key,"),
        (
            "what nobody announced is declined",
            "            self._waiting.add(move.study_hash)\n            return\n",
            "            self._decline(move.study_hash, unsigned)\n            return\n",
        ),
        ("an old ledger frees what it forgot", "if len(approval.charges) < len(steps):", "if False:"),
        (
            "a no that is not taken is told for ever",
            "            if self._is_new(study_hash, error):",
            "            if True:",
        ),
        ("an end that cannot be acknowledged is told for ever", "if move.kind in OUTCOMES:  #", "if False:  #"),
    ),
)

HEADS = (
    *edits_of(
        "common/protocol/heads.py",
        "tests/adversary/test_rolled_back_party.py",
        ("a clone of the same length passes", "if is_beside or is_behind:", "if is_behind:"),
        ("a shorter ledger passes", "if is_beside or is_behind:", "if is_beside:"),
        (
            "one's own old ledger goes on",
            "if any(own[head.sequence - 1 : head.sequence] != [head.hash] for",
            "if any(False for",
        ),
        ("studies side by side accuse the honest", "and stated.approved.sequence not in known", "and True"),
    ),
    *edits_of(
        "common/protocol/heads.py",
        f"{PROTOCOL}/test_transcript.py",
        ("a head may be before its past", "and all(before < after for", "and all(True for"),
        (
            "heads may be of several ledgers",
            "head.is_sound() and head.ledger == self.approved.ledger",
            "head.is_sound()",
        ),
        ("any number of heads may be stated", "and len(self.open) <= MOST_OPEN_HEADS", "and True"),
    ),
    *edits_of(
        "common/protocol/transcript.py",
        f"{PROTOCOL}/test_transcript.py",
        ("T does not cover the heads", "e.nonce.hex(), e.heads.to_json()]", "e.nonce.hex()]"),
        (
            "an enrolment does not cover the heads",
            '            "heads": self.heads.to_json(),\n        }\n\n    def signed_by',
            "        }\n\n    def signed_by",
        ),
        ("heads may be anything", "if not enrolment.heads.is_sound():", "if False:"),
    ),
    *edits_of(
        "party/rounds.py",
        "tests/adversary/test_rolled_back_party.py",
        (
            "nobody looks at the others' ledgers",
            "        check_not_rolled_back(other.name,",
            "        str(), (other.name,",
        ),
        ("nobody remembers the others' ledgers", "    responder.ledger.witness(", "    str(), ("),
        (
            "one's own heads in T are passed over",
            '    check_own_heads(own.heads, responder.ledger.hashes(), shown_by="the transcript of a study shows")\n',
            "    del own\n",
        ),
    ),
    *edits_of(
        "party/ledger.py",
        "tests/adversary/test_rolled_back_party.py",
        (
            "what was witnessed is of any identity",
            '"SELECT sequence, hash FROM witnessed WHERE identity = ? AND',
            "\"SELECT sequence, hash FROM witnessed WHERE ? <> x'' AND",
        ),
        ("an ended study counts as open", 'elif entry["kind"] in ("revoked", "closed"):', "elif False:"),
        (
            "what is witnessed grows for ever",
            "ORDER BY sequence DESC LIMIT ?3)",
            "ORDER BY sequence DESC LIMIT ?3 * 0 - 1)",
        ),
    ),
    *edits_of(
        "party/release.py",
        f"{PARTY}/test_own_release.py",
        (
            "a release does not show an old ledger",
            '    check_own_heads(stated_heads, own_hashes, shown_by="the release shows", code=Code.CHECK_FAILED)\n',
            "    del stated_heads, own_hashes\n",
        ),
    ),
)
