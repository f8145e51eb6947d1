"""The pooled moments of `SumMoments`: which there are, their sensitivity, and how they are summed exactly.

Each row becomes a vector of small integers: the constant L, one signed number u in [-L, L] for each numeric and
each two-valued attribute, and 2L in one place of a one-hot block for each attribute with more values (L levels,
or 1 where nothing is numeric). The moments are entries of the Gram matrix of these vectors, in units of
1 / (4 L^2); they carry means, cross moments and counts together. See docs/privacy.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synod.common.study.encoding import Codes, Coding


@dataclass(frozen=True, slots=True)
class SignedColumn:
    """A number in [-L, L]: a level, or two codes as -L and +L, or missing as +L."""

    attribute: int
    role: str  # "number", "binary" or "missing"


@dataclass(frozen=True, slots=True)
class OneHotBlock:
    """One column for each code of an attribute with three codes or more."""

    attribute: int
    size: int


@dataclass(frozen=True, slots=True)
class MomentDesign:
    """The columns of a schema's row vectors: the constant, then the signed ones, then the blocks."""

    codings: tuple[Coding, ...]
    signed: tuple[SignedColumn, ...]
    blocks: tuple[OneHotBlock, ...]

    @property
    def unit(self) -> int:
        """L: the integer that stands for one half."""
        return (self.codings[0].levels or 1) if self.numbers else 1

    @property
    def numbers(self) -> int:
        """c: how many signed columns are numeric, and so have a square of their own."""
        return sum(column.role == "number" for column in self.signed)

    @property
    def width(self) -> int:
        """How long a row's vector is."""
        return 1 + len(self.signed) + sum(block.size for block in self.blocks)

    def block_slices(self) -> Iterator[tuple[OneHotBlock, slice]]:
        """Each one-hot block with its place in the vector."""
        start = 1 + len(self.signed)
        for block in self.blocks:
            yield block, slice(start, start + block.size)
            start += block.size

    def asked(self) -> NDArray[np.bool_]:
        """Which entries of the Gram matrix are asked: above the diagonal but not inside a block, where products
        vanish, nor constant times block, which the diagonal has; squares of numbers; counts of block columns.
        """
        first_block = 1 + len(self.signed)
        mask = np.triu(np.ones((self.width, self.width), dtype=bool), 1)
        mask[0, first_block:] = False
        for _, place in self.block_slices():
            mask[place, place] = False
        squares = [i for i, column in enumerate(self.signed, 1) if column.role == "number"]
        diagonal = [*squares, *range(first_block, self.width)]
        mask[diagonal, diagonal] = True
        return mask

    @property
    def length(self) -> int:
        """How many moments there are; counted without the matrix, which an absurd schema would not leave room for."""
        signed, sizes = len(self.signed), [block.size for block in self.blocks]
        columns = sum(sizes)
        across_blocks = (columns**2 - sum(size**2 for size in sizes)) // 2
        return signed * (signed + 1) // 2 + self.numbers + columns * (signed + 1) + across_blocks

    @property
    def sensitivity(self) -> int:
        """The L1 sensitivity of the vector of moments, in its integer units.

        Guarantee: for any two rows, the L1 distance of their moments is at most this. With A blocks and s signed
        columns, c of them numeric, in units of 1/(4 L^2): a block's counts change by 2, a pair of blocks by 2, a
        block with a signed column by at most 1/2 + 1/2; the products of the s signed columns and the constant 1/2
        are convex in each column, so their change is greatest where m of s + 1 signs flip, m (s + 1 - m) / 2; a
        square changes by at most 1/4. So Delta = 2A + A(A-1) + A s + floor((s+1)^2 / 4) / 2 + c / 4.
        """
        a, s, c = len(self.blocks), len(self.signed), self.numbers
        unit = self.unit**2
        return 4 * unit * (2 * a + a * (a - 1) + a * s) + 2 * unit * ((s + 1) ** 2 // 4) + unit * c

    @property
    def squared_sensitivity(self) -> int:
        """The square of the L2 sensitivity of the vector of moments, in its integer units.

        Guarantee: for any two rows, the squares of the changes add up to at most this. As above, in units of
        1/(4 L^2): a block's counts change by 1 twice, and so does a pair of blocks; a block with a signed column by at
        most 1 once or 1/2 twice; a product of signed columns by 1/2 where one of its signs flips, a square by 1/4. So
        it is 2A + A(A-1) + A s + floor((s+1)^2 / 4) / 4 + c / 16.
        """
        a, s, c = len(self.blocks), len(self.signed), self.numbers
        unit = self.unit**4
        return 16 * unit * (2 * a + a * (a - 1) + a * s) + 4 * unit * ((s + 1) ** 2 // 4) + unit * c

    def bounds(self, rows: int) -> tuple[int, int]:
        """Between which integers each exact moment of `rows` rows lies."""
        square = self.unit**2 * rows
        return (-2 * square, 4 * square) if self.blocks else (-square, square)


def design_moments(codings: Sequence[Coding]) -> MomentDesign:
    """The columns for a schema; a constant attribute has none, because its value is public."""
    signed: list[SignedColumn] = []
    blocks: list[OneHotBlock] = []
    for index, coding in enumerate(codings):
        if coding.attribute.is_numeric and not coding.is_constant:
            signed.append(SignedColumn(index, "number"))
            if coding.attribute.nullable:
                signed.append(SignedColumn(index, "missing"))
        elif coding.size == 2:
            signed.append(SignedColumn(index, "binary"))
        elif coding.size > 2:
            blocks.append(OneHotBlock(index, coding.size))
    return MomentDesign(tuple(codings), tuple(signed), tuple(blocks))


def row_vectors(design: MomentDesign, columns: Sequence[Codes]) -> NDArray[np.float64]:
    """The rows' vectors; every entry is an integer of at most 2 L, held in a double for the sake of BLAS."""
    rows = len(columns[0])
    vectors = np.zeros((rows, design.width))
    vectors[:, 0] = design.unit
    vectors[:, 1 : 1 + len(design.signed)] = signed_vectors(design, columns)
    for block, span in design.block_slices():
        vectors[np.arange(rows), span.start + columns[block.attribute].astype(np.intp)] = 2 * design.unit
    return vectors


def signed_vectors(design: MomentDesign, columns: Sequence[Codes]) -> NDArray[np.float64]:
    """The signed part of the rows' vectors, without the constant and the blocks."""
    vectors = np.empty((len(columns[0]), len(design.signed)))
    for place, column in enumerate(design.signed):
        vectors[:, place] = _signed_values(design, column, columns[column.attribute])
    return vectors


def _signed_values(design: MomentDesign, column: SignedColumn, codes: Codes) -> NDArray[np.float64]:
    coding, unit = design.codings[column.attribute], design.unit
    values = codes.astype(np.float64)
    if column.role == "binary":
        return (2 * values - 1) * unit
    missing = codes == coding.null_code if coding.attribute.nullable else np.zeros(len(codes), dtype=bool)
    if column.role == "missing":
        return np.where(missing, float(unit), float(-unit))
    return np.where(missing, 0.0, 2 * values - unit)


def unfold(design: MomentDesign, moments: NDArray[np.int64], rows: int) -> NDArray[np.float64]:
    """The Gram matrix that (noisy) moments describe, per row and in real units; entries that were not asked are
    filled in from what they must be: the constant's square, squares of signs, zeros inside a block.
    """
    gram = np.zeros((design.width, design.width))
    gram[design.asked()] = moments / (4.0 * design.unit**2 * rows)
    gram = np.triu(gram) + np.triu(gram, 1).T
    gram[0, 0] = 0.25
    for place, column in enumerate(design.signed, 1):
        if column.role != "number":
            gram[place, place] = 0.25
    first_block = 1 + len(design.signed)
    gram[0, first_block:] = gram[first_block:, 0] = np.diag(gram)[first_block:] / 2
    return gram
