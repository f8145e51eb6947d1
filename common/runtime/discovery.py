"""Loads every module of a package's folder, so that files can register what they define; and one name of a module.

The one place where a module is imported by a name that no import statement shows. It takes names that the program
holds itself, and never a path or a text from outside.
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@lru_cache(maxsize=8)
def load_modules(package: str) -> tuple[str, ...]:
    """Imports the modules of a package, in the order of their names, and returns these."""
    folder = import_module(package)
    names = tuple(sorted(module.name for module in iter_modules(folder.__path__)))
    for name in names:
        import_module(f"{package}.{name}")
    return names


def load_name(package: str, place: str) -> Any:
    """What `place`, `module:name` below a package, is; the module is imported if it was not."""
    module, name = place.split(":")
    return getattr(import_module(f"{package}.{module}"), name)
