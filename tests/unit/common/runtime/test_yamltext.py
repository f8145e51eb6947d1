"""The YAML that people write, and the mistakes they make in it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

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
    ["a: [1, 2", "a: b: c", "\tx: 1", "? [a]\n: 1\n", "a: 'x", "{a: 1}}", "&"],
)
def test_what_is_not_yaml_is_refused(tmp_path: Path, text: str) -> None:
    found = complaint(tmp_path, text)
    assert "file.yaml" in found
    assert "line 1" in found
    assert "not valid YAML" in found


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert "not valid YAML" in complaint(tmp_path, "a: \x00")


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    assert "not UTF-8" in complaint(tmp_path, "name: d\xe9mo".encode("latin-1"))


def test_files_over_the_limit_are_refused(tmp_path: Path) -> None:
    assert load(tmp_path, "# x" * (LARGEST_FILE_BYTES // 3)) is None
    assert "larger than 1 MiB" in complaint(tmp_path, "# x" * (LARGEST_FILE_BYTES // 3 + 1))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(SynodError, match="cannot be read") as caught:
            load_yaml(path)
        assert str(path) in caught.value.sentence
        assert caught.value.code is Code.INVALID


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
HOSTILE = {
    "aliases of aliases": (LAUGHS, "line 2: an alias (*a0) is not allowed"),
    "an alias of itself": ("a: &a [*a]", "line 1: an alias (*a) is not allowed"),
    "a merged mapping": ("a: &a {b: 1}\nc: {<<: *a}", "line 2: an alias (*a) is not allowed"),
    "40,000 keys": ("".join(f"k{i}: 1\n" for i in range(40_000)), "line 101: more than 100 keys in one mapping"),
    "a decimal of 600,000 digits": ("a: 1." + "3" * 600_000, "line 1: a text of more than 10,000 characters"),
    "a decimal of 5,000 digits": ("a: 1." + "3" * 5_000, "line 1: a number of more than 100 characters"),
    "a count beyond 10^4300": ("a: " + "9" * 4_301, "line 1: a number of more than 100 characters"),
    "a long hexadecimal number": ("a: 0x" + "f" * 900_000, "line 1: a text of more than 10,000 characters"),
    "a long number of base 60": ("a: 1:" + "59:" * 1_000 + "00", "line 1: a number of more than 100 characters"),
    "400 lists": ("a:\n " + "[" * 400 + "]" * 400, "line 2: nested more than 64 deep"),
    "400 mappings": ("{a: " * 400 + "1" + "}" * 400, "line 1: nested more than 64 deep"),
    "400 lists by dashes": ("- " * 400 + "a", "line 1: nested more than 64 deep"),
    "brackets without an end, and not looked beyond": ("[" * 65 + "`", "line 1: nested more than 64 deep"),
    "brackets without an end": ("[" * 9_000, "line 1: nested more than 64 deep"),
    "many items": ("[" + "a," * 200_001 + "]", "more than 200,000 lines and commas"),
    "a long text": ("a: >\n" + " word\n" * 10_000, "line 1: a text of more than 10,000 characters"),
    "a tag": ("a: !!bool x", "line 1: a tag (tag:yaml.org,2002:bool) is not allowed"),
    "a tag of Python": ("a: !!python/object/apply:os.getcwd []", "line 1: a tag (tag:yaml.org,2002:python"),
    "no digits": ("a: 0x_", "line 1: '0x_' is not a whole number"),
    "no such day": ("a: 2001-99-99", "line 1: a date that there is not"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("text", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_could_take_long_is_refused_where_it_is_met(tmp_path: Path, text: str, why: str) -> None:
    assert why in complaint(tmp_path, text)


def test_a_mapping_of_many_keys_is_left_at_its_hundredth(tmp_path: Path) -> None:
    """What comes after the limit is not looked at, valid or not."""
    text = "".join(f"k{i}: 1\n" for i in range(101))
    assert "more than 100 keys" in complaint(tmp_path, text + "'never closed")
    assert len(load(tmp_path, "".join(f"k{i}: 1\n" for i in range(100)))) == 100


def test_the_deepest_file_is_read(tmp_path: Path) -> None:
    assert load(tmp_path, "[" * 64 + "]" * 64) == load(tmp_path, "- " * 63 + "[]")


@pytest.mark.parametrize("case", ["a decimal of 600,000 digits", "a long hexadecimal number", "many items"])
def test_what_is_seen_without_parsing_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.setattr(yaml, "load", None)
    text, why = HOSTILE[case]
    assert why in complaint(tmp_path, text)
