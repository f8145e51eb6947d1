"""Edits of what is encrypted, masked and signed, and of what a release shows to whoever verifies it."""

from tests.mutants.edit import edits_of

CRYPTO = "tests/unit/common/crypto"
PROTOCOL = "tests/unit/common/protocol"
QUERIES = "tests/unit/common/protocol/queries"
PARTY = "tests/unit/party"
CURATOR = "tests/unit/curator"
ALTERED = "tests/adversary/test_altered_release.py"

CRYPTOGRAPHY = (
    *edits_of(
        "party/masks.py",
        f"{PARTY}/test_masks.py",
        ("masks are not bound to the pair", "+ places + len(label", "+ len(label"),
        (
            "masks are not bound to the round",
            'len(label.encode()).to_bytes(2, "big") + label.encode() + query',
            "query",
        ),
        ("masks are not bound to Q", "label.encode() + query", "label.encode()"),
        ("masks are not bound to T", "salt=transcript,", "salt=None,"),
        ("label and Q can trade bytes", 'len(label.encode()).to_bytes(2, "big") + ', ""),
        ("masks are not uniform", "EXTRA_BITS = 128", "EXTRA_BITS = 0"),
        (
            "there is one mask for all ciphertexts",
            "masks = draw_masks(key, len(blinded), modulus)",
            "masks = draw_masks(key, 1, modulus) * len(blinded)",
        ),
        (
            "a weak key is taken",
            "raise check_failed(\"another party's exchange key",
            "agreed = bytes(32)  # \"another party's exchange key",
        ),
    ),
    *edits_of(
        "party/answer.py",
        f"{PARTY}/test_answer.py",
        ("coins are not bound to Q", "self.step.label, self.query_hash.hex()))", "self.step.label))"),
        (
            "coins are bound to T",
            "self.step.label, self.query_hash.hex()))",
            "self.step.label, self.query_hash.hex(), self.transcript_hash.hex()))",
        ),
        ("coins are not bound to the round", "derive(purpose, self.step.label, ", "derive(purpose, "),
        (
            "the noise of one's own tables is not bound to Q",
            'coins = asked.coins("noise", secrets)\n    return query',
            'coins = Coins(secrets.derive("noise", asked.step.label))\n    return query',
        ),
        (
            "the noise of one's own tables is bound to T",
            'coins = asked.coins("noise", secrets)\n    return query',
            "coins = asked.coins(asked.transcript_hash.hex(), secrets)\n    return query",
        ),
        (
            "the coins of a choice are not bound to Q",
            'coins = asked.coins("choice", secrets)',
            'coins = Coins(secrets.derive("choice", asked.step.label))',
        ),
        (
            "the coins of a choice are bound to T",
            'coins = asked.coins("choice", secrets)',
            "coins = asked.coins(asked.transcript_hash.hex(), secrets)",
        ),
        (
            "secrets are not bound to the snapshot",
            "self.study_hash.hex(), self.snapshot.hex(), *inputs",
            "self.study_hash.hex(), *inputs",
        ),
        ("secrets are not bound to the study", "[purpose, self.study_hash.hex(), ", "[purpose, "),
        ("secrets are not bound to their purpose", "[purpose, self.study_hash.hex()", "[self.study_hash.hex()"),
        (
            "obfuscators are not bound to T",
            "asked.query_hash.hex(), asked.transcript_hash.hex())",
            "asked.query_hash.hex())",
        ),
        (
            "a sum has no noise",
            "values += sample_runs(terms.runs, coins=coins)",
            "sample_runs(terms.runs, coins=coins)",
        ),
    ),
    *edits_of(
        "common/crypto/packing.py",
        f"{CRYPTO}/test_packing.py",
        ("masks that did not cancel pass", "if sums >> layout.width * slots:", "if False:"),
        ("nothing is spare on top", "SPARE_BITS = 64", "SPARE_BITS = 0"),
        ("there is no room for noise", "high + noise_bound\n", "high\n"),
        (
            "sums run into each other",
            "width = max(1, (high - low).bit_length())",
            "width = max(1, (high - low).bit_length() - 1)",
        ),
    ),
    *edits_of(
        "common/crypto/paillier.py",
        f"{CRYPTO}/test_paillier.py",
        ("the obfuscator's exponent has 64 bits", "return (self.bits + 1) // 2", "return 64"),
        ("h_s may share a factor with n", "if gmpy2.gcd(h_s, n) != 1:", "if False:"),
        ("n may be of any length", "if n.bit_length() != bits or n < 0:", "if n < 0:"),
        ("n may be even", "if n % 2 == 0:", "if False:"),
        ("h_s may be one", "if not 1 < h_s < n * n:", "if not 0 < h_s < n * n:"),
        ("ciphertexts may share a factor with n", "if gmpy2.gcd(product, n) != 1:", "if False:"),
        ("primes are of any form", "(0b11 << (bits - 2)) | 0b11", "(0b11 << (bits - 2)) | 0b01"),
        (
            "all ciphertexts have one obfuscator",
            "return coins.draw_bytes(count * _exponent_bytes(public))",
            "return count * coins.draw_bytes(_exponent_bytes(public))",
        ),
    ),
    *edits_of(
        "common/crypto/identity.py",
        f"{CRYPTO}/test_identity.py",
        ("a signature has no context", 'b"synod/v1/" + context.encode() + b"\\0"', 'b"synod/v1/"'),
        ("every signature is valid", "        return False\n", "        return True\n"),
        ("an invalid signature is passed over", "if not verify(public_key, context, value, signature):", "if False:"),
    ),
    *edits_of(
        "common/crypto/canonical.py",
        f"{CRYPTO}/test_canonical.py",
        ("keys are not sorted", "keys = sorted(value) if", "keys = list(value) if"),
        ("all keys are sorted as if they were ASCII", '"".join(value).isascii()', "True"),
        ("integers that others round are written", "if abs(value) > LARGEST_INTEGER:", "if False:"),
    ),
)

STATEMENTS = (
    *edits_of(
        "common/protocol/envelope.py",
        f"{PROTOCOL}/test_envelope.py",
        ("an altered document is read", "if not verify(signer, context, whole, signature):", "if False:"),
        ("a signature has two spellings", "if data.hex() != text:", "if False:"),
    ),
    *edits_of(
        "common/protocol/submission.py",
        f"{PROTOCOL}/test_submission.py",
        ("an account is of any transcript", '"transcript": transcript.hex(),', '"transcript": "",'),
        ("an account is of any queries", "[step.label, step.query, str(step.cost)]", "[step.label, str(step.cost)]"),
        ("an answer's bytes are not signed", '"digest": self.digest.hex(),', '"digest": "",'),
        ("an answer is of any question", '"query": self.query.hex(),', '"query": "",'),
        ("an account passes for an answer", 'identity.sign("account"', 'identity.sign("answer"'),
    ),
    *edits_of(
        "common/protocol/transcript.py",
        f"{PROTOCOL}/test_transcript.py",
        ("T does not cover the rows", "e.exchange.hex(), entry.rows, e.nonce", "e.exchange.hex(), 0, e.nonce"),
        ("T does not cover the key", "self.key.to_json(), self.curator.hex(), roster]", "self.curator.hex(), roster]"),
        ("T does not cover the curator", "self.curator.hex(), roster]", "roster]"),
        ("anyone may sign a transcript", "if signed.signer != transcript.curator:", "if False:"),
        ("anyone's identity enrols", "if fingerprint(enrolment.identity) != pinned[enrolment.name]:", "if False:"),
        (
            "two parties may have one exchange key",
            "if len({e.exchange for e in",
            "if False and len({e.exchange for e in",
        ),
    ),
    *edits_of(
        "common/protocol/queries/parsing.py",
        (f"{QUERIES}/test_query_parsing.py", f"{QUERIES}/test_query_marginals.py"),
        ("Q does not cover the cost", '"cost": str(step.cost),', ""),
        ("Q does not cover the threshold", '"collusion": study.collusion,', ""),
        ("Q does not cover the roster", '"roster": [entry.model_dump(mode="json") for entry in study.roster],', ""),
        ("Q does not cover noise and packing", "**query.binding(step, study),", ""),
        ("a query has two spellings", "if not _is_form_of(data, query):", "if False:"),
        (
            "a message may hold more than its query",
            "if query.to_proto().SerializeToString(deterministic=True) !=",
            "if False and b'' !=",
        ),
    ),
    *edits_of(
        "common/protocol/manifest.py",
        f"{PROTOCOL}/test_manifest.py",
        (
            "nobody signed for what it spent",
            'if not verify(enrolment.identity, "account"',
            'if False and not verify(enrolment.identity, "account"',
        ),
        (
            "an account may be other than the plan",
            "if canonical_bytes(stated) != canonical_bytes(account.to_json()):",
            "if False:",
        ),
        ("the stated noise may be other", "if canonical_bytes(noise_law(study, queries)) !=", "if False and b'' !="),
        ("the stated plan may be other", "if canonical_bytes(plan_study(study).to_json()) !=", "if False and b'' !="),
        ("files may be altered", "if not path.is_file() or facts !=", "if not path.is_file() and facts !="),
        ("files may be added", "for name in sorted(present - set(files)):", "for name in ():"),
        (
            "answers need no signature",
            'if not verify(enrolment.identity, "answer"',
            'if False and not verify(b"", "answer"',
        ),
        ("anybody may seal a release", "if signed.signer != transcript.curator:", "if False:"),
        ("queries may be larger than planned", "            check_within(query, step, study)\n", "            pass\n"),
        ("the transcript may be of others", "    check_transcript(transcript, run.study, run.study_hash)\n", ""),
    ),
)

RELEASED = (
    *edits_of(
        "common/protocol/manifest.py",
        f"{ALTERED}::test_answers_of_two_parties_exchanged",
        (
            "a party's answer may be other than it signed",
            "if (len(payload), digest_of(payload)) !=",
            "if False and b'' !=",
        ),
    ),
    *edits_of(
        "common/protocol/answers.py",
        f"{PROTOCOL}/test_released_answers.py",
        ("what numbers are of may be anything", "        if not same:\n", "        if False:\n"),
        (
            "deviations may be anything",
            "other.drop_null().to_numpy(), rtol=CLOSE",
            "other.drop_null().to_numpy(), rtol=9",
        ),
        ("an answer may have any length", "or many not in (None, sum(rows))", ""),
        ("choices may be any", "query.read_answer(payload, self._study, party)", "del party"),
        ("numbers may be other than read", "    for name in SCHEMA.names:\n", '    for name in ("of", "party"):\n'),
    ),
    *edits_of(
        "curator/release/rerun.py",
        (f"{ALTERED}::test_a_query_that_is_not_the_methods", f"{ALTERED}::test_numbers_that_cannot_be_true"),
        ("the curator may ask what it likes", "if not (self.is_lenient and is_close(own, theirs)):", "if False:"),
        ("sums may be impossible", "CHECKED[query.kind](query, study, query.terms(step, study), sums)", "pass"),
    ),
    *edits_of(
        "curator/release/rerun.py",
        (f"{ALTERED}::test_a_fit_of_its_own", f"{ALTERED}::test_another_report"),
        ("the model may be any", "        judge.differs(MODEL_FILE)\n", "        pass\n"),
        ("the report may be any", "        judge.differs(REPORT_FILE)\n", "        pass\n"),
        ("what differs is never refused", "        if not self.others:\n", "        if False:\n"),
    ),
    *edits_of(
        "curator/release/rerun.py",
        f"{ALTERED}::test_one_other_row_in_both_tables",
        ("rows are not compared", "        drawn = check(publication)\n", "        drawn = None\n"),
    ),
    *edits_of(
        "curator/release/rerun.py",
        f"{CURATOR}/release/test_rerun.py",
        ("which and how many may be rounded", "1 if largest >= FINE else 0", "1"),
        ("queries may be left out", "            if label not in self.asked:\n", "            if False:\n"),
        ("a query may always be rounded", "if not (self.is_lenient and is_close", "if not (True and is_close"),
        ("the model may always be rounded", "elif judge.others and is_close(", "elif is_close("),
        ("what differs is not said", "        self.unproven.append(\n", "        str(\n"),
    ),
    *edits_of(
        "curator/release/redraw.py",
        (
            f"{ALTERED}::test_one_table_with_rows_in_another_order",
            f"{ALTERED}::test_another_model_than_the_parties_drew_from",
            f"{ALTERED}::test_other_rows_than_the_parties_drew",
        ),
        ("the two tables may differ", "    if not one.equals(other):\n", "    if False:\n"),
        ("the model may be other than parties drew from", "if model != query.model.to_json():", "if False:"),
        ("the rows may be other than parties drew", " or _compare_signed_rows(folder, verdict)", ""),
    ),
    *edits_of(
        "curator/release/versions.py",
        (f"{CURATOR}/release/test_rerun.py::test_what_differs_is_named",),
        ("versions excuse nothing", "if stated.get(name) != here[name]", "if False"),
        ("any version is an excuse", "for name in COMPUTING", "for name in here"),
    ),
)
