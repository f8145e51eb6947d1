"""What a release was computed with: versions, and a hash of how this machine rounds.

The same recipe over the same answers gives the same bytes where both are the same; elsewhere floats may be rounded
otherwise, or an algorithm may have changed.
"""

import hashlib
import math
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

PACKAGES = ("synod-dp", "numpy", "pyarrow", "phe", "gmpy2", "cryptography", "grpcio")
COMPUTING = ("synod-dp", "python", "numpy", "arithmetic")
"""What decides the bytes that a recipe computes."""


@cache
def use_one_thread() -> None:
    """From here on this process does its linear algebra on one thread: with more of them sums are added up in another
    order, so that the last bits would depend on how many cores a machine has, or lets a process have.
    """
    threadpool_limits(limits=1, user_api="blas")


def current_versions() -> dict[str, str]:
    """What this process computes with."""
    return {**_installed(), "python": platform.python_version(), "arithmetic": hash_arithmetic()}


@cache
def _installed() -> dict[str, str]:
    return {name: version(name) for name in PACKAGES}


def describe_versions(begun: Any, ended: Mapping[str, str]) -> dict[str, str]:
    """For the manifest: the versions at the end of a study, and also those at its beginning where they differ, since a
    restart may have come with others in between.
    """
    first = begun if isinstance(begun, dict) else {}
    return {name: own if first.get(name, own) == own else f"{first[name]}, then {own}" for name, own in ended.items()}


def find_differences(stated: Mapping[str, Any]) -> list[str]:
    """How what this process computes with differs from what a release states, in words; nothing where it does not."""
    here = current_versions()
    return [
        "floats were rounded by another machine's rules" if name == "arithmetic" else f"{name} was {stated.get(name)}"
        for name in COMPUTING
        if stated.get(name) != here[name]
    ]


@cache
def hash_arithmetic() -> str:
    """A hash of the last bits of what the functions that recipes use give for fixed numbers: it says how this machine's
    processor and its libraries round on one thread, and nothing else about it.
    """
    use_one_thread()
    line = np.modf(np.arange(1, 1 << 16) * math.sqrt(2))[0] + 2.0**-20
    square = line[: 224 * 224].reshape(224, 224)
    signs = square - 0.5
    gram = signs[:, :64].T @ signs[:, :64]
    values, vectors = np.linalg.eigh(gram)
    parts = [
        np.exp(-line), np.log(line), np.log1p(line), np.expm1(line), np.sqrt(line), line**0.7, np.log2(line),
        np.logaddexp(line, -line), np.logaddexp.accumulate(line[:512]), np.array([np.linalg.norm(line)]),
        np.cumsum(line), square @ square, gram, values, vectors, np.linalg.solve(gram + np.eye(64), signs[:64, 0]),
        np.array([np.dot(line, line), line.sum(), signs.sum(axis=0)[7], square.sum(axis=1)[7]]),
        np.einsum("ij,jk->ik", square[:96, :96], signs[:96, :96]),
        np.array([f(x) for f in (math.exp, math.log, math.lgamma, math.erf) for x in line[:64].tolist()]),
    ]  # fmt: skip
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return digest.hexdigest()[:16]
