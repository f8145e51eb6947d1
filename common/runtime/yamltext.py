"""Reads the YAML that people write: decimals stay exact, a key may appear only once, and errors name the line."""

from collections.abc import Hashable
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from synod.common.runtime.errors import SynodError, invalid

LARGEST_FILE_BYTES = 4 << 20


class _ExactLoader(yaml.SafeLoader):
    """A SafeLoader that keeps decimals exact and refuses a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key, (key_node, _) in zip(keys, node.value, strict=True):
            if keys.count(key) > 1:
                line = key_node.start_mark.line + 1
                raise invalid(f"line {line}: the key {key!r} appears twice.", "Keep one of the two.")
        return super().construct_mapping(node, deep)


def _exact_decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    text = str(loader.construct_scalar(node)).replace("_", "")
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("nan")
    if not number.is_finite():
        raise invalid(f"line {node.start_mark.line + 1}: {text!r} is not a finite decimal number.")
    return number


_ExactLoader.add_constructor("tag:yaml.org,2002:float", _exact_decimal)


def load_yaml(path: Path) -> Any:
    """The content of a YAML file, decimals as `Decimal`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise invalid(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    if len(data) > LARGEST_FILE_BYTES:
        raise invalid(f"{path} is larger than {LARGEST_FILE_BYTES >> 20} MiB.")
    try:
        return yaml.load(text, _ExactLoader)  # noqa: S506  (a SafeLoader)
    except SynodError as error:
        raise invalid(f"{path}, {error.sentence}", error.hint) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise invalid(f"{path}{where}: not valid YAML ({getattr(error, 'problem', 'syntax')}).") from error
    except RecursionError:
        raise invalid(f"{path} is nested too deeply.") from None
