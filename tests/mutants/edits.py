"""The edits of `make mutants`: each takes away or weakens something that a row's privacy, or the soundness of a
release, rests on. Texts are short, so that they outlive other changes; one that is gone is replaced, not dropped.
"""

from tests.mutants.edit import Edit
from tests.mutants.loss_edits import LOSSES

PRIVACY = "tests/unit/common/privacy"
CRYPTO = "tests/unit/common/crypto"
PROTOCOL = "tests/unit/common/protocol"
QUERIES = "tests/unit/common/protocol/queries"
PARTY = "tests/unit/party"
CURATOR = "tests/unit/curator"

Change = tuple[str, str, str]


def _edits(file: str, tests: str | tuple[str, ...], *changes: Change) -> tuple[Edit, ...]:
    """Edits of one file that the same tests must find: what breaks, the text, and what stands there instead."""
    named = (tests,) if isinstance(tests, str) else tests
    return tuple(Edit(file, breaks, old, new, named) for breaks, old, new in changes)


NOISE = (
    *_edits(
        "common/privacy/noise.py",
        f"{PRIVACY}/test_noise.py",
        ("noise has one sign", "return pair[:count] - pair[count:]", "return pair[:count]"),
        ("the scale is halved", "(2 * count, shape=shape, scale=scale,", "(2 * count, shape=shape, scale=scale / 2,"),
        ("the shape is halved", "(2 * count, shape=shape, scale", "(2 * count, shape=shape / 2, scale"),
        ("the tail is cut off", "values[far] += _draw(", "values[far] += 0 * _draw("),
        ("a word belongs to the wrong shell", 'side="right"', 'side="left"'),
        ("a float decides a draw", "keep = uniforms < lower - _MARGIN", "keep = uniforms < upper + _MARGIN"),
    ),
    *_edits(
        "common/privacy/exact.py",
        f"{PRIVACY}/test_exact.py",
        ("a lower bound is rounded up", "round=gmpy2.RoundDown", "round=gmpy2.RoundUp"),
        ("further bits are no coins", "| coins.draw_bits(WORD_BITS), bits", "| 0, bits"),
        ("an enclosure has no slack", "gmpy2.exp(log_chance - slack)", "gmpy2.exp(log_chance + slack)"),
        ("the weights do not fill a word", "weights[1] += left_over", "weights[1] += 0"),
    ),
    *_edits(
        "common/privacy/gaussian.py",
        f"{PRIVACY}/test_discrete_gaussian.py",
        ("zero is drawn twice as often", "keep &= (values > 0) | (signs == 0)", "keep &= values >= 0"),
        ("the law is narrower", "-0.5 * distances", "-0.7 * distances"),
        ("the exact test has another law", "** 2 / (2 * square)", "** 2 / square"),
    ),
    *_edits(
        "common/privacy/laws.py",
        f"{PRIVACY}/test_laws.py",
        ("colluders' shares count as noise", "Fraction(1, self.parties - self.threshold)", "Fraction(1, self.parties)"),
        ("a part has the noise of the whole", "/ (cost.epsilon * part)", "/ cost.epsilon"),
        ("a part of rho has the noise of the whole", "(2 * part * (rho", "(2 * (rho"),
        ("nothing is held back of rho", "(rho - SHARE_SLACK)", "rho"),
        ("colluders' Gaussian shares count as noise", "whole / (parties - threshold)", "whole / parties"),
        ("the square is rounded down", "ceil(share * SQUARE_UNIT)", "int(share * SQUARE_UNIT)"),
        ("a share may be small", "max(LEAST_SQUARE, whole", "max(Fraction(1), whole"),
        (
            "L1 serves for L2",
            "_gaussian_for(cost.rho, sensitivity.squared",
            "_gaussian_for(cost.rho, sensitivity.absolute",
        ),
        ("every draw costs all of rho", "2 * cost.rho / draws", "2 * cost.rho"),
        ("every draw costs all of epsilon", "return cost.epsilon / draws", "return cost.epsilon"),
        ("sensitivities do not add up", "Sensitivity(self.absolute * count,", "Sensitivity(self.absolute,"),
        (
            "every share is drawn as all of the noise",
            "shape=self.shape, scale=self.scale, coins",
            "shape=Fraction(1), scale=self.scale, coins",
        ),
    ),
)

ACCOUNTING = (
    *_edits(
        "common/privacy/cost.py",
        f"{PRIVACY}/test_cost.py",
        ("rho has no cap", " and self.rho <= cap.rho", ""),
        ("epsilon has no cap", "self.epsilon <= cap.epsilon and ", ""),
        ("rho does not add up", "self.rho + other.rho", "max(self.rho, other.rho)"),
        ("epsilon does not add up", "self.epsilon + other.epsilon", "max(self.epsilon, other.epsilon)"),
        ("a cost has two spellings", "if str(cost) != text:", "if False:"),
    ),
    *_edits(
        "common/privacy/conversion.py",
        f"{PRIVACY}/test_conversion.py",
        ("rho is rounded up", "rounding=ROUND_FLOOR", "rounding=ROUND_CEILING"),
        (
            "a shown epsilon is rounded down",
            "_SHOWN = Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING)",
            "_SHOWN = Context(prec=SHOWN_DIGITS, rounding=ROUND_FLOOR)",
        ),
        ("rounding may help", "_fraction(total) + _SLACK", "_fraction(total) - _SLACK"),
        ("the inequality is another", "(order - 1) * (order * rho - epsilon)", "order * (order * rho - epsilon)"),
        ("the pure part is forgotten", "delta)) + cost.epsilon", "delta))"),
        ("the pure part counts half", "cost.epsilon**2 / 2", "cost.epsilon**2 / 4"),
    ),
    *_edits(
        "common/privacy/bounds.py",
        f"{PRIVACY}/test_bounds.py",
        ("noise exceeds its bound often", "FAILURE_BITS = 64", "FAILURE_BITS = 16"),
        ("the bound forgets colluders", "rho = Fraction(parties, parties - threshold)", "rho = Fraction(1)"),
        ("the Gaussian bound is for one party", "ceil(2 * parties * square", "ceil(2 * square"),
    ),
    *_edits(
        "common/protocol/plan.py",
        f"{PROTOCOL}/test_plan.py",
        (
            "a plan may cost more than the budget",
            "if not all(plan.cost_of(name).fits_within(study.budget)",
            "if not all(True",
        ),
    ),
    *_edits(
        "common/protocol/steps.py",
        (f"{PROTOCOL}/test_plan.py", f"{PARTY}/test_policy.py"),
        ("others' steps are counted as one's own", "if party in step.answerers)", "if step.answerers)"),
        (
            "a table of one's own is no local answer",
            "in (QueryKind.LOCAL_MARGINALS, QueryKind.CHOOSE_PARENTS)",
            "is QueryKind.CHOOSE_PARENTS",
        ),
        (
            "a choice is no local answer",
            "in (QueryKind.LOCAL_MARGINALS, QueryKind.CHOOSE_PARENTS)",
            "is QueryKind.LOCAL_MARGINALS",
        ),
    ),
    *_edits(
        "party/account.py",
        f"{PARTY}/test_account.py",
        ("what is held does not count", "(spent + held + asked)", "(spent + asked)"),
        ("what is spent does not count", "(spent + held + asked)", "(held + asked)"),
        ("a lost history is forgiven", "if self.history_lost and dataset", "if False and dataset"),
        ("a study may charge its reservation again and again", "self.reserved - self.spent if", "self.reserved if"),
        ("what was declared is forgotten", "[self.declared.get(dataset, FREE), *costs]", "costs"),
        ("charges replace each other", "charges=(*approval.charges, charge)", "charges=(charge,)"),
    ),
)

SENSITIVITY = (
    *_edits(
        "common/privacy/laws.py",
        f"{QUERIES}/test_query_marginals.py",
        ("a table has half its L1 sensitivity", "Sensitivity(absolute=2,", "Sensitivity(absolute=1,"),
        ("a table has half its squared sensitivity", "squared=2)", "squared=1)"),
    ),
    *_edits(
        "common/models/moments.py",
        "tests/unit/common/models/test_moments.py",
        ("products of signed columns count for less", "2 * unit * ((s + 1) ** 2 // 4)", "2 * unit * (s**2 // 4)"),
        ("squares of numbers are free", "** 2 // 4) + unit * c\n\n    @property", "** 2 // 4)\n\n    @property"),
        ("pairs of blocks are free", "4 * unit * (2 * a + a * (a - 1) + a * s)", "4 * unit * (2 * a + a * s)"),
        ("squared products count for less", "4 * unit * ((s + 1) ** 2 // 4)", "4 * unit * (s**2 // 4)"),
    ),
    *_edits(
        "common/protocol/queries/agreements.py",
        f"{QUERIES}/test_query_agreements.py",
        ("fewer pairs change", "splits * (features**2 // 4)", "splits * (features**2 // 5)"),
        ("the weight of ones is free", "two_valued * query.ones + products,", "two_valued + products,"),
        (
            "splits are taken to tell all values apart",
            "return all(one[i][0] != one[i][1]",
            "return any(one[i][0] != one[i][1]",
        ),
        ("one split pays for all", "products = splits * (features", "products = (features"),
    ),
    *_edits(
        "common/protocol/queries/marginals.py",
        (f"{QUERIES}/test_query_marginals.py", f"{QUERIES}/test_query_weights.py"),
        ("every table has the whole budget", "whole = sum(shares)", "whole = max(shares)"),
        ("cells of little weight have the noise of the others", "Fraction(weight, most)", "Fraction(1)"),
        (
            "a sum is drawn as one party's own",
            "return sum_law(step, study, TABLE, part=part, parties=len(self.places(study)))",
            "return noise_for(step.cost, TABLE, part=part)",
        ),
        (
            "one's own noise is for the whole cost",
            "return noise_for(step.cost, TABLE, part=part)",
            "return noise_for(step.cost, TABLE)",
        ),
        ("a feature may be twice in a table", "bases[a] >= bases[b]", "bases[a] > bases[b]"),
        ("a grouping may leave values out", "and len(self.groups) == sizes[self.feature]", ""),
    ),
    *_edits(
        "common/protocol/queries/parents.py",
        f"{QUERIES}/test_query_parents.py",
        ("draws do not share epsilon", "if self.ordered else self.count", "if self.ordered else 1"),
        (
            "ordered draws do not share epsilon",
            "sum(list_choices(self, study)) if",
            "any(list_choices(self, study)) if",
        ),
        ("any parents may be answered", "if not is_maximal(feature", "if False and not is_maximal(feature"),
        ("a choice has no bound on its options", "return options > limit.options", "return False"),
    ),
    *_edits(
        "party/count/scores.py",
        f"{PARTY}/count/test_scores.py",
        ("F has half its sensitivity", 'if kind == "F":\n        return 2', 'if kind == "F":\n        return 1'),
        ("R has less than its sensitivity", "(4 if binary else 6)", "(4 if binary else 4)"),
        (
            "I has less than its sensitivity",
            "_information_spread(rows, binary) + 6",
            "_information_spread(rows, binary)",
        ),
    ),
    *_edits(
        "party/count/choice.py",
        f"{PARTY}/count/test_choice.py",
        ("a choice costs twice its epsilon", "epsilon / (2 * sensitivity)", "epsilon / sensitivity"),
        ("the first of the heads is taken", "int(heads[_draw_below(len(heads), coins=coins)])", "int(heads[0])"),
    ),
    *_edits(
        "party/count/tables.py",
        (f"{PARTY}/test_answer.py", f"{PARTY}/count"),
        (
            "one's own counts leave without noise",
            "counts += sample_runs(query.runs(step, study), coins=coins)",
            "sample_runs(query.runs(step, study), coins=coins)",
        ),
    ),
)

CRYPTOGRAPHY = (
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
        "common/crypto/identity.py",
        f"{CRYPTO}/test_identity.py",
        ("a signature has no context", 'b"synod/v1/" + context.encode() + b"\\0"', 'b"synod/v1/"'),
        ("every signature is valid", "        return False\n", "        return True\n"),
        ("an invalid signature is passed over", "if not verify(public_key, context, value, signature):", "if False:"),
    ),
    *_edits(
        "common/crypto/canonical.py",
        f"{CRYPTO}/test_canonical.py",
        ("keys are not sorted", 'sorted(value, key=lambda key: key.encode("utf-16-be"))', "list(value)"),
        ("integers that others round are written", "if abs(value) > LARGEST_INTEGER:", "if False:"),
    ),
)

STATEMENTS = (
    *_edits(
        "common/protocol/envelope.py",
        f"{PROTOCOL}/test_envelope.py",
        ("an altered document is read", "if not verify(signer, context, whole, signature):", "if False:"),
        ("a signature has two spellings", "if data.hex() != text:", "if False:"),
    ),
    *_edits(
        "common/protocol/submission.py",
        f"{PROTOCOL}/test_submission.py",
        ("an account is of any transcript", '"transcript": transcript.hex(),', '"transcript": "",'),
        ("an account is of any queries", "[step.label, step.query, str(step.cost)]", "[step.label, str(step.cost)]"),
        ("an answer's bytes are not signed", '"digest": self.digest.hex(),', '"digest": "",'),
        ("an answer is of any question", '"query": self.query.hex(),', '"query": "",'),
        ("an account passes for an answer", 'identity.sign("account"', 'identity.sign("answer"'),
    ),
    *_edits(
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
    *_edits(
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
    *_edits(
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

PARTY_CHECKS = (
    *_edits(
        "common/protocol/queries/base.py",
        (f"{PARTY}/test_rounds.py", f"{QUERIES}/test_query_parsing.py", f"{QUERIES}/test_query_parents.py"),
        ("a query may be of another kind", "if query.kind is not step.kind:", "if False:"),
        ("a query may be of any size", "if any(one > most for", "if any(False for"),
        ("a query may use another score", "if size.score != limit.score:", "if False:"),
        ("a query may have any options", "if query.exceeds(limit, study):", "if False:"),
    ),
    *_edits(
        "party/rounds.py",
        (f"{PARTY}/test_rounds.py", "tests/adversary/test_lying_curator.py"),
        ("any curator's transcript is taken", "if fingerprint(transcript.curator) != responder.curator:", "if False:"),
        ("a transcript of others is taken", "    check_transcript(transcript, study, study_hash)\n", ""),
        (
            "a question that nobody signed is answered",
            "    require_query_signature(transcript.curator,",
            "    str(transcript.curator,",
        ),
        ("other keys than one's own are taken", "if transcript.enrolments[index] != own:", "if False:"),
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
    *_edits(
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
    *_edits(
        "party/table/encode.py",
        f"{PARTY}/table/test_encode.py",
        ("a table may have more rows than the roster says", "if rows != expected_rows:", "if False:"),
        ("a person may have several rows", "    if repeated:", "    if False:"),
        ("values outside of the domain are taken", 'broken["outside the domain"] =', "_ ="),
    ),
    *_edits(
        "party/table/snapshot.py",
        f"{PARTY}/table/test_snapshot.py",
        ("another table than the approved one is used", "if seal(snapshot.digest()) != sealed:", "if False:"),
        (
            "a digest is of the shape alone",
            "running.update(np.ascontiguousarray(column).data)",
            "np.ascontiguousarray(column)",
        ),
    ),
)

LEDGER = (
    *_edits(
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
    *_edits(
        "party/ledger.py",
        "tests/adversary/test_cloned_ledger.py",
        ("a head tells the entry that it is of", "salt = secrets.token_hex(KEY_BYTES)", 'salt = "00" * KEY_BYTES'),
    ),
    *_edits(
        "party/approval.py",
        f"{PARTY}/test_approval.py",
        ("a lost ledger is a new one", "history_lost=known", "history_lost=False"),
        ("a revoked study keeps its rows", "    drop_snapshot(snapshot_folder(settings, study_hash))\n", ""),
        (
            "the table is read for a study beyond the budget",
            "    account.check_room(settings.dataset, cost, settings.cap, delta=settings.shown_delta)\n",
            "",
        ),
    ),
    *_edits(
        "party/daemon.py",
        "tests/simulation/test_stubborn_curator.py",
        (
            "a stored answer of a revoked study is sent",
            "if approval is not None and approval.state is ApprovalState.REVOKED:\n            raise",
            "if False:\n            raise",
        ),
        (
            "`auto` goes on after a table that does not fit",
            "self._auto_approves = not isinstance(error, TableError)",
            "self._auto_approves = True",
        ),
        ("`auto` approves another study than the announced", "if study.digest() != study_hash:", "if False:"),
        ("another curator is greeted", "if fingerprint(greeting.curator) != self._settings.curator:", "if False:"),
        ("an old answer is computed again", "        if stored is None:\n", "        if True:\n"),
    ),
    *_edits(
        "party/daemon.py",
        "tests/simulation/test_lost_ledger.py",
        ("a ledger that is behind goes on", "if ledger.hash_at(head.sequence) != head.hash:", "if False:"),
    ),
)

CURATOR_CHECKS = (
    *_edits(
        "curator/checks.py",
        f"{CURATOR}/test_checks.py",
        ("1: who has no part may answer", "if party not in answerers_of(query, step, study):", "if False:"),
        (
            "1: an answer needs no signature",
            '    require_signature(identities[party], "answer", statement, submission.signature, signer=party)\n',
            "",
        ),
        (
            "2: an answer may be bound to anything",
            "if bound != (transcript.digest(study), step.label",
            "if False and bound != (transcript.digest(study), step.label",
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
        ("4: ciphertexts may be anything", "        check_ciphertexts(public, payload", "        (public, payload"),
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
    *_edits(
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
    *_edits(
        "curator/store.py",
        (f"{CURATOR}/test_store.py", f"{CURATOR}/test_party_handler.py"),
        ("5: a second answer is taken for the first", "elif stored != submission:", "elif False:"),
        ("a party may enrol again with other keys", "if stored not in (None, enrolment):", "if False:"),
        ("a query may change on replay", "if bytes(rows[0][0]) != body:", "if False:"),
        ("an old head replaces a newer one", "if highest is None or highest.sequence < head.sequence:", "if True:"),
    ),
)

EDITS = (
    *NOISE,
    *ACCOUNTING,
    *SENSITIVITY,
    *CRYPTOGRAPHY,
    *STATEMENTS,
    *PARTY_CHECKS,
    *LEDGER,
    *CURATOR_CHECKS,
    *LOSSES,
)
