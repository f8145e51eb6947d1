"""Edits of what the curator refuses, and of whom it lets call."""

from tests.mutants.edit import edits_of

CRYPTO = "tests/unit/common/crypto"
CURATOR = "tests/unit/curator"

CURATOR_CHECKS = (
    *edits_of(
        "curator/checks.py",
        f"{CURATOR}/test_checks.py",
        ("1: who has no part may answer", "if party not in answerers_of(query, step, study):", "if False:"),
        (
            "1: an answer needs no signature",
            'require_signature(asked.identity_of(party), "answer", statement, submission.signature, signer=party)',
            "del statement",
        ),
        (
            "2: an answer may be bound to anything",
            "if bound != (asked.transcript_hash, step.label",
            "if False and bound != (asked.transcript_hash, step.label",
        ),
        (
            "3: an answer may have any length",
            "if submission.length not in answer_bytes(",
            "if False and submission.length not in answer_bytes(",
        ),
        (
            "4: bytes may be other than signed",
            "if len(payload) != submission.length or digest_of(payload) != submission.digest:",
            "if False:",
        ),
        (
            "4: ciphertexts may be anything",
            "        check_ciphertexts(asked.transcript.key, payload",
            "        (asked, payload",
        ),
        (
            "an account needs no signature",
            'require_signature(identity, "account", statement, submission.account_signature, signer=party)',
            "del identity, statement",
        ),
        ("6: totals may be other than the rows", "if abs(total - expected) > bound:", "if False:"),
        (
            "6: marginals may disagree",
            "if np.abs(margin - first).max() >",
            "if False and np.abs(margin - first).max() >",
        ),
        (
            "6: a count may be anything",
            "if any(table.min() < -bound or table.max() > rows + bound for",
            "if any(False for",
        ),
        (
            "6: a party's tables are compared with all rows",
            "study.roster[study.index_of(party)].rows, bound_noise",
            "study.total_rows, bound_noise",
        ),
        ("6: a moment may be anything", "if moments.min() < terms.low - terms.noise_bound or", "if False or"),
        ("6: agreements may contradict each other", "if (both + square).min() < rows - 3 * bound or", "if False or"),
    ),
    *edits_of(
        "curator/combine.py",
        (f"{CURATOR}/test_combine.py", "tests/adversary/test_lying_party.py"),
        ("sums are not checked", "    CHECKED[query.kind](query, study, terms, sums)\n", ""),
        (
            "marginals are not checked",
            "    check_marginals(study, terms, query, query.split(sums, study))\n",
            "    del query, study, terms, sums\n",
        ),
        (
            "moments are not checked",
            "    check_moments(study, terms, sums, query.present_rows(study))\n",
            "    del query\n",
        ),
        (
            "agreements are not checked",
            "    check_agreements(study, terms, query.split(sums, study), query.present_rows(study))\n",
            "    del query, study, terms, sums\n",
        ),
        ("a party's own tables are not checked", "    check_local_marginals(party, step, study, query, tables)\n", ""),
    ),
    *edits_of(
        "curator/store.py",
        (f"{CURATOR}/test_store.py", f"{CURATOR}/test_party_handler.py"),
        ("5: a second answer is taken for the first", "elif stored != submission:", "elif False:"),
        ("a party may enrol again with other keys", "if stored not in (None, enrolment):", "if False:"),
        ("a query may change on replay", "if bytes(rows[0][0]) != body:", "if False:"),
    ),
    *edits_of(
        "curator/party_store.py",
        (f"{CURATOR}/test_store.py", f"{CURATOR}/test_party_handler.py"),
        ("an old head replaces a newer one", "if highest is None or highest.sequence < head.sequence:", "if True:"),
        (
            "an identity may fill the store with ledgers",
            "ORDER BY rowid DESC LIMIT ?2)",
            "ORDER BY rowid DESC LIMIT ?2 * 0 - 1)",
        ),
    ),
)

CALLERS = (
    *edits_of(
        "curator/callers/access.py",
        f"{CURATOR}/callers/test_access.py",
        (
            "2: a certificate never expires",
            "if not certificate.not_valid_before_utc <=",
            "if False and not certificate.not_valid_before_utc <=",
        ),
        (
            "3: an authority that was replaced stays in force",
            "find_issuer(_parse(pem), x509.load_pem_x509_certificates(ca))",
            "_parse(pem)",
        ),
        (
            "3: a change of authority is seen by new certificates alone",
            "_issuer(pem, self._ca())",
            "_issuer(pem, self.__dict__.setdefault('first', self._ca()))",
        ),
        (
            "3: an authority never expires",
            "issuer is None or not issuer.not_valid_before_utc <= self._clock() <= issuer.not_valid_after_utc",
            "issuer is None",
        ),
        ("4: nothing is revoked", "if self._revoked().has(issuer, certificate.serial_number):", "if False:"),
        ("5: every role may call", "if holder.role not in allowed:", "if False:"),
    ),
    *edits_of(
        "curator/callers/admission.py",
        f"{CURATOR}/callers/test_quotas.py",
        (
            "a message is read before its call is admitted",
            """                with self.admit(service, call):
                    return await method(messages if takes_stream else await _read_one(messages), call)
""",
            """                message = messages if takes_stream else await _read_one(messages)
                with self.admit(service, call):
                    return await method(message, call)
""",
        ),
        (
            "a message of a call with many replies is read before it is admitted",
            """                with self.admit(service, call):
                    async for part in method(messages if takes_stream else await _read_one(messages), call):
""",
            """                message = messages if takes_stream else await _read_one(messages)
                with self.admit(service, call):
                    async for part in method(message, call):
""",
        ),
        (
            "a call waits for its message without end",
            "wait_for(anext(messages), MESSAGE_SECONDS)",
            "wait_for(anext(messages), None)",
        ),
        (
            "a call with many replies runs unadmitted",
            "return stream if inspect.isasyncgenfunction(method) else reply",
            "return method if inspect.isasyncgenfunction(method) else reply",
        ),
    ),
    *edits_of(
        "common/crypto/revocations.py",
        f"{CRYPTO}/test_authority.py",
        (
            "an old list takes revocations back",
            "if issuer in earlier and listed.number < earlier[issuer].number:",
            "if False:",
        ),
        (
            "lists of another authority are compared",
            "if issuer in earlier and listed.number < earlier[issuer].number:",
            "if earlier and listed.number < max(each.number for each in earlier.values()):",
        ),
        (
            "a list of anybody is used",
            "listed.issuer == authority.subject and listed.is_signature_valid(key)",
            "listed.issuer == authority.subject or listed.is_signature_valid(key)",
        ),
        (
            "an authority needs no list",
            "if any(key_fingerprint(authority.public_key()) not in found for authority in authorities):",
            "if not found:",
        ),
        ("a change of authority takes revocations back", "Revocations({**earlier, **found})", "Revocations(found)"),
    ),
    *edits_of(
        "common/crypto/authority.py",
        f"{CRYPTO}/test_authority.py",
        (
            "a revoked key is signed again",
            "if request.fingerprint in {noted[serial] for serial in revoked}:",
            "if False:",
        ),
        (
            "keys whose notes are gone count as good",
            "if revoked - noted.keys():",
            "if revoked - noted.keys() and not noted:",
        ),
        ("damaged notes are passed over in silence", "if notes.unreadable:", "if False:"),
    ),
    *edits_of(
        "curator/study_handler.py",
        f"{CURATOR}/test_study_handler.py",
        ("all studies are described in one turn of the event loop", "            await asyncio.sleep(0)\n", ""),
        ("a list of studies may be larger than a message", "if listed and size > LISTED_BYTES:", "if False:"),
    ),
    *edits_of(
        "common/crypto/issued.py",
        f"{CRYPTO}/test_authority.py",
        (
            "a note runs on from one that was cut off",
            'whole, _, last = before.rpartition(b"\\n")',
            'whole, last = before.removesuffix(b"\\n"), b""',
        ),
    ),
)
