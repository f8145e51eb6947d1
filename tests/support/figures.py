"""Invented figures in which every measured claim is true, and others in which every one is false."""

from itertools import product

from bench.reproduction.points import COVERS, PAPER_HPDP
from bench.reproduction.summary import FIGURES, Estimate, Figures, Row, Run
from tests.support.experiments import list_experiments

RUN = Run("given", "make bench DATA=DIR", ("abc",), ("2026-01-01",), {"nltcs": 5, "adult": 2}, 2)
METRICS = {
    "adult": ("tvd2", "tvd3", "wrong education", "wrong salary"),
    "nltcs": ("tvd2", "tvd3", "wrong money", "wrong outside"),
}
ADULT_FIGURES = {"two-parties", "rounds", "kept", "growth", "covariance", "encodings", "degree", "personal", "joint"}
"""What the quick grid, of the other table and one epsilon, has nothing for."""
EPSILONS, PARTIES, CONTRIBUTIONS, FEATURES = (0.2, 0.8), (2, 10), (0.3, 0.8, 1), (16, 52)

LEVELS = {PAPER_HPDP: 0.1, "hpdp-dp": 0.1, "dp-subn": 0.2, "dp-ccbn": 0.3, "independent": 0.4}


def _by_epsilon(method: str, x: float, *, is_true: bool) -> float:
    level = LEVELS[method] if is_true else 0.5 - LEVELS[method]
    return level * (1 - x / 2) if is_true else level * (1 + x / 2)


def _by_parties(method: str, metric: str, x: float, *, is_true: bool) -> float:
    falls, rises = 1 - x / 20, 1 + x / 20
    level = LEVELS[method] if is_true else 0.5 - LEVELS[method]
    if method == "dp-ccbn":
        return level * (1 if is_true else rises)
    if method == PAPER_HPDP and metric.startswith("tvd"):
        return level * (1 if is_true else rises)
    if method == "independent":
        return level * (rises if is_true else falls)
    return level * (falls if is_true else rises)


def _component(metric: str, x: float, *, is_true: bool) -> float:
    fixed = {"first": (0.4, 0.2), "components": (7, 9), "tvd2": (0.1, 0.1)}
    if metric in fixed:
        return fixed[metric][0 if is_true else 1]
    return 0.2 - x / 10 if is_true else 0.2 + x / 10


def _bytes(method: str, x: float, *, is_true: bool) -> float:
    if method == "dp-subn":
        return 100.0
    return 100.0 * (1_000 * x if is_true else 5 / x)


def _rows_of_experiments(*, is_true: bool) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for figure, table, method, x, metric, mean in list_experiments(is_true=is_true):
        found.setdefault(figure, []).append(Row(table, method, float(x), metric, Estimate(float(mean), 0.0, 3)))
    return found


def make_world(*, is_true: bool) -> Figures:
    """Figures in which all claims hold, or in which none does."""
    rows: dict[str, list[Row]] = {name: [] for name in FIGURES}

    def put(figure: str, table: str, method: str, x: float, metric: str, mean: float) -> None:
        rows[figure].append(Row(table, method, float(x), metric, Estimate(float(mean), 0.0, 3)))

    for table, method in product(METRICS, LEVELS):
        for metric in METRICS[table]:
            for x in EPSILONS:
                put("epsilon", table, method, x, metric, _by_epsilon(method, x, is_true=is_true))
            for x in PARTIES:
                put("parties", table, method, x, metric, _by_parties(method, metric, x, is_true=is_true))
    for table, x in product(METRICS, CONTRIBUTIONS):
        for metric in ("first", "components", *METRICS[table]):
            put("components", table, PAPER_HPDP, x, metric, _component(metric, x, is_true=is_true))
    for place, cover in enumerate(COVERS, start=1):
        level = place if is_true else 10 - place
        for x in FEATURES:
            put("covers", "", cover, x, "views", level * x)
        for table, x in product(METRICS, EPSILONS):
            put("views", table, cover, x, "tvd2", level * (1 - x / 2 if is_true else 1 + x / 2) / 10)
    for method, metric in product(("dp-ccbn", "dp-subn"), ("bytes", "paper_bytes")):
        for x in PARTIES:
            put("messages", "adult", method, x, metric, _bytes(method, x, is_true=is_true))
        for x in EPSILONS:
            put("messages-epsilon", "adult", method, x, metric, _bytes(method, x, is_true=is_true))
    beside = _rows_of_experiments(is_true=is_true)
    return Figures({name: (*found, *beside.get(name, ())) for name, found in rows.items()}, RUN)


def make_nothing() -> Figures:
    """Figures without a row."""
    return Figures(dict.fromkeys(make_world(is_true=True).rows, ()), RUN)
