"""docs/tables.md to the letter: from messy exports to a verified release in four commands; nothing of a row leaves."""

from pathlib import Path

import pyarrow.parquet
import pytest

from tests.support.messy import CANARY, write_messy
from tests.support.pages import Blocks, runs
from tests.support.shell import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROWS = 700


@runs("docs/tables.md", "Four commands")
def test_four_commands_from_messy_exports_to_a_verified_release(blocks: Blocks, tmp_path: Path) -> None:
    write_messy(tmp_path, ROWS)
    commands = [line for line in blocks.script("Four commands").splitlines() if line.strip()]
    assert len(commands) == 4
    drafting, editing, launching, verifying = commands
    run(drafting, tmp_path)
    assert "UNDECIDED" in (tmp_path / "study.yaml").read_text()
    run(editing, tmp_path)
    told = run(f"{launching} --state state", tmp_path)
    assert "klinik-nord.csv is read as separated by a semicolon, iso-8859-1, with decimal commas, with NA" in told
    assert "Proven: the release is whole" in run(verifying, tmp_path)
    table = pyarrow.parquet.read_table(tmp_path / "release" / "synthetic.parquet")
    assert table.num_rows == 3 * ROWS
    kinds = [str(kind) for kind in table.schema.types]
    assert kinds == ["date32[day]", "string", "int64", "double", "string", "bool", "double"]
    for path in [*(tmp_path / "state").rglob("*"), *(tmp_path / "release").iterdir()]:
        if path.is_file():
            for spelled in (CANARY.encode("iso-8859-1"), CANARY.encode(), b"PID0000"):
                assert spelled not in path.read_bytes(), path.name
    assert CANARY not in told
