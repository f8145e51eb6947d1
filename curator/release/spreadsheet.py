"""A copy of a release's rows for spreadsheet programs, in which no text is taken for a formula.

Such a program may compute a cell that starts with =, +, - or @, also where the file says that it is text. Categories
and names of columns come from the study, which somebody else wrote. The release itself stays as it was signed.
"""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from synod.common.runtime.errors import invalid
from synod.curator.release.files import write_csv

FORMULA = r"^(\s*[=+@＝＋－＠-]|[\t\r\n])"  # noqa: RUF001  (the wide signs count as formulas in some languages)


def write_spreadsheet(release: Path, target: Path) -> None:
    """Writes the rows of a release to a new CSV file outside of it, an apostrophe before what would be a formula."""
    if target.resolve().is_relative_to(release.resolve()):
        raise invalid(f"{target} is inside of the release, which no other file may be part of.", "Name another place.")
    if target.exists():
        raise invalid(f"{target} is there already.", "Name a new file.")
    table = pa.parquet.read_table(release / "synthetic.parquet")
    columns = [_as_text(column) if pa.types.is_string(column.type) else column for column in table.columns]
    write_csv(pa.table(columns, names=[re.sub(FORMULA, r"'\1", name) for name in table.column_names]), target)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(column, FORMULA, r"'\1", max_replacements=1)
