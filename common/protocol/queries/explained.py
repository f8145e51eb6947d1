"""What leaves a party at a step, in plain words: one sentence or two for each kind of query, for whoever approves."""

from synod.common.protocol.steps import QueryKind, Step

SEALED = (
    "with your share of the noise already in them. They leave encrypted and masked: the curator can open the sum over "
    "all parties, and nothing else."
)
LEAVES: dict[QueryKind, str] = {
    QueryKind.SUM_MARGINALS: (
        "How many of your rows have each combination of values, in up to {tables} of columns ({numbers} in all), "
    )
    + SEALED,
    QueryKind.SUM_AGREEMENTS: (
        "For every pair of columns, in how many of your rows the two values fall on the same side of a split in two "
        "({numbers} in all), "
    )
    + SEALED,
    QueryKind.SUM_MOMENTS: (
        "Sums over your rows, of the columns' values and of their products ({numbers} in all), from which averages and "
        "correlations follow, "
    )
    + SEALED,
    QueryKind.LOCAL_MARGINALS: (
        "How many of your rows have each combination of values, in up to {tables} of columns ({numbers} in all), with "
        "the whole noise added here. The curator sees these noisy counts of your rows alone, and they are published."
    ),
    QueryKind.CHOOSE_PARENTS: (
        "Which columns depend on which, {draws}: a choice among columns, drawn at random so that strong dependence in "
        "your rows is likelier. No count leaves, but the curator sees your choice, and it is published."
    ),
    QueryKind.SYNTHESIZE: (
        "Synthetic rows, drawn here from a model that is already private. None of your rows is read for it, and it "
        "costs nothing."
    ),
}


def explain_step(step: Step) -> str:
    """What leaves a party that answers this step, at most."""
    limit = step.limit
    return LEAVES[step.kind].format(
        tables=_count(limit.tables, "table"),
        numbers=_count(limit.numbers, "number"),
        draws=f"up to {_count(limit.tables, 'time')}",
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
