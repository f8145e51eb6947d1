"""Studies as people have them in Python: a path, a mapping, or one that is parsed already."""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from synod.common.runtime.errors import invalid
from synod.common.study.study import Study, load_study, parse_study

AnyStudy = Study | Mapping[str, Any] | str | Path


def read_study(study: AnyStudy) -> Study:
    """A study from the path of its file or from a mapping like the file's content."""
    if isinstance(study, Study):
        return study
    if isinstance(study, Mapping):
        return parse_study(_exact(study), "the study")
    if isinstance(study, str | Path):
        return load_study(Path(study))
    raise invalid("a study is the path of a file, or a mapping like its content.", "See `synod.draft`.")


def _exact(value: Any) -> Any:
    """The same with floats as the decimals that they are written as: a study has exact numbers."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: _exact(own) for key, own in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_exact(own) for own in value]
    return value


def with_parties(study: Study, rows: Mapping[str, int]) -> Study:
    """The resolved study with these parties in the place of its roster; their keys stand for nobody."""
    roster = [
        {"name": name, "key": f"sha256:{hashlib.sha256(name.encode()).hexdigest()}", "rows": count}
        for name, count in rows.items()
    ]
    return parse_study({**study.to_json(), "roster": roster}, f"the study {study.name}").resolve()
