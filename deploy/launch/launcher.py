"""The launcher: a curator and one party daemon per table, as processes or as containers, from keys to release.

For demos and tests: whoever runs it holds everybody's keys and tables, and it says so. What it started is gone when
it ends, however it ends.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, PartySettings, load_settings
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from synod.party.table.detect import describe_format, shown
from synod.party.table.encode import Misfit, TableError, Unit, read_table
from synod.party.table.source import Source
from synod.v1 import study_pb2 as pb

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 120.0  # with a curator that does not answer
Progress = Callable[[pb.StudyStatus], None]


class Daemons(Protocol):
    """The daemons of one launch, wherever they run."""

    def start_curator(self) -> None:
        """Starts the curator; when it serves, the operator's configuration is written."""

    def start_parties(self) -> None:
        """Starts every party's daemon."""

    def check(self) -> None:
        """Raises if a daemon has ended."""


def launch(
    study: Study,
    tables: Sequence[Source],
    out: Path,
    folder: Path,
    *,
    start: Callable[[SitePaths], AbstractContextManager[Daemons]],
    progress: Progress,
    unit: str | None = None,
    tell: Callable[[str], None] | None = None,
    show_values: bool = False,
) -> Study:
    """Runs a study over tables to its release; returns the study as it was run. `unit` is the column that tells persons
    apart; `tell` is told how files are read; with `show_values` what does not fit comes with examples.
    """
    paths = plan_paths(folder, tables)
    if tell is not None:
        _tell_formats(paths, tell)
    resolved = prepare(paths, study, unit)
    with start(paths) as daemons:
        daemons.start_curator()
        with closing(OperatorClient(load_settings(OperatorSettings, paths.operator_config))) as client:
            client.submit(resolved)
            daemons.start_parties()
            for status in follow(client, resolved.name, meanwhile=daemons.check):
                progress(status)
                _refuse_refusals(status, paths, resolved, show_values=show_values)
                daemons.check()
            client.fetch(resolved.name, out)
    return resolved


def _tell_formats(paths: SitePaths, tell: Callable[[str], None]) -> None:
    for member in paths.members:
        if member.layout is not None and shown(member.layout):
            tell(f"{member.table.name} is read as {describe_format(member.layout)}.")


def follow(
    client: OperatorClient, name: str, *, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[pb.StudyStatus]:
    """How a study stands, again and again until it is published; raises if it is aborted, or the curator does not go
    on with it. One that restarts or is busy is asked again for a while; `meanwhile` may raise what is known of it here.
    """
    while True:
        status = _ask_patiently(client, name, meanwhile)
        yield status
        if status.state == pb.STUDY_STATE_PUBLISHED:
            return
        if status.state == pb.STUDY_STATE_ABORTED:
            raise SynodError(Code.ABORTED, f"{name} was aborted: {status.reason}", "See the logs.")
        if status.halted:
            raise SynodError(
                Code.INTERNAL,
                f"the curator does not go on with {name}: {status.halted}",
                "See its log, which `synod launch --state DIR` keeps. A restarted curator goes on where the study is.",
            )
        time.sleep(POLL_SECONDS)


def _ask_patiently(client: OperatorClient, name: str, meanwhile: Callable[[], None]) -> pb.StudyStatus:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            (status,) = client.status(name)
        except SynodError as error:
            if error.code is not Code.UNREACHABLE or time.monotonic() > until:
                raise
        else:
            return status
        meanwhile()
        time.sleep(POLL_SECONDS)


class NotApprovedError(SynodError):
    """A party does not approve; `misfits` are what does not fit, table by table, for whoever holds all tables."""

    def __init__(self, sentence: str, hint: str, misfits: Mapping[str, Sequence[Misfit]]) -> None:
        super().__init__(Code.REFUSED, sentence, hint)
        self.misfits = misfits


def _refuse_refusals(status: pb.StudyStatus, paths: SitePaths, study: Study, *, show_values: bool = False) -> None:
    """Here nobody will come and approve later: says why, and what does not fit in any of the tables."""
    for party in status.parties:
        if party.not_approved:
            misfits = {one.name: find_misfits(paths, study, one.name, show_values=show_values) for one in paths.members}
            own, _ = misfits[party.name]
            raise NotApprovedError(
                f"{party.name} does not approve {status.name}{own and f', because {own}'}.",
                "Correct the table, or the schema: `out_of_domain` says what becomes of values outside of it."
                if any(found for _, found in misfits.values())
                else "To see why, launch with --state DIR, then run `synod party approve DIR/study.yaml "
                f"--config DIR/{party.name}/party.yaml --dry-run`.",
                {
                    paths.members[study.index_of(name)].table.name: found
                    for name, (_, found) in misfits.items()
                    if found
                },
            )


def find_misfits(paths: SitePaths, study: Study, name: str, *, show_values: bool) -> tuple[str, Sequence[Misfit]]:
    """Why an organization's table does not fit the study, in a few words, and everything in it that does not; empty
    where it fits.

    Whoever launches holds all tables, so that this may be told here; the party's daemon told nobody.
    """
    member = paths.members[study.index_of(name)]
    settings = load_settings(PartySettings, member.config)
    if study.max_rows_per_unit > 1 and settings.unit is None:
        return "the study counts on persons with several rows, and no --unit COLUMN says which rows are whose", ()
    unit = Unit(settings.unit, study.max_rows_per_unit) if settings.unit is not None else None
    rows = study.roster[study.index_of(name)].rows
    try:
        read_table(
            member.table,
            codings_of(study),
            unit=unit,
            expected_rows=rows,
            layout=settings.format,
            show_values=show_values,
        )
    except TableError as error:
        first, *rest = error.misfits
        more = f" ({len(rest)} more after it)" if rest else ""
        return f"its table does not fit the study's schema: column {first.column}: {first.rule}{more}", error.misfits
    except SynodError as error:
        return error.sentence.rstrip("."), ()
    return "", ()
