"""Every command explains itself: what it does, an example that is a real call, and its exit codes."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from synod.deploy.cli.main import main
from synod.deploy.cli.terminal import EXIT_CODES, Group, first_sentence
from tests.support.commands import synod

PROMISED = [
    "launch",
    "verify",
    "evaluate",
    "curator serve",
    "certs init", "certs issue", "certs sign", "certs revoke",
    "study check", "study draft", "study forecast", "study submit", "study status", "study fetch", "study abort",
    "party serve", "party init", "party fingerprint", "party approve", "party revoke", "party ledger",
    "party ledger export", "party doctor", "party request-certificate", "party backup", "party restore",
]  # fmt: skip


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, (*path, name))


COMMANDS = dict(walk(main))
LISTS = [
    (name, later.load(), later.sentence)
    for group in (main, *main.commands.values())
    if isinstance(group, Group)
    for name, later in group.later.items()
]


def test_the_promised_commands_are_there() -> None:
    assert set(PROMISED) <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_a_sentence_an_example_and_the_exit_codes(path: str) -> None:
    ending = synod(*path.split(), "--help")
    assert ending.code == 0
    assert ending.err == ""
    text = ending.out
    assert text.startswith("Usage: main " + path)
    assert "Example:" in text
    assert " ".join(text.split()).endswith(EXIT_CODES)
    example = text.split("Example:")[1].split("Exit codes")[0].strip()
    assert example.startswith(f"synod {path}"), "the example is of this very command"


@pytest.mark.parametrize("path", COMMANDS)
def test_the_example_uses_only_options_that_exist(path: str) -> None:
    command = COMMANDS[path]
    words = (command.epilog or "").split("Example:")[1].split("Exit codes")[0].split(">")[0].split()
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize(("name", "command", "listed"), LISTS)
def test_a_list_says_of_a_command_what_the_command_says_itself(name: str, command: click.Command, listed: str) -> None:
    assert command.name == name
    assert listed == first_sentence(command)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["party", "--help"], ["study", "--help"]])
def test_what_needs_no_command_imports_none(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom synod.deploy.cli.main import main\nmain(standalone_mode=False)\n"
        "print(sorted({'numpy', 'grpc', 'pyarrow', 'pydantic', 'cryptography'} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout
    assert ended.stderr == "[]\n"


def test_an_unknown_command_or_option_is_a_usage_error() -> None:
    for arguments in (["publish"], ["study", "check"], ["verify", ".", "--fast"], ["certs", "issue", "x"]):
        ending = synod(*arguments)
        assert ending.code == 2
        assert ending.out == ""
        assert "Usage:" in ending.err


def test_the_version() -> None:
    ending = synod("--version")
    assert ending.code == 0
    assert ending.out.startswith("synod, version ")
