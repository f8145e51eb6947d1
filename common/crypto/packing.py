"""Packing: many signed sums in the slots of one Paillier plaintext.

A vector v becomes, for each ciphertext, the sum of v_i 2^(width i) in Z_n. This is linear: adding the
parties' plaintexts adds their vectors, whatever each of them holds. Only the total must fit its slots, with
the probability that `noise_bound` states. Nothing here clamps, redraws or refuses a party's value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.runtime.errors import check_failed, invalid

MAX_WIDTH_BITS = 62
SPARE_BITS = 64
SIGN_BIT = np.uint64(1 << 63)
BLOCK = 256  # ciphertexts whose slots are spread at a time: many times the vector's own bytes


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """Where `length` numbers stand: `slots` to a plaintext, `width` bits each.

    `low` and `high` bound the sum of all parties' values, noise included.
    """

    length: int
    low: int
    high: int
    width: int
    slots: int

    @property
    def ciphertexts(self) -> int:
        """How many plaintexts the vector takes."""
        return -(-self.length // self.slots)

    @property
    def last_slots(self) -> int:
        """How many slots of the last plaintext are in use."""
        return self.length - self.slots * (self.ciphertexts - 1)

    @property
    def stride(self) -> int:
        """Slots this far apart start at whole bytes, at least 8 bytes from each other: they make a lane."""
        return 8 * -(-8 // self.width)

    @property
    def lane(self) -> tuple[int, int]:
        """A lane's shape: how many slots, and how many bytes from one to the next."""
        return -(-self.slots // self.stride), self.stride * self.width // 8


def plan_slots(length: int, low: int, high: int, noise_bound: int, key_bits: int) -> SlotLayout:
    """The layout for sums between `low` and `high` before noise, their total noise within +-`noise_bound`.

    Guarantee: slots * width < key_bits, so totals whose slots are in range are less than any modulus of
    key_bits bits, and `unpack` of the sum of packed vectors is the sum of the vectors, exactly. 64 bits on top stay
    empty: a total whose masks did not cancel is uniform, and passes for a sound one with probability 2^-64.
    """
    assert length >= 1
    assert low <= high
    assert noise_bound >= 0
    low, high = low - noise_bound, high + noise_bound
    width = max(1, (high - low).bit_length())
    if max(width, low.bit_length(), high.bit_length()) > MAX_WIDTH_BITS:
        raise invalid(
            f"A sum of this query needs more than {MAX_WIDTH_BITS} bits with its noise.",
            "Give the query more epsilon, or the columns shorter ranges.",
        )
    room = key_bits - 1 - SPARE_BITS
    assert width <= room
    return SlotLayout(length, low, high, width, room // width)


def _fill_slots(layout: SlotLayout, slots: int, value: int) -> int:
    """The plaintext with `value` in each of the first slots."""
    return ((1 << layout.width * slots) - 1) // ((1 << layout.width) - 1) * value


def pack(layout: SlotLayout, values: NDArray[np.int64], modulus: int) -> list[int]:
    """The plaintexts of one party's vector: sums of v_i 2^(width i) mod `modulus`, for any 64-bit values.

    A value may be wider than its slot, so slots are packed by lanes: in a lane, values offset by 2^63 cannot
    meet, and their bytes are a number as they stand. The lanes are shifted and added, the offset taken off.
    """
    assert values.shape == (layout.length,)
    assert values.dtype == np.int64
    offset = _fill_slots(layout, layout.slots, 1 << 63)
    plaintexts: list[int] = []
    for start in range(0, layout.length, BLOCK * layout.slots):
        lanes = _spread_lanes(layout, values[start : start + BLOCK * layout.slots])
        size = layout.stride * layout.lane[0] * layout.lane[1]
        blocks = (lanes[at : at + size] for at in range(0, len(lanes), size))
        plaintexts.extend((_add_lanes(layout, block) - offset) % modulus for block in blocks)
    return plaintexts


def _spread_lanes(layout: SlotLayout, values: NDArray[np.int64]) -> bytes:
    """Bytes by ciphertext, lane and slot of the lane, each value at the low end of its slots' bytes."""
    ciphertexts = -(-len(values) // layout.slots)
    lane_slots, slot_bytes = layout.lane
    padded = np.zeros(ciphertexts * layout.slots, dtype=np.int64)
    padded[: len(values)] = values
    words = np.zeros((ciphertexts, lane_slots * layout.stride), dtype="<u8")
    words[:, : layout.slots] = padded.view(np.uint64).reshape(ciphertexts, layout.slots) ^ SIGN_BIT
    lanes = words.reshape(-1, lane_slots, layout.stride).swapaxes(1, 2)
    spread = np.zeros((*lanes.shape, slot_bytes), dtype=np.uint8)
    spread[..., :8] = np.ascontiguousarray(lanes)[..., np.newaxis].view(np.uint8)
    return spread.tobytes()


def _add_lanes(layout: SlotLayout, lanes: bytes) -> int:
    size = len(lanes) // layout.stride
    total = 0
    for end in range(len(lanes), 0, -size):
        total = (total << layout.width) + int.from_bytes(lanes[end - size : end], "little")
    return total


def unpack(layout: SlotLayout, totals: Sequence[int], modulus: int) -> NDArray[np.int64]:
    """The sums in the slots of decrypted totals; refused if sound plaintexts cannot add up to them."""
    used = [layout.slots] * (layout.ciphertexts - 1) + [layout.last_slots]
    sums = np.empty(layout.ciphertexts * layout.slots, dtype=np.int64)
    pairs = list(zip(totals, used, strict=True))
    for start in range(0, layout.ciphertexts, BLOCK):
        block = pairs[start : start + BLOCK]
        lanes = b"".join(lane for total, slots in block for lane in _take_lanes(layout, total, slots, modulus))
        sums[start * layout.slots : (start + len(block)) * layout.slots] = _gather_lanes(layout, lanes, len(block))
    return sums[: layout.length]


def _take_lanes(layout: SlotLayout, total: int, slots: int, modulus: int) -> Iterator[bytes]:
    """The lanes of one decrypted total, of which so many slots are in use."""
    sums = (total - _fill_slots(layout, slots, layout.low)) % modulus
    if sums >> layout.width * slots:
        raise check_failed("A decrypted total does not fit its slots: the parties' masks did not cancel.")
    size = layout.lane[0] * layout.lane[1]
    for shift in range(0, layout.width * layout.stride, layout.width):
        yield (sums >> shift).to_bytes(size, "little")


def _gather_lanes(layout: SlotLayout, lanes: bytes, ciphertexts: int) -> NDArray[np.int64]:
    shape = (ciphertexts, layout.stride, *layout.lane)
    low_ends = np.ascontiguousarray(np.frombuffer(lanes, dtype=np.uint8).reshape(shape)[..., :8])
    words = low_ends.view("<u8")[..., 0].swapaxes(1, 2).reshape(ciphertexts, -1)[:, : layout.slots]
    slots = words & np.uint64((1 << layout.width) - 1)
    return slots.astype(np.int64).reshape(-1) + layout.low
