"""The Docker engine, through its own command line: the few verbs that the launcher and its tests need."""

import subprocess
from collections.abc import Sequence
from ipaddress import ip_network
from typing import IO

from synod.common.runtime.errors import Code, SynodError, invalid

CALL_SECONDS = 600.0
SPARE_ADDRESSES = "10.201.0.0/16"
NO_ADDRESSES = ("could not find an available", "all predefined address pools have been fully subnetted")


def docker(*arguments: str, given: IO[bytes] | None = None, both: bool = False) -> str:
    """Runs one command of the engine and returns what it prints; with `both`, also what it prints as errors."""
    try:
        ran = subprocess.run(  # noqa: S603  (our own arguments, and no shell)
            ["docker", *arguments],  # noqa: S607  (wherever the user has it)
            stdin=subprocess.DEVNULL if given is None else given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            timeout=CALL_SECONDS,
            check=False,
            start_new_session=True,  # a Ctrl-C is for the launcher, which cleans up with these very commands
        )
    except FileNotFoundError:
        raise SynodError(Code.UNREACHABLE, "there is no `docker` command.", "Install Docker.") from None
    except subprocess.TimeoutExpired:
        raise SynodError(Code.UNREACHABLE, f"`docker {arguments[0]}` took too long.", "Is the engine well?") from None
    if ran.returncode:
        told = ((ran.stderr or ran.stdout).decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        hint = "Is the engine running?" if "connect" in told.lower() else ""
        raise SynodError(Code.UNREACHABLE, f"`docker {arguments[0]}` failed: {told}", hint)
    return ran.stdout.decode(errors="replace").strip()


def require_image(image: str) -> None:
    """Refuses to go on without the engine or the image."""
    docker("version", "--format", "{{.Server.Version}}")
    try:
        docker("image", "inspect", "--format", "{{.Id}}", image)
    except SynodError:
        raise invalid(
            f"the engine has no image {image}.", "Build it with `make image`, or name another with --image."
        ) from None


def create_network(name: str, labels: Sequence[str], *, internal: bool) -> None:
    """A network of its own; where the engine's pools are used up, one of 14 of the spare addresses."""
    create = ["network", "create", *labels, *(["--internal"] if internal else [])]
    try:
        docker(*create, name)
    except SynodError as error:
        if not any(told in error.sentence for told in NO_ADDRESSES):
            raise
        docker(*create, "--subnet", _free_subnet(), name)


def _free_subnet() -> str:
    taken = docker("network", "ls", "--quiet").splitlines()
    used = docker("network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}", *taken).split()
    occupied = [network for network in map(ip_network, used) if network.version == 4]
    for subnet in ip_network(SPARE_ADDRESSES).subnets(new_prefix=28):
        if not any(subnet.overlaps(network) for network in occupied):
            return str(subnet)
    raise SynodError(Code.UNREACHABLE, "the engine has no addresses left for another network.", "Remove unused ones.")


def stopped_among(containers: Sequence[str]) -> list[str]:
    """Those of the containers that do not run."""
    states = docker("inspect", "--format", "{{.State.Running}}", *containers).split()
    return [container for container, running in zip(containers, states, strict=True) if running != "true"]


def remove_labelled(label: str) -> None:
    """Removes every container, network and volume that carries the label."""
    chosen = ("--filter", f"label={label}", "--quiet")
    for kind, options in (("container", ("--all",)), ("network", ()), ("volume", ())):
        if found := docker(kind, "ls", *options, *chosen).split():
            docker(kind, "rm", *(["--force", "--volumes"] if kind == "container" else []), *found)


def removal(label: str) -> str:
    """The same as a line for a shell."""
    found = f"--filter label={label} -q"
    return (
        f"docker rm -fv $(docker ps -a {found}); docker network rm $(docker network ls {found}); "
        f"docker volume rm $(docker volume ls {found})"
    )
