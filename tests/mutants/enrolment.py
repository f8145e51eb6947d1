"""The edits of `make mutants` about what waits for a party's operator, and about joining a curator."""

from tests.mutants.edit import Edit

ANNOUNCED = "tests/unit/party/inbox/test_announced.py"
INBOX = "tests/unit/deploy/cli/test_cli_inbox.py"
VIEWS = "tests/unit/party/inbox/test_views.py"
JOIN = "tests/unit/deploy/enrolment/test_join.py"

ENROLMENT = (
    Edit(
        "party/inbox/announced.py",
        "`auto` approves another study than the announced, and the operator is shown one",
        "if study.digest() != study_hash:",
        "if False:",
        ("tests/simulation/test_stubborn_curator.py", ANNOUNCED),
    ),
    Edit(
        "party/inbox/announced.py",
        "an announcement that nobody signed is kept",
        "    require_announcement(curator, study_hash, signature)\n",
        "",
        (ANNOUNCED,),
    ),
    Edit(
        "party/inbox/announced.py",
        "what another curator announced is listed",
        "if fingerprint(bytes(key)) != curator:",
        "if False:",
        (ANNOUNCED,),
    ),
    Edit(
        "party/inbox/announced.py",
        "a study that was exchanged in the file is listed",
        "        require_announcement(bytes(key), study.digest(), bytes(signature))\n",
        "",
        (ANNOUNCED,),
    ),
    Edit(
        "party/inbox/announced.py",
        "announced studies are kept without end",
        'LIMIT ?)",\n            (MOST_STUDIES,),',
        'LIMIT ?)",\n            (1 << 40,),',
        (ANNOUNCED,),
    ),
    Edit(
        "party/inbox/listing.py",
        "a study is approved that has another hash than the operator has seen",
        "if not study_hash.startswith(prefix):",
        "if False:",
        (INBOX,),
    ),
    Edit(
        "party/inbox/listing.py",
        "a few digits are enough of a hash",
        "SHORTEST_PREFIX = 16",
        "SHORTEST_PREFIX = 4",
        (INBOX,),
    ),
    Edit(
        "deploy/cli/party/inbox.py",
        "a script approves an announced study unseen",
        "if yes and prefix is None:",
        "if False:",
        (INBOX,),
    ),
    Edit(
        "party/inbox/views.py",
        "what is left is told without what open studies hold",
        "remains = cap.left_after(spent + held)",
        "remains = cap.left_after(held)",
        (VIEWS,),
    ),
    Edit(
        "deploy/enrolment/kit.py",
        "a kit of another curator is taken",
        "if kit.curator != expected:",
        "if False:",
        (JOIN,),
    ),
    Edit(
        "deploy/cli/party/join.py",
        "a script joins a curator whose fingerprint nobody compared",
        "    if not sys.stdin.isatty():\n        raise refused(",
        "    if not sys.stdin.isatty():\n        return\n        raise refused(",
        (JOIN,),
    ),
)
