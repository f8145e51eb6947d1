"""Edits of what keeps one caller or one file from taking what is everybody's, and a command from going on unasked."""

from tests.mutants.edit import edits_of

CROWDED = "tests/adversary/test_crowded_curator.py"
QUOTAS = "tests/unit/curator/callers/test_quotas.py"
YAML = "tests/unit/common/runtime/test_yamltext.py"
JSON = "tests/unit/common/runtime/test_jsontext.py"

LIMITS = (
    *edits_of(
        "curator/callers/quotas.py",
        QUOTAS,
        ("a name has calls without end", "holder: MOST_CALLS_OF_A_NAME}", "holder: 10**9}"),
        ("names on no roster have quotas each", "if not self._is_known(holder):", "if False:"),
        ("calls that ended count for ever", "self._open.subtract(quotas.keys())", "pass"),
    ),
    *edits_of(
        "curator/uploads.py",
        CROWDED,
        ("a round has uploads without end", "if key in self._open:", "if False:"),
        ("an upload may be longer than it says", "if self._written > self._length:", "if False:"),
        (
            "uploads wait in memory",
            "tempfile.TemporaryFile(dir=self._folder, buffering=0)",
            "__import__('io').BytesIO()",
        ),
    ),
    *edits_of(
        "common/runtime/wire.py",
        "tests/integration/test_crowd.py",
        (
            "a connection may have calls without end",
            '"grpc.max_concurrent_streams", most_calls_of_a_connection',
            '"grpc.max_concurrent_streams", 10**6',
        ),
    ),
    *edits_of(
        "common/runtime/yamltext.py",
        YAML,
        ("aliases stand for millions of values", "if isinstance(event, yaml.AliasEvent):", "if False:"),
        ("a file may be nested without end", "if self.depth >= DEEPEST_FILE:", "if False:"),
        ("open brackets are looked at again and again", "if self.flow_level >= DEEPEST_FILE:", "if False:"),
        ("a mapping has keys without end", "len(parent.value) >= MOST_KEYS:", "False:"),
        ("a number may be of any length", "if len(text) > LONGEST_NUMBER:", "if False:"),
        ("a text may be of any length", "len(event.value) > LONGEST_TEXT:", "False:"),
        ("a file may be of any size", "if len(data) > LARGEST_FILE_BYTES:", "if False:"),
        ("long words are parsed", "if word := _LONG_WORD.search(text):", "if False and (word := _LONG_WORD):"),
    ),
    *edits_of(
        "common/runtime/jsontext.py",
        JSON,
        ("a document may be of any number of values", "if document.count(mark) > most:", "if False:"),
        ("a document may be nested without end", 'if _is_deep(_BRACKETS.sub("", bare)):', "if False:"),
        ("a document's numbers may be of any length", "if _LONG_NUMBER.search(bare):", "if False:"),
    ),
    *edits_of(
        "deploy/cli/terminal.py",
        "tests/unit/deploy/cli/test_cli_party.py",
        ("a command goes on where nobody can be asked", "if not sys.stdin.isatty():", "if False:"),
    ),
    *edits_of(
        "deploy/cli/terminal.py",
        "tests/unit/deploy/cli/test_cli_serving.py",
        ("a daemon starts without assertions", "if not __debug__:", "if False:"),
    ),
)
