"""Edits of what a party refuses, and of its ledger and keys."""

from tests.mutants.edit import edits_of

PROTOCOL = "tests/unit/common/protocol"
QUERIES = "tests/unit/common/protocol/queries"
PARTY = "tests/unit/party"
CURATOR = "tests/unit/curator"

PARTY_CHECKS = (
    *edits_of(
        "common/protocol/queries/base.py",
        (f"{PARTY}/test_rounds.py", f"{QUERIES}/test_query_parsing.py", f"{QUERIES}/test_query_parents.py"),
        ("a query may be of another kind", "if query.kind is not step.kind:", "if False:"),
        ("a query may be of any size", "if any(one > most for", "if any(False for"),
        ("a query may use another score", "if size.score != limit.score:", "if False:"),
        ("a query may have any options", "if query.exceeds(limit, study):", "if False:"),
    ),
    *edits_of(
        "party/rounds.py",
        (f"{PARTY}/test_rounds.py", "tests/adversary/test_lying_curator.py"),
        ("any curator's transcript is taken", "if fingerprint(transcript.curator) != responder.curator:", "if False:"),
        ("a transcript of others is taken", "    check_transcript(transcript, study, study.digest())\n", ""),
        (
            "a question that nobody signed is answered",
            "    require_query_signature(transcript.curator,",
            "    str(transcript.curator,",
        ),
        (
            "other keys than one's own are taken",
            "if transcript.enrolments[index] != enrol(responder,",
            "if False and (responder,",
        ),
        ("an unsound key is taken", "    check_public_key(transcript.key.n, transcript.key.h_s, study.key_bits)\n", ""),
        ("a second transcript is answered", "if any(charge.transcript != transcript_hash.hex()", "if any(False"),
        (
            "any step is answered",
            "if answered >= len(steps) or steps[answered].label != label:",
            "if answered >= len(steps):",
        ),
        ("the plan's limits are passed over", "    check_within(query, step, study)\n", ""),
        ("an ended approval is open", "if approval.state is not ApprovalState.OPEN:", "if False:"),
    ),
    *edits_of(
        "party/policy.py",
        f"{PARTY}/test_policy.py",
        ("another's key is one's own", "if entries[settings.name].key != own_key:", "if False:"),
        ("any method is allowed", "if settings.methods is not None and", "if False and"),
        (
            "any threshold is allowed",
            '    _require("collusion", study.collusion, "min_collusion", settings.min_collusion)\n',
            "",
        ),
        (
            "any number of parties is allowed",
            '    _require(left, study.fewest_parties, "min_parties", settings.min_parties)\n',
            "",
        ),
        ("any key is allowed", '    _require("key_bits", study.key_bits, "min_key_bits", settings.min_key_bits)\n', ""),
        ("any column is allowed", "        if extra:", "        if False:"),
        (
            "the unit of privacy is given away",
            "if settings.unit in {attribute.name",
            "if settings.unit == {attribute.name",
        ),
        ("local answers need no leave", "if not settings.allow_local_queries and any(", "if False and any("),
        ("any number of cells is allowed", "if step.limit.numbers > settings.max_cells:", "if False:"),
        ("one study may cost anything", "if not cost.fits_within(cap):", "if False:"),
        ("a large delta is allowed", "if cap is not None and is_large_delta(cap.delta, own_rows):", "if False:"),
    ),
    *edits_of(
        "party/table/encode.py",
        f"{PARTY}/table/test_encode.py",
        ("a table may have more rows than the roster says", "if rows != expected_rows:", "if False:"),
        ("a person may have several rows", "    if beyond:", "    if False:"),
        ("values outside of the domain are taken", "broken[rule] =", "_ ="),
    ),
    *edits_of(
        "party/table/snapshot.py",
        f"{PARTY}/table/test_snapshot.py",
        ("another table than the approved one is used", "if seal(snapshot.digest()) != sealed:", "if False:"),
        (
            "a digest is of the shape alone",
            "running.update(np.ascontiguousarray(part).data)",
            "np.ascontiguousarray(part)",
        ),
    ),
)

LEDGER = (
    *edits_of(
        "party/ledger.py",
        f"{PARTY}/test_ledger.py",
        ("room is not checked where it is taken", "            account.check_room(dataset, cost, cap)\n", ""),
        (
            "a charge may be beyond the reservation",
            'if not Cost.parse(str(charge["cost"])).fits_within(approval.held):',
            "if False:",
        ),
        (
            "an ended study may be charged",
            "if approval is None or approval.state is not ApprovalState.OPEN:\n                raise",
            "if approval is None:\n                raise",
        ),
        ("a study may be approved twice", "if study_hash.hex() in account.approvals:", "if False:"),
        ("a broken chain is opened", "canonical_hash(entry) != digest:", "False:"),
        ("entries may be taken out", 'entry["previous"] != previous.hex() or ', ""),
        ("an emptied ledger is opened", "if previous == GENESIS:", "if False:"),
        ("less may be declared", "if before is not None and not before.fits_within(spent):", "if False:"),
        (
            "an answer is stored without its charge",
            '            _append(self._connection, {"kind": "charged"',
            '            _ = (self._connection, {"kind": "charged"',
        ),
        (
            "an answer may be replaced by another",
            '"INSERT INTO answers VALUES',
            '"INSERT OR REPLACE INTO answers VALUES',
        ),
        (
            "a ledger is made anew over another",
            '        if path.exists():\n            raise invalid(f"there is a ledger',
            '        if False:\n            raise invalid(f"there is a ledger',
        ),
    ),
    *edits_of(
        "party/ledger.py",
        "tests/adversary/test_cloned_ledger.py",
        ("a head tells the entry that it is of", "salt = secrets.token_hex(KEY_BYTES)", 'salt = "00" * KEY_BYTES'),
    ),
    *edits_of(
        "party/ledger.py",
        "tests/adversary/test_erased_secrets.py",
        ("a study's secret outlives it", '"DELETE FROM study_secrets WHERE', '"SELECT 1 FROM study_secrets WHERE'),
        ("a study's answers outlive it", '"UPDATE answers SET payload', '"UPDATE answers SET header'),
        ("a log keeps what a page does not", "        empty_log(self._connection)\n", ""),
        ("a killed process's log keeps it", "                empty_log(connection)\n", "                pass\n"),
        ("all studies have the same coins", ' + drawn, "sha256")', ', "sha256")'),
        ("all coins are the ledger's", "        if not drawn:  #", "        if True:  #"),
        ("an older ledger's open study gets other coins", "        if not drawn:  #", "        if False:  #"),
    ),
    *edits_of(
        "common/runtime/sqlite.py",
        "tests/adversary/test_erased_secrets.py",
        ("deleted bytes stay in their page", '"PRAGMA secure_delete = ON"', '"PRAGMA secure_delete = OFF"'),
        ("the log is not cut", "wal_checkpoint(TRUNCATE)", "wal_checkpoint(PASSIVE)"),
    ),
    *edits_of(
        "common/runtime/files.py",
        ("tests/unit/common/runtime/test_erased_files.py", f"{CURATOR}/test_study_handler.py"),
        ("an erased file is only unlinked", "file.write(bytes(os.fstat(file.fileno()).st_size))", "pass"),
    ),
    *edits_of(
        "curator/study_handler.py",
        f"{CURATOR}/test_study_handler.py",
        ("a Paillier key outlives its study", "erase_file(self._key_path(study))", "pass"),
    ),
    *edits_of(
        "common/protocol/rotation.py",
        f"{PROTOCOL}/test_rotation.py",
        (
            "an old key need not sign",
            "    require_signature(rotation.old, CONTEXT, statement, ",
            "    (lambda *_, **__: None)(rotation.old, CONTEXT, statement, ",
        ),
        (
            "a new key need not sign",
            "    require_signature(rotation.new, CONTEXT, statement, ",
            "    (lambda *_, **__: None)(rotation.new, CONTEXT, statement, ",
        ),
        ("a rotation is good for any name", "if rotation.name != name:", "if False:"),
        ("rotations are taken in any order", "if fingerprint(rotation.old) != key:", "if False:"),
    ),
    *edits_of(
        "party/ledger.py",
        f"{PARTY}/test_party_rotation.py",
        ("an identity is rotated in a study", "if is_own or approval.charges:", "if False:"),
        ("a ledger takes rotations in any order", "if is_own and own and (own[-1]", "if False and (own[-1]"),
    ),
    *edits_of(
        "party/rotation.py",
        f"{PARTY}/test_party_rotation.py",
        (
            "an identity from before a rotation serves",
            "if rotations and rotations[-1].new !=",
            "if False and rotations[-1].new !=",
        ),
        (
            "a party's rotation moves the pinned curator",
            "return move_key(CURATOR_NAME, settings.curator, [rotation])",
            "return move_key(rotation.name, settings.curator, [rotation])",
        ),
    ),
    *edits_of(
        "common/crypto/keyrotation.py",
        f"{PARTY}/test_party_rotation.py",
        (
            "an old key is kept",
            "        sync_folder(path.parent)\n    erase_file(aside)",
            "        sync_folder(path.parent)",
        ),
        ("a key in use is erased", "if aside.exists() and aside.samefile(path):", "if False:"),
    ),
    *edits_of(
        "party/rotation.py",
        "tests/adversary/test_rotated_identity.py",
        ("a state from before a rotation goes on", "if rotation.old in keys and rotation not in known:", "if False:"),
        (
            "an earlier key's heads bind nothing",
            "return {identity.public_key, *(",
            "return {identity.public_key} or {*(",
        ),
    ),
    *edits_of(
        "curator/roster/rotation.py",
        f"{CURATOR}/test_curator_rotation.py",
        ("a party rotates another's key", "if rotation.name != party:", "if False:"),
        ("a stranger's key becomes a party's", "if store.is_pinned(party, fingerprint(rotation.old)):", "if True:"),
        ("heads are forgotten with a key", "for rotation in (*earlier, *following))]", "for rotation in ())]"),
        ("a lost identity is made anew", "if (settings.state / STORE_FILE).exists():", "if False:"),
        ("the curator rotates in a study", "in store.open_studies():", "in store.open_studies()[:0]:"),
    ),
    *edits_of(
        "curator/party_store.py",
        f"{CURATOR}/test_curator_rotation.py",
        ("a key is rotated twice", "if rows and rows[0][0] != new:", "if False:"),
    ),
    *edits_of(
        "party/approval.py",
        f"{PARTY}/test_approval.py",
        ("a lost ledger is a new one", "history_lost=known", "history_lost=False"),
        ("two approve at once", "with one_at_a_time(identity_path(settings)), closing(", "with closing("),
        ("codes of a study that was never approved stay", "if folder.name not in kept:", "if False:"),
        ("a revoked study keeps its rows", "    drop_snapshot(snapshot_folder(settings, study_hash))\n", ""),
        (
            "the table is read for a study beyond the budget",
            "        account.check_room(settings.dataset, cost, settings.cap, delta=settings.shown_delta)\n",
            "",
        ),
    ),
    *edits_of(
        "party/daemon.py",
        "tests/simulation/test_stubborn_curator.py",
        (
            "a stored answer of an ended study is sent",
            "if approval is not None and approval.state is not ApprovalState.OPEN:\n            raise",
            "if False:\n            raise",
        ),
        (
            "`auto` goes on after a table that does not fit",
            "self._auto_approves = not isinstance(error, TableError)",
            "self._auto_approves = True",
        ),
        ("another curator is greeted", "if fingerprint(greeting.curator) != self._settings.curator:", "if False:"),
        ("an old answer is computed again", "        if stored is None:\n", "        if True:\n"),
    ),
    *edits_of(
        "party/daemon.py",
        "tests/simulation/test_lost_ledger.py",
        ("a ledger that is behind goes on", "if ledger.hash_at(head.sequence) != head.hash:", "if False:"),
    ),
)
