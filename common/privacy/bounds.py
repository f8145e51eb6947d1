"""How large the noise of a sum can get: a bound that fails with probability 2^-64 over all numbers of a query."""

from fractions import Fraction
from math import ceil, isqrt

import gmpy2

FAILURE_BITS = 64


def noise_bound(scale: Fraction, parties: int, threshold: int, length: int) -> int:
    """A bound B with P(|Z| > B) <= 2^-64 / length for Z, the sum of all parties' noise shares.

    Z = X - Y with independent X and Y ~ NB(rho, a), where a = exp(-1/scale), rho = K/(K-t) for K `parties`
    and t = `threshold`. For 0 < s < 1/scale, E exp(sX) = ((1-a) / (1 - a e^s))^rho. By symmetry and Chernoff

        P(|Z| > B) = 2 P(Z >= B+1) <= 2 e^(-s(B+1)) ((1-a)^2 / ((1 - a e^s)(1 - a e^-s)))^rho.

    With s = (1-d)/scale and L(x) = ln(1 - exp(-x/scale)) this is at most 2^-64 / length as soon as

        B + 1 >= (ln(2^65 length) + rho (2 L(1) - L(d) - L(2-d))) scale / (1-d).

    Every d in (0, 1) gives such a B; the least one over d = 1/64, ..., 63/64 is returned.

    Guarantee: rigorous, and the same integer on every machine, so that all sides agree on the layout: MPFR
    rounds each operation correctly at 256 bits, 2^-128 covers what that adds up to, and the rest is exact.
    """
    assert scale > 0
    assert 0 <= threshold < parties
    rho = Fraction(parties, parties - threshold)
    tilts = [Fraction(step, 64) for step in range(1, 64)]
    return min(ceil(_bracket(scale, rho, length, d) * scale / (1 - d)) - 1 for d in tilts)


def _bracket(scale: Fraction, rho: Fraction, length: int, tilt: Fraction) -> Fraction:
    """The bracket before scale / (1-d) above, from above."""
    with gmpy2.context(precision=256):

        def log_gap(x: Fraction) -> gmpy2.mpfr:
            return gmpy2.log(-gmpy2.expm1(gmpy2.mpfr(gmpy2.mpq(-x / scale))))

        logs = 2 * log_gap(Fraction(1)) - log_gap(tilt) - log_gap(2 - tilt)
        total = gmpy2.log(gmpy2.mpfr(length << (FAILURE_BITS + 1))) + gmpy2.mpfr(gmpy2.mpq(rho)) * logs
    numerator, denominator = total.as_integer_ratio()
    return Fraction(int(numerator), int(denominator)) + Fraction(1, 1 << 128)


def gaussian_bound(square: Fraction, parties: int, length: int) -> int:
    """A bound B with P(|Z| > B) <= 2^-64 / length for Z, the sum of K = `parties` discrete Gaussians.

    For X of parameter s^2, E exp(uX) = exp(u^2 s^2 / 2) times the sum over z of exp(-(z - u s^2)^2 / (2 s^2)), over the
    same sum without the shift u s^2. By Poisson summation no shift has a larger sum than none, so E exp(uX) is at most
    exp(u^2 s^2 / 2), and E exp(uZ) at most exp(u^2 K s^2 / 2). By Chernoff P(|Z| > B) <= 2 exp(-B^2 / (2 K s^2)),
    which is at most 2^-64 / length as soon as B^2 >= 2 K s^2 ln(2^65 length).

    Guarantee: rigorous, and the same integer on every machine, for the reasons given above.
    """
    assert square > 0
    with gmpy2.context(precision=256):
        total = gmpy2.log(gmpy2.mpfr(length << (FAILURE_BITS + 1)))
    numerator, denominator = total.as_integer_ratio()
    logarithm = Fraction(int(numerator), int(denominator)) + Fraction(1, 1 << 128)
    return isqrt(ceil(2 * parties * square * logarithm)) + 1
