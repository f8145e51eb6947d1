"""The public names in one place; `synod/__init__.py` takes them from here when one is used."""

from synod.common.runtime.errors import SynodError
from synod.deploy.api.release import Release, load_release
from synod.deploy.api.simulation import Simulation, simulate
from synod.deploy.api.work import draft, evaluate, forecast

__all__ = ["Release", "Simulation", "SynodError", "draft", "evaluate", "forecast", "load_release", "simulate"]
