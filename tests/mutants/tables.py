"""The edits of `make mutants` about how tables are read, and which codes their values get."""

from tests.mutants.edit import edits_of

TABLES = (
    *edits_of(
        "party/table/encode.py",
        "tests/unit/party/table/test_csv_formats.py",
        (
            "values that do not fit are kept without being asked for",
            "                if show_values:\n",
            "                if True:\n",
        ),
        ("a repr of what does not fit quotes values", "field(default=(), repr=False)", "field(default=())"),
    ),
    *edits_of(
        "party/table/text.py",
        "tests/unit/party/table/test_text.py",
        (
            "a day that its month does not have is a date",
            "(day <= lengths[known] + (leap & (known == 2)))",
            "(day <= 31)",
        ),
        (
            "a point is a decimal comma, too",
            'trimmed = pc.if_else(pc.match_substring(trimmed, ".").fill_null(True), None, swapped)',
            "trimmed = swapped",
        ),
    ),
    *edits_of(
        "party/table/text.py",
        "tests/unit/party/table/test_text_twins.py",
        ("what Arrow alone calls a number is one", "if len(odd) > cast.null_count:", "if False:"),
    ),
    *edits_of(
        "common/study/edges.py",
        "tests/unit/common/study/test_edges.py",
        (
            "edges of a logarithm depend on the context of whoever computes them",
            "growth = WORKING.ln(WORKING.divide(WORKING.add(origin, WORKING.subtract(high, low)), origin))",
            "growth = ((origin + (high - low)) / origin).ln()",
        ),
    ),
    *edits_of(
        "common/study/encoding.py",
        "tests/unit/common/study/test_edges.py",
        ("a number at an edge is in the bin before", 'values, side="right")', 'values, side="left")'),
    ),
    *edits_of(
        "common/study/schema.py",
        "tests/unit/common/study/test_attributes.py",
        ("a study without edges has another hash than before", 'if key != "edges" or value}', "}"),
    ),
)
