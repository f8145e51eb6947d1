"""`synod party backup` and `restore`, as far as they come without a curator."""

import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from synod.common.crypto import sealedfile
from synod.deploy.cli.main import main
from tests.support.commands import complaint, synod, write_party


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sealedfile.SCRYPT, "n", 2)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    config = write_party(tmp_path / "north")
    assert synod("party", "init", "--config", config).code == 0
    return config


def test_a_file_that_is_its_owners_alone_and_never_written_over(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "north.backup"
    ending = synod("party", "backup", file, "--config", config)
    assert (ending.code, ending.out) == (0, "")
    assert ending.err == (
        "Backed up north up to entry 1 of its ledger, NOT encrypted: whoever has the file has this party.\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert "is there already" in complaint(synod("party", "backup", file, "--config", config), 2)
    assert file.read_bytes() == before


def test_through_a_pipe_and_back(config: Path) -> None:
    """As containers do it, where there is no file to write to."""
    made = CliRunner().invoke(main, ["party", "backup", "-", "--config", str(config)])
    assert made.exit_code == 0
    shutil.rmtree(config.parent / "state")
    command = ["party", "restore", "-", "--config", str(config), "--offline"]
    back = CliRunner().invoke(main, command, input=made.stdout_bytes)
    assert back.exit_code == 0, back.stderr
    assert "Restored. The old machine must never serve again." in back.stdout
    assert synod("party", "ledger", "--config", config).code == 0


def test_the_configurations_passphrase_encrypts_it(tmp_path: Path) -> None:
    config = write_party(tmp_path / "north", passphrase_file="secret.txt")
    (config.parent / "secret.txt").write_text("correct horse\n")
    assert synod("party", "init", "--config", config).code == 0
    file = tmp_path / "north.backup"
    assert "ledger, encrypted." in synod("party", "backup", file, "--config", config).err
    assert b"ENCRYPTED PRIVATE KEY" not in file.read_bytes()
    ending = synod("party", "restore", file, "--check", "--offline", "--config", config)
    assert ending.code == 0, ending.err
    assert ending.out.splitlines()[0].startswith("A backup of north and its dataset patients, made ")
    assert ending.out.splitlines()[-1] == "Nothing was restored."
    (tmp_path / "other.txt").write_text("wrong horse\n")
    wrong = synod("party", "restore", file, "--check", "--config", config, "--passphrase-file", tmp_path / "other.txt")
    assert "does not open with this passphrase" in complaint(wrong, 5)


def test_the_curator_is_asked_unless_told_otherwise(config: Path, tmp_path: Path) -> None:
    file = tmp_path / "north.backup"
    synod("party", "backup", file, "--config", config)
    shutil.rmtree(config.parent / "state")
    ending = synod("party", "restore", file, "--config", config)
    assert ending.code == 4, "there is no certificate to ask with"
    assert not (config.parent / "state").exists()


def test_no_such_file(config: Path, tmp_path: Path) -> None:
    ending = synod("party", "restore", tmp_path / "gone", "--config", config)
    assert "gone cannot be used: No such file" in complaint(ending, 1)
