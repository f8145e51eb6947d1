"""Edits of what epsilon rests on: noise, its sensitivities, what is charged for it, and who a row is of."""

from tests.mutants.edit import edits_of

PRIVACY = "tests/unit/common/privacy"
PROTOCOL = "tests/unit/common/protocol"
QUERIES = "tests/unit/common/protocol/queries"
PARTY = "tests/unit/party"
UNITS = f"{QUERIES}/test_units.py"

PERSONS = (
    *edits_of(
        "common/privacy/laws.py",
        UNITS,
        ("noise is for one row of a person", "whole = sensitivity.for_rows(rows_per_unit)", "whole = sensitivity"),
        ("a person's rows count once in L1", "self.absolute * rows, self", "self.absolute, self"),
        ("a person's rows count once in squared L2", "self.squared * rows**2)", "self.squared * rows)"),
    ),
    *edits_of(
        "common/protocol/queries/base.py",
        UNITS,
        ("a sum is for one row of a person", "rows, shares = study.max_rows_per_unit,", "rows, shares = 1,"),
    ),
    *edits_of(
        "common/protocol/queries/marginals.py",
        UNITS,
        ("one's own tables are for one row", "rows_per_unit=study.max_rows_per_unit,", "rows_per_unit=1,"),
    ),
    *edits_of(
        "party/count/parents.py",
        UNITS,
        ("a choice is for one row of a person", "= study.max_rows_per_unit * score_sens", "= score_sens"),
    ),
    *edits_of(
        "party/table/encode.py",
        f"{PARTY}/table/test_encode.py",
        (
            "one row more is let through",
            "units.count_beyond(unit.most_rows, read_again)",
            "units.count_beyond(unit.most_rows + 1, read_again)",
        ),
        ("a row of nobody is let through", "    if units.missing:\n", "    if False:\n"),
        ("a blank is a person", "value_set=pa.array(nothing))", "value_set=pa.array([], pa.string()))"),
        (
            "blanks make another person",
            "texts = pc.utf8_trim_whitespace(to_texts(values))\n    nothing",
            "texts = to_texts(values)\n    nothing",
        ),
    ),
    *edits_of(
        "party/table/units.py",
        f"{PARTY}/table/test_unit_rows.py",
        ("units with one hash are one unit", "sum(max(0, count - most_rows) for count in rows.values())", "expected"),
        ("names of another length are one", "keys[0] + keys[1] * lengths", "keys[0] + 0 * lengths"),
        ("a table may change between the two readings", "if rows.total() != expected:", "if False:"),
    ),
    *edits_of(
        "party/policy.py",
        f"{PARTY}/test_policy.py",
        ("nobody counts a person's rows", "if study.max_rows_per_unit > 1 and settings.unit is None:", "if False:"),
    ),
    *edits_of(
        "party/approval.py",
        (f"{PARTY}/test_approval.py", "tests/adversary/test_renamed_dataset.py"),
        ("persons are not looked at", "            unit=unit,\n", "            unit=None,\n"),
        (
            "a person may have rows without end",
            "Unit(settings.unit, study.max_rows_per_unit)",
            "Unit(settings.unit, 10**9)",
        ),
        ("no mark of the table is kept", "            source=checked.source,\n", "            source=(),\n"),
    ),
    *edits_of(
        "party/ledger.py",
        "tests/adversary/test_renamed_dataset.py",
        (
            "a table's name is not looked at when it is approved",
            "            account.check_source(dataset, source)\n",
            "",
        ),
        ("marks of the table are forgotten", "[mark.hex() for mark in source]", "[]"),
    ),
    *edits_of(
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
    *edits_of(
        "party/table/marks.py",
        "tests/adversary/test_renamed_dataset.py",
        ("a copied table is another", 'b"file" + content', 'b"file" + place'),
        ("a table changed in place is another", 'b"path" + place', 'b"path" + content'),
        ("a link is another table", "str(source.resolve())", "str(source)"),
        ("a converted table is another", 'b"rows" + sum_rows(snapshot.columns)', 'b"rows" + content'),
    ),
)

NOISE = (
    *edits_of(
        "common/privacy/noise.py",
        f"{PRIVACY}/test_noise.py",
        ("noise has one sign", "return pair[:count] - pair[count:]", "return pair[:count]"),
        ("the scale is halved", "(2 * count, shape=shape, scale=scale,", "(2 * count, shape=shape, scale=scale / 2,"),
        ("the shape is halved", "(2 * count, shape=shape, scale", "(2 * count, shape=shape / 2, scale"),
        ("the tail is cut off", "values[far] += _draw(", "values[far] += 0 * _draw("),
        ("a word belongs to the wrong shell", 'side="right"', 'side="left"'),
        ("a float decides a draw", "keep = uniforms < lower - _MARGIN", "keep = uniforms < upper + _MARGIN"),
    ),
    *edits_of(
        "common/privacy/exact.py",
        f"{PRIVACY}/test_exact.py",
        ("a lower bound is rounded up", "round=gmpy2.RoundDown", "round=gmpy2.RoundUp"),
        ("further bits are no coins", "| coins.draw_bits(WORD_BITS), bits", "| 0, bits"),
        ("an enclosure has no slack", "gmpy2.exp(log_chance - slack)", "gmpy2.exp(log_chance + slack)"),
        ("the weights do not fill a word", "weights[1] += left_over", "weights[1] += 0"),
    ),
    *edits_of(
        "common/privacy/gaussian.py",
        f"{PRIVACY}/test_discrete_gaussian.py",
        ("zero is drawn twice as often", "keep &= (values > 0) | (signs == 0)", "keep &= values >= 0"),
        ("the law is narrower", "-0.5 * distances", "-0.7 * distances"),
        ("the exact test has another law", "** 2 / (2 * square)", "** 2 / square"),
    ),
    *edits_of(
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
    *edits_of(
        "common/privacy/cost.py",
        f"{PRIVACY}/test_cost.py",
        ("rho has no cap", " and self.rho <= cap.rho", ""),
        ("epsilon has no cap", "self.epsilon <= cap.epsilon and ", ""),
        ("rho does not add up", "self.rho + other.rho", "max(self.rho, other.rho)"),
        ("epsilon does not add up", "self.epsilon + other.epsilon", "max(self.epsilon, other.epsilon)"),
        ("a cost has two spellings", "if str(cost) != text:", "if False:"),
    ),
    *edits_of(
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
    *edits_of(
        "common/privacy/bounds.py",
        f"{PRIVACY}/test_bounds.py",
        ("noise exceeds its bound often", "FAILURE_BITS = 64", "FAILURE_BITS = 16"),
        ("the bound forgets colluders", "rho = Fraction(parties, parties - threshold)", "rho = Fraction(1)"),
        ("the Gaussian bound is for one party", "ceil(2 * parties * square", "ceil(2 * square"),
    ),
    *edits_of(
        "common/protocol/plan.py",
        f"{PROTOCOL}/test_plan.py",
        (
            "a plan may cost more than the budget",
            "if not all(plan.cost_of(name).fits_within(study.budget)",
            "if not all(True",
        ),
    ),
    *edits_of(
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
    *edits_of(
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
    *edits_of(
        "common/privacy/laws.py",
        f"{QUERIES}/test_query_marginals.py",
        ("a table has half its L1 sensitivity", "Sensitivity(absolute=2,", "Sensitivity(absolute=1,"),
        ("a table has half its squared sensitivity", "squared=2)", "squared=1)"),
    ),
    *edits_of(
        "common/protocol/queries/noise_runs.py",
        "tests/audit/test_audited_claims.py::test_a_few_runs_of_a_query_do_not_give_a_row_away",
        (
            "all numbers of a run have the same noise",
            "return self.law.sample(self.numbers, coins=coins)",
            "return np.repeat(self.law.sample(1, coins=coins), self.numbers)",
        ),
    ),
    *edits_of(
        "common/models/moments.py",
        "tests/unit/common/models/test_moments.py",
        ("products of signed columns count for less", "2 * unit * ((s + 1) ** 2 // 4)", "2 * unit * (s**2 // 4)"),
        ("squares of numbers are free", "** 2 // 4) + unit * c\n\n    @property", "** 2 // 4)\n\n    @property"),
        ("pairs of blocks are free", "4 * unit * (2 * a + a * (a - 1) + a * s)", "4 * unit * (2 * a + a * s)"),
        ("squared products count for less", "4 * unit * ((s + 1) ** 2 // 4)", "4 * unit * (s**2 // 4)"),
    ),
    *edits_of(
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
    *edits_of(
        "common/protocol/queries/marginals.py",
        (f"{QUERIES}/test_query_marginals.py", f"{QUERIES}/test_query_weights.py"),
        ("every table has the whole budget", "whole = sum(shares)", "whole = max(shares)"),
        ("cells of little weight have the noise of the others", "Fraction(weight, most)", "Fraction(1)"),
        (
            "a sum is drawn as one party's own",
            "return sum_law(step, study, TABLE, part=part, parties=len(self.places(study)))",
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
    *edits_of(
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
    *edits_of(
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
    *edits_of(
        "party/count/choice.py",
        f"{PARTY}/count/test_choice.py",
        ("a choice costs twice its epsilon", "epsilon / (2 * sensitivity)", "epsilon / sensitivity"),
        ("the first of the heads is taken", "int(heads[_draw_below(len(heads), coins=coins)])", "int(heads[0])"),
    ),
    *edits_of(
        "party/count/tables.py",
        (f"{PARTY}/test_answer.py", f"{PARTY}/count"),
        (
            "one's own counts leave without noise",
            "counts += sample_runs(query.runs(step, study), coins=coins)",
            "sample_runs(query.runs(step, study), coins=coins)",
        ),
    ),
)
