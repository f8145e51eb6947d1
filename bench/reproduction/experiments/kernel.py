"""The HPPrivBayes paper's classifier: a machine with a Gaussian kernel, which takes too long on all rows."""

import numpy as np
from numpy.typing import NDArray

from synod.deploy.evaluate.classifiers import Target, classes_of, indicators_of
from synod.deploy.evaluate.tables import Table

KERNEL_ROWS = 2_000
"""The most rows that a kernel machine learns from, and that it is tested on."""


def wrong_by_kernel(
    real: Table, learned: Table, target: Target, tested: NDArray[np.intp], *, rng: np.random.Generator
) -> float:
    """The share of tested real rows that a kernel machine gets wrong; where all rows that it learned from are of one
    class, it predicts that class.
    """
    from sklearn.svm import SVC  # noqa: PLC0415  (an optional package)

    drawn = rng.permutation(learned.rows)[:KERNEL_ROWS]
    asked = tested[:KERNEL_ROWS]
    classes, truth = classes_of(learned, target)[drawn], classes_of(real, target)[asked]
    if (classes == classes[0]).all():
        return float((truth != classes[0]).mean())
    machine = SVC(C=1.0, kernel="rbf").fit(indicators_of(learned, target)[drawn], classes)
    return float((truth != machine.predict(indicators_of(real, target)[asked])).mean())
