"""Rosters of 25 to 200 parties finish a study over gRPC and mutual TLS: what a round costs the curator for each party.

The curator is a process of its own; the parties are real daemons with ledgers, tables and certificates of their own, as
threads of this one, because two cores do not hold 200 interpreters. The study asks two rounds of everybody. A round is
timed from its opening to its closing, both as the curator logs them; here that is the time in which this machine does
the work of all parties, each of whom checks the signatures of all others and masks against them. What the curator
itself needs are the CPU seconds of its process, from the submission to the end, and its peak of memory. Linear means
that a party costs the same whatever the roster: `ratio` is the curator's CPU seconds for each party at the largest
roster over those at the smallest, and `memory_ratio` likewise what its peak grew by. The last line is one JSON object.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from synod.common.crypto.identity import Identity
from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.settings import OperatorSettings, PartySettings, load_settings
from synod.common.study.study import Study, parse_study
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.processes import await_curator, start_curator, stopping
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from synod.party.approval import identity_path
from synod.party.daemon import Daemon
from synod.party.ledger import Ledger
from synod.v1 import study_pb2 as pb

ROSTERS = (25, 50, 100, 200)
ROWS = 20
COLLUSION = 2
STUDY_SECONDS = 1800.0
LOOK_SECONDS = 0.5
CLOSING_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a study of a roster took."""

    parties: int
    rounds: int
    seconds: float
    round_seconds: float
    cpu_seconds: float
    peak_megabytes: float
    idle_megabytes: float


def make_site(folder: Path, parties: int) -> tuple[SitePaths, Study]:
    """A roster of parties with a small table each."""
    tables = []
    for number in range(parties):
        tables.append(folder / f"party-{number:03}.csv")
        rows = (f"{('no', 'yes')[row % 2]},{20 + (row * 7 + number) % 60}" for row in range(ROWS))
        tables[-1].write_text("\n".join(["smokes,age", *rows]) + "\n")
    schema = [
        {"name": "smokes", "type": "categorical", "categories": ["no", "yes"]},
        {"name": "age", "type": "integer", "min": 20, "max": 79},
    ]
    document = {
        "name": "many", "method": {"name": "hpdp-dp", "link": "linear"}, "epsilon": "1", "collusion": COLLUSION,
        "key_bits": 2048, "schema": schema,
    }  # fmt: skip
    site = folder / "site"
    site.mkdir()
    paths = plan_paths(site, tables)
    return paths, prepare(paths, parse_study(document, "the benchmark's study"))


class Roster:
    """The daemons of all parties, each on a thread; use it in a `with`."""

    def __init__(self, paths: SitePaths) -> None:
        self._daemons: list[Daemon] = []
        self._threads = [threading.Thread(target=self._serve, args=(member.config,)) for member in paths.members]

    def _serve(self, config: Path) -> None:
        settings = load_settings(PartySettings, config)
        with closing(Ledger.open(settings.state)) as ledger:
            identity = Identity.load(identity_path(settings))
            daemon = Daemon(settings, ledger, identity, clock=time.time, tell_contact=lambda _: None)
            self._daemons.append(daemon)
            daemon.run()

    def __enter__(self) -> "Roster":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.stop()
        for thread in self._threads:
            thread.join(CLOSING_SECONDS)


def cpu_seconds_of(process: int) -> float:
    """CPU seconds of a process so far."""
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def peak_megabytes_of(process: int) -> float:
    """The most that a process has held in memory so far."""
    (line,) = [one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def round_seconds(log: Path) -> list[float]:
    """How long each round was open, as the curator logged it."""
    opened: dict[str, datetime] = {}
    found = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        when = datetime.fromisoformat(event["time"])
        if event["event"] == "round open":
            opened[event["round"]] = when
        elif event["event"] == "round closed":
            found.append((when - opened[event["round"]]).total_seconds())
    return found


def run_study(folder: Path, parties: int) -> Figures:
    """A study from its submission to the last party's knowledge of its end; the release is verified."""
    paths, study = make_site(folder, parties)
    curator = start_curator(paths)
    with stopping([curator]):
        await_curator(paths, curator)
        process = curator.process.pid
        with closing(OperatorClient(load_settings(OperatorSettings, paths.operator_config))) as operator:
            operator.submit(study)
            cpu, idle, start = cpu_seconds_of(process), peak_megabytes_of(process), time.monotonic()
            with Roster(paths):
                await_published(operator, study)
                seconds = time.monotonic() - start
            cpu, peak = cpu_seconds_of(process) - cpu, peak_megabytes_of(process)
            operator.fetch(study.name, folder / "release")
        verify_release(folder / "release", None)
    rounds = round_seconds(curator.log)
    return Figures(parties, len(rounds), seconds, median(rounds), cpu, peak, idle)


def await_published(operator: OperatorClient, study: Study) -> None:
    """Waits until the study is published; a study that ends otherwise is an error."""
    until = time.monotonic() + STUDY_SECONDS
    while time.monotonic() < until:
        (status,) = operator.status(study.name)
        if status.state == pb.STUDY_STATE_PUBLISHED:
            return
        if status.state == pb.STUDY_STATE_ABORTED:
            raise SynodError(Code.ABORTED, f"the study of {len(study.roster)} parties was aborted: {status.reason}")
        time.sleep(LOOK_SECONDS)
    raise SynodError(Code.UNREACHABLE, f"the study of {len(study.roster)} parties did not end in time.")


def compare(runs: Sequence[Figures]) -> dict[str, float]:
    """What a party costs at the largest roster over what it costs at the smallest."""
    small, large = runs[0], runs[-1]
    ratio = (large.cpu_seconds / large.parties) / (small.cpu_seconds / small.parties)
    round_ratio = (large.round_seconds / large.parties) / (small.round_seconds / small.parties)
    each = [(run.peak_megabytes - run.idle_megabytes) / run.parties for run in (small, large)]
    return {"ratio": ratio, "round_ratio": round_ratio, "memory_ratio": each[1] / each[0]}


def main() -> None:
    """Prints the figures, then the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.parties", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rosters", type=int, nargs="+", default=ROSTERS, help="how many parties, from few to many")
    options = parser.parse_args()
    runs = []
    print("| parties | seconds a round | curator's CPU seconds | for each party | its peak in MB | for each party |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for parties in options.rosters:
        with tempfile.TemporaryDirectory(prefix="synod-") as folder:
            run = run_study(Path(folder), parties)
        runs.append(run)
        grown = (run.peak_megabytes - run.idle_megabytes) / parties
        print(
            f"| {parties} | {run.round_seconds:.1f} | {run.cpu_seconds:.1f} | {run.cpu_seconds / parties:.3f} |"
            f" {run.peak_megabytes:.0f} | {grown:.3f} |",
            flush=True,
        )
    figures = {**compare(runs), "runs": [asdict(run) for run in runs]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
