"""Trust files: every line says whose key it is."""

import pytest

from synod.common.protocol.trust import check_signers, parse_trust
from synod.common.runtime.errors import Code, SynodError

A, B = (f"sha256:{digit * 64}" for digit in "ab")


def refusal(text: str) -> SynodError:
    with pytest.raises(SynodError) as caught:
        parse_trust(text, "trusted.txt")
    assert caught.value.code is Code.INVALID
    return caught.value


def test_a_line_is_a_name_and_a_fingerprint() -> None:
    text = f"# by phone\n\ncurator {A}  # at noon\n\t north   {B}\ncurator {A}\n"
    assert parse_trust(text, "trusted.txt") == {"curator": A, "north": B}


@pytest.mark.parametrize("text", [A, f"curator {A}\n{B}", f"curator {A}\n  {B} # north"])
def test_a_fingerprint_without_a_name_is_refused_with_what_to_write(text: str) -> None:
    error = refusal(text)
    assert error.sentence.endswith("has a fingerprint and does not say whose it is.")
    assert "`curator sha256:...`" in error.hint


@pytest.mark.parametrize(
    "line",
    [
        "north", "north sha256:", "north sha256:abc", f"North {A}", f"{A} north", f"north {A} {B}", f"north: {A}",
        f"north {A.upper()}", f"north {A}0", f"no/rth {A}",
    ],
)  # fmt: skip
def test_another_line_is_refused_by_its_number(line: str) -> None:
    error = refusal(f"curator {A}\n{line}\n")
    assert error.sentence == "line 2 of trusted.txt is not a name and a fingerprint."


def test_one_name_has_one_key() -> None:
    assert refusal(f"north {A}\nnorth {B}\n").sentence == "trusted.txt has two fingerprints for north."


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    assert refusal(text).sentence == "trusted.txt holds no fingerprint."


def test_every_signer_is_named_with_its_key() -> None:
    signers = {"curator": A, "north": B}
    check_signers({**signers, "desert": A}, signers)
    for trust, sentence in (
        ({"curator": A}, "the trust file does not name the key of north."),
        ({"curator": B, "north": B}, "the key of curator is not the one that the trust file names."),
        ({"curator": A, "north": A}, "the key of north is not the one that the trust file names."),
        ({"curator": B, "north": A}, "the key of curator is not the one that the trust file names."),
    ):
        with pytest.raises(SynodError) as caught:
            check_signers(trust, signers)
        assert (caught.value.code, caught.value.sentence) == (Code.CHECK_FAILED, sentence)
