"""Loads every module of a package's folder, so that files can register what they define.

The one place where a module is imported by a name that no import statement shows. It takes the name of a package and
never a path or a text from outside.
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules


@lru_cache(maxsize=8)
def load_modules(package: str) -> tuple[str, ...]:
    """Imports the modules of a package, in the order of their names, and returns these."""
    folder = import_module(package)
    names = tuple(sorted(module.name for module in iter_modules(folder.__path__)))
    for name in names:
        import_module(f"{package}.{name}")
    return names
