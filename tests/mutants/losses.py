"""The edits of `make mutants` about lost parties: who takes part in a sum, and what follows from it."""

from tests.mutants.edit import edits_of

PRESENT = "tests/unit/common/protocol/queries/test_query_present.py"

STATED = "tests/adversary/test_stated_losses.py"
LOSING = "tests/unit/curator/test_losing.py"
ATTACKS = "tests/adversary/test_lost_parties.py"
ALLOWED = "tests/unit/party/test_may_lose.py"
ANYWHERE = "tests/simulation/test_losing_anywhere.py"

LOSSES = (
    *edits_of(
        "common/study/losses.py",
        (PRESENT,),
        ("fewer may stay than collude", "max(collusion + 1, 2)", "2"),
        ("one party may stay alone", "max(collusion + 1, 2)", "collusion + 1"),
    ),
    *edits_of(
        "common/protocol/queries/base.py",
        (PRESENT,),
        ("too few may take part", "study.fewest_parties <= len(listed) < len", "len(listed) < len"),
        ("everybody may be written out", "<= len(listed) < len(study.roster)", "<= len(listed)"),
        ("a place may be anywhere", "is_ascending(listed, len(study.roster)) and", "True and"),
        (
            "Q does not say who takes part",
            'return {"present": list(self.present)} if self.present else {}',
            "return {}",
        ),
        (
            "the rows are everybody's",
            "rows for place in self.places(study))",
            "rows for place in range(len(study.roster)))",
        ),
        ("room is for the noise of all", "if study.may_lose else (), study)", "if False else (), study)"),
    ),
    *edits_of(
        "common/protocol/queries/marginals.py",
        (PRESENT,),
        ("a share is as small as among all", "part=part, parties=len(self.places(study))", "part=part"),
        ("room is for the noise of all", "part=least, parties=study.fewest_parties", "part=least"),
    ),
    *edits_of(
        "common/protocol/queries/agreements.py",
        (PRESENT,),
        (
            "a share is as small as among all",
            "self.sensitivity(study), parties=len(self.places(study))",
            "self.sensitivity(study)",
        ),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
    *edits_of(
        "common/protocol/queries/moments.py",
        (PRESENT,),
        ("a share is as small as among all", "sensitivity, parties=len(self.places(study))", "sensitivity"),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
    *edits_of(
        "party/rounds.py",
        (ATTACKS,),
        ("8: a sum may be without the party that answers", "if index not in places:", "if False:"),
        ("8: who was left out may come back", "if before and not set(places) <= set(before):", "if False:"),
        ("8: who is present is not looked at", "    check_present(query, index, approval, study)\n", ""),
        ("who was present is not in the ledger", 'entry["present"] = list(asked.query.present)', "pass"),
    ),
    *edits_of(
        "party/account.py",
        (ATTACKS,),
        ("who was present is forgotten", "cost, present)", "cost)"),
    ),
    *edits_of(
        "party/masks.py",
        (ATTACKS,),
        ("masks with absent parties stay", "if other == index or other not in present:", "if other == index:"),
    ),
    *edits_of(
        "party/policy.py",
        (ALLOWED,),
        ("parties that may be lost count", "_require(left, study.fewest_parties,", "_require(left, len(study.roster),"),
    ),
    *edits_of(
        "common/protocol/losses.py",
        (STATED,),
        ("more may be lost than the study allows", " or len(lost) > study.may_lose:", ":"),
        (
            "a party may be missing that is not lost",
            "if len(answered) < len(planned) and party not in names:",
            "if False:",
        ),
        (
            "the first step without a party may be another",
            "if one.since != first_without(",
            "if False and first_without(",
        ),
    ),
    *edits_of(
        "curator/roster/losses.py",
        (STATED, LOSING),
        ("more are lost than the study allows", ">= study.may_lose:", "> study.may_lose:"),
        (
            "nobody is waited for before a sum opens",
            "if name not in lost and not context.is_here(",
            "if False and context.is_here(",
        ),
    ),
    *edits_of(
        "curator/party_handler.py",
        "tests/unit/curator/test_party_handler.py",
        (
            "a party that died after its answer is taken to be here",
            "        self._store.add_submission(party, submission, payload)\n        self._context.away.add(party)",
            "        self._store.add_submission(party, submission, payload)",
        ),
        (
            "a party that was cut off is taken to be here",
            'stopped, died, or lost the network."""\n        self._context.away.add(party)',
            'stopped, died, or lost the network."""',
        ),
    ),
    *edits_of(
        "curator/roster/losses.py",
        (ANYWHERE,),
        ("a party may be lost while others enrol", "if store.state(record) is State.ENROLLING:", "if False:"),
        (
            "a party that revokes is lost though an open sum waits for it",
            "if not record.study.may_lose or (query and _is_awaited(",
            "if not record.study.may_lose or (False and _is_awaited(",
        ),
        (
            "the open step of a lost party is waited for",
            'return query.label if step.kind.is_local and party in step.answerers else ""',
            'return ""',
        ),
    ),
    *edits_of(
        "curator/party_store.py",
        (ANYWHERE,),
        (
            "the query of a skipped step stays in the log",
            'self._connection.execute("DELETE FROM queries WHERE study = ? AND label = ?", (study_hash, label))',
            "pass",
        ),
    ),
    *edits_of(
        "curator/store.py",
        (LOSING,),
        (
            "who takes part is not read where the sum is opened",
            "assert lost in (None, len(",
            "assert True or lost in (None, len(",
        ),
    ),
    *edits_of(
        "curator/party_handler.py",
        (ANYWHERE,),
        (
            "a lost party can still end the study",
            "if record.outcome is not None or self._is_lost(notice.party, notice.study_hash):",
            "if record.outcome is not None:",
        ),
        (
            "a lost party is not told",
            "return self._close_lost(party, pending) if self._is_lost(party, study_hash) else None",
            "return None",
        ),
    ),
    *edits_of(
        "common/protocol/queries/rows.py",
        (PRESENT,),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
)
