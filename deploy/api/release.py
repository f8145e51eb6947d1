"""Releases in Python: verified when they are loaded, or not loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from synod.common.protocol.answers import ANSWERS_FILE, ReleasedAnswers
from synod.common.protocol.manifest import MANIFEST_FILE
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.trust import Trust, parse_trust
from synod.common.runtime.errors import invalid
from synod.common.runtime.jsontext import read_json_file
from synod.curator.release.files import PARQUET_FILE
from synod.curator.release.redraw import CheckedRelease, check_release, read_model
from synod.deploy.api.published import Published


class Release(Published):
    """A verified release; `load_release` makes one.

    Attributes:
        path: its folder.
        manifest: what `manifest.json` says.
        proven: what verification has shown, a sentence each.
        unproven: what it cannot show.
    """

    def __init__(self, path: Path, checked: CheckedRelease) -> None:
        super().__init__(checked.verdict.study, read_model(path, checked.verdict.study))
        self.path = path
        self.manifest: dict[str, Any] = read_json_file(path / MANIFEST_FILE)
        self.proven: tuple[str, ...] = checked.lines
        self.unproven: tuple[str, ...] = checked.unproven
        self._queries = checked.verdict.queries
        self._answers = ReleasedAnswers(path / ANSWERS_FILE, self.study, self._queries)

    @property
    def queries(self) -> Mapping[str, AnyQuery]:
        """What was asked, by the label of the round."""
        return self._queries

    def _answer(self, label: str) -> Any:
        return self._answers.read(label)

    def _rows(self) -> pa.Table:
        return pa.parquet.read_table(self.path / PARQUET_FILE)

    def __repr__(self) -> str:
        parties = len(self.study.roster)
        return f"<Release {self.study.name}: {self.study.rows:,} rows, {parties} parties, {self.study.method.name}>"


def load_release(
    path: str | Path, trust: str | Path | Mapping[str, str] | None = None, *, recompute: bool = True
) -> Release:
    """A release, verified: hashes, signatures, plan, spend, rows, and that its method gives all of it again.

    Args:
        path: the release's folder.
        trust: whose key is whose: the path of a trust file, or a mapping of names to fingerprints, `curator` among
            them. Without it, who signed is not proven, and `unproven` says so.
        recompute: whether to run the method again over the released answers, which can take as long as it took the
            curator; without, what that would have shown is in `unproven`.

    Raises:
        SynodError: a check does not hold, so that the release must not be used.
    """
    folder = Path(path)
    return Release(folder, check_release(folder, _read_trust(trust), recompute=recompute))


def read_trust(path: Path) -> Trust:
    """Reads a trust file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise invalid(f"{path} cannot be read as a file of fingerprints.") from None
    return parse_trust(text, str(path))


def _read_trust(trust: str | Path | Mapping[str, str] | None) -> Trust | None:
    if trust is None:
        return None
    if isinstance(trust, Mapping):
        return parse_trust("".join(f"{name} {key}\n" for name, key in trust.items()), "trust")
    return read_trust(Path(trust))
