"""Synod: organizations that may not show each other their rows publish one private synthetic table together.

These names are all that is public in Python; everything else is internal. `load_release` opens and verifies a release,
`simulate` tries a study on tables in memory, `draft` and `forecast` prepare one, `evaluate` compares tables. Whatever
goes wrong for a reason that one can read is a `SynodError`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synod.common.runtime.errors import SynodError
    from synod.deploy.api.release import Release, load_release
    from synod.deploy.api.simulation import Simulation, simulate
    from synod.deploy.api.work import draft, evaluate, forecast

__all__ = [
    "Release",
    "Simulation",
    "SynodError",
    "draft",
    "evaluate",
    "forecast",
    "load_release",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Loads the public names when the first of them is used, so that daemons start without what they do not need."""
    if name not in __all__:
        raise AttributeError(f"module 'synod' has no attribute {name!r}")
    from synod.deploy.api import public  # noqa: PLC0415

    return getattr(public, name)


def __dir__() -> list[str]:
    return __all__
