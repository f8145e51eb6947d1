"""Reads the YAML that people write: decimals stay exact, a key may appear only once, and errors name the line.

What could take long to read, or to work with, is refused as soon as it is met: aliases, which let a few lines stand for
millions of values, tags, deep nesting, mappings of many keys, long texts and long numbers.
"""

import re
from collections.abc import Hashable
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from synod.common.runtime.errors import SynodError, invalid

LARGEST_FILE_BYTES = 1 << 20  # a study is at most 900 KiB as JSON, which is YAML, too
MOST_ITEMS = 200_000
MOST_KEYS = 100
DEEPEST_FILE = 64
LONGEST_TEXT = 10_000
LONGEST_NUMBER = 100
_LONG_WORD = re.compile(rf"[^\s,]{{{LONGEST_TEXT + 1}}}")


class _ExactLoader(yaml.SafeLoader):
    """A SafeLoader that keeps decimals exact, refuses a repeated key, and stops at the limits of this module."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._check_event(self.peek_event(), parent)  # type: ignore[no-untyped-call]
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def fetch_flow_collection_start(self, token: Any) -> None:
        """The scanner looks a thousand characters ahead for a key, and at each bracket again at all that are open."""
        if self.flow_level >= DEEPEST_FILE:
            raise _deep(self.line + 1)
        super().fetch_flow_collection_start(token)

    def _check_event(self, event: Any, parent: yaml.Node | None) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise invalid(f"line {line}: an alias (*{event.anchor}) is not allowed.", "Write the value out.")
        if getattr(event, "tag", None) is not None:
            raise invalid(f"line {line}: a tag ({event.tag}) is not allowed.", "Remove it, or quote the text.")
        if self.depth >= DEEPEST_FILE:
            raise _deep(line)
        if isinstance(parent, yaml.MappingNode) and len(parent.value) >= MOST_KEYS:
            raise invalid(f"line {line}: more than {MOST_KEYS} keys in one mapping.")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > LONGEST_TEXT:
            raise _long_text(line)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key, (key_node, _) in zip(keys, node.value, strict=True):
            if keys.count(key) > 1:
                line = key_node.start_mark.line + 1
                raise invalid(f"line {line}: the key {key!r} appears twice.", "Keep one of the two.")
        return super().construct_mapping(node, deep)


def _deep(line: int) -> SynodError:
    return invalid(f"line {line}: nested more than {DEEPEST_FILE} deep.")


def _long_text(line: int) -> SynodError:
    return invalid(f"line {line}: a text of more than {LONGEST_TEXT:,} characters.", "Shorten it.")


def _read_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    text, line = str(loader.construct_scalar(node)), node.start_mark.line + 1
    if len(text) > LONGEST_NUMBER:
        raise invalid(f"line {line}: a number of more than {LONGEST_NUMBER} characters.", "Shorten it, or quote it.")
    return text


def _exact_decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    text = _read_number(loader, node).replace("_", "")
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("nan")
    if not number.is_finite():
        raise invalid(f"line {node.start_mark.line + 1}: {text!r} is not a finite decimal number.")
    return number


def _whole_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = _read_number(loader, node)
    try:
        return int(loader.construct_yaml_int(node))
    except ValueError:
        raise invalid(f"line {node.start_mark.line + 1}: {text!r} is not a whole number.", "Quote a text.") from None


def _date(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError:
        raise invalid(f"line {node.start_mark.line + 1}: a date that there is not.", "Quote a text.") from None


_ExactLoader.add_constructor("tag:yaml.org,2002:float", _exact_decimal)
_ExactLoader.add_constructor("tag:yaml.org,2002:int", _whole_number)
_ExactLoader.add_constructor("tag:yaml.org,2002:timestamp", _date)


def load_yaml(path: Path) -> Any:
    """The content of a YAML file, decimals as `Decimal`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    return read_yaml(data, str(path))


def read_yaml(data: bytes, origin: str) -> Any:
    """The same for the bytes of a file; `origin` is what errors call it.

    1. It is no larger than 1 MiB; 2. it is UTF-8; 3. it has no more lines and commas than a study can have values;
    4. no word in it is longer than a text may be. Only then is it parsed, and the loader stops at the first limit.
    """
    # 1
    if len(data) > LARGEST_FILE_BYTES:
        raise invalid(f"{origin} is larger than {LARGEST_FILE_BYTES >> 20} MiB.", "Shorten it.")
    # 2
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid(f"{origin} is not UTF-8 text.", "Save it as UTF-8.") from error
    # 3
    if text.count(",") + text.count("\n") > MOST_ITEMS:
        raise invalid(f"{origin} has more than {MOST_ITEMS:,} lines and commas.", "Shorten it.")
    # 4
    if word := _LONG_WORD.search(text):
        raise _with_origin(origin, _long_text(text.count("\n", 0, word.start()) + 1))
    try:
        return yaml.load(text, _ExactLoader)  # noqa: S506  (a SafeLoader)
    except SynodError as error:
        raise _with_origin(origin, error) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise invalid(f"{origin}{where}: not valid YAML ({getattr(error, 'problem', 'syntax')}).") from error


def _with_origin(origin: str, error: SynodError) -> SynodError:
    return invalid(f"{origin}, {error.sentence}", error.hint)
