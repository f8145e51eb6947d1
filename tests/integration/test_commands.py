"""`synod launch` from outside: its exit codes, what it leaves behind, and what its logs never hold."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

from synod.common.protocol.manifest import verify_release
from synod.common.runtime.errors import SynodError
from synod.deploy.launch.processes import PROGRAM
from synod.deploy.launch.site import Member, SitePaths
from synod.v1 import study_pb2 as pb
from tests.support.daemons import Site, run_synod
from tests.support.surveys import SCHEMA, draft_survey, make_rows, write_table, write_tables

PLANTED = "61.23456789"  # a weight that no other row and no bin's border has
BAD_WARD = "Quarantäne-Ost"
BAD_ROWS = 17
PERSON = "Zachariah"  # how everybody is called in a column that no study may ask for
DEAF = ["sh", "-c", "trap '' INT && exec \"$@\"", "sh"]  # a shell's background job, where SIGINT is ignored


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """Two CSV files and one Parquet file, with a value in them that must not be seen anywhere else."""
    north, harbour, valley = write_tables(tmp_path / "tables")
    write_table(north, [["F", "30", PLANTED, "day", "1"], *make_rows(100, 7)])
    table = pyarrow.csv.read_csv(valley)
    pyarrow.parquet.write_table(table, valley.with_suffix(".parquet"))
    valley.unlink()
    return [north, harbour, valley.with_suffix(".parquet")]


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    """The small study, without a roster."""
    return write_study(tmp_path / "study.yaml", {})


def write_study(path: Path, changes: dict[str, object]) -> Path:
    content = {key: value for key, value in draft_survey().to_json().items() if key not in ("roster", "rows")}
    path.write_text(yaml.safe_dump({**content, **changes}))
    return path


def launch(study: Path, tables: list[Path], out: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    data = [part for table in tables for part in ("--data", table)]
    return run_synod("launch", study, *data, "--out", out, *more)


def site_of(state: Path, names: list[str], tables: list[Path]) -> Site:
    """What a launch left in its state folder."""
    members = tuple(Member(name, table, state / name / "party.yaml") for name, table in zip(names, tables, strict=True))
    return Site(SitePaths(state, members), draft_survey())


def test_launch_publishes_from_csv_and_parquet_and_tells_no_private_value(
    tables: list[Path], study_file: Path, tmp_path: Path
) -> None:
    out, state = tmp_path / "release", tmp_path / "state"
    ran = launch(study_file, tables, out, "--state", state)
    assert ran.returncode == 0, ran.stderr
    assert "One operator holds all keys and all tables here" in ran.stdout
    assert "survey: published" in ran.stdout
    verify_release(out, None)
    assert run_synod("verify", out).returncode == 0

    logs = sorted(state.glob("*.log"))
    assert [log.stem for log in logs] == ["curator", "harbour", "north", "valley"]
    for log in logs:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert len(lines) > 3
        assert all({"time", "level", "logger", "event"} <= set(line) for line in lines)
    told = ran.stdout + ran.stderr + "".join(log.read_text() for log in logs)
    assert PLANTED not in told
    seen_by_the_curator = [path for path in (state / "curator").rglob("*") if path.is_file()]
    assert len(seen_by_the_curator) > 4
    assert all(PLANTED.encode() not in path.read_bytes() for path in [*seen_by_the_curator, *out.iterdir()])
    secrets = [state / "curator" / "identity.pem", *state.glob("*/state/identity.pem"), *state.glob("certs/*.key")]
    assert {path.stat().st_mode & 0o077 for path in secrets} == {0}


def test_modules_in_the_folder_where_it_is_run_are_not_imported(
    tables: list[Path], study_file: Path, tmp_path: Path
) -> None:
    """A user's project may have a folder `common/`: neither the launcher nor a daemon looks there."""
    here = tmp_path / "here"
    for name in ("common/__init__.py", "deploy/__init__.py", "synod.py", "yaml.py", "tests/__init__.py"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("raise SystemExit('imported from the working directory')\n")
    data = [part for table in tables for part in ("--data", str(table))]
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "synod.deploy.cli", "launch", str(study_file), *data, "--out", "release"],
        cwd=here, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verify_release(here / "release", None)


def drop_a_table(tables: list[Path], study: Path, out: Path) -> list[Path]:
    tables[1].unlink()
    return tables


def misspell(tables: list[Path], study: Path, out: Path) -> list[Path]:
    write_study(study, {"epsilonn": 1})
    return tables


def give_a_roster(tables: list[Path], study: Path, out: Path) -> list[Path]:
    write_study(study, {"roster": [{"name": "north", "key": "sha256:" + "0" * 64, "rows": 3}], "collusion": 0})
    return tables


def fill_out(tables: list[Path], study: Path, out: Path) -> list[Path]:
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    return tables


def empty_a_table(tables: list[Path], study: Path, out: Path) -> list[Path]:
    write_table(tables[0], [])
    return tables


def keep_one_table(tables: list[Path], study: Path, out: Path) -> list[Path]:
    return tables[:1]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (drop_a_table, "harbour.csv. Check --data."),
        (misspell, "the key epsilonn is not known. Check its spelling, or remove it."),
        (give_a_roster, "the study has a roster, whose keys are with its organizations."),
        (fill_out, "is not an empty folder. Name another --out, or remove it first."),
        (empty_a_table, "north.csv has no rows."),
        (keep_one_table, "collusion 1 needs more than 1 tables."),
    ],
)
def test_bad_input_ends_a_launch_before_anything_runs(
    tables: list[Path],
    study_file: Path,
    tmp_path: Path,
    spoil: Callable[[list[Path], Path, Path], list[Path]],
    sentence: str,
) -> None:
    out, state = tmp_path / "release", tmp_path / "state"
    ran = launch(study_file, spoil(tables, study_file, out), out, "--state", state)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert sentence in ran.stderr
    assert ran.stderr.startswith("synod: ")
    assert "Traceback" not in ran.stderr
    assert list(state.glob("*.log")) == []
    assert sorted(path.name for path in out.glob("*")) == (["notes.txt"] if spoil is fill_out else [])


def test_a_launch_without_tables_or_to_an_unknown_backend_is_a_usage_error(study_file: Path, tmp_path: Path) -> None:
    assert launch(study_file, [], tmp_path / "release").returncode == 2
    table = tmp_path / "study.yaml"
    assert launch(study_file, [table], tmp_path / "release", "--backend", "carrier-pigeon").returncode == 2


def test_a_value_outside_the_domain_is_for_its_own_operator_s_eyes(
    tables: list[Path], study_file: Path, tmp_path: Path
) -> None:
    rows = make_rows(200, 3)
    for row in rows[:BAD_ROWS]:
        row[3] = BAD_WARD
    write_table(tables[1], rows)
    state = tmp_path / "state"
    ran = launch(study_file, tables, tmp_path / "release", "--state", state)
    assert ran.returncode == 3
    why = "its table does not fit the study's schema: column ward: outside the domain"
    assert f"harbour does not approve survey, because {why}." in ran.stderr
    assert all(private not in ran.stderr for private in (BAD_WARD, str(BAD_ROWS)))
    assert BAD_WARD not in ran.stdout
    shown = next(line for line in ran.stdout.splitlines() if "outside the domain" in line)
    assert [cell.strip() for cell in shown.strip("│┃|").split("│")] == ["ward", "outside the domain", str(BAD_ROWS)]
    assert not (tmp_path / "release").exists()

    # The curator learns that harbour does not approve, and nothing else: no column, no rule, no count, no value.
    site = site_of(state, ["north", "harbour", "valley"], tables)
    site.start_curator()
    try:
        (status,) = json.loads(run_synod("study", "status", "--json", "--config", site.paths.operator_config).stdout)
        assert status["state"] == "enrolling"
        assert [party["not_approved"] for party in status["parties"] if party["name"] == "harbour"] == [True]
    finally:
        site.stop_all()
    told = json.dumps([{**p, "awaited_since": 0, "last_seen": 0} for p in status["parties"]]) + status["reason"]
    events = [{**line, "time": "", "port": 0, "hash": "", "fingerprint": ""} for line in site.log("curator")]
    for text in (told, json.dumps(events, ensure_ascii=False)):
        assert all(private not in text for private in (BAD_WARD, "ward", "outside the domain", str(BAD_ROWS)))
    for path in (state / "curator").rglob("*"):
        assert path.is_dir() or BAD_WARD.encode() not in path.read_bytes()

    # The party's own log says that the table does not fit; what does not fit is shown to whoever asks there.
    events = [{**line, "time": "", "hash": "", "address": ""} for line in site.log("harbour")]
    own_log = json.dumps(events, ensure_ascii=False)
    assert "the table does not fit the study's schema." in own_log
    assert all(private not in own_log for private in (BAD_WARD, "ward", str(BAD_ROWS)))
    dry_run = run_synod(
        "party", "approve", state / "study.yaml", "--dry-run", "--config", state / "harbour" / "party.yaml"
    )
    assert dry_run.returncode == 2
    finding = next(line for line in dry_run.stdout.splitlines() if "outside the domain" in line)
    assert [cell.strip() for cell in finding.strip("│┃|").split("│")] == ["ward", "outside the domain", str(BAD_ROWS)]
    assert BAD_WARD not in dry_run.stdout + dry_run.stderr
    assert [line["kind"] for line in site.ledger_entries("harbour")] == ["opened"]


@pytest.mark.slow
def test_a_column_missing_at_one_party_is_not_approved_there(
    tables: list[Path], study_file: Path, tmp_path: Path
) -> None:
    names = [str(column["name"]) for column in SCHEMA]
    lines = [",".join(names[:-1]), *(",".join(row[:-1]) for row in make_rows(50, 1))]
    tables[0].write_text("\n".join(lines) + "\n")
    state = tmp_path / "state"
    ran = launch(study_file, tables, tmp_path / "release", "--state", state)
    assert ran.returncode == 3
    assert "north does not approve survey, because " in ran.stderr
    assert "stays" in ran.stderr
    assert "stays" not in (state / "curator.log").read_text()


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for child processes in /proc")
@pytest.mark.parametrize(
    ("caller", "number", "children"),
    [
        ([], signal.SIGINT, 4),
        ([], signal.SIGTERM, 4),
        ([], signal.SIGINT, 1),
        (DEAF, signal.SIGINT, 4),
        (DEAF, signal.SIGINT, 1),
    ],
    ids=["ctrl-c", "term", "ctrl-c-early", "ctrl-c-ignored-by-the-caller", "ctrl-c-early-ignored-by-the-caller"],
)
def test_an_interrupted_launch_leaves_no_process_and_no_file_behind(
    tables: list[Path], study_file: Path, tmp_path: Path, caller: list[str], number: signal.Signals, children: int
) -> None:
    """Ctrl-C in the middle of the study, and while the curator is still starting."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    options = [part for table in tables for part in ("--data", str(table))]
    if children == 1:  # a curator whose state stays does not end by itself
        options += ["--state", str(tmp_path / "state")]
    process = subprocess.Popen(
        [*caller, sys.executable, *PROGRAM, "launch", str(study_file), *options, "--out", str(tmp_path / "release")],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    found: list[int] = []
    try:
        end = time.monotonic() + 60
        while len(found) < children and time.monotonic() < end and process.poll() is None:
            found = children_of(process.pid)
            time.sleep(0.01)
        assert len(found) == children
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        time.sleep(1)  # for what is left of it to show
        left = [child for child in found if is_alive(child)]
    finally:
        if process.poll() is None:
            process.kill()
        for child in found:
            if is_alive(child):
                os.kill(child, signal.SIGKILL)
    assert left == []
    assert process.returncode == 1, told
    assert b"Traceback" not in told
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "release").exists()


def test_an_unreachable_curator_ends_an_operator_s_command_with_exit_code_4(site: Site) -> None:
    site.start_curator()
    site.submit()
    assert site.status().state == pb.STUDY_STATE_ENROLLING
    site.kill("curator")
    ran = run_synod("study", "status", "--config", site.paths.operator_config)
    assert ran.returncode == 4
    assert "cannot be reached. Check the address, the port and the curator's state." in ran.stderr
    with pytest.raises(SynodError, match="cannot be reached"):
        site.status()


def test_launch_protects_persons_with_two_rows_and_refuses_who_has_more(tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables")
    for table in tables:
        first, *lines = table.read_text().splitlines()
        named = [f"{PERSON}{i // 2},{line}" for i, line in enumerate(lines)]
        table.write_text("\n".join([f"person,{first}", *named]) + "\n")
    study, out, state = write_study(tmp_path / "study.yaml", {"max_rows_per_unit": 2}), tmp_path / "out", tmp_path / "s"
    ran = launch(study, tables, out, "--unit", "person", "--state", state)
    assert ran.returncode == 0, ran.stderr
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["study"]["max_rows_per_unit"] == 2
    assert [law["protects"] for law in manifest["noise"]] == ["any one person with up to 2 rows at a party"]
    assert run_synod("verify", out).returncode == 0
    kept = [path for folder in (out, state) for path in folder.rglob("*") if path.is_file()]
    assert all(PERSON.encode() not in path.read_bytes() for path in kept), "the column never leaves its table"

    study = write_study(tmp_path / "one.yaml", {"max_rows_per_unit": 1})
    ran = launch(study, tables, tmp_path / "refused", "--unit", "person")
    assert ran.returncode == 3
    assert "column person: the unit of privacy appears in more than one row" in ran.stderr
    assert PERSON not in ran.stdout + ran.stderr
