"""What is compared: tables in the cells of the schema, categories as they are and numbers in their bins.

Both tables are read by the party's reader and in the same cells, whatever method the study names. An attribute whose
domain is a single cell cannot differ and is left out, as it would only make averages look better.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.runtime.errors import SynodError, invalid
from synod.common.runtime.jsontext import DocumentError, read_json_file
from synod.common.study.attributes import DaysAttribute, first_real, first_whole, name_day
from synod.common.study.encoding import Codes, binned_codings, to_bins
from synod.common.study.features import Feature, FeatureSpace
from synod.common.study.schema import CategoricalAttribute, IntegerAttribute, RealAttribute
from synod.common.study.study import Study, parse_study
from synod.party.table.csv_source import table_ending
from synod.party.table.detect import detect_format
from synod.party.table.encode import TableError, read_table
from synod.party.table.source import count_rows

SYNTHETIC_FILE = "synthetic.parquet"
MISSING = "(missing)"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of codes with their names and the number of cells of each; `values` counts those that are not missing."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: tuple[int, ...]
    columns: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0])


def bin_table(study: Study, columns: Sequence[Codes]) -> Table:
    """The table of a study's own codes, as a recipe publishes them, in the schema's bins."""
    return make_table(study, to_bins(study, columns))


def make_table(study: Study, columns: Sequence[Codes]) -> Table:
    """The table of columns that are in bins already."""
    kept = [(c, column) for c, column in zip(binned_codings(study), columns, strict=True) if c.size > 1]
    if not kept:
        raise invalid("no attribute of the schema has more than one cell to compare.", "Give some number more bins.")
    codings = [coding for coding, _ in kept]
    return Table(
        tuple(coding.attribute.name for coding in codings),
        tuple(coding.size for coding in codings),
        tuple(coding.value_codes for coding in codings),
        tuple(column for _, column in kept),
    )


def fill_columns(study: Study, table: Table) -> list[Codes]:
    """The inverse of `make_table`: an attribute whose domain is a single cell has nothing but that."""
    columns = dict(zip(table.names, table.columns, strict=True))
    constant: Codes = np.zeros(table.rows, dtype=np.uint8)
    return [columns.get(attribute.name, constant) for attribute in study.attributes]


def split_bits(study: Study, columns: Sequence[Codes]) -> Table:
    """The same rows as the papers' binary encoding: the bits of each code, the highest first."""
    space = bit_space(study)
    names = tuple(_bit_name(study, feature) for feature in space.features)
    twos = (2,) * len(space.features)
    return Table(names, twos, twos, tuple(space.encode(columns)))


def bit_space(study: Study) -> FeatureSpace:
    """The bits of the schema's binned codes."""
    return FeatureSpace(binned_codings(study), "binary")


def _bit_name(study: Study, feature: Feature) -> str:
    return f"{study.attributes[feature.attribute].name} bit {feature.bit}"


def read_columns(sources: Sequence[Path], study: Study) -> tuple[Codes, ...]:
    """The rows of one or more tables, below each other, in the schema's bins."""
    parts = [_read_one(source, study) for source in sources]
    columns = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    if len(columns[0]) == 0:
        raise invalid(f"{sources[0]} has no rows.", "There is nothing to compare.")
    return columns


def _read_one(source: Path, study: Study) -> tuple[Codes, ...]:
    layout = detect_format(source)
    try:
        rows = count_rows(source, layout)
        return read_table(source, binned_codings(study), unit=None, expected_rows=rows, layout=layout).columns
    except TableError as error:
        first, *rest = error.misfits
        more = f" ({len(rest)} more after it)" if rest else ""
        raise invalid(
            f"{source.name} does not fit the study's schema: column {first.column}: {first.rule}{more}.",
            "Check that table and study belong together.",
        ) from None


def find_real(path: Path) -> list[Path]:
    """The tables that REAL names: a file, or all CSV and Parquet files of a folder, whose rows are pooled."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise _no_table(path)
    found = sorted(file for file in path.iterdir() if table_ending(file) not in ("", ".txt") and file.is_file())
    if not found:
        raise invalid(f"the folder {path} holds no table.", "Tables are .csv or .parquet files.")
    stems = [file.name.removesuffix(table_ending(file)) for file in found]
    repeated = [stem for stem in stems if stems.count(stem) > 1]
    if repeated:
        raise invalid(f"the folder {path} holds {repeated[0]} in two files.", "Keep one, or name the file.")
    return found


def read_release_study(folder: Path) -> Study:
    """The study of a release, as its manifest has it; whether the release is sound is for `synod verify` to say."""
    try:
        return parse_study(read_json_file(folder / MANIFEST_FILE)["study"], f"the study of {folder}")
    except (OSError, DocumentError, KeyError, TypeError):
        raise invalid(
            f"{folder} is not a release, so it does not say what its columns may hold.", "Name the study with --study."
        ) from None


def find_synthetic(path: Path) -> Path:
    """The table that SYNTHETIC names: a file, or that of a release."""
    if path.is_dir():
        if not (path / SYNTHETIC_FILE).is_file():
            raise invalid(f"the folder {path} holds no {SYNTHETIC_FILE}.", "Name a release or a table.")
        return path / SYNTHETIC_FILE
    if not path.is_file():
        raise _no_table(path)
    return path


def _no_table(path: Path) -> SynodError:
    return invalid(f"there is no table at {path}.", "Name a .csv or .parquet file, or a folder.")


def cell_labels(study: Study, name: str) -> list[str]:
    """What each code of an attribute stands for: a category, or where a bin begins."""
    coding = next(c for c in binned_codings(study) if c.attribute.name == name)
    attribute = coding.attribute
    if isinstance(attribute, CategoricalAttribute):
        labels = list(attribute.categories)
    else:
        labels = [f"≥ {_bin_start(attribute, place)}" for place in range(coding.value_codes)]
    return [*labels, MISSING] if attribute.nullable else labels


def _bin_start(attribute: IntegerAttribute | RealAttribute, place: int) -> str:
    if isinstance(attribute, IntegerAttribute):
        first = first_whole(attribute, place)
        return name_day(first) if isinstance(attribute, DaysAttribute) else str(first)
    return f"{float(first_real(attribute, place)):.6g}"
