"""The edits of `make mutants` about tables in folders and databases: what is read, what is told, what is secret."""

from tests.mutants.edit import edits_of

ENGINES = "tests/unit/party/table/engines"

SOURCES = (
    *edits_of(
        "party/table/folder.py",
        "tests/unit/party/table/test_folder.py",
        ("a folder may change while it is read", "if _look(source) != before:", "if False:"),
        ("a pattern takes hidden folders in", "_is_hidden(path.relative_to(plain))", "_is_hidden(Path(path.name))"),
        ("files of one table may differ", "if types.get(name) != others.get(name):", "if False:"),
    ),
    *edits_of(
        "party/table/encode.py",
        f"{ENGINES}/test_same_table.py",
        (
            "a database's rows keep the order of the day",
            "        sort_rows(columns)\n",
            "        pass\n",
        ),
    ),
    *edits_of(
        "party/table/engines/select.py",
        f"{ENGINES}/test_values.py",
        (
            "a moment has the date of the server's zone",
            "pa.types.is_timestamp(field.type) and field.type.tz is not None",
            "False",
        ),
        ("dates and decimals come in the engine's own form", "if is_plain(field):", "if True:"),
    ),
    *edits_of(
        "party/table/engines/postgresql.py",
        f"{ENGINES}/test_trouble.py",
        (
            "a query may change the database",
            "ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "ISOLATION LEVEL REPEATABLE READ",
        ),
    ),
    *edits_of(
        "party/table/engines/duckdb.py",
        f"{ENGINES}/test_trouble.py",
        (
            "a view reaches every file of the machine",
            '"enable_external_access": "false"',
            '"enable_external_access": "true"',
        ),
    ),
    *edits_of(
        "party/table/engines/database.py",
        f"{ENGINES}/test_trouble.py",
        (
            "an error quotes what the engine says",
            "raise self.told(error) from None",
            "raise self.told(error) from error",
        ),
    ),
    *edits_of(
        "common/runtime/settings.py",
        "tests/unit/common/runtime/test_source_settings.py",
        ("a password may be in an address", "if has_password:", "if False:"),
        ("rows may travel without encryption unsaid", 'if "sslmode" not in options and', "if False and"),
        ("an address that is dialled is not looked at", 'options.get("hostaddr", "")', '""'),
        ("an address is taken for a path", 'if "://" in value:', "if False:"),
    ),
)
