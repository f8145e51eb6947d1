"""The edits of `make mutants`: each takes away or weakens something that a row's privacy, or the soundness of a
release, rests on. Texts are short, so that they outlive other changes; one that is gone is replaced, not dropped.
"""

from tests.mutants.edit import Edit
from tests.mutants.operations import OPERATIONS

PRIVACY = "tests/unit/common/privacy"
CRYPTO = "tests/unit/common/crypto"
PROTOCOL = "tests/unit/common/protocol"
QUERIES = "tests/unit/common/protocol/queries"
PARTY = "tests/unit/party"
CURATOR = "tests/unit/curator"
ALTERED = "tests/adversary/test_altered_release.py"

Change = tuple[str, str, str]


def _edits(file: str, tests: str | tuple[str, ...], *changes: Change) -> tuple[Edit, ...]:
    """Edits of one file that the same tests must find: what breaks, the text, and what stands there instead."""
    named = (tests,) if isinstance(tests, str) else tests
    return tuple(Edit(file, breaks, old, new, named) for breaks, old, new in changes)


UNITS = f"{QUERIES}/test_units.py"
PERSONS = (
    *_edits(
        "common/privacy/laws.py",
        UNITS,
        ("noise is for one row of a person", "whole = sensitivity.for_rows(rows_per_unit)", "whole = sensitivity"),
        ("a person's rows count once in L1", "self.absolute * rows, self", "self.absolute, self"),
        ("a person's rows count once in squared L2", "self.squared * rows**2)", "self.squared * rows)"),
    ),
    *_edits(
        "common/protocol/queries/base.py",
        UNITS,
        ("a sum is for one row of a person", "rows, parties = study.max_rows_per_unit,", "rows, parties = 1,"),
    ),
    *_edits(
        "common/protocol/queries/marginals.py",
        UNITS,
        ("one's own tables are for one row", "rows_per_unit=study.max_rows_per_unit,", "rows_per_unit=1,"),
    ),
    *_edits(
        "party/count/parents.py",
        UNITS,
        ("a choice is for one row of a person", "= study.max_rows_per_unit * score_sens", "= score_sens"),
    ),
    *_edits(
        "party/table/encode.py",
        f"{PARTY}/table/test_encode.py",
        ("one row more is let through", "rows - unit.most_rows,", "rows - unit.most_rows - 1,"),
        ("a row of nobody is let through", "    if names.null_count:\n", "    if False:\n"),
        ("a blank is a person", "value_set=pa.array(nothing))", "value_set=pa.array([], pa.string()))"),
        (
            "blanks make another person",
            "texts = pc.utf8_trim_whitespace(_to_texts(values))\n    nothing",
            "texts = _to_texts(values)\n    nothing",
        ),
    ),
    *_edits(
        "party/policy.py",
        f"{PARTY}/test_policy.py",
        ("nobody counts a person's rows", "if study.max_rows_per_unit > 1 and settings.unit is None:", "if False:"),
    ),
    *_edits(
        "party/approval.py",
        (f"{PARTY}/test_approval.py", "tests/adversary/test_renamed_dataset.py"),
        ("persons are not looked at", "unit=unit, expected_rows=rows", "unit=None, expected_rows=rows"),
        (
            "a person may have rows without end",
            "Unit(settings.unit, study.max_rows_per_unit)",
            "Unit(settings.unit, 10**9)",
        ),
        ("no mark of the table is kept", "            source=checked.source,\n", "            source=(),\n"),
    ),
    *_edits(
        "party/ledger.py",
        "tests/adversary/test_renamed_dataset.py",
        (
            "a table's name is not looked at when it is approved",
            "            account.check_source(dataset, source)\n",
            "",
        ),
        ("marks of the table are forgotten", "[mark.hex() for mark in source]", "[]"),
    ),
    *_edits(
        "party/account.py",
        "tests/adversary/test_renamed_dataset.py",
        ("a new name starts at nothing", "if other != name and marks.intersection(approval.source):", "if False:"),
        (
            "a renamed dataset forgets its approvals",
            "if self.current_name(a.dataset) == name]",
            "if a.dataset == dataset]",
        ),
        (
            "a renamed dataset forgets what was declared",
            "declared.pop(old) + declared.get(new, FREE)",
            "declared.get(new, FREE)",
        ),
    ),
    *_edits(
        "party/table/marks.py",
        "tests/adversary/test_renamed_dataset.py",
        ("a copied table is another", 'b"file" + content', 'b"file" + place'),
        ("a table changed in place is another", 'b"path" + place', 'b"path" + content'),
        ("a link is another table", "str(source.resolve())", "str(source)"),
        ("a converted table is another", 'b"rows" + snapshot.digest()', 'b"rows" + content'),
    ),
)

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
            "_gaussian_for(cost.rho, whole.squared",
            "_gaussian_for(cost.rho, whole.absolute",
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
        ("a lost history is forgiven", "if self.history_lost and not", "if False and not"),
        ("a study may charge its reservation again and again", "self.reserved - self.spent if", "self.reserved if"),
        ("what was declared is forgotten", "[self.declared.get(self.current_name(dataset), FREE), *costs]", "costs"),
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
        "common/protocol/queries/base.py",
        "tests/audit/test_audited_claims.py::test_a_few_runs_of_a_query_do_not_give_a_row_away",
        (
            "all numbers of a run have the same noise",
            "return self.law.sample(self.numbers, coins=coins)",
            "return np.repeat(self.law.sample(1, coins=coins), self.numbers)",
        ),
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
            "return sum_law(step, study, TABLE, part=part)",
            "return _own_law(step, study, part)",
        ),
        (
            "one's own noise is for the whole cost",
            "rows_per_unit=study.max_rows_per_unit, part=part)",
            "rows_per_unit=study.max_rows_per_unit)",
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

RELEASED = (
    *_edits(
        "common/protocol/manifest.py",
        f"{ALTERED}::test_answers_of_two_parties_exchanged",
        (
            "a party's answer may be other than it signed",
            "if (len(payload), digest_of(payload)) !=",
            "if False and b'' !=",
        ),
    ),
    *_edits(
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
    *_edits(
        "curator/release/rerun.py",
        (f"{ALTERED}::test_a_query_that_is_not_the_methods", f"{ALTERED}::test_numbers_that_cannot_be_true"),
        ("the curator may ask what it likes", "if not (self.is_lenient and is_close(own, theirs)):", "if False:"),
        ("sums may be impossible", "CHECKED[query.kind](query, study, query.terms(step, study), sums)", "pass"),
    ),
    *_edits(
        "curator/release/rerun.py",
        (f"{ALTERED}::test_a_fit_of_its_own", f"{ALTERED}::test_another_report"),
        ("the model may be any", "        judge.differs(MODEL_FILE)\n", "        pass\n"),
        ("the report may be any", "        judge.differs(REPORT_FILE)\n", "        pass\n"),
        ("what differs is never refused", "        if not self.others:\n", "        if False:\n"),
    ),
    *_edits(
        "curator/release/rerun.py",
        f"{ALTERED}::test_one_other_row_in_both_tables",
        ("rows are not compared", "        drawn = check(publication)\n", "        drawn = None\n"),
    ),
    *_edits(
        "curator/release/rerun.py",
        f"{CURATOR}/release/test_rerun.py",
        ("which and how many may be rounded", "1 if largest >= FINE else 0", "1"),
        ("queries may be left out", "            if label not in self.asked:\n", "            if False:\n"),
        ("a query may always be rounded", "if not (self.is_lenient and is_close", "if not (True and is_close"),
        ("the model may always be rounded", "elif judge.others and is_close(", "elif is_close("),
        ("what differs is not said", "        self.unproven.append(\n", "        str(\n"),
    ),
    *_edits(
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
    *_edits(
        "curator/release/versions.py",
        (f"{CURATOR}/release/test_rerun.py::test_what_differs_is_named",),
        ("versions excuse nothing", "if stated.get(name) != here[name]", "if False"),
        ("any version is an excuse", "for name in COMPUTING", "for name in here"),
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
            '    _require("the number of parties", len(study.roster), "min_parties", settings.min_parties)\n',
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
        ("a person may have several rows", "    if beyond:", "    if False:"),
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
        "party/ledger.py",
        "tests/adversary/test_erased_secrets.py",
        ("a study's secret outlives it", '"DELETE FROM study_secrets WHERE', '"SELECT 1 FROM study_secrets WHERE'),
        ("a study's answers outlive it", '"UPDATE answers SET payload', '"UPDATE answers SET header'),
        ("a log keeps what a page does not", "        empty_log(self._connection)\n", ""),
        ("a killed process's log keeps it", "            empty_log(connection)\n", "            pass\n"),
        ("all studies have the same coins", ' + drawn, "sha256")', ', "sha256")'),
        ("all coins are the ledger's", "        if not drawn:  #", "        if True:  #"),
        ("an older ledger's open study gets other coins", "        if not drawn:  #", "        if False:  #"),
    ),
    *_edits(
        "common/runtime/sqlite.py",
        "tests/adversary/test_erased_secrets.py",
        ("deleted bytes stay in their page", '"PRAGMA secure_delete = ON"', '"PRAGMA secure_delete = OFF"'),
        ("the log is not cut", "wal_checkpoint(TRUNCATE)", "wal_checkpoint(PASSIVE)"),
    ),
    *_edits(
        "common/runtime/files.py",
        ("tests/unit/common/runtime/test_erased_files.py", f"{CURATOR}/test_study_handler.py"),
        ("an erased file is only unlinked", "file.write(bytes(os.fstat(file.fileno()).st_size))", "pass"),
    ),
    *_edits(
        "curator/study_handler.py",
        f"{CURATOR}/test_study_handler.py",
        ("a Paillier key outlives its study", "erase_file(self._key_path(study))", "pass"),
    ),
    *_edits(
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
    *_edits(
        "party/ledger.py",
        f"{PARTY}/test_party_rotation.py",
        ("an identity is rotated in a study", "if is_own or approval.charges:", "if False:"),
        ("a ledger takes rotations in any order", "if is_own and own and (own[-1]", "if False and (own[-1]"),
    ),
    *_edits(
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
    *_edits(
        "common/crypto/keyrotation.py",
        f"{PARTY}/test_party_rotation.py",
        (
            "an old key is kept",
            "        sync_folder(path.parent)\n    erase_file(aside)",
            "        sync_folder(path.parent)",
        ),
        ("a key in use is erased", "if aside.exists() and aside.samefile(path):", "if False:"),
    ),
    *_edits(
        "party/rotation.py",
        "tests/adversary/test_rotated_identity.py",
        ("a state from before a rotation goes on", "if rotation.old in keys and rotation not in known:", "if False:"),
        (
            "an earlier key's heads bind nothing",
            "return {identity.public_key, *(",
            "return {identity.public_key} or {*(",
        ),
    ),
    *_edits(
        "curator/rotation.py",
        f"{CURATOR}/test_curator_rotation.py",
        ("a party rotates another's key", "if rotation.name != party:", "if False:"),
        ("a stranger's key becomes a party's", "if store.is_pinned(party, fingerprint(rotation.old)):", "if True:"),
        ("heads are forgotten with a key", "for rotation in (*earlier, *following))]", "for rotation in ())]"),
        ("a lost identity is made anew", "if (settings.state / STORE_FILE).exists():", "if False:"),
        ("the curator rotates in a study", "in store.open_studies():", "in store.open_studies()[:0]:"),
    ),
    *_edits(
        "curator/store.py",
        f"{CURATOR}/test_curator_rotation.py",
        ("a key is rotated twice", "if rows and rows[0][0] != new:", "if False:"),
    ),
    *_edits(
        "party/approval.py",
        f"{PARTY}/test_approval.py",
        ("a lost ledger is a new one", "history_lost=known", "history_lost=False"),
        ("a revoked study keeps its rows", "    drop_snapshot(snapshot_folder(settings, study_hash))\n", ""),
        (
            "the table is read for a study beyond the budget",
            "        account.check_room(settings.dataset, cost, settings.cap, delta=settings.shown_delta)\n",
            "",
        ),
    ),
    *_edits(
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
        ("1: who has no part may answer", "if party not in step.answerers:", "if False:"),
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
        ("moments are not checked", "    check_moments(study, terms, sums)\n", "    del study, terms, sums\n"),
        (
            "agreements are not checked",
            "    check_agreements(study, terms, query.split(sums, study))\n",
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

NOTICES = (
    *_edits(
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
    *_edits(
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
            "return told if self.see(party, identity, head) else",
            "return told if [self.see(party, identity, head)] else",
        ),
        (
            "heads of strangers are kept",
            "if not self._store.is_pinned(party, fingerprint(identity)) or not",
            "if not",
        ),
    ),
    *_edits(
        "curator/records.py",
        f"{CURATOR}/test_party_handler.py",
        ("a head may have any size", "or not head.is_sound():", "or False:"),
        (
            "a head needs no signature",
            'return verify(identity, "head", head.statement(), self.signature)',
            "return True",
        ),
    ),
    *_edits(
        "curator/store.py",
        (f"{CURATOR}/test_store.py", f"{CURATOR}/test_party_handler.py"),
        (
            "an identity may fill the store with ledgers",
            "ORDER BY rowid DESC LIMIT ?2)",
            "ORDER BY rowid DESC LIMIT ?2 * 0 - 1)",
        ),
        (
            "an end is told to whom it does not concern",
            "WHERE party = ? AND key = ? AND",
            "WHERE party = ? AND ? <> '' AND",
        ),
    ),
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
        "party/release.py",
        f"{PARTY}/test_own_release.py",
        (
            "a release does not show an old ledger",
            '    check_own_heads(stated_heads, own_hashes, shown_by="the release shows", code=Code.CHECK_FAILED)\n',
            "    del stated_heads, own_hashes\n",
        ),
    ),
)

CALLERS = (
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
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
    *_edits(
        "common/runtime/jsontext.py",
        "tests/unit/common/runtime/test_jsontext.py",
        ("a document may be of any number of values", "if document.count(mark) > most:", "if False:"),
    ),
    *_edits(
        "curator/study_handler.py",
        f"{CURATOR}/test_study_handler.py",
        ("all studies are described in one turn of the event loop", "            await asyncio.sleep(0)\n", ""),
        ("a list of studies may be larger than a message", "if listed and size > LISTED_BYTES:", "if False:"),
    ),
    *_edits(
        "common/crypto/issued.py",
        f"{CRYPTO}/test_authority.py",
        (
            "a note runs on from one that was cut off",
            'whole, _, last = before.rpartition(b"\\n")',
            'whole, last = before.removesuffix(b"\\n"), b""',
        ),
    ),
)

EDITS = (
    *NOISE,
    *PERSONS,
    *ACCOUNTING,
    *SENSITIVITY,
    *CRYPTOGRAPHY,
    *STATEMENTS,
    *RELEASED,
    *PARTY_CHECKS,
    *LEDGER,
    *CURATOR_CHECKS,
    *NOTICES,
    *HEADS,
    *CALLERS,
    *OPERATIONS,
)
