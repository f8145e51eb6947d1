"""What a person sees of a running study: its state in words, a bar on a terminal, and the release at its end."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from synod.curator.release.redraw import check_release
from synod.deploy.cli.terminal import say, screen
from synod.v1 import study_pb2 as pb

MOST_NAMES = 8


def state_name(study: pb.StudyStatus) -> str:
    """The state in the words of the docs."""
    name = pb.StudyState.Name(study.state).removeprefix("STUDY_STATE_").lower()
    return f"{name}, round {study.round} of {study.rounds} ({study.label})" if study.label else name


def head_line(study: pb.StudyStatus) -> str:
    """How a study stands in one line: its state, whom it waits for, and what is wrong if anything is."""
    waits = study.halted and f"halted: {study.halted}"
    remark = study.reason or waits or (study.waiting and f"waits and tries again: {study.waiting}")
    return f"{study.name}: {state_name(study)}{_waits_for(study)}" + (f" ({remark})" if remark else "")


def _waits_for(study: pb.StudyStatus) -> str:
    """Whom a study waits for, by what they have to do."""
    awaited: dict[str, list[str]] = {}
    for party in study.parties:
        if party.awaited:
            what = "answer" if party.enrolled else "approval" if party.not_approved else "enrolment"
            what = "call" if party.name in study.gathering else what
            awaited.setdefault(what, []).append(party.name)
    told = [f"the {what} of {_list(names)}" for what, names in awaited.items()]
    return f", waits for {' and '.join(told)}" if told else ""


def _list(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_NAMES])} and {more} others"


def watch_status(look: Callable[[], list[pb.StudyStatus]], *, pause: Callable[[], None]) -> None:
    """A line for each change, until every study has ended."""
    last: set[str] = set()
    while True:
        studies = look()
        lines = [head_line(study) for study in studies]
        for line in lines:
            if line not in last:
                say(f"{datetime.now(UTC):%H:%M:%S} UTC  {line}")
        sys.stdout.flush()
        last = set(lines)
        if all(study.state in (pb.STUDY_STATE_PUBLISHED, pb.STUDY_STATE_ABORTED) for study in studies):
            return
        pause()


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
            bar.update(task, description=head_line(status), completed=min(done, 1.0))

        yield report_bar


def show_release(out: Path) -> None:
    """Verifies a release and says what is in it."""
    checked = check_release(out, None)
    say(f"Published and verified ({len(checked.lines)} checks): {out}/")
    for path in sorted(out.iterdir()):
        say(f"  {path.name}: {path.stat().st_size:,} bytes")
