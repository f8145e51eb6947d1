"""The program as its user sees it: what it prints where, and how it ends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from synod.deploy.cli.main import main

ROW = "F,30,500,a"
HEADER = "sex,age,income,ward"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    code: int
    out: str
    err: str


def synod(*arguments: object, stdin: str = "") -> Ending:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return Ending(result.exit_code, result.stdout, result.stderr)


def complaint(ending: Ending, code: int) -> str:
    """The one line on stderr of a command that failed with `code`."""
    assert ending.code == code, (ending.code, ending.out, ending.err)
    assert ending.err.startswith("synod: "), ending.err
    assert ending.err.endswith("\n")
    line = ending.err[:-1]
    assert "\n" not in line, "an error is one line"
    assert "Traceback" not in line
    assert line.endswith((".", ")", "?")), line
    return line.removeprefix("synod: ")


def write_party(folder: Path, name: str = "north", **changes: Any) -> Path:
    """A party's configuration and a table of three rows; returns the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "name": name,
        "address": "127.0.0.1:1",
        "state": "state",
        "curator": "sha256:" + "0" * 64,
        "dataset": "patients",
        "source": "patients.csv",
        "max_epsilon_total": 2,
        "min_key_bits": 2048,
        "tls": {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"},
        **changes,
    }
    config = folder / "party.yaml"
    config.write_text(yaml.safe_dump(settings))
    (folder / "patients.csv").write_text("\n".join([HEADER, ROW, "M,40,,b", "F,50,1000,c"]) + "\n")
    return config


def write_study(path: Path, **changes: Any) -> Path:
    """A study file; `roster` maps names to keys and rows."""
    roster = changes.pop("roster", {"north": ("sha256:" + "1" * 64, 3), "valley": ("sha256:" + "2" * 64, 7)})
    study = {
        "name": "care-survey",
        "method": {"name": "hpdp-dp"},
        "epsilon": 1,
        "key_bits": 2048,
        "roster": [{"name": name, "key": key, "rows": rows} for name, (key, rows) in roster.items()],
        "schema": [
            {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
            {"name": "age", "type": "integer", "min": 0, "max": 100},
            {"name": "income", "type": "real", "min": 0, "max": 1000, "nullable": True},
            {"name": "ward", "type": "categorical", "categories": ["a", "b", "c"]},
        ],
        **changes,
    }
    path.write_text(yaml.safe_dump({key: value for key, value in study.items() if value is not None}, sort_keys=False))
    return path
