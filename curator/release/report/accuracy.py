"""The expected error of a 2-way count, from the law of the noise alone: what the model loses comes on top."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from synod.common.methods.base import HpdpDp
from synod.common.protocol.queries import moment_design
from synod.common.study.features import features_of
from synod.common.study.study import Study
from synod.curator.methods.base import Publication
from synod.curator.network.evidence import Evidence
from synod.curator.release.report.graph import has_bits, read_networks
from synod.curator.release.report.margins import moment_deviation

MOST_PAIRS = 2_000


@dataclass(frozen=True, slots=True)
class CountError:
    """The root mean square, in rows, of the noise of a count of two values together, over the `covered` pairs of
    columns or features that the model has such counts of, among all `pairs`. `deviation` is None where there are none.
    Some parties alone counted `partial` other pairs, which says nothing about all rows.
    """

    deviation: float | None
    pairs: int
    covered: int
    partial: int = 0
    is_of_bits: bool = False


def expected_error(study: Study, publication: Publication) -> CountError:
    """The error of the released counts, or of counts that follow from released moments."""
    if isinstance(study.method, HpdpDp):
        return _moment_error(study)
    return _table_error(study, publication)


def _moment_error(study: Study) -> CountError:
    """Counts of two categories. With columns u and v in -1/2 and +1/2 for two-valued attributes, a row counts for
    (u + 1/2)(v + 1/2) = uv + u/2 + v/2 + 1/4: three released sums. A category with a two-valued attribute is
    one sum and half of another; two categories of larger attributes are one.
    """
    design = moment_design(study)
    two_valued, larger = sum(column.role == "binary" for column in design.signed), len(design.blocks)
    kinds = ((larger * (larger - 1) // 2, 1.0), (larger * two_valued, 1.25), (two_valued * (two_valued - 1) // 2, 3.0))
    pairs = sum(count for count, _ in kinds)
    if not pairs:
        return CountError(None, 0, 0)
    variance = sum(count * factor for count, factor in kinds) / pairs
    return CountError(math.sqrt(variance) * moment_deviation(study) * study.total_rows, pairs, pairs)


def _table_error(study: Study, publication: Publication) -> CountError:
    """Cells of two features that stand in one table of a network, from all released tables that hold both."""
    features, evidence = features_of(study), Evidence(study, list(publication.tables))
    families = {tuple(sorted(p.family)) for network in read_networks(publication).values() for p in network.pairs}
    met = {pair for family in families for pair in combinations(family, 2)}
    together = sorted((x, y) for x, y in met if features[x].attribute != features[y].attribute)
    rows = _rows_of_pairs(publication)
    covered = [pair for pair in together if rows[pair] >= study.total_rows]
    looked_at = covered[:: 1 + len(covered) // MOST_PAIRS]
    variances = [table.variance for table in map(evidence.counted, looked_at) if table is not None]
    deviation = math.sqrt(math.fsum(variances) / len(variances)) if variances else None
    sizes = Counter(feature.attribute for feature in features).values()
    pairs = math.comb(len(features), 2) - sum(math.comb(size, 2) for size in sizes)
    return CountError(deviation, pairs, len(covered), len(together) - len(covered), has_bits(study))


def _rows_of_pairs(publication: Publication) -> Counter[tuple[int, int]]:
    """In how many rows each pair of features was counted; rows that were counted for all and for one count twice."""
    counted = {
        (pair, table.party): table.rows
        for table in publication.tables
        for pair in combinations(sorted(table.features), 2)
    }
    rows: Counter[tuple[int, int]] = Counter()
    for (pair, _), count in counted.items():
        rows[pair] += count
    return rows
