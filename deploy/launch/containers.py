"""The container backend: a curator and one party daemon per table, each in a container with volumes of its own.

Every party has a network that only the curator shares and that leads nowhere else, so parties cannot reach each other.
Nobody runs as root, root file systems are read-only, and all that is made here carries one label, by which it is
removed.
"""

import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import OperatorSettings, load_settings
from synod.deploy.launch.bundles import GIVEN, KEPT, USER_ID, Bundle, bundle_curator, bundle_party, write_tar
from synod.deploy.launch.docker import create_network, docker, remove_labelled, stopped_among
from synod.deploy.launch.interrupts import uninterrupted
from synod.deploy.launch.operator import OperatorClient
from synod.deploy.launch.site import Member, SitePaths, ended_early, tls_files, write_yaml

IMAGE = f"synod:{version('synod-dp')}"
START_SECONDS = 60.0
POLL_SECONDS = 0.2
LAST_LINES = "20"
CONFINEMENT = (
    "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "256",
    "--memory", "4g", "--log-driver", "json-file", "--log-opt", "max-size=10m", "--log-opt", "max-file=3",
    "--tmpfs", "/tmp", "--tmpfs", f"/run/synod:uid={USER_ID},gid={USER_ID},mode=0700",  # noqa: S108  (its own)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ContainerDaemons:
    """The daemons of a launch as containers; `name` starts the name of all that belongs to it."""

    paths: SitePaths
    name: str
    image: str

    @property
    def label(self) -> str:
        """What everything of this launch is labelled with."""
        return f"synod.launch={self.name}"

    def container(self, who: str) -> str:
        """The container of the curator or of a party; its own network is called the same."""
        return f"{self.name}-{who}"

    def start_curator(self) -> None:
        """Starts the curator, which shares a network with each party, and waits until it serves."""
        for who in ("curator", *(member.name for member in self.paths.members)):
            create_network(self.container(who), ["--label", self.label], internal=who != "curator")
        self._create("curator", bundle_curator(self.paths), "--publish", f"{self._find_address()}:7443")
        for member in self.paths.members:
            docker("network", "connect", "--alias", "curator", self.container(member.name), self.container("curator"))
        docker("start", self.container("curator"))
        self.await_curator()

    def start_parties(self) -> None:
        """Starts every party's daemon."""
        for member in self.paths.members:
            self.start_party(member)

    def start_party(self, member: Member) -> None:
        """Starts one party's daemon."""
        self.create_party(member)
        docker("start", self.container(member.name))

    def create_party(self, member: Member) -> None:
        """One party's container with its files, not started yet."""
        self._create(member.name, bundle_party(self.paths, member))

    def await_curator(self) -> None:
        """Waits until the curator serves."""
        until = time.monotonic() + START_SECONDS
        settings = load_settings(OperatorSettings, self.paths.operator_config)
        while True:
            self.check(["curator"])
            try:
                with closing(OperatorClient(settings)) as client:
                    client.status()
                    return
            except SynodError:
                if time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)

    def _find_address(self) -> str:
        """A free port of this machine for the curator, in the operator's configuration; it outlives restarts."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        write_yaml(self.paths.operator_config, {"address": address, "tls": tls_files(self.paths, "operator", ".")})
        return address

    def check(self, whom: Sequence[str] = ()) -> None:
        """Raises if a container has ended."""
        names = whom or ["curator", *(member.name for member in self.paths.members)]
        for container in stopped_among([self.container(who) for who in names]):
            told = docker("logs", "--tail", LAST_LINES, container, both=True)
            raise ended_early(container, told, "Launch with --state DIR to keep its log.")

    def save_logs(self) -> None:
        """Writes each container's log beside its configuration."""
        for container in docker("ps", "--all", "--filter", f"label={self.label}", "--format", "{{.Names}}").split():
            log = self.paths.folder / f"{container.removeprefix(self.name + '-')}.log"
            log.write_text(docker("logs", container, both=True))

    def _create(self, who: str, bundle: Bundle, *options: str) -> None:
        """A container that has its files, not started yet."""
        container, role = self.container(who), "curator" if who == "curator" else "party"
        volumes = {KEPT: f"{container}-kept", GIVEN: f"{container}-given"}
        for volume in volumes.values():
            docker("volume", "create", "--label", self.label, volume)
        self._fill(volumes, bundle)
        docker(
            "create", "--name", container, "--hostname", who, "--label", self.label, "--network", container,
            *CONFINEMENT, *options,
            "--volume", f"{volumes[KEPT]}:{KEPT}", "--volume", f"{volumes[GIVEN]}:{GIVEN}:ro",
            self.image, role, "serve", "--config", f"{GIVEN}/{role}.yaml",
        )  # fmt: skip

    def _fill(self, volumes: dict[str, str], bundle: Bundle) -> None:
        """Copies into new volumes, through a container that never runs: the daemon's own may not write to one."""
        mounts = [part for place, volume in volumes.items() for part in ("--volume", f"{volume}:{place}")]
        filler = docker("create", "--label", self.label, "--network", "none", *mounts, self.image)
        for place, files in ((GIVEN, bundle.given), (KEPT, bundle.kept)):
            with tempfile.TemporaryFile() as archive:
                write_tar(files, archive)
                archive.seek(0)
                docker("cp", "-", f"{filler}:{place}", given=archive)
        docker("rm", filler)


@contextmanager
def container_daemons(paths: SitePaths, *, name: str, image: str, keep: bool) -> Iterator[ContainerDaemons]:
    """A daemons of containers; all that belongs to it is removed at the end, unless it is to be kept."""
    daemons = ContainerDaemons(paths, name, image)
    try:
        yield daemons
    finally:
        with uninterrupted():
            try:
                daemons.save_logs()
            finally:
                if not keep:
                    remove_labelled(daemons.label)
