"""Makes a party out of a kit and its operator's answers: configuration, keys, request for a certificate, ledger.

All of it is made in a folder beside the one that is asked for, which gets its name last: whoever is killed meanwhile
has made nothing, and runs the command again.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from synod.common.crypto.certificates import Holder, Role, read_authorities
from synod.common.crypto.keyfiles import read_passphrase
from synod.common.crypto.requests import make_request
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.files import sync_files, sync_folder, write_public_file
from synod.common.runtime.settings import Database, PartySettings, load_settings, parse_settings
from synod.common.runtime.yamltext import read_yaml
from synod.deploy.enrolment.kit import Kit
from synod.party.approval import initialize
from synod.party.table.source import Source

CONFIG, AUTHORITY, STATE = "party.yaml", "ca.pem", "state"


@dataclass(frozen=True, slots=True)
class Answers:
    """What only the party's operator knows: who it is, which table, and how much that may ever give away. Numbers are
    texts, as they were written; `rho` is an epsilon and a delta, and no cap for studies with a delta if it is None.
    """

    name: str
    dataset: str
    source: Source
    max_epsilon_total: str
    max_epsilon_per_study: str | None = None
    rho: tuple[str, str] | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """What was made, and the two fingerprints that are read out by phone: of the identity, for rosters, and of the TLS
    key, for whoever signs the request.
    """

    config: Path
    request: Path
    certificate: Path
    identity: str
    tls_key: str


def join(kit: Kit, answers: Answers, folder: Path, *, now: int) -> Joined:
    """Makes a party in a folder that is not there yet, or is empty.

    Guarantee: the folder holds everything or nothing; keys are made here, are readable by their owner alone, and never
    leave. Nothing that exists is replaced.
    """
    require_free(folder)
    written = write_settings(kit, answers).encode()
    parse_settings(PartySettings, read_yaml(written, "the configuration"), "the configuration")
    folder = folder.resolve()
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, mode=0o700)
    try:
        made = _make(kit, written, draft, now=now)
    except SynodError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    draft.rename(folder)
    sync_folder(folder.parent)
    certificate = folder / f"{answers.name}.pem"
    return Joined(folder / CONFIG, certificate.with_suffix(".csr"), certificate, *made)


def _make(kit: Kit, written: bytes, draft: Path, *, now: int) -> tuple[str, str]:
    """Makes everything in the draft; returns the fingerprints of the identity and of the TLS key."""
    write_public_file(draft / AUTHORITY, kit.ca.encode())
    read_authorities(draft / AUTHORITY)
    write_public_file(draft / CONFIG, written)
    settings = load_settings(PartySettings, draft / CONFIG)
    passphrase = read_passphrase(settings.tls.passphrase_file)
    request = make_request(
        settings.tls.certificate.with_suffix(".csr"),
        Holder(Role.PARTY, settings.name),
        (),
        key_path=settings.tls.key,
        passphrase=passphrase,
    )
    identity = initialize(settings, spent=None, now=now)
    sync_files(settings.state)
    sync_folder(draft)
    return identity.fingerprint, request.fingerprint


def require_free(folder: Path) -> None:
    """Refuses a folder that holds something already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise invalid(f"{folder} is there already, and holds something.", "Name another folder with `--folder`.")


def write_settings(kit: Kit, answers: Answers) -> str:
    """The party's configuration: what the kit and the operator say, all else as it is by default."""
    lines = [
        "# Made by `synod party join`. deploy/party/party.full.yaml explains all other keys, with their defaults.",
        f"name: {_text(answers.name)}",
        f"address: {_text(kit.address)}",
        "# The fingerprint that was compared with what the curator's operator said.",
        f"curator: {_text(kit.curator)}",
        f"tls: {{ca: {AUTHORITY}, certificate: {_text(answers.name + '.pem')}, key: {_text(answers.name + '.key')}}}",
        f"state: {STATE}",
        "# The account that studies are charged to. Never give the same people a new name.",
        f"dataset: {_text(answers.dataset)}",
        f"source: {_source(answers.source)}",
        *([f"unit: {_text(answers.unit)}"] if answers.unit is not None else []),
        "# The most that this table may ever give away, over all studies.",
        f"max_epsilon_total: {_text(answers.max_epsilon_total)}",
    ]
    if answers.max_epsilon_per_study is not None:
        lines.append(f"max_epsilon_per_study: {_text(answers.max_epsilon_per_study)}")
    if answers.rho is not None:
        epsilon, delta = map(_text, answers.rho)
        lines.append("# The same for studies with a delta, beside that.")
        lines.append(f"max_rho_total: {{epsilon: {epsilon}, delta: {delta}}}")
    return "\n".join(lines) + "\n"


def _source(source: Source) -> str:
    if isinstance(source, Database):
        return json.dumps(source.relative_to(Path.cwd()).written())
    return _text(str(source.resolve()))


def _text(value: str) -> str:
    """A text as YAML takes it, whatever is in it: JSON is YAML."""
    return json.dumps(value)
