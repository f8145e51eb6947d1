"""The launcher: a curator and one party daemon per table, as processes or as containers, from keys to release.

For demos and tests: whoever runs it holds everybody's keys and tables, and it says so. What it started is gone when
it ends, however it ends.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, PartySettings, load_settings
from synod.common.study.encoding import codings_of
from synod.common.study.study import Study
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from synod.party.table.encode import TableError, Unit, read_table
from synod.v1 import study_pb2 as pb

POLL_SECONDS = 0.2
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
    tables: Sequence[Path],
    out: Path,
    folder: Path,
    *,
    start: Callable[[SitePaths], AbstractContextManager[Daemons]],
    progress: Progress,
    unit: str | None = None,
) -> Study:
    """Runs a study over tables to its release; returns the study as it was run. `unit` is the column that tells persons
    apart.
    """
    paths = plan_paths(folder, tables)
    resolved = prepare(paths, study, unit)
    with start(paths) as daemons:
        daemons.start_curator()
        with closing(OperatorClient(load_settings(OperatorSettings, paths.operator_config))) as client:
            client.submit(resolved)
            daemons.start_parties()
            for status in follow(client, resolved.name):
                progress(status)
                _refuse_refusals(status, paths, resolved)
                daemons.check()
            client.fetch(resolved.name, out)
    return resolved


def follow(client: OperatorClient, name: str) -> Iterator[pb.StudyStatus]:
    """How a study stands, again and again until it is published; raises if it is aborted, or the curator does not go
    on with it.
    """
    while True:
        (status,) = client.status(name)
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


def _refuse_refusals(status: pb.StudyStatus, paths: SitePaths, study: Study) -> None:
    """Here nobody will come and approve later."""
    for party in status.parties:
        if party.not_approved:
            misfit = find_misfit(paths, study, party.name)
            raise SynodError(
                Code.REFUSED,
                f"{party.name} does not approve {status.name}{misfit and f', because {misfit}'}.",
                f"{'To see all' if misfit else 'To see why'}, launch with --state DIR, then run `synod party approve "
                f"DIR/study.yaml --config DIR/{party.name}/party.yaml --dry-run`.",
            )


def find_misfit(paths: SitePaths, study: Study, name: str) -> str:
    """What does not fit the study in an organization's table, by column and rule; empty where it fits.

    Whoever launches holds all tables, so that this may be told here; the party's daemon told nobody.
    """
    member = paths.members[study.index_of(name)]
    column = load_settings(PartySettings, member.config).unit
    if study.max_rows_per_unit > 1 and column is None:
        return "the study counts on persons with several rows, and no --unit COLUMN says which rows are whose"
    unit = Unit(column, study.max_rows_per_unit) if column is not None else None
    try:
        read_table(member.table, codings_of(study), unit=unit, expected_rows=study.roster[study.index_of(name)].rows)
    except TableError as error:
        first, *rest = error.misfits
        more = f" ({len(rest)} more after it)" if rest else ""
        return f"its table does not fit the study's schema: column {first.column}: {first.rule}{more}"
    except SynodError as error:
        return error.sentence.rstrip(".")
    return ""
