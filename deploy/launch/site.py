"""The site of a launch: names, keys, certificates, configurations and ledgers of everybody, below one folder.

For demos and tests: whoever makes a site holds everybody's keys and tables.
"""

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

import yaml

from synod.common.crypto.authority import issue_certificate, make_authority
from synod.common.crypto.canonical import Json
from synod.common.crypto.certificates import Holder, Role
from synod.common.crypto.identity import Identity
from synod.common.runtime.errors import Code, SynodError, invalid
from synod.common.runtime.settings import CsvFormat, Database, PartySettings, load_settings
from synod.common.study.schema import write_decimal
from synod.common.study.study import RosterEntry, Study, parse_study
from synod.party.approval import initialize
from synod.party.table.csv_source import table_ending
from synod.party.table.detect import detect_format, shown
from synod.party.table.source import Source, count_rows

WARNING = "One operator holds all keys and all tables here: for demos and tests, not for real organizations."
CURATOR_HOSTS = ("127.0.0.1", "localhost", "curator")
OWN_NAMES = ("certs", "curator", "operator")


@dataclass(frozen=True, slots=True)
class Member:
    """One organization: its name, its table and its configuration file."""

    name: str
    table: Source
    config: Path
    layout: CsvFormat | None = None  # as it was detected: nobody wrote a configuration


@dataclass(frozen=True, slots=True)
class SitePaths:
    """The files of a launch, below one folder."""

    folder: Path
    members: tuple[Member, ...]

    @property
    def certs(self) -> Path:
        """The transport authority and all certificates."""
        return self.folder / "certs"

    @property
    def curator_config(self) -> Path:
        """The curator's configuration."""
        return self.folder / "curator.yaml"

    @property
    def operator_config(self) -> Path:
        """The operator's configuration, written once the curator's port is known."""
        return self.folder / "operator.yaml"

    @property
    def study_file(self) -> Path:
        """The resolved study."""
        return self.folder / "study.yaml"


def plan_names(tables: Sequence[Source]) -> list[str]:
    """A name for the organization of each table, after its file, or its name in a database."""
    names: list[str] = []
    for table in tables:
        stem = _stem(table).lower()
        name = re.sub(r"[^a-z0-9]+", "-", stem)[:50].strip("-") or "party"
        candidates = chain([name], (f"{name}-{number}" for number in count(2)))
        names.append(next(candidate for candidate in candidates if candidate not in (*OWN_NAMES, *names)))
    return names


def _stem(table: Source) -> str:
    if isinstance(table, Database):
        return (table.table or "query").rpartition(".")[2]
    return table.name.removesuffix(table.name[len(table.name) - len(table_ending(table)) :])


def _settled(table: Source) -> Source:
    """The same table, wherever the program runs."""
    return table.relative_to(Path.cwd()) if isinstance(table, Database) else table.resolve()


def plan_paths(folder: Path, tables: Sequence[Source]) -> SitePaths:
    """Plans one organization for each table, and detects how its file is written."""
    members = tuple(
        Member(name, _settled(table), folder / name / "party.yaml", detect_format(table))
        for name, table in zip(plan_names(tables), tables, strict=True)
    )
    return SitePaths(folder, members)


def prepare(paths: SitePaths, study: Study, unit: str | None = None) -> Study:
    """Makes keys, certificates, configurations and ledgers; returns the study with its roster. `unit` is the column of
    every table that tells persons apart.
    """
    now = datetime.now(UTC)
    make_authority(paths.certs, now=now)
    issue_certificate(paths.certs, Holder(Role.CURATOR, "curator"), CURATOR_HOSTS, now=now)
    issue_certificate(paths.certs, Holder(Role.OPERATOR, "operator"), (), now=now)
    for member in paths.members:
        issue_certificate(paths.certs, Holder(Role.PARTY, member.name), (), now=now)
    curator_key = _prepare_curator(paths)
    roster = [_prepare_party(paths, member, study, curator_key, unit) for member in paths.members]
    _check_roster(study, roster)
    with_roster = {**study.to_json(), "roster": study.roster or tuple(roster)}
    resolved = parse_study(with_roster, f"the study {study.name}").resolve()
    paths.study_file.write_text(yaml.safe_dump(resolved.to_json(), sort_keys=False, allow_unicode=True))
    return resolved


def _check_roster(study: Study, roster: Sequence[RosterEntry]) -> None:
    if study.roster:
        raise invalid(
            "the study has a roster, whose keys are with its organizations.",
            "`synod launch` makes all keys itself: leave the roster out.",
        )
    if study.collusion >= len(roster):
        raise invalid(
            f"collusion {study.collusion} needs more than {len(roster)} tables.",
            "Give more --data, or lower it.",
        )


def _prepare_curator(paths: SitePaths) -> str:
    write_yaml(
        paths.curator_config,
        {
            "listen": "127.0.0.1:0",
            "state": "curator",
            "tls": tls_files(paths, "curator", "."),
        },
    )
    (paths.folder / "curator").mkdir(mode=0o700)
    identity = Identity.generate()
    identity.save(paths.folder / "curator" / "identity.pem")
    return identity.fingerprint


def _prepare_party(paths: SitePaths, member: Member, study: Study, curator_key: str, unit: str | None) -> RosterEntry:
    member.config.parent.mkdir()
    write_yaml(
        member.config,
        {
            "name": member.name,
            "address": "127.0.0.1:0",
            "state": "state",
            "curator": curator_key,
            "tls": tls_files(paths, member.name, ".."),
            "dataset": member.name,
            "source": dict(member.table.written()) if isinstance(member.table, Database) else str(member.table),
            **({} if member.layout is None else {"format": shown(member.layout)}),
            **({} if unit is None else {"unit": unit}),
            **_caps(study),
            "min_collusion": min(1, study.collusion),
            "min_parties": 1,
            "min_key_bits": 2048,
            "allow_local_queries": True,
            "approve": "auto",
        },
    )
    settings = load_settings(PartySettings, member.config)
    identity = initialize(settings, spent=None, now=int(time.time()))
    rows = count_rows(member.table, member.layout)
    return RosterEntry(name=member.name, key=identity.fingerprint, rows=_positive(rows, member))


def _caps(study: Study) -> dict[str, Json]:
    """Room for this one study: of pure epsilon, or of rho where it has a delta."""
    epsilon = write_decimal(study.epsilon)
    if study.delta is None:
        return {"max_epsilon_total": epsilon}
    return {"max_epsilon_total": "0", "max_rho_total": {"epsilon": epsilon, "delta": write_decimal(study.delta)}}


def _positive(rows: int, member: Member) -> int:
    if rows < 1:
        raise invalid(f"{member.table.name} has no rows.", "Every organization needs at least one.")
    return rows


def tls_files(paths: SitePaths, name: str, up: str) -> dict[str, Json]:
    """The `tls` of a configuration that is `up` from the paths's folder."""
    folder = f"{up}/{paths.certs.name}"
    return {"ca": f"{folder}/ca.pem", "certificate": f"{folder}/{name}.pem", "key": f"{folder}/{name}.key"}


def write_yaml(path: Path, value: dict[str, Json]) -> None:
    """Writes a configuration."""
    path.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


def ended_early(name: str, log: str, hint: str) -> SynodError:
    """The error for a daemon that has ended by itself, with what it said last."""
    last = (log.strip().splitlines() or ["it said nothing"])[-1]
    with suppress(ValueError, KeyError, TypeError):
        last = json.loads(last)["why"]
    return SynodError(Code.INTERNAL, f"{name} ended by itself: {last}", hint)
