"""Daemons do not start where Python leaves assertions out."""

import subprocess
import sys
from pathlib import Path

import pytest

TLS = "tls: {ca: ca.pem, certificate: own.pem, key: own.key}\n"
CONFIGURATIONS = {
    "curator": f"listen: 127.0.0.1:0\nstate: state\n{TLS}",
    "party": "name: north\naddress: 127.0.0.1:1\nstate: state\ndataset: patients\nsource: patients.csv\n"
    f"max_epsilon_total: 1\ncurator: 'sha256:{'0f' * 32}'\n{TLS}",
}


@pytest.mark.parametrize("daemon", CONFIGURATIONS)
def test_no_daemon_starts_without_assertions(tmp_path: Path, daemon: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGURATIONS[daemon])
    command = ["-m", "synod.deploy.cli", daemon, "serve", "--config", str(config)]
    endings = {
        option: subprocess.run(
            [sys.executable, *option, *command], check=False, capture_output=True, text=True, timeout=60
        )
        for option in ((), ("-O",))
    }
    assert endings["-O",].returncode == 3
    assert endings["-O",].stderr.startswith("synod: Python runs without assertions, and so no daemon starts. Leave out")
    assert "assertions" not in endings[()].stderr
    assert not (tmp_path / "state").exists()
