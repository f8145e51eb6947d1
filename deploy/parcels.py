"""What each container is given, out of a site that was prepared on this machine.

`given` is mounted read-only at /etc/synod: configuration, certificate and key, and a party's table. `kept` is the
start of the volume at /var/lib/synod: identity and ledger. One organization's parcel holds nothing of another's.
"""

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import yaml

from common.canonical import Json
from common.files import write_private_file
from deploy.site import Layout, Member

USER_ID = 10001
GIVEN, KEPT = "/etc/synod", "/var/lib/synod"
HEALTH_SOCKET = "/run/synod/health.sock"
CURATOR_ADDRESS = "curator:7443"
Files = Mapping[str, bytes | Path]


@dataclass(frozen=True, slots=True)
class Parcel:
    """The files of one container, by name; each is its content or the file that holds it."""

    given: Files
    kept: Files


def pack_curator(layout: Layout) -> Parcel:
    """The curator's parcel."""
    changes: dict[str, Json] = {"listen": "0.0.0.0:7443", "state": KEPT, "health": HEALTH_SOCKET}
    config = _rewrite(layout.curator_config, "curator", changes)
    return Parcel({"curator.yaml": config, **_tls_of(layout, "curator")}, _files_in(layout.folder / "curator"))


def pack_party(layout: Layout, member: Member) -> Parcel:
    """A party's parcel, with its table."""
    table = f"table{member.table.suffix}"
    changes: dict[str, Json] = {
        "address": CURATOR_ADDRESS,
        "state": KEPT,
        "source": table,
        "health": HEALTH_SOCKET,
    }
    config = _rewrite(member.config, member.name, changes)
    given: Files = {"party.yaml": config, table: member.table, **_tls_of(layout, member.name)}
    return Parcel(given, _files_in(member.config.parent / "state"))


def pack_operator(layout: Layout) -> Parcel:
    """The operator's parcel, with the study."""
    config = yaml.safe_dump({"address": CURATOR_ADDRESS, "tls": _own_tls("operator")}).encode()
    given: Files = {"operator.yaml": config, **_tls_of(layout, "operator"), "study.yaml": layout.study_file}
    return Parcel(given, {})


def _rewrite(config: Path, name: str, changes: dict[str, Json]) -> bytes:
    content = {**yaml.safe_load(config.read_text()), "tls": _own_tls(name), **changes}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()


def _own_tls(name: str) -> Json:
    return {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}


def _tls_of(layout: Layout, name: str) -> dict[str, Path]:
    return {file: layout.certs / file for file in ("ca.pem", f"{name}.pem", f"{name}.key")}


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


def unpack(parcel: Parcel, folder: Path) -> None:
    """Writes a parcel below a folder, as `given` and `kept`."""
    for name, files in (("given", parcel.given), ("kept", parcel.kept)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file_name, file, _ in contents(files):
            (folder / name / file_name).unlink(missing_ok=True)
            write_private_file(folder / name / file_name, file.read())
