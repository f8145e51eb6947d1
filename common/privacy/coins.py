"""Coins: a stream of random bytes that is a function of its key, so that the same question gets the same bytes.

Nothing here draws a key. A party derives one for each answer from the study's secret in its ledger; tests and bench
inject one.
"""

import hashlib

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

KEY_BYTES = 32


class Coins:
    """A ChaCha20 key stream, read forward only.

    Guarantee: computationally indistinguishable from independent uniform bytes to anyone who does not know the key;
    two streams of the same key are equal, byte for byte.
    """

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_BYTES
        self._stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    @staticmethod
    def public(seed: int, purpose: str) -> "Coins":
        """The coins of public randomness: a function of a published seed, the same for everybody and for ever."""
        return Coins(hashlib.sha256(f"synod/v1/public\0{purpose}\0{seed}".encode()).digest())

    def draw_bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        return self._stream.update(bytes(count))

    def draw_words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` independent uniform 64-bit words."""
        return np.frombuffer(self.draw_bytes(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def draw_uniforms(self, count: int) -> NDArray[np.float64]:
        """The next `count` numbers in [0, 1), multiples of 2^-53; for public draws, never for noise."""
        return (self.draw_words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def draw_bits(self, bits: int) -> int:
        """A uniform integer below 2**bits."""
        width = (bits + 7) // 8
        return int.from_bytes(self.draw_bytes(width), "big") >> (8 * width - bits)
