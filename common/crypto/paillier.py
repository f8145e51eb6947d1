"""Paillier encryption with the obfuscator of Damgard, Jurik and Nielsen, on phe's key classes.

A ciphertext of m is (1 + m n) h_s^r mod n^2 with h_s = (-x^2)^n mod n^2 and r of half the modulus length ("A
generalization of Paillier's public-key system with applications to electronic voting", 2010). A vector on the
wire is its ciphertexts one behind the other, big-endian, each as wide as n^2. The only module that imports phe;
it knows nothing of counts, slots or masks, and lets no key appear in a repr or an error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from multiprocessing import get_context

import gmpy2
from gmpy2 import mpz
from phe import PaillierPrivateKey, PaillierPublicKey

from synod.common.crypto.fixedbase import PowerTable, plan_window
from synod.common.privacy.coins import Coins
from synod.common.runtime.errors import check_failed

PRIME_ROUNDS = 64
TYPICAL_COUNT = 4096
LONGEST_KEY_DIGITS = 2048  # in hexadecimal, of the 8,192 bits that a study may ask for
SPREAD_FROM = 4096  # below, a second process costs more (start, imports, a table of its own) than it saves
BLOCK = 64
SMALL_PRIME_LIMIT = 1 << 16
_SMALL_PRIMES = gmpy2.primorial(SMALL_PRIME_LIMIT)  # the product of all primes below: one gcd tries them all


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey:
    """The modulus n and the obfuscator's base h_s; `check_public_key` makes one of numbers from outside."""

    n: int
    h_s: int
    phe: PaillierPublicKey = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phe", PaillierPublicKey(self.n))

    def __repr__(self) -> str:
        return f"PublicKey(bits={self.bits}, key_id={self.key_id[:12]})"

    @property
    def bits(self) -> int:
        """The length of n."""
        return self.n.bit_length()

    @property
    def exponent_bits(self) -> int:
        """The length of the obfuscator's random exponent: half of n."""
        return (self.bits + 1) // 2

    @property
    def ciphertext_bytes(self) -> int:
        """The fixed width of one ciphertext on the wire."""
        return (2 * self.bits + 7) // 8

    @property
    def key_id(self) -> str:
        """SHA-256 in hex over n and h_s, big-endian, each of fixed width."""
        n_bytes = self.n.to_bytes((self.bits + 7) // 8, "big")
        return sha256(n_bytes + self.h_s.to_bytes(self.ciphertext_bytes, "big")).hexdigest()

    def to_json(self) -> dict[str, str]:
        """Both numbers in hexadecimal."""
        return {"n": f"{self.n:x}", "h_s": f"{self.h_s:x}"}

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> "PublicKey":
        """Reads what `to_json` wrote; whether it is a sound key is for `check_public_key` to say."""
        if len(fields["n"]) > LONGEST_KEY_DIGITS or len(fields["h_s"]) > 2 * LONGEST_KEY_DIGITS:
            raise ValueError("numbers longer than those of any key")
        key = cls(int(fields["n"], 16), int(fields["h_s"], 16))
        if key.to_json() != dict(fields):
            raise ValueError("not a key in its one written form")
        return key


@dataclass(frozen=True, slots=True, repr=False)
class SecretKey:
    """The factors of n. Only the curator holds one; `to_json` is for its store and nothing else."""

    public: PublicKey
    p: int
    q: int
    phe: PaillierPrivateKey = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phe", PaillierPrivateKey(self.public.phe, self.p, self.q))

    def __repr__(self) -> str:
        return f"SecretKey(bits={self.public.bits}, key_id={self.public.key_id[:12]})"

    def to_json(self) -> dict[str, str]:
        """The key as hex numbers: secret text."""
        return {"p": f"{self.p:x}", "q": f"{self.q:x}", "h_s": f"{self.public.h_s:x}"}

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> "SecretKey":
        """The key that `to_json` wrote; refused if its numbers do not belong together."""
        try:
            p, q, h_s = (int(fields[name], 16) for name in ("p", "q", "h_s"))
        except (KeyError, TypeError, ValueError):
            raise check_failed("The stored secret key cannot be read.") from None
        if min(p, q) < 3 or p == q or not (gmpy2.is_prime(p) and gmpy2.is_prime(q)):
            raise check_failed("The stored secret key is not made of two primes.")
        secret = cls(check_public_key(p * q, h_s, (p * q).bit_length()), p, q)
        if secret.phe.raw_decrypt(h_s) != 0:
            raise check_failed("The stored obfuscator does not belong to the stored secret key.")
        return secret


def generate_key(bits: int, *, coins: Coins) -> SecretKey:
    """A fresh key whose modulus has exactly `bits` bits.

    Guarantee: p and q are 3 mod 4 with gcd(p - 1, q - 1) = 2 (so they differ), and prime but with probability
    4^-40. The elements of Jacobi symbol 1 are then a cyclic group in which -1 is no square, as DJN ask.
    """
    assert bits % 2 == 0
    p, q = _draw_prime(bits // 2, coins=coins), _draw_prime(bits // 2, coins=coins)
    while gmpy2.gcd(p - 1, q - 1) != 2:
        q = _draw_prime(bits // 2, coins=coins)
    n = p * q
    x = _draw_unit(n, coins=coins)
    h_s = int(gmpy2.powmod(-x * x, n, n * n))
    return SecretKey(PublicKey(n, h_s), p, q)


def _draw_prime(bits: int, *, coins: Coins) -> int:
    """A prime that is 3 mod 4, its two top bits set so that a product of two has full length."""
    fixed = (0b11 << (bits - 2)) | 0b11
    while True:
        candidate = coins.draw_bits(bits) | fixed
        if gmpy2.is_prime(candidate, PRIME_ROUNDS):
            return candidate


def _draw_unit(n: int, *, coins: Coins) -> int:
    while True:
        x = coins.draw_bits(n.bit_length() + 128) % n
        if gmpy2.gcd(x, n) == 1:
            return x


def check_public_key(n: int, h_s: int, bits: int) -> PublicKey:
    """The key a party was given, if it passes step 5 of the protocol: right size, odd, no small factor, not a perfect
    power, not prime, and an obfuscator that is a unit and neither 1 nor -1 modulo n.

    Guarantee: a modulus that anybody could factor in one of these ways is refused, and an obfuscator that hides nothing
    at a glance. That h_s is an n-th power cannot be seen without the private key. None on confidentiality towards the
    curator, which may cheat with its key in other ways: against that the masks protect.
    """
    if n.bit_length() != bits or n < 0:
        raise check_failed(f"The Paillier modulus does not have the {bits} bits that the study says.")
    if n % 2 == 0:
        raise check_failed("The Paillier modulus is even.")
    if gmpy2.gcd(n, _SMALL_PRIMES) != 1:
        raise check_failed(f"The Paillier modulus has a prime factor below {SMALL_PRIME_LIMIT}.")
    if gmpy2.is_power(n):
        raise check_failed("The Paillier modulus is a perfect power.")
    if gmpy2.is_prime(n, PRIME_ROUNDS):
        raise check_failed("The Paillier modulus is prime.")
    if not 1 < h_s < n * n:
        raise check_failed("The obfuscator h_s is not between 1 and the square of the Paillier modulus.")
    if gmpy2.gcd(h_s, n) != 1:
        raise check_failed("The obfuscator h_s shares a factor with the Paillier modulus.")
    if h_s % n in (1, n - 1):
        raise check_failed("The obfuscator h_s is 1 or -1 modulo the Paillier modulus: it would hide nothing.")
    return PublicKey(n, h_s)


class Encryptor:
    """Encryption with a table of powers of h_s, its window chosen for `count` ciphertexts to come.

    Measured on one shared core with the widest windows that `plan_window` takes: 2048 bits, windows of 9:
    0.4 ms a ciphertext, a table of 53 MB made in 0.3 s; 3072 bits, windows of 8: 1.2 ms, 45 MB, 0.5 s.

    Guarantee: semantically secure if decisional composite residuosity is hard and powers of h_s with
    exponents of half the modulus length look like random ones (DJN), for uniform coins used once. The same
    coins give the same bytes, whatever the window.
    """

    def __init__(self, public: PublicKey, count: int = TYPICAL_COUNT) -> None:
        self.public = public
        self.window = plan_window(public.bits, count)
        self._table = PowerTable(public.h_s, public.n, public.exponent_bits, self.window)

    def encrypt_batch(self, plaintexts: Sequence[int], *, coins: Coins) -> bytes:
        """The vector of the plaintexts' ciphertexts."""
        return self.encrypt_with(plaintexts, _draw_exponents(self.public, len(plaintexts), coins=coins))

    def encrypt_with(self, plaintexts: Sequence[int], exponents: bytes) -> bytes:
        """The same with exponents already drawn."""
        return _join(self.public, self._table.raise_all(exponents, plaintexts))


def _exponent_bytes(public: PublicKey) -> int:
    return (public.exponent_bits + 7) // 8


def _draw_exponents(public: PublicKey, count: int, *, coins: Coins) -> bytes:
    return coins.draw_bytes(count * _exponent_bytes(public))


def encrypt_all(public: PublicKey, plaintexts: Sequence[int], *, coins: Coins, workers: int) -> bytes:
    """The vector of the plaintexts' ciphertexts, on `workers` processes if there are enough to be worth it.

    Guarantee: as `Encryptor`; all coins are drawn here, in order, so the bytes do not depend on `workers`.
    """
    exponents = _draw_exponents(public, len(plaintexts), coins=coins)
    if workers < 2 or len(plaintexts) < SPREAD_FROM:
        return _encrypt_share(public, plaintexts, exponents)
    share, size = -(-len(plaintexts) // workers), _exponent_bytes(public)
    starts = range(0, len(plaintexts), share)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        vectors = pool.map(
            partial(_encrypt_share, public),
            [plaintexts[start : start + share] for start in starts],
            [exponents[start * size : (start + share) * size] for start in starts],
        )
        return b"".join(vectors)


def _encrypt_share(public: PublicKey, plaintexts: Sequence[int], exponents: bytes) -> bytes:
    return Encryptor(public, len(plaintexts)).encrypt_with(plaintexts, exponents)


def check_ciphertexts(public: PublicKey, vector: bytes, count: int) -> None:
    """Checks (3) and (4) of a submission: its length, and each ciphertext in range and coprime to n."""
    if len(vector) != count * public.ciphertext_bytes:
        raise check_failed(f"The vector does not have the length of {count} ciphertexts.")
    n, nsquare, product = mpz(public.n), mpz(public.phe.nsquare), mpz(1)
    for place, ciphertext in enumerate(_split(public, vector)):
        if not 0 < ciphertext < nsquare:
            raise check_failed(f"Ciphertext {place} is out of range.")
        product = product * ciphertext % n
    # A product is coprime to n exactly if each factor is: one gcd, and a closer look only when it fails.
    if gmpy2.gcd(product, n) != 1:
        bad = next(i for i, c in enumerate(_split(public, vector)) if gmpy2.gcd(c, n) != 1)
        raise check_failed(f"Ciphertext {bad} is not coprime to the Paillier modulus.")


def add_all(public: PublicKey, vectors: Iterable[bytes]) -> bytes:
    """The vector of the plaintexts' sums mod n: a product place by place, one vector in memory at a time."""
    nsquare, arriving = mpz(public.phe.nsquare), iter(vectors)
    totals = list(_split(public, next(arriving)))
    for vector in arriving:
        terms = _split(public, vector)
        totals = [total * term % nsquare for total, term in zip(totals, terms, strict=True)]
    return _join(public, totals)


def _join(public: PublicKey, ciphertexts: Iterable[mpz]) -> bytes:
    return b"".join(ciphertext.to_bytes(public.ciphertext_bytes, "big") for ciphertext in ciphertexts)


def _split(public: PublicKey, vector: bytes) -> Iterator[mpz]:
    size = public.ciphertext_bytes
    return (mpz.from_bytes(vector[at : at + size], "big") for at in range(0, len(vector), size))


def decrypt_all(secret: SecretKey, vector: bytes, workers: int) -> list[int]:
    """The plaintexts in Z_n, by CRT, on `workers` threads: GMP's powers run outside Python's lock."""
    size = BLOCK * secret.public.ciphertext_bytes
    blocks = [vector[at : at + size] for at in range(0, len(vector), size)]
    with ThreadPoolExecutor(workers) as pool:
        return [plaintext for part in pool.map(partial(_decrypt_block, secret), blocks) for plaintext in part]


def _decrypt_block(secret: SecretKey, block: bytes) -> list[int]:
    key, ciphertexts = secret.phe, list(_split(secret.public, block))
    p, q, p_inverse = mpz(key.p), mpz(key.q), mpz(key.p_inverse)
    residues = zip(_decrypt_mod(ciphertexts, p, key.hp), _decrypt_mod(ciphertexts, q, key.hq), strict=True)
    return [int(mod_p + (mod_q - mod_p) * p_inverse % q * p) for mod_p, mod_q in residues]


def _decrypt_mod(ciphertexts: list[mpz], prime: mpz, factor: int) -> list[mpz]:
    """The plaintexts mod one prime of n (Paillier 1999, section 7); `factor` is h_p or h_q there."""
    square = prime * prime
    powers = gmpy2.powmod_base_list([c % square for c in ciphertexts], prime - 1, square)
    return [power // prime * factor % prime for power in powers]
