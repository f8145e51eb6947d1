"""How every command speaks: results on stdout, errors as one sentence with a hint on stderr, documented exit codes."""

import json
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.table import Column, Table

from synod.common.runtime.discovery import load_name
from synod.common.runtime.errors import OUTCOMES, Code, SynodError, refused
from synod.common.runtime.logs import start_logging

if TYPE_CHECKING:
    from synod.party.table.encode import Misfit

log = logging.getLogger("synod")

P = ParamSpec("P")
T = TypeVar("T")

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 usage or invalid input, 3 refused by policy or budget, "
    "4 cannot reach or authenticate, 5 check failed."
)
REFUSALS = {Code.INVALID, Code.REFUSED, Code.UNAUTHENTICATED, Code.NOT_ON_ROSTER, Code.CHECK_FAILED}
screen = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line on stdout."""
    screen.print(text, markup=False)


def say_json(value: Any) -> None:
    """A value for a machine, on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def show_table(headings: list[str], rows: list[list[str]], title: str = "") -> None:
    """A table for people; what is too wide is folded and never cut, or nobody could compare a fingerprint."""
    columns = [Column(heading, overflow="fold") for heading in headings]
    table = Table(*columns, title=title or None, title_justify="left")
    for row in rows:
        table.add_row(*row)
    screen.print(table, markup=False)


def tell_aside(text: str) -> None:
    """One line on stderr, where stdout may carry a file."""
    errors.print(text, markup=False)


def complain(error: SynodError) -> None:
    """An error for people."""
    errors.print(f"synod: {error}", markup=False)
    for line in error.further:
        errors.print(f"  also: {line}", markup=False)


def fail(error: SynodError) -> NoReturn:
    """Ends the command with the error's exit code."""
    complain(error)
    sys.exit(OUTCOMES[error.code].exit_code)


def command(function: Callable[P, T]) -> Callable[P, T]:
    """Wraps a command: a `SynodError` ends it with a sentence and its exit code."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except SynodError as error:
            fail(error)
        except OSError as error:
            told = f"{error.filename or 'a file'} cannot be used: {error.strerror}."
            fail(SynodError(Code.STORAGE, told, "Check free space and permissions there, and run it again."))
        except Exception as error:  # noqa: BLE001  (an exception's text may hold a value, so it is not shown)
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            where = ", ".join(f"{frame.name} ({Path(frame.filename).name}:{frame.lineno})" for frame in frames)
            fail(SynodError(Code.INTERNAL, f"a defect: {type(error).__name__} in {where}.", "Please report it."))

    return guarded


def require_assertions() -> None:
    """Refuses to start a daemon without assertions: they are the last check of what the proofs take for granted."""
    if not __debug__:
        raise refused("Python runs without assertions, and so no daemon starts.", "Leave out -O and PYTHONOPTIMIZE.")


stay_option = click.option(
    "--stay", is_flag=True,
    help="Where a person has to look, do not end but stay, not ready: for what would start it again for ever.",
)  # fmt: skip


@contextmanager
def serving(*, stay: bool = False, health: Path | None = None) -> Iterator[None]:
    """A daemon's work: from here on all that it says is a line of its log, also why it ends.

    With `stay`, a daemon that is refused serves nothing but its health, which is not well, until it is stopped. What it
    held is free by then, so that its operator can put things right beside it.
    """
    start_logging()
    try:
        yield
    except SynodError as error:
        code = OUTCOMES[error.code].exit_code
        if stay and error.code in REFUSALS:
            log.error("refused, and staying", extra={"why": str(error), "exit_code": code})  # noqa: TRY400
            _await_stop(health)
        log.error("ended", extra={"why": str(error)})  # noqa: TRY400  (the sentence says it; no frames)
        sys.exit(code)


def _await_stop(health: Path | None) -> None:
    from synod.common.runtime.health import tell_health  # noqa: PLC0415  (pulls in grpc)

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with tell_health(health):
        stopped.wait()


spreadsheet_option = click.option(
    "--spreadsheet", type=click.Path(path_type=Path), metavar="FILE",
    help="Also write the rows to a new CSV file in which a spreadsheet program takes no text for a formula.",
)  # fmt: skip


def require_yes(question: str, *, yes: bool, otherwise: str) -> None:
    """Asks a person, unless `yes` was given; where nobody can be asked, or the answer is no, nothing goes on.

    Guarantee: without a terminal and without `yes` this never passes, whatever comes in through standard input.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise SynodError(
            Code.REFUSED,
            f"nobody can be asked here, because standard input is not a terminal. {otherwise}",
            "Run the command on a terminal, or give `--yes` to say yes beforehand.",
        )
    if not click.confirm(question):
        raise SynodError(Code.REFUSED, f"the answer was no. {otherwise}")


class Example(click.Command):
    """A command whose help ends with an example and the exit codes."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "epilog": _epilog(example)})


@dataclass(frozen=True, slots=True)
class Later:
    """A command that is imported when it is called: `place` is `module:name` below this package."""

    place: str
    sentence: str

    def load(self) -> click.Command:
        """The command itself."""
        found: click.Command = load_name(str(__package__), self.place)
        return found


class Group(click.Group):
    """Commands under one name, each listed with its whole first sentence."""

    def __init__(self, *args: Any, later: Mapping[str, Later] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.later = dict(later or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, also of what was not imported yet."""
        return sorted({*self.later, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now if it was not."""
        if cmd_name in self.later and cmd_name not in self.commands:
            self.add_command(self.later[cmd_name].load(), cmd_name)
        return super().get_command(ctx, cmd_name)

    def sentences(self) -> dict[str, str]:
        """What a list says of each command; nothing is imported for it."""
        loaded = {name: first_sentence(one) for name, one in self.commands.items()}
        return dict(sorted((loaded | {name: one.sentence for name, one in self.later.items()}).items()))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Lists the commands; click itself would cut what it says of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.sentences().items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names and options that begin so, for a shell."""
        names = [CompletionItem(name, help=told) for name, told in self.sentences().items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in names if item.value.startswith(incomplete)] + options


def first_sentence(one: click.Command) -> str:
    """What a list says of a command: the first paragraph of its help."""
    return " ".join((one.help or "").split("\n\n")[0].split())


class ExampleGroup(Group):
    """The same for a command that has commands below it."""

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "epilog": _epilog(example)})


def _epilog(example: str) -> str:
    return f"\b\nExample:\n  {example}\n\n{EXIT_CODES}"


show_values_option = click.option(
    "--show-values",
    is_flag=True,
    help="Where a table does not fit, also show up to five values of each kind, here only.",
)


def show_misfits(table: str, misfits: "Sequence[Misfit]") -> None:
    """What does not fit in a table: column, rule, count, and values where the owner asked for them; quoted, so that
    blanks are seen and no terminal obeys them.
    """
    headings = ["column", "rule", "rows"]
    rows = [[misfit.column, misfit.rule, str(misfit.rows)] for misfit in misfits]
    if any(misfit.examples for misfit in misfits):
        headings.append("such as")
        rows = [[*row, ", ".join(map(repr, misfit.examples))] for row, misfit in zip(rows, misfits, strict=True)]
    show_table(headings, rows, title=f"{table} (for your eyes only)")
