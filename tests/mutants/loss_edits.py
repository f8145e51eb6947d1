"""The edits of `make mutants` about lost parties: who takes part in a sum, and what follows from it."""

from tests.mutants.edit import Edit

PRESENT = "tests/unit/common/protocol/queries/test_query_present.py"


def _edits(file: str, tests: tuple[str, ...], *changes: tuple[str, str, str]) -> tuple[Edit, ...]:
    return tuple(Edit(file, breaks, old, new, tests) for breaks, old, new in changes)


STATED = "tests/adversary/test_stated_losses.py"
LOSING = "tests/unit/curator/test_losing.py"
ATTACKS = "tests/adversary/test_lost_parties.py"
ALLOWED = "tests/unit/party/test_may_lose.py"

LOSSES = (
    *_edits(
        "common/study/losses.py",
        (PRESENT,),
        ("fewer may stay than collude", "max(collusion + 1, 2)", "2"),
        ("one party may stay alone", "max(collusion + 1, 2)", "collusion + 1"),
    ),
    *_edits(
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
    *_edits(
        "common/protocol/queries/marginals.py",
        (PRESENT,),
        ("a share is as small as among all", "part=part, parties=len(self.places(study))", "part=part"),
        ("room is for the noise of all", "part=least, parties=study.fewest_parties", "part=least"),
    ),
    *_edits(
        "common/protocol/queries/agreements.py",
        (PRESENT,),
        (
            "a share is as small as among all",
            "self.sensitivity(study), parties=len(self.places(study))",
            "self.sensitivity(study)",
        ),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
    *_edits(
        "common/protocol/queries/moments.py",
        (PRESENT,),
        ("a share is as small as among all", "sensitivity, parties=len(self.places(study))", "sensitivity"),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
    *_edits(
        "party/rounds.py",
        (ATTACKS,),
        ("8: a sum may be without the party that answers", "if index not in places:", "if False:"),
        ("8: who was left out may come back", "if before and not set(places) <= set(before):", "if False:"),
        ("8: who is present is not looked at", "    check_present(query, index, approval, study)\n", ""),
        ("who was present is not in the ledger", 'entry["present"] = list(asked.query.present)', "pass"),
    ),
    *_edits(
        "party/account.py",
        (ATTACKS,),
        ("who was present is forgotten", "cost, present)", "cost)"),
    ),
    *_edits(
        "party/masks.py",
        (ATTACKS,),
        ("masks with absent parties stay", "if other == index or other not in present:", "if other == index:"),
    ),
    *_edits(
        "party/policy.py",
        (ALLOWED,),
        ("parties that may be lost count", "_require(left, study.fewest_parties,", "_require(left, len(study.roster),"),
    ),
    *_edits(
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
    *_edits(
        "curator/roster/losses.py",
        (STATED, LOSING),
        ("more are lost than the study allows", ">= study.may_lose:", "> study.may_lose:"),
        (
            "nobody is waited for before a sum opens",
            "if name not in lost and not context.is_here(",
            "if False and context.is_here(",
        ),
    ),
    *_edits(
        "common/protocol/queries/rows.py",
        (PRESENT,),
        ("anybody may be present", "        self.check_present(study)\n", ""),
    ),
)
