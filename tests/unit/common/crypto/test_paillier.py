"""Paillier against its textbook: phe's own raw encryption and decryption are the slow twin."""

from collections.abc import Sequence
from functools import cache

import gmpy2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synod.common.crypto import paillier
from synod.common.crypto.paillier import (
    Encryptor,
    PublicKey,
    SecretKey,
    add_all,
    check_ciphertexts,
    check_public_key,
    decrypt_all,
    encrypt_all,
    generate_key,
)
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import Code, SynodError
from tests.support.keys import seeded


@cache
def key(bits: int) -> SecretKey:
    return generate_key(bits, coins=seeded(bits))


def encrypt_by_the_book(public: PublicKey, plaintexts: Sequence[int], *, coins: Coins) -> list[int]:
    """(1 + m n) h_s^r mod n^2, with r from the same coins."""
    size = (public.exponent_bits + 7) // 8
    stream = coins.draw_bytes(size * len(plaintexts))
    exponents = [int.from_bytes(stream[i : i + size], "little") for i in range(0, len(stream), size)]
    square = public.n**2
    return [
        (1 + m * public.n) * pow(public.h_s, r % 2**public.exponent_bits, square) % square
        for m, r in zip(plaintexts, exponents, strict=True)
    ]


def split(public: PublicKey, vector: bytes) -> list[int]:
    size = public.ciphertext_bytes
    return [int.from_bytes(vector[i : i + size], "big") for i in range(0, len(vector), size)]


def join(public: PublicKey, ciphertexts: Sequence[int]) -> bytes:
    return b"".join(c.to_bytes(public.ciphertext_bytes, "big") for c in ciphertexts)


@pytest.mark.parametrize("bits", [32, 64, 128, 130, 512, 1024])
def test_key_has_the_shape_that_the_obfuscator_needs(bits: int) -> None:
    for seed in range(4):
        secret = generate_key(bits, coins=seeded(seed))
        p, q, n = secret.p, secret.q, secret.public.n
        assert (p * q, n.bit_length(), p.bit_length()) == (n, bits, bits // 2)
        assert gmpy2.is_prime(p)
        assert gmpy2.is_prime(q)
        assert (p % 4, q % 4, gmpy2.gcd(p - 1, q - 1)) == (3, 3, 2)
        # h_s is an n-th power of minus a square: no square modulo either prime, and it encrypts zero.
        assert (gmpy2.legendre(secret.public.h_s, p), gmpy2.legendre(secret.public.h_s, q)) == (-1, -1)
        assert secret.phe.raw_decrypt(secret.public.h_s) == 0


def test_key_is_a_function_of_the_coins() -> None:
    assert generate_key(128, coins=seeded(1)) == generate_key(128, coins=seeded(1))
    assert generate_key(128, coins=seeded(1)) != generate_key(128, coins=seeded(2))


@settings(max_examples=40, deadline=None)
@given(
    bits=st.sampled_from([64, 130, 256]),
    data=st.data(),
    count=st.integers(1, 2000),
    seed=st.integers(0, 2**64),
)
def test_ciphertexts_equal_the_textbook_for_any_window(bits: int, data: st.DataObject, count: int, seed: int) -> None:
    secret = key(bits)
    plaintexts = data.draw(st.lists(st.integers(0, secret.public.n - 1), min_size=1, max_size=8))
    vector = Encryptor(secret.public, count).encrypt_batch(plaintexts, coins=seeded(seed))
    assert split(secret.public, vector) == encrypt_by_the_book(secret.public, plaintexts, coins=seeded(seed))
    assert [secret.phe.raw_decrypt(c) for c in split(secret.public, vector)] == plaintexts


def test_many_blocks_and_full_size() -> None:
    public = key(256).public
    plaintexts = [(7 << place) % public.n for place in range(600)]
    vector = Encryptor(public).encrypt_batch(plaintexts, coins=seeded(3))
    assert split(public, vector) == encrypt_by_the_book(public, plaintexts, coins=seeded(3))
    assert decrypt_all(key(256), vector, workers=3) == plaintexts

    public = key(2048).public
    plaintexts = [0, 1, public.n - 1, public.n // 3]
    vector = Encryptor(public, 1).encrypt_batch(plaintexts, coins=seeded(4))
    assert len(vector) == 4 * 512
    assert split(public, vector) == encrypt_by_the_book(public, plaintexts, coins=seeded(4))
    assert decrypt_all(key(2048), vector, workers=1) == plaintexts


@pytest.mark.parametrize("bits", [512, 2048])
def test_an_obfuscators_exponent_is_half_as_long_as_the_modulus(bits: int) -> None:
    """Its top bit is one in half of all ciphertexts; the logarithm of a short one could be searched for."""
    public = key(bits).public
    assert public.exponent_bits == bits // 2
    drawn = []

    class Watched(Coins):
        def draw_bytes(self, count: int) -> bytes:
            drawn.append(super().draw_bytes(count))
            return drawn[-1]

    vector = encrypt_all(public, [0] * 16, coins=Watched(bytes(32)), workers=1)
    (stream,) = drawn
    exponents = [int.from_bytes(stream[i : i + bits // 16], "little") for i in range(0, len(stream), bits // 16)]
    assert split(public, vector) == [pow(public.h_s, exponent, public.n**2) for exponent in exponents]
    assert max(exponents).bit_length() == bits // 2


def test_equal_plaintexts_have_different_ciphertexts() -> None:
    public = key(256).public
    vector = Encryptor(public).encrypt_batch([5] * 50, coins=seeded(5))
    assert len(set(split(public, vector))) == 50


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 5))
def test_products_decrypt_to_sums(data: st.DataObject, parties: int) -> None:
    secret = key(256)
    number = st.integers(0, secret.public.n - 1)
    vectors = [data.draw(st.lists(number, min_size=3, max_size=3)) for _ in range(parties)]
    encryptor = Encryptor(secret.public, 3 * parties)
    encrypted = (encryptor.encrypt_batch(v, coins=seeded(k)) for k, v in enumerate(vectors))
    total = add_all(secret.public, encrypted)
    assert decrypt_all(secret, total, workers=2) == [
        sum(column) % secret.public.n for column in zip(*vectors, strict=True)
    ]


def test_add_all_refuses_vectors_of_different_lengths() -> None:
    public = key(64).public
    vectors = [join(public, [2, 3]), join(public, [2])]
    with pytest.raises(ValueError):
        add_all(public, vectors)


def test_phe_ciphertexts_decrypt() -> None:
    secret = key(256)
    plaintexts = [0, 1, 2**100, secret.public.n - 1]
    vector = join(secret.public, [secret.public.phe.raw_encrypt(m) for m in plaintexts])
    assert decrypt_all(secret, vector, workers=1) == plaintexts


def test_bytes_do_not_depend_on_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    public = key(256).public
    plaintexts = list(range(31))
    inline = encrypt_all(public, plaintexts, coins=seeded(6), workers=1)
    assert inline == encrypt_all(public, plaintexts, coins=seeded(6), workers=2)
    assert inline == Encryptor(public).encrypt_batch(plaintexts, coins=seeded(6))
    monkeypatch.setattr(paillier, "SPREAD_FROM", 8)
    monkeypatch.setattr(paillier, "Encryptor", None)  # this process could not encrypt; spawned ones can
    assert encrypt_all(public, plaintexts, coins=seeded(6), workers=2) == inline


def test_party_accepts_a_sound_key() -> None:
    public = key(256).public
    assert check_public_key(public.n, public.h_s, 256) == public


def test_party_refuses_an_unsound_key() -> None:
    secret = key(256)
    n, h_s = secret.public.n, secret.public.h_s
    unsound = {
        "bits": [(n, h_s, 255), (n, h_s, 257), (-n, h_s, 256)],
        "even": [(n - 1, h_s, 256)],
        "between": [(n, 1, 256), (n, 0, 256), (n, -h_s, 256), (n, n * n, 256)],
        "factor": [(n, secret.p, 256), (n, secret.q * 5, 256), (n, n, 256)],
        "hide nothing": [(n, n * n - 1, 256), (n, 1 + n, 256), (n, n - 1, 256)],
    }
    for word, cases in unsound.items():
        for case in cases:
            with pytest.raises(SynodError, match=word) as caught:
                check_public_key(*case)
            assert caught.value.code is Code.CHECK_FAILED


def prime_of(bits: int) -> int:
    return int(gmpy2.next_prime(3 << (bits - 2)))


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (prime_of(256), "is prime"),
        (prime_of(128) ** 2, "is a perfect power"),
        (prime_of(64) ** 4, "is a perfect power"),
        (prime_of(86) ** 3, "is a perfect power"),
        (3 * prime_of(255), "has a prime factor below 65536"),
        (3**161, "has a prime factor below 65536"),
        (65_521 * prime_of(240), "has a prime factor below 65536"),
    ],
)
def test_party_refuses_a_modulus_that_anybody_can_factor(n: int, told: str) -> None:
    with pytest.raises(SynodError, match=told) as caught:
        check_public_key(n, 2, n.bit_length())
    assert caught.value.code is Code.CHECK_FAILED


def test_the_one_gcd_finds_every_prime_below_the_limit_and_none_above() -> None:
    """The slow twin divides by each."""
    cofactor = prime_of(240)
    prime = gmpy2.mpz(3)
    while prime < paillier.SMALL_PRIME_LIMIT:
        with pytest.raises(SynodError, match="prime factor below"):
            check_public_key(int(prime) * cofactor, 2, int(prime * cofactor).bit_length())
        prime = gmpy2.next_prime(prime)
    n = int(prime) * cofactor
    assert check_public_key(n, 2, n.bit_length()).n == n


@pytest.mark.parametrize("place", [0, 1, 299])
def test_curator_refuses_unsound_ciphertexts(place: int) -> None:
    secret = key(256)
    public, n = secret.public, secret.public.n
    sound = split(public, Encryptor(public).encrypt_batch([1] * 300, coins=seeded(7)))
    check_ciphertexts(public, join(public, sound), 300)
    for bad, word in [(0, "range"), (n * n, "range"), (secret.p, "coprime"), (n * 3, "coprime")]:
        vector = join(public, [*sound[:place], bad, *sound[place + 1 :]])
        with pytest.raises(SynodError, match=f"Ciphertext {place} is .*{word}") as caught:
            check_ciphertexts(public, vector, 300)
        assert caught.value.code is Code.CHECK_FAILED


@pytest.mark.parametrize("size", [0, 64, 191, 193, 256])
def test_curator_refuses_a_vector_of_another_length(size: int) -> None:
    public = key(256).public
    vector = Encryptor(public).encrypt_batch([1] * 4, coins=seeded(8))
    check_ciphertexts(public, vector[:192], 3)
    with pytest.raises(SynodError, match="length of 3"):
        check_ciphertexts(public, vector[:size], 3)


def test_key_id_covers_both_numbers() -> None:
    public = key(256).public
    assert len(public.key_id) == 64
    changed = [PublicKey(public.n, public.h_s + 1), PublicKey(public.n + 2, public.h_s)]
    assert len({public.key_id, *(other.key_id for other in changed)}) == 3


def test_secret_key_survives_its_store() -> None:
    secret = key(256)
    stored = secret.to_json()
    assert SecretKey.from_json(stored) == secret
    assert SecretKey.from_json(stored).public == secret.public
    other = key(130).to_json()
    broken = [{**stored, "p": other["p"]}, {**stored, "p": stored["q"]}, {**stored, "h_s": "2"}]
    broken += [{**stored, "q": "ten"}, {**stored, "p": f"{secret.p + 1:x}"}, {"p": stored["p"]}]
    for fields in broken:
        with pytest.raises(SynodError) as caught:
            SecretKey.from_json(fields)
        assert caught.value.code is Code.CHECK_FAILED


def test_no_key_in_a_repr() -> None:
    secret = key(256)
    shown = f"{secret!r} {secret} {secret.public!r} {Encryptor(secret.public, 1)!r} {secret.phe!r}"
    for number in (secret.p, secret.q, secret.public.n, secret.public.h_s):
        assert str(number) not in shown
        assert f"{number:x}" not in shown


@pytest.mark.parametrize(("n", "h_s"), [(2049, 1), (1, 4097)])
def test_numbers_longer_than_those_of_any_key_are_not_even_made(
    monkeypatch: pytest.MonkeyPatch, n: int, h_s: int
) -> None:
    made: list[int] = []
    monkeypatch.setattr(paillier, "PaillierPublicKey", made.append)
    with pytest.raises(ValueError, match="longer than those of any key"):
        PublicKey.from_json({"n": "f" * n, "h_s": "f" * h_s})
    assert not made
    PublicKey.from_json({"n": "f" * 2048, "h_s": "f" * 4096})
    assert made == [16**2048 - 1]
