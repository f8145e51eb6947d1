"""A method is two files: a toy that appears beside the real ones is checked, planned, forecast, run, reported and
verified, and not a line of anything else knows of it.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from synod.common import methods as common_methods
from synod.common.privacy.coins import Coins
from synod.common.privacy.cost import Cost
from synod.common.protocol.manifest import verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.discovery import load_modules
from synod.common.runtime.errors import SynodError
from synod.common.study import study as studies
from synod.common.study.study import Study, known_methods, parse_study
from synod.curator import methods as curator_methods
from synod.curator.methods import base
from synod.curator.records import State
from synod.deploy.simulate import publish_in_process
from synod.deploy.study.forecast import compare_alternatives, forecast_study
from synod.party.policy import check_policy
from tests.support.commands import complaint, synod
from tests.support.keys import identity_of
from tests.support.parties import make_settings
from tests.support.simulation import SimulatedSite, make_site, run_world
from tests.support.studies import NAMES, draw_columns, make_study, study_document

COMMON = '''
"""Toy: the counts of single features, and nothing of how they go together."""

from typing import Literal

from synod.common.methods.networks import tables_limit
from synod.common.protocol.steps import QueryKind, Step
from synod.common.runtime.errors import refused
from synod.common.study.features import sizes_of
from synod.common.study.study import Method, Study


class Toy(Method):
    """`most_features` is how many features it takes on."""

    name: Literal["toy"]
    version: Literal[1] = 1
    most_features: int = 10

    def check(self, study: Study) -> None:
        """Refuses a study with too many features."""
        if len(sizes_of(study)) > self.most_features:
            raise refused("there are too many features to play with.")

    def plan(self, study: Study) -> tuple[Step, ...]:
        """One encrypted sum with the whole budget."""
        limit = tables_limit(study, 0)
        return (Step("counts", "counting", QueryKind.SUM_MARGINALS, study.party_names, study.budget, limit),)
'''
CURATOR = '''
"""Toy as a recipe: one sum, and rows whose columns are drawn one by one."""

import numpy as np

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.marginals import SumMarginals
from synod.common.study.features import sizes_of, space_of
from synod.curator.methods.base import CountError, ModelSection, Publication, Publisher, Released, register


def ask(study):
    """Every feature alone."""
    return SumMarginals(tuple((feature,) for feature in range(len(sizes_of(study)))))


async def publish(study, parties, *, rng):
    """Counts, then rows."""
    query = ask(study)
    tables = await parties.ask("counts", query)
    variance = query.terms(plan_study(study).step("counts"), study).variance
    drawn, released = [], []
    for features, counts in zip(query.sets, tables, strict=True):
        released.append(Released(features, counts.astype(np.float64), study.total_rows, variance))
        shares = np.maximum(counts, 0) + 1e-9
        drawn.append(rng.choice(len(shares), study.rows, p=shares / shares.sum()))
    columns = space_of(study).decode(drawn, study.rows)
    return Publication(columns, {"counts": [counts.tolist() for counts in tables]}, tables=released)


def describe(study, publication):
    """How many columns there are."""
    return ModelSection("Columns on their own", f"{len(publication.tables)} columns, each on its own <toy & all>.")


def expected_error(study, publication):
    """No pair is counted."""
    features = len(sizes_of(study))
    return CountError(None, features * (features - 1) // 2, 0, "features", "No two columns were counted together.")


register(
    "toy",
    Publisher(
        title="Toy, columns drawn one by one",
        publish=publish,
        describe=describe,
        expected_error=expected_error,
        warnings=lambda study: ("Do not look for relations between columns: a toy has none.",),
        typical_queries=lambda study: {"counts": ask(study)},
    ),
)
'''
TOY = {"name": "toy"}


@contextmanager
def toy_added(folder: Path) -> Iterator[list[Path]]:
    """The toy's two files beside the real methods; afterwards nothing of it is left."""
    known_methods()
    load_modules("synod.curator.methods")
    rooms = {common_methods: (folder / "common", COMMON), curator_methods: (folder / "curator", CURATOR)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "METHODS", dict(studies.METHODS))
        patch.setattr(base, "_PUBLISHERS", dict(base._PUBLISHERS))
        for package, (place, text) in rooms.items():
            place.mkdir()
            (place / "toy.py").write_text(text)
            patch.setattr(package, "__path__", [*package.__path__, str(place)])
        importlib.invalidate_caches()
        load_modules.cache_clear()
        try:
            yield [place / "toy.py" for place, _ in rooms.values()]
        finally:
            for package in rooms:
                sys.modules.pop(f"{package.__name__}.toy", None)
                vars(package).pop("toy", None)
            load_modules.cache_clear()


@pytest.fixture
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """The toy, while a test runs."""
    with toy_added(tmp_path_factory.mktemp("toy")) as files:
        yield files


@pytest.fixture
def study(added: list[Path]) -> Study:
    """The usual study, with the toy."""
    del added
    return make_study(method=TOY)


def test_a_toy_is_two_files_and_is_gone_when_they_are(tmp_path: Path) -> None:
    before = dict(known_methods())
    with toy_added(tmp_path):
        assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")) == [
            "common/toy.py",
            "curator/toy.py",
        ]
        assert set(known_methods()) == {*before, "toy"}
        assert base.publisher_of(make_study(method=TOY)).title.startswith("Toy")
    assert dict(known_methods()) == before
    assert "toy" not in load_modules("synod.common.methods")
    assert not [name for name in sys.modules if name.endswith(".methods.toy")]
    with pytest.raises(SynodError, match="name must be one of"):
        parse_study(study_document(method=TOY), "the test's study")


def test_its_files_are_all_that_knows_it(added: list[Path], study: Study) -> None:
    files = {Path(inspect.getfile(kind)) for kind in (type(study.method), base.publisher_of(study).publish)}
    assert files == set(added)


def test_a_study_with_it_is_resolved_planned_and_hashed(study: Study) -> None:
    assert study.to_json()["method"] == {"name": "toy", "version": 1, "most_features": 10}
    again = parse_study(json.loads(json.dumps(study.to_json())), "the test").resolve()
    assert (again, again.digest()) == (study, study.digest())
    (step,) = plan_study(study).steps
    assert (step.label, step.phase, step.cost, step.answerers) == (
        "counts",
        "counting",
        Cost.pure(study.epsilon),
        NAMES,
    )


@pytest.mark.parametrize(
    ("changes", "policy", "refusal"),
    [
        ({}, {}, ""),
        ({}, {"methods": ["toy"], "allow_local_queries": False}, ""),
        ({}, {"methods": ["another"]}, "the method toy is not among the allowed"),
        ({}, {"max_cells": 7}, "the step counts may ask for 38 numbers; `max_cells` is 7"),
        ({"method": {**TOY, "most_features": 3}}, {}, "too many features to play with"),
    ],
)
def test_a_policy_decides_about_it(
    changes: dict[str, Any], policy: dict[str, Any], refusal: str, tmp_path: Path, study: Study
) -> None:
    asked, settings = make_study(**{"method": TOY, **changes}), make_settings(tmp_path, **policy)
    own_key = identity_of(NAMES[0]).fingerprint
    if not refusal:
        assert check_policy(settings, asked, own_key=own_key) == study.budget
        return
    with pytest.raises(SynodError, match=refusal):
        check_policy(settings, asked, own_key=own_key)


def test_it_is_forecast(study: Study) -> None:
    (found,) = forecast_study(study)
    assert (found.label, found.numbers) == ("counts", 38)
    assert found.error > 0
    assert compare_alternatives(study) == []


def test_the_program_checks_and_forecasts_it(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study_document(method=TOY)))
    checked = json.loads(synod("study", "check", path, "--json").out)
    assert checked["hash"] == study.digest().hex()
    assert json.loads(synod("study", "forecast", path, "--json", "--quick").out)["rounds"][0]["label"] == "counts"
    path.write_text(yaml.safe_dump(study_document(method={**TOY, "colour": "red"})))
    assert "the key method.colour is not known" in complaint(synod("study", "check", path), 2)


def test_it_publishes_rows_in_process(study: Study) -> None:
    exact = make_study(method=TOY, epsilon="1000")
    tables = [draw_columns(exact, name) for name in NAMES]
    publication = publish_in_process(exact, tables, coins=Coins(bytes(32)), rng=np.random.default_rng(1))
    assert [len(column) for column in publication.columns] == [exact.rows] * len(exact.attributes)
    true = np.bincount(np.concatenate([table[0] for table in tables]))
    assert np.abs(publication.tables[0].counts - true).max() <= 2


@pytest.fixture
def site(added: list[Path], tmp_path_factory: pytest.TempPathFactory) -> SimulatedSite:
    """Daemons and a curator for a study with the toy."""
    del added
    return make_site(tmp_path_factory.mktemp("site"), method=TOY)


def test_daemons_and_curator_run_it_to_a_release_that_verifies(site: SimulatedSite) -> None:
    with run_world(site) as world:
        world.finish()
        assert world.curator.state() is State.PUBLISHED
        assert world.declined == []
        folder = world.curator.context.release_folder(site.study.digest())
        verdict = verify_release(folder, None)
        assert set(verdict.signers) == {"curator", *NAMES}
        for index in range(len(NAMES)):
            with world.ledger(index) as ledger:
                assert ledger.account().spent("ward") == site.study.budget
        released = world.release()
    manifest = json.loads(released["manifest.json"])
    assert manifest["queries"] == {"counts": {"kind": "sum-marginals", "sets": [[0], [1]]}}
    assert released["synthetic.csv"].decode().count("\n") == 1 + site.study.total_rows
    page = released["report.html"].decode()
    for words in (
        "Toy, columns drawn one by one",
        "Columns on their own",
        "2 columns, each on its own &lt;toy &amp; all&gt;.",
        "No two columns were counted together.",
        "a toy has none",
        "counting",
    ):
        assert words in page
