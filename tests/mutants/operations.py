"""Edits of what keeps a party from forgetting a charge when its machine is lost, and its monitoring from telling more
than it may.
"""

from tests.mutants.edit import Edit

BACKUP = "tests/unit/party/operations/test_backup.py"
SEALED = "tests/unit/common/crypto/test_sealedfile.py"
RESTORE_FILE = "party/operations/restore.py"

RESTORED = tuple(
    Edit(RESTORE_FILE, breaks, old, new, (BACKUP,))
    for breaks, old, new in (
        (
            "a backup behind the curator is restored",
            'raise _behind(backup.head, seen, "the curator") from None',
            "pass",
        ),
        ("a backup behind an export is restored", "if ledger.hash_at(seen.sequence) != seen.hash:", "if False:"),
        ("the curator may be any", "if fingerprint(greeting.curator) != settings.curator:", "if False:"),
        (
            "a head that is not restored is told",
            "greet(backup.identity, Head(1, backup.head.ledger, backup.head.ledger))",
            "greet(backup.identity, backup.head)",
        ),
        ("the ledger may end before its list says", "if ledger.head() != backup.head:", "if False:"),
        ("any member is written anywhere", "or not MEMBER.fullmatch(member.name) ", ""),
        ("hashes are not compared", 'contents["files"] != _without(hashes, CONTENTS_FILE)', "False"),
        (
            "the list may be anybody's",
            'if not verify(identity.public_key, "backup", contents, signature):',
            "if False:",
        ),
        ("a ledger is replaced", "if (settings.state / LEDGER_FILE).exists():", "if False:"),
        ("a new dataset id starts with nothing spent", '["name"], contents["dataset"])', '["name"], settings.dataset)'),
    )
)

OPERATIONS = (
    *RESTORED,
    Edit(
        "party/operations/backup.py",
        "ledger and snapshots are of different moments",
        "if ledger.head() == head:",
        "if True:",
        (BACKUP,),
    ),
    Edit(
        "party/daemon.py",
        "two copies charge at once",
        "            self._check_alone()\n",
        "            pass\n",
        ("tests/simulation/test_lost_ledger.py",),
    ),
    Edit("common/crypto/sealedfile.py", "the end may be cut off", "+ bytes([last])", "+ bytes([0])", (SEALED,)),
    Edit("common/crypto/sealedfile.py", "chunks may be swapped", "number.to_bytes(", "(0).to_bytes(", (SEALED,)),
    Edit(
        "common/runtime/settings.py",
        "metrics are shown to the network",
        "is_local = ip_address(host).is_loopback",
        "is_local = bool(ip_address(host))",
        ("tests/unit/common/runtime/test_settings.py",),
    ),
    Edit(
        "common/runtime/metrics.py",
        "a metric tells how long a daemon was busy",
        "return int(seconds) // MINUTE_SECONDS * MINUTE_SECONDS",
        "return int(seconds)",
        ("tests/unit/party/operations/test_party_metrics.py",),
    ),
)
