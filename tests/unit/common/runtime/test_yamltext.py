"""The YAML that people write, and the mistakes they make in it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.yamltext import LARGEST_FILE_BYTES, load_yaml


def load(folder: Path, text: str | bytes) -> Any:
    path = folder / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_yaml(path)


def complaint(folder: Path, text: str | bytes) -> str:
    with pytest.raises(SynodError) as caught:
        load(folder, text)
    assert caught.value.code is Code.INVALID
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.1", "0.1"), ("0.30", "0.30"), ("1_000.5", "1000.5"), ("-0.5", "-0.5"), ("1.5e+3", "1500")],
)
def test_decimals_are_exact(tmp_path: Path, text: str, number: str) -> None:
    value = load(tmp_path, f"epsilon: {text}")["epsilon"]
    assert isinstance(value, Decimal)
    assert value == Decimal(number)


def test_a_decimal_with_more_digits_than_a_double_keeps_them(tmp_path: Path) -> None:
    digits = "0.1234567890123456789012345678901234567890"
    assert str(load(tmp_path, f"x: {digits}")["x"]) == digits


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", "1:30.5"])
def test_what_is_not_a_finite_decimal_is_refused(tmp_path: Path, text: str) -> None:
    assert "line 2: " in (found := complaint(tmp_path, f"name: x\nepsilon: {text}\n"))
    assert "not a finite decimal" in found


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 1, "a"),
        ("x:\n  - {c: 1, d: 2, c: 1}\n", 2, "c"),
        ("x:\n  deep:\n    e: 1\n    e: 2\n", 3, "e"),
        ("1: a\n1: b\n", 1, "1"),
    ],
)
def test_a_repeated_key_is_refused_at_its_line(tmp_path: Path, text: str, line: int, key: str) -> None:
    found = complaint(tmp_path, text)
    assert f"line {line}: the key" in found
    assert key in found
    assert "appears twice" in found


@pytest.mark.parametrize(
    "text",
    ["a: [1, 2", "a: b: c", "\tx: 1", "? [a]\n: 1\n", "a: !!python/object/apply:os.getcwd []", "a: 'x", "{a: 1}}", "&"],
)
def test_what_is_not_yaml_is_refused(tmp_path: Path, text: str) -> None:
    found = complaint(tmp_path, text)
    assert "file.yaml" in found
    assert "line 1" in found
    assert "not valid YAML" in found


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert "not valid YAML" in complaint(tmp_path, "a: \x00")


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    assert "nested too deeply" in complaint(tmp_path, "[" * 50_000)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    assert "not UTF-8" in complaint(tmp_path, "name: d\xe9mo".encode("latin-1"))


def test_files_over_the_limit_are_refused(tmp_path: Path) -> None:
    assert load(tmp_path, "# " + "x" * (LARGEST_FILE_BYTES - 2)) is None
    assert "larger than 4 MiB" in complaint(tmp_path, "# " + "x" * (LARGEST_FILE_BYTES - 1))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(SynodError, match="cannot be read") as caught:
            load_yaml(path)
        assert str(path) in caught.value.sentence
        assert caught.value.code is Code.INVALID
