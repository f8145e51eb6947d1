"""Pairwise masks: what hides one party's plaintexts from the curator, who holds the Paillier key.

For each pair of parties, a key agreed by X25519 is stretched under T, the pair, the round and Q into one mask in
Z_n per ciphertext; the lower index adds it, the higher subtracts it, so that masks cancel in the sum of all who are
present and in nothing less. A party that was told another T, round or Q derives another mask; who is present is in Q.
"""

from collections.abc import Collection, Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from synod.common.privacy.coins import KEY_BYTES, Coins
from synod.common.runtime.errors import check_failed

EXTRA_BITS = 128


def mask_key(
    secret: bytes, other: bytes, *, pair: tuple[int, int], transcript: bytes, label: str, query: bytes
) -> bytes:
    """The key of one pair's mask stream for one query; `pair` is the two positions in the roster, lower first.

    Guarantee: HKDF over the X25519 secret with salt T; `label` is framed by its length, so no two (pair, label, Q)
    share an info string. The pair is in it because many public keys agree on one secret (RFC 7748, 6.1: the top bit
    and points of small order do not count): a party that enrols with a twin of another's key would otherwise make a
    third party's two masks equal, and they could cancel in that party's own answer.
    """
    try:
        agreed = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise check_failed("another party's exchange key is not a usable X25519 key.") from None
    places = b"".join(place.to_bytes(2, "big") for place in pair)
    info = b"synod/v1/mask" + places + len(label.encode()).to_bytes(2, "big") + label.encode() + query
    return HKDF(SHA256(), KEY_BYTES, salt=transcript, info=info).derive(agreed)


def draw_masks(key: bytes, count: int, modulus: int) -> list[int]:
    """`count` integers below `modulus`.

    Guarantee: each is within statistical distance 2**-128 of uniform, because 128 bits more than the modulus has
    are drawn before reducing.
    """
    width = (modulus.bit_length() + EXTRA_BITS + 7) // 8
    stream = Coins(key).draw_bytes(width * count)
    return [int.from_bytes(stream[i : i + width], "big") % modulus for i in range(0, len(stream), width)]


def blind(
    plaintexts: Sequence[int],
    *,
    index: int,
    present: Collection[int],
    secret: bytes,
    exchanges: Sequence[bytes],
    transcript: bytes,
    label: str,
    query: bytes,
    modulus: int,
) -> list[int]:
    """Adds this party's masks against every other party that is present to its plaintexts, modulo n.

    Guarantee: to anyone who lacks both secrets of at least one pair (this party, another honest party that is present),
    the result is computationally indistinguishable from uniform in Z_n; summed over all who are present, each told the
    same Q, the masks vanish. A pair keeps its places in the roster, whoever is lost.
    """
    blinded = list(plaintexts)
    for other, exchange in enumerate(exchanges):
        if other == index or other not in present:
            continue
        pair = (min(index, other), max(index, other))
        key = mask_key(secret, exchange, pair=pair, transcript=transcript, label=label, query=query)
        sign = 1 if index < other else -1
        masks = draw_masks(key, len(blinded), modulus)
        blinded = [(value + sign * mask) % modulus for value, mask in zip(blinded, masks, strict=True)]
    return blinded
