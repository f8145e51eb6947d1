"""Every command explains itself: what it does, an example that is a real call, and its exit codes."""

from collections.abc import Iterator

import click
import pytest

from synod.deploy.cli.main import main
from synod.deploy.cli.terminal import EXIT_CODES
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
        for name, inner in command.commands.items():
            yield from walk(inner, (*path, name))


COMMANDS = dict(walk(main))


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
