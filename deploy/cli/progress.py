"""What a person sees of a running study: its state in words, a bar on a terminal, and the release at its end."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from synod.curator.release.redraw import check_release
from synod.deploy.cli.terminal import say, screen
from synod.v1 import study_pb2 as pb


def state_name(study: pb.StudyStatus) -> str:
    """The state in the words of the docs."""
    name = pb.StudyState.Name(study.state).removeprefix("STUDY_STATE_").lower()
    return f"{name}, round {study.round} of {study.rounds} ({study.label})" if study.label else name


@contextmanager
def show_progress(name: str) -> Iterator[Callable[[pb.StudyStatus], None]]:
    """A bar on a terminal, plain lines elsewhere."""
    if not screen.is_terminal:
        last: list[str] = []

        def report_line(status: pb.StudyStatus) -> None:
            line = f"{name}: {state_name(status)}"
            if last[-1:] != [line]:
                last.append(line)
                say(line)
                sys.stdout.flush()

        yield report_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(name, total=1.0)

        def report_bar(status: pb.StudyStatus) -> None:
            answered = sum(not party.awaited for party in status.parties) / max(1, len(status.parties))
            done = (status.round + answered) / (status.rounds + 1)
            bar.update(task, description=f"{name}: {state_name(status)}", completed=min(done, 1.0))

        yield report_bar


def show_release(out: Path) -> None:
    """Verifies a release and says what is in it."""
    checked = check_release(out, None)
    say(f"Published and verified ({len(checked.lines)} checks): {out}/")
    for path in sorted(out.iterdir()):
        say(f"  {path.name}: {path.stat().st_size:,} bytes")
