"""The launcher: a curator and one party daemon per table, as processes or as containers, from keys to release.

For demos and tests: whoever runs it holds everybody's keys and tables, and it says so. What it started is gone when
it ends, however it ends.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

from synod.v1 import study_pb2 as pb

from common.errors import Code, SynodError
from common.settings import OperatorSettings, load_settings
from common.study import Study
from deploy.operator import OperatorClient
from deploy.site import Layout, plan_layout, prepare

POLL_SECONDS = 0.2
Progress = Callable[[pb.StudyStatus], None]


class Crew(Protocol):
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
    crew: Callable[[Layout], AbstractContextManager[Crew]],
    progress: Progress,
) -> Study:
    """Runs a study over tables to its release; returns the study as it was run."""
    layout = plan_layout(folder, tables)
    resolved = prepare(layout, study)
    with crew(layout) as daemons:
        daemons.start_curator()
        with closing(OperatorClient(load_settings(OperatorSettings, layout.operator_config))) as client:
            client.submit(resolved)
            daemons.start_parties()
            for status in follow(client, resolved.name):
                progress(status)
                _refuse_refusals(status)
                daemons.check()
            client.fetch(resolved.name, out)
    return resolved


def follow(client: OperatorClient, name: str) -> Iterator[pb.StudyStatus]:
    """How a study stands, again and again until it is published; raises if it is aborted."""
    while True:
        (status,) = client.status(name)
        yield status
        if status.state == pb.STUDY_STATE_PUBLISHED:
            return
        if status.state == pb.STUDY_STATE_ABORTED:
            raise SynodError(Code.ABORTED, f"{name} was aborted: {status.reason}", "See the logs.")
        time.sleep(POLL_SECONDS)


def _refuse_refusals(status: pb.StudyStatus) -> None:
    """Here nobody will come and approve later."""
    for party in status.parties:
        if party.not_approved:
            raise SynodError(
                Code.REFUSED,
                f"{party.name} does not approve {status.name}.",
                f"To see why, launch with --state DIR, then run `synod party approve DIR/study.yaml "
                f"--config DIR/{party.name}/party.yaml --dry-run`.",
            )
