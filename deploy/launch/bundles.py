"""What each container is given, out of a site that was prepared on this machine.

`given` is mounted read-only at /etc/synod: configuration, certificate and key, and a party's table. `kept` is the
start of the volume at /var/lib/synod: identity and ledger. One organization's bundle holds nothing of another's.
"""

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import yaml

from synod.common.crypto.canonical import Json
from synod.common.runtime.errors import invalid
from synod.common.runtime.files import write_private_file
from synod.common.runtime.settings import Database
from synod.deploy.launch.site import Member, SitePaths
from synod.party.table.csv_source import table_ending

USER_ID = 10001
GIVEN, KEPT = "/etc/synod", "/var/lib/synod"
HEALTH_SOCKET = "/run/synod/health.sock"
CURATOR_ADDRESS = "curator:7443"
Files = Mapping[str, bytes | Path]


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of one container, by name; each is its content or the file that holds it."""

    given: Files
    kept: Files


def bundle_curator(paths: SitePaths) -> Bundle:
    """The curator's bundle."""
    changes: dict[str, Json] = {"listen": "0.0.0.0:7443", "state": KEPT, "health": HEALTH_SOCKET}
    config = _rewrite(paths.curator_config, "curator", changes)
    return Bundle({"curator.yaml": config, **_tls_of(paths, "curator")}, _files_in(paths.folder / "curator"))


def bundle_party(paths: SitePaths, member: Member) -> Bundle:
    """A party's bundle, with its table, which must be a file."""
    if isinstance(member.table, Database) or not member.table.is_file():
        raise invalid(f"a container of `synod launch` gets a file, and {member.table.name} is none.", "Export it.")
    table = f"table{table_ending(member.table) or member.table.suffix}"
    changes: dict[str, Json] = {
        "address": CURATOR_ADDRESS,
        "state": KEPT,
        "source": table,
        "health": HEALTH_SOCKET,
    }
    config = _rewrite(member.config, member.name, changes)
    given: Files = {"party.yaml": config, table: member.table, **_tls_of(paths, member.name)}
    return Bundle(given, _files_in(member.config.parent / "state"))


def bundle_operator(paths: SitePaths) -> Bundle:
    """The operator's bundle, with the study."""
    config = yaml.safe_dump({"address": CURATOR_ADDRESS, "tls": _own_tls("operator")}).encode()
    given: Files = {"operator.yaml": config, **_tls_of(paths, "operator"), "study.yaml": paths.study_file}
    return Bundle(given, {})


def _rewrite(config: Path, name: str, changes: dict[str, Json]) -> bytes:
    content = {**yaml.safe_load(config.read_text()), "tls": _own_tls(name), **changes}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()


def _own_tls(name: str) -> Json:
    return {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}


def _tls_of(paths: SitePaths, name: str) -> dict[str, Path]:
    return {file: paths.certs / file for file in ("ca.pem", f"{name}.pem", f"{name}.key")}


def _files_in(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}


def contents(files: Files) -> Iterator[tuple[str, IO[bytes], int]]:
    """Each file, open, with its size."""
    for name, content in files.items():
        with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            yield name, file, len(content) if isinstance(content, bytes) else content.stat().st_size


def write_tar(files: Files, target: IO[bytes]) -> None:
    """The files as a tar archive, owned by the image's user and readable by nobody else."""
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, file, size in contents(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid, entry.gid = size, 0o600, USER_ID, USER_ID
            archive.addfile(entry, file)


def unpack(bundle: Bundle, folder: Path) -> None:
    """Writes a bundle below a folder, as `given` and `kept`."""
    for name, files in (("given", bundle.given), ("kept", bundle.kept)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file_name, file, _ in contents(files):
            (folder / name / file_name).unlink(missing_ok=True)
            write_private_file(folder / name / file_name, file.read())
