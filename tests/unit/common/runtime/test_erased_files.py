"""Files that held a secret: overwritten before they go."""

import os
from pathlib import Path

from synod.common.runtime.files import erase_file, write_private_file


def test_an_erased_file_is_overwritten_and_gone(tmp_path: Path) -> None:
    path, other_name = tmp_path / "key", tmp_path / "link"
    write_private_file(path, b"a secret of some length")
    os.link(path, other_name)  # what is on disk after the name is gone
    erase_file(path)
    assert not path.exists()
    assert other_name.read_bytes() == bytes(len(b"a secret of some length"))


def test_to_erase_what_is_not_there_is_fine(tmp_path: Path) -> None:
    erase_file(tmp_path / "absent")
    erase_file(tmp_path / "absent" / "too")
    assert list(tmp_path.iterdir()) == []
