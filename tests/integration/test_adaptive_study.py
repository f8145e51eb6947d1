"""Adaptive with a curator and parties as processes: `kill -9` of the curator between and inside its rounds changes
nothing, each ledger shows each charge once, and `synod verify` draws the rows again.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from synod.common.protocol.plan import plan_study
from tests.support.crashes import Reference, crash_curator, crash_party, finish
from tests.support.daemons import Site, check_charges, copy_site, make_site, read_release, run_synod
from tests.support.surveys import draft_survey

pytestmark = pytest.mark.slow

STORE = "synod.curator.store.Store"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site at rest: the study is submitted and has its key; nobody has approved."""
    study = draft_survey(method={"name": "adaptive", "rounds": 5}, epsilon="20", delta="1e-9")
    site = make_site(tmp_path_factory.mktemp("prepared"), study)
    try:
        site.start_curator()
        site.submit()
        assert site.stop("curator") == 0
    finally:
        site.stop_all()
    return site


@pytest.fixture
def copies(prepared: Site, tmp_path: Path) -> Iterator[Callable[[], Site]]:
    """Copies of the prepared site; all are stopped at the end."""
    made: list[Site] = []

    def copy() -> Site:
        made.append(copy_site(prepared, tmp_path / str(len(made))))
        return made[-1]

    try:
        yield copy
    finally:
        for site in made:
            site.stop_all()


@pytest.fixture(scope="module")
def reference(prepared: Site, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """An undisturbed run."""
    site = copy_site(prepared, tmp_path_factory.mktemp("reference") / "site")
    try:
        site.start_curator()
        site.start_parties()
        finish(site)
        check_charges(site)
        verified = run_synod("verify", site.release_folder())
    finally:
        site.stop_all()
    assert verified.returncode == 0, verified.stderr
    assert "ok  all 499 rows are those that the model and the seed give" in verified.stdout
    return Reference(read_release(site.release_folder()), {"curator": Counter()}, {})


def test_five_rounds_are_planned(prepared: Site) -> None:
    assert [step.phase for step in plan_study(prepared.study).steps] == [
        "one-way tables", "agreements", "tables", "agreements", "tables",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("point", ["open_query:after", "close_query:inside", "close_query:after"])
def test_curator_killed_between_rounds(
    copies: Callable[[], Site], reference: Reference, point: str, number: int
) -> None:
    crash_curator(copies(), reference, f"{STORE}.{point}:{number}")


@pytest.mark.parametrize("number", [1, 3, 6])
@pytest.mark.parametrize("when", ["inside", "after"])
def test_curator_killed_while_it_notes_what_shapes_a_query(
    copies: Callable[[], Site], reference: Reference, when: str, number: int
) -> None:
    """Six notes: groups, splits and tables of two stages, and the model."""
    crash_curator(copies(), reference, f"{STORE}.add_note:{when}:{number}")


@pytest.mark.parametrize("number", [1, 5])
def test_party_killed_around_a_charge(copies: Callable[[], Site], reference: Reference, number: int) -> None:
    crash_party(copies(), reference, f"synod.party.ledger.Ledger.charge:after:{number}")
