"""Invented numbers of the experiments in which every claim about them is true, and others in which each is false."""

from collections.abc import Iterator
from itertools import product

Number = tuple[str, str, str, float, str, float]
"""Figure, table, method, place on the axis, metric, mean."""
TABLES = ("adult", "nltcs")
SMALL_AND_LARGE = (0.1, 0.4, 1.6)
ENCODED = {name: f"privbayes, {name}" for name in ("binary", "gray", "vanilla", "hierarchical")}
TARGETS = {"adult": ("education", "salary"), "nltcs": ("money", "outside")}


def list_experiments(*, is_true: bool) -> Iterator[Number]:
    """All of them."""
    for list_numbers in (_subn, _hpdp, _rivals, _trained, _scores, _encodings, _tuned, _personal, _joint):
        yield from list_numbers(is_true)


def _subn(is_true: bool) -> Iterator[Number]:
    for table, x, metric in product(TABLES, (0.2, 0.8), ("tvd2", "tvd3")):
        for method in ("NOCD, consistent", "NOCD, consistent, ripple"):
            yield "priview", table, method, x, metric, 0.1 if is_true else 0.3
        for method in ("PriView, pairs", "PriView, pairs, ripple"):
            yield "priview", table, method, x, metric, 0.2
    ours, theirs = {"education": 0.1, "salary": 0.2}, {"education": 0.4, "salary": 0.3}
    for (label, low), x in product(ours.items(), (0.2, 0.8)):
        high = theirs[label]
        yield "two-parties", "adult", "dp-subn", x, f"wrong {label}", low if is_true else high
        yield "two-parties", "adult", "distdiffgen", x, f"wrong {label}", high if is_true else low
    for x in (0.2, 0.8):
        yield "two-parties", "adult", "dp-subn", x, "bytes", 100
        yield "two-parties", "adult", "distdiffgen", x, "bytes", 1_000 if is_true else 10
    for parties in (2, 10):
        numbers = parties * 52**2 * (0.5 if is_true else 2)
        yield "messages", "adult", "hpdp-dp, linear on bits", parties, "paper_bytes", numbers * 256
    for epsilon, x in product(("0.2", "0.8"), (2, 10)):
        method = f"dp-subn, ε = {epsilon}"
        yield "rounds", "adult", method, x, "rounds", 1e6 if is_true else 10
        yield "rounds", "adult", method, x, "paper_bytes", 1_000 * x
        yield "rounds", "adult", method, x, "formula", (1_000 if is_true else 2_000) * x
        yield "rounds", "adult", method, x, "first frontier", 200
        yield "rounds", "adult", method, x, "last frontier", 100 if is_true else 300


def _hpdp(is_true: bool) -> Iterator[Number]:
    for kept, label in product((5, 40), TARGETS["adult"]):
        yield "kept", "adult", "hpdp-dp, linear on bits", kept, f"wrong {label}", 1 / kept if is_true else kept / 50
    for table, parties in product(TABLES, (2, 10)):
        error = 1 / parties if is_true else parties
        yield "covariance", table, "weighted mean of local covariances", parties, "millionths", error
    for rows, attributes in product((10_000, 40_000), (13, 52)):
        method = f"{attributes} attributes"
        seconds = attributes**2 + rows / 100 if is_true else rows * attributes**2 / 100
        counted = {"seconds": seconds, "components": 20, "matrices": 3 * 52**2, "models": 3 * 52 * 20}
        for metric, number in counted.items():
            is_wrong = not is_true and metric in {"matrices", "models"}
            yield "growth", "adult", method, rows, metric, 50 * number if is_wrong else number
        yield "growth", "adult", method, rows, "rows", rows * attributes


def _rivals(is_true: bool) -> Iterator[Number]:
    orders = {"adult": (2, 3), "nltcs": (3, 4)}
    for table, x in product(TABLES, SMALL_AND_LARGE):
        for order in orders[table]:
            metric = f"tvd{order}"
            noisy = 0.1 * order * (2 - x / 1.6) if is_true else 0.1 * (5 - order) * (0.5 + x / 1.6)
            yield "rivals", table, "privbayes", x, metric, 0.05 if is_true else 0.9
            yield "rivals", table, "Laplace", x, metric, noisy
            yield "rivals", table, "Fourier", x, metric, noisy
            yield "rivals", table, "Uniform", x, metric, 0.5
            yield "rivals", table, "Contingency", x, metric, 0.3
            yield "rivals", table, "MWEM", x, metric, 0.5 if is_true else 0.2
            yield "sources", table, "privbayes, exact tables", x, metric, 0.05 if is_true else 0.2
            yield "sources", table, "privbayes, exact network", x, metric, 0.2 if is_true else 0.05


def _trained(is_true: bool) -> Iterator[Number]:
    true = {
        "adult": {ENCODED["hierarchical"]: 0.1, ENCODED["binary"]: 0.3, ENCODED["gray"]: 0.3, ENCODED["vanilla"]: 0.4,
                  "PrivateERM": 0.3, "majority": 0.4, "privbayes, exact network": 0.1, "privbayes, exact tables": 0.2},
        "nltcs": {"privbayes": 0.2, "PrivateERM": 0.3, "PrivateERM (single)": 0.1},
    }  # fmt: skip
    false = {
        "adult": {ENCODED["hierarchical"]: 0.5, ENCODED["binary"]: 0.2, ENCODED["gray"]: 0.2, ENCODED["vanilla"]: 0.2,
                  "PrivateERM": 0.2, "majority": 0.4, "privbayes, exact network": 0.2, "privbayes, exact tables": 0.1},
        "nltcs": {"privbayes": 0.2, "PrivateERM": 0.1, "PrivateERM (single)": 0.3},
    }  # fmt: skip
    for table, x in product(TABLES, SMALL_AND_LARGE):
        for label in TARGETS[table]:
            yield "trained", table, "Majority", x, f"wrong {label}", 0.4 if is_true else 0.1 + x / 4
            for method, level in (true if is_true else false)[table].items():
                yield "trained", table, method, x, f"wrong {label}", level
    for x, label in product((0.05, 0.1, 0.4, 0.8, 1.6), TARGETS["adult"]):
        rises, falls = 0.3 + x / 20, 0.2 - x / 20
        yield "trained", "adult", "PrivateERM (single)", x, f"wrong {label}", rises if is_true else falls
    yield "trained", "adult", ENCODED["hierarchical"], 0.05, "wrong salary", 0.05 if is_true else 0.6


def _scores(is_true: bool) -> Iterator[Number]:
    for x in SMALL_AND_LARGE:
        small = x < 0.4
        lines = {"F": 3.0, "R": 2.5 if small else 3.0, "I": 2.0} if is_true else {"F": 2.0, "R": 2.5, "I": 4.0}
        change = 1 + x / 4 if is_true else 1 - x / 4
        best = (4.9 if small else 5.0) if is_true else 4 + 3 * x
        for score, mean in lines.items():
            yield "scores", "nltcs", f"privbayes, {score}", x, "information", mean * change
            yield "seconds", "nltcs", f"privbayes, {score}", x, "seconds", 9 if (score == "F") == is_true else 1
        yield "scores", "nltcs", "privbayes, I, exact network", x, "information", best
        yield "scores", "adult", "privbayes, I, exact network", x, "information", best
        yield "scores", "adult", "privbayes, R", x, "information", (3 if is_true else 2) * change
        yield "scores", "adult", "privbayes, I", x, "information", (2 if is_true else 3) * change


def _encodings(is_true: bool) -> Iterator[Number]:
    for x, metric in product(SMALL_AND_LARGE, ("tvd2", "tvd3")):
        bits = 0.3 * (1.2 - x / 1.6) if is_true else 0.1 * (0.5 + x)
        for name in ("binary", "gray"):
            yield "encodings", "adult", ENCODED[name], x, metric, bits
        yield "encodings", "adult", ENCODED["vanilla"], x, metric, 0.1 if is_true else 0.3
        yield "encodings", "adult", ENCODED["hierarchical"], x, metric, 0.1 if is_true else 0.5


def _tuned(is_true: bool) -> Iterator[Number]:
    places = {"beta": (0.05, 0.2, 0.3, 0.5, 0.9), "theta": (0.5, 3, 4, 6, 12)}
    for (figure, axis), table, epsilon in product(places.items(), TABLES, ("0.2", "0.8")):
        for x, metric in product(axis, ("tvd3", "wrong gender" if table == "adult" else "wrong outside")):
            is_end = x in {axis[0], axis[-1]}
            yield figure, table, f"privbayes, ε = {epsilon}", x, metric, 0.3 if is_end == is_true else 0.1


def _personal(is_true: bool) -> Iterator[Number]:
    for parents in (1, 2, 3, 4):
        held = (2 if parents == 1 else 3) if is_true else 1
        yield "degree", "adult", "hpprivbayes, ε = 0.8", parents, "information", held
        yield "degree", "adult", "privbayes, vanilla, ε = 0.8", parents, "information", 2
    for x in (0.2, 0.6, 0.8, 1):
        share_wrong = (0.2 if x <= 0.4 else 0.1) if is_true else 0.4
        change = 1.5 - x / 2 if is_true else 0.5 + x / 2
        for method, distance, share in (
            ("hpprivbayes", 0.1 if is_true else 0.3, share_wrong),
            (ENCODED["vanilla"], 0.2, 0.2),
        ):
            yield "personal", "adult", method, x, "tvd2", distance * change
            yield "personal", "adult", method, x, "wrong education", share * change
        yield "personal", "adult", "no privacy", x, "wrong education", 0.01 if is_true else 0.5
        for name, ratio in (("1/6", 1 / 6), ("1/2", 1 / 2)):
            spread = 1 - ratio if is_true else ratio
            yield "personal", "adult", f"hpprivbayes, r = {name}", x, "wrong education, kernel", 0.1 + spread * x / 2


def _joint(is_true: bool) -> Iterator[Number]:
    areas = [f"area {label}, {machine}" for label in ("sex", "relationship") for machine in ("bayes", "svm")]
    for x in (0.05, 0.5, 1):
        for method in ("dpcocgen", "dpcocgen, modl"):
            yield "joint", "adult", method, x, "hellinger", 0.1 if is_true else 0.5
        yield "joint", "adult", "histogram", x, "hellinger", 0.3
        coarse = (0.05 if x < 0.5 else 0.4) if is_true else (0.6 if x < 0.5 else 0.1)
        yield "joint", "adult", "dpcocgen, 144 parts", x, "hellinger", coarse
        change = 1.5 - x if is_true else 0.5 + x
        levels = (0.2, 0.2, 0.2, 0.6) if is_true else (0.8, 0.8, 0.6, 0.2)
        for method, level in zip(("dpcocgen", "dpcocgen, modl", "privbayes", "histogram"), levels, strict=True):
            yield "joint", "adult", method, x, "relative", level * change
        shares = (0.9, 0.9, 0.6, 0.6, 0.9) if is_true else (0.5, 0.5, 0.8, 0.8, 0.95)
        named = ("dpcocgen", "dpcocgen, modl", "privbayes", "histogram", "no privacy")
        for metric in areas:
            for method, share in zip(named, shares, strict=True):
                yield "joint", "adult", method, x, metric, share
