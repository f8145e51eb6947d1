"""Parts of a budget for tables of several sizes: one rule for what is asked and for what it is compared with."""

from collections.abc import Sequence

from synod.common.study.study import Study

LARGEST_PART = 1 << 16


def part_power(study: Study) -> float:
    """Parts by cells^power give the least sum of all cells' deviations: under rho a deviation goes by part^(-1/2), so
    it is 2/3, and under pure epsilon by 1/part, so it is 1/2.
    """
    return 1 / 2 if study.delta is None else 2 / 3


def whole_parts(weights: Sequence[float]) -> tuple[int, ...]:
    """Whole numbers in proportion to the weights, the largest 2^16 and none below 1."""
    return tuple(max(1, round(LARGEST_PART * weight / max(weights))) for weight in weights)
