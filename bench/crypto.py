"""The cost of a count, from integers to bytes on the wire: Synod against plain phe, on one core, in one run.

Synod is timed as a party calls it: pack, blind with the masks of a roster of three, draw exponents, make the
table, encrypt, join. phe is `encrypt` of each count, without masks. They take turns and medians are compared,
so that a busy machine hurts both alike. Noise is sampled apart, both kinds in turns as well: shares of discrete
Laplace noise, and discrete Gaussian ones. The last line is one JSON object.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from time import perf_counter

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from gmpy2 import mpz
from numpy.typing import NDArray

from synod.common.crypto.fixedbase import plan_window
from synod.common.crypto.packing import SlotLayout, pack, plan_slots, unpack
from synod.common.crypto.paillier import (
    Encryptor,
    PublicKey,
    SecretKey,
    add_all,
    check_ciphertexts,
    decrypt_all,
    encrypt_all,
    generate_key,
)
from synod.common.privacy.bounds import noise_bound
from synod.common.privacy.coins import Coins
from synod.common.privacy.gaussian import sample_discrete_gaussian
from synod.common.privacy.noise import sample_shares
from synod.party.masks import blind

ROWS = 45_222
SCALE = Fraction(2 * 57 * 5)  # 57 marginals of one study at epsilon 0.2 in all, sensitivity 2
PARTIES, THRESHOLD = 3, 1
SQUARE = Fraction(57 * 1481, 2)  # of one of two honest shares: the same marginals at that epsilon and delta 1e-9
COUNTS = 120_000
PHE_COUNTS = 12
WIDE_BITS = 34


@dataclass(frozen=True, slots=True)
class Setting:
    """One key, one roster and one vector of counts."""

    secret: SecretKey
    layout: SlotLayout
    exchanges: tuple[bytes, ...]

    @property
    def public(self) -> PublicKey:
        """The key that the parties see."""
        return self.secret.public

    def draw_counts(self, party: int) -> NDArray[np.int64]:
        """Counts of the size that one party's noisy cells have."""
        return Coins(bytes([party]) * 32).draw_words(self.layout.length).astype(np.int64) % (ROWS // PARTIES)

    def blind(self, plaintexts: list[int], party: int) -> list[int]:
        """The plaintexts with this party's masks against the two others."""
        return blind(
            plaintexts,
            index=party,
            present=range(PARTIES),
            secret=_exchange_secret(party),
            exchanges=self.exchanges,
            transcript=bytes(32),
            label="bench",
            query=bytes(32),
            modulus=self.public.n,
        )

    def answer(self, counts: NDArray[np.int64], party: int) -> bytes:
        """All of a party's work on one query, but the noise."""
        plaintexts = self.blind(pack(self.layout, counts, self.public.n), party)
        return encrypt_all(self.public, plaintexts, coins=Coins(bytes([99 + party]) * 32), workers=1)


def _exchange_secret(party: int) -> bytes:
    return bytes([party + 1]) * 32


def make_setting(secret: SecretKey, length: int, high: int) -> Setting:
    """The layout of a study for counts up to `high`, and the parties' exchange keys."""
    bound = noise_bound(SCALE, PARTIES, THRESHOLD, length)
    keys = (X25519PrivateKey.from_private_bytes(_exchange_secret(party)) for party in range(PARTIES))
    exchanges = tuple(key.public_key().public_bytes_raw() for key in keys)
    return Setting(secret, plan_slots(length, 0, high, bound, secret.public.bits), exchanges)


def clock(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def encrypt_with_phe(public: PublicKey, counts: list[int]) -> bytes:
    """What one would write with phe alone: a ciphertext for each count."""
    size = public.ciphertext_bytes
    return b"".join(public.phe.encrypt(count).ciphertext(be_secure=False).to_bytes(size, "big") for count in counts)


def compare(setting: Setting, wide: Setting, repeats: int) -> dict[str, float]:
    """Counts per second of phe and of Synod, taking turns."""
    counts, wide_counts = setting.draw_counts(0), wide.draw_counts(0)
    some = [int(count) for count in counts[:PHE_COUNTS]]
    seconds: dict[str, list[float]] = {"phe": [], "synod": [], "wide": []}
    for _ in range(repeats):
        seconds["phe"].append(clock(lambda: encrypt_with_phe(setting.public, some)) / PHE_COUNTS)
        seconds["synod"].append(clock(lambda: setting.answer(counts, 0)) / COUNTS)
        seconds["wide"].append(clock(lambda: wide.answer(wide_counts, 0)) / COUNTS)
    phe, synod, wide_slots = (median(seconds[name]) for name in ("phe", "synod", "wide"))
    return {
        "ratio": phe / synod,
        f"ratio_at_{WIDE_BITS}_bit_slots": phe / wide_slots,
        "phe_counts_per_second": 1 / phe,
        "synod_counts_per_second": 1 / synod,
    }


def take_apart(setting: Setting) -> dict[str, float]:
    """Where a ciphertext's microseconds go, and how far that is from bare GMP."""
    layout, public, counts = setting.layout, setting.public, setting.draw_counts(0)
    plaintexts = setting.blind(pack(layout, counts, public.n), 0)
    made: list[Encryptor] = []
    table_seconds = clock(lambda: made.append(Encryptor(public, layout.ciphertexts)))
    work = {
        "pack": lambda: pack(layout, counts, public.n),
        "blind": lambda: setting.blind(plaintexts, 0),
        "encrypt": lambda: made[0].encrypt_batch(plaintexts, coins=Coins(bytes(32))),
        "limit": lambda: multiply_bare(public, layout.ciphertexts),
    }
    micros = {
        f"{name}_us_per_ciphertext": min(clock(step) for _ in range(3)) / layout.ciphertexts * 1e6
        for name, step in work.items()
    }
    over = micros["encrypt_us_per_ciphertext"] / micros["limit_us_per_ciphertext"]
    return {**micros, "encrypt_over_limit": over, "table_seconds": table_seconds}


def multiply_bare(public: PublicKey, ciphertexts: int) -> None:
    """As many products of the same sizes as the encryption takes, from operands that stay in the cache."""
    window = plan_window(public.bits, ciphertexts)
    coins, nsquare = Coins(bytes(32)), mpz(public.phe.nsquare)
    steps = -(-public.exponent_bits // window)
    units = [mpz(coins.draw_bits(public.bits - 1)) for _ in range(steps)]
    start = mpz(coins.draw_bits(2 * public.bits - 2))
    for _ in range(ciphertexts):
        product = start
        for unit in units:
            product = product * unit % nsquare


def measure_curator(setting: Setting) -> dict[str, float]:
    """Checking, adding and decrypting the answers of the whole roster, whose sum is verified."""
    layout, public = setting.layout, setting.public
    counts = [setting.draw_counts(party) for party in range(PARTIES)]
    vectors = [setting.answer(part, party) for party, part in enumerate(counts)]
    check = clock(lambda: check_ciphertexts(public, vectors[0], layout.ciphertexts))
    start = perf_counter()
    total = add_all(public, vectors)
    add = perf_counter() - start
    start = perf_counter()
    totals = decrypt_all(setting.secret, total, workers=1)
    decrypt = perf_counter() - start
    assert np.array_equal(unpack(layout, totals, public.n), sum(counts))
    return {
        "check_us_per_ciphertext": check / layout.ciphertexts * 1e6,
        "add_us_per_ciphertext": add / (PARTIES - 1) / layout.ciphertexts * 1e6,
        "decrypt_us_per_ciphertext": decrypt / layout.ciphertexts * 1e6,
    }


def measure_noise(repeats: int) -> dict[str, float]:
    """Sampling one party's shares for all counts, of both kinds, taking turns."""
    shape = Fraction(1, PARTIES - THRESHOLD)
    work: dict[str, Callable[[], object]] = {
        "laplace": lambda: sample_shares(COUNTS, shape=shape, scale=SCALE, coins=Coins(bytes(32))),
        "gaussian": lambda: sample_discrete_gaussian(COUNTS, square=SQUARE, coins=Coins(bytes(32))),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, sample in work.items():
            seconds[name].append(clock(sample) / COUNTS)
    laplace, gaussian = (median(seconds[name]) for name in work)
    return {
        "noise_counts_per_second": 1 / laplace,
        "gaussian_noise_counts_per_second": 1 / gaussian,
        "gaussian_rate_ratio": laplace / gaussian,
    }


def measure(bits: int, repeats: int) -> dict[str, float]:
    """All figures for one key length."""
    made: list[SecretKey] = []
    key_seconds = clock(lambda: made.append(generate_key(bits, coins=Coins(bytes(32)))))
    setting = make_setting(made[0], COUNTS, ROWS)
    wide = make_setting(made[0], COUNTS, 2 ** (WIDE_BITS - 1))
    assert wide.layout.width == WIDE_BITS
    layout, size = setting.layout, setting.public.ciphertext_bytes
    return {
        **compare(setting, wide, repeats),
        "bits": bits,
        "parties": PARTIES,
        "counts": COUNTS,
        "slot_bits": layout.width,
        "counts_per_ciphertext": layout.slots,
        "ciphertexts": layout.ciphertexts,
        "window_bits": plan_window(bits, layout.ciphertexts),
        "synod_bytes_per_count": size * layout.ciphertexts / COUNTS,
        "phe_bytes_per_count": size,
        **take_apart(setting),
        **measure_curator(setting),
        **measure_noise(repeats),
        "generate_key_seconds": key_seconds,
    }


def main() -> None:
    """Prints the figures, then the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.crypto", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bits", type=int, default=2048, help="length of the Paillier modulus")
    parser.add_argument("--repeats", type=int, default=7, help="turns that phe and Synod take")
    options = parser.parse_args()
    figures = measure(options.bits, options.repeats)
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):<32} {figure:>14,.6g}")
    print(json.dumps({name: float(f"{figure:.6g}") for name, figure in figures.items()}))


if __name__ == "__main__":
    main()
