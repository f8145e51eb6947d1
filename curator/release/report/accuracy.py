"""The expected error of counts of two values and of one, from the law of the noise alone.

What the model loses comes on top.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from synod.common.protocol.queries.moments import moment_design
from synod.common.study.encoding import codings_of
from synod.common.study.features import base_count, features_of
from synod.common.study.study import Study
from synod.curator.methods.base import CountError, Publication
from synod.curator.network.evidence import Evidence
from synod.curator.network.levels import Levels, levels_of
from synod.curator.release.report.margins import moment_deviation
from synod.curator.release.report.models.graph import has_bits, read_networks
from synod.curator.release.report.wording import percent_about

MOST_PAIRS = 2_000
CATEGORIES = "categories together"
FEATURES = "features together, of which the model has a table,"
PARTIES_APART = (
    "No two columns were counted together by all parties: each party has a model of its own, and no such count of all "
    "rows was released."
)
INDEPENDENT = "No two columns are in one table of the model: they are published as if they were independent."


def count_varying(study: Study) -> int:
    """How many columns have more than one value."""
    return sum(coding.size > 1 for coding in codings_of(study))


def value_error(study: Study, publication: Publication) -> float | None:
    """The root mean square, in rows, of the noise of a count of one value, over all values of the columns that were
    counted by value in all rows; None where there are none.
    """
    found = list(
        _moment_values(study, publication.present)
        if publication.moments is not None
        else _table_values(study, publication)
    )
    values = sum(size for size, _ in found)
    return math.sqrt(math.fsum(size * variance for size, variance in found) / values) if values else None


def _moment_values(study: Study, present: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    """For each column of categories, how many values it has, and the variance of the count of one."""
    design, variance = moment_design(study), (moment_deviation(study, present) * study.total_rows) ** 2
    yield from ((2, 4 * variance) for column in design.signed if column.role == "binary")
    yield from ((design.codings[block.attribute].size, variance) for block in design.blocks)


def _table_values(study: Study, publication: Publication) -> Iterator[tuple[int, float]]:
    """The same for each column of which a table was released, alone or with others."""
    features, evidence = features_of(study), Evidence(study, list(publication.tables))
    for index, coding in enumerate(codings_of(study)):
        own = tuple(i for i, one in enumerate(features) if one.attribute == index and not one.level)
        table = evidence.counted(own) if own else None
        if table is not None:
            yield coding.size, table.mean_variance


def moment_error(study: Study, present: tuple[int, ...] = ()) -> CountError:
    """Counts of two categories. With columns u and v in -1/2 and +1/2 for two-valued attributes, a row counts for
    (u + 1/2)(v + 1/2) = uv + u/2 + v/2 + 1/4: three released sums. A category with a two-valued attribute is
    one sum and half of another; two categories of larger attributes are one.
    """
    design = moment_design(study)
    two_valued, larger = sum(column.role == "binary" for column in design.signed), len(design.blocks)
    kinds = ((larger * (larger - 1) // 2, 1.0), (larger * two_valued, 1.25), (two_valued * (two_valued - 1) // 2, 3.0))
    pairs = sum(count for count, _ in kinds)
    if not pairs:
        return CountError(None, 0, 0, CATEGORIES, _without_categories(study, present))
    variance = sum(count * factor for count, factor in kinds) / pairs
    return CountError(
        math.sqrt(variance) * moment_deviation(study, present) * study.total_rows, pairs, pairs, CATEGORIES
    )


def _without_categories(study: Study, present: tuple[int, ...]) -> str:
    off = percent_about(2 * moment_deviation(study, present))
    return (
        "Fewer than two columns are categories, so no count of two follows from what was released. The mean of a "
        f"number is typically off by {off} of its range because of the noise."
    )


def table_error(study: Study, publication: Publication) -> CountError:
    """Cells of two features that are in one table of a network, from all released tables that hold both, each on the
    coarsest level that a network has.
    """
    features, evidence, levels = features_of(study), Evidence(study, list(publication.tables)), levels_of(study)
    networks = read_networks(study, publication).values()
    families = {levels.order(p.family) for network in networks for p in network.pairs}
    met: dict[tuple[int, int], tuple[int, int]] = {}
    for x, y in sorted(pair for family in families for pair in combinations(family, 2)):
        if features[x].attribute != features[y].attribute:
            bases = levels.base(x), levels.base(y)
            coarsest = met.get(bases, (x, y))
            met[bases] = max(x, coarsest[0]), max(y, coarsest[1])
    together = sorted(met)
    rows = _rows_of_pairs(publication, levels)
    covered = [pair for pair in together if rows[pair] >= study.total_rows]
    looked_at = [met[pair] for pair in covered[:: 1 + len(covered) // MOST_PAIRS]]
    variances = [table.mean_variance for table in map(evidence.counted, looked_at) if table is not None]
    deviation = math.sqrt(math.fsum(variances) / len(variances)) if variances else None
    sizes = Counter(feature.attribute for feature in features if not feature.level).values()
    pairs = math.comb(base_count(study), 2) - sum(math.comb(size, 2) for size in sizes)
    partial = len(together) - len(covered)
    otherwise = PARTIES_APART if partial else INDEPENDENT
    return CountError(deviation, pairs, len(covered), FEATURES, otherwise, partial, has_bits(study))


def _rows_of_pairs(publication: Publication, levels: Levels) -> Counter[tuple[int, int]]:
    """In how many rows each pair of base features was counted, on whatever level; rows that were counted for all and
    for one count twice.
    """
    counted = {
        (pair, table.party): table.rows
        for table in publication.tables
        for pair in combinations(sorted(map(levels.base, table.features)), 2)
    }
    rows: Counter[tuple[int, int]] = Counter()
    for (pair, _), count in counted.items():
        rows[pair] += count
    return rows
