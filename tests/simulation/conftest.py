"""Sites are made once; every run works on a copy."""

import pytest

from tests.support.simulation import SimulatedSite, make_site, run_world


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    """What every run starts from."""
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def undisturbed(site: SimulatedSite) -> dict[str, bytes]:
    """The release of a run in which nothing goes wrong."""
    with run_world(site) as world:
        world.finish()
        return world.release()
