"""Real daemons over mutual TLS, with neighbouring CSV files: what leaves them is, byte for byte, what the audit takes
for their answers. So a bound that holds for many runs of that holds for them; a daemon with other noise is found out.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from bench.audit.neighbours import (
    EVERY_ROW,
    OTHERS,
    Rows,
    binary_schema,
    make_study,
    read_rows,
    replace_first,
    write_csv,
)
from bench.audit.noise import scaled_noise
from bench.audit.run import HALF
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import query_digest, read_query
from synod.common.protocol.submission import digest_of
from synod.common.protocol.transcript import open_transcript
from synod.common.study.study import Study, known_methods, parse_study
from synod.deploy.launch.processes import PROGRAM
from synod.party.answer import Round, Secrets, answer
from synod.party.approval import check_study, load_identity, reserve
from synod.party.ledger import Ledger
from synod.party.rounds import Responder, open_approval, secrets_of
from synod.v1 import study_pb2 as pb
from tests.support.daemons import Site, check_charges, make_site
from tests.support.studies import study_document

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0
TABLES: tuple[Rows, Rows] = (EVERY_ROW * 12, OTHERS * 12)
EPSILON = "2"
HALVED = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from fractions import Fraction
from bench.audit.noise import scaled_noise
from synod.deploy.cli.main import main
with scaled_noise(Fraction(1, 2)):
    main()
"""
Hashes = dict[tuple[str, str], str]
"""Of an answer, by party and round: its bytes are erased when the study ends."""


def kinds_of(method: str) -> int:
    """How many kinds of query a method asks."""
    return len({step.kind for step in plan_study(make_study(method, 2, 1, len(TABLES[0]), epsilon=EPSILON)).steps})


def draft() -> Study:
    """A study of the method that asks the most kinds of queries."""
    method = max(sorted(known_methods()), key=kinds_of)
    changes = {
        "method": {"name": method},
        "epsilon": EPSILON,
        "roster": None,
        "schema": binary_schema(),
        "collusion": 1,
    }
    return parse_study(study_document(name="audited", **changes), "the audit's study")


def read_secrets(site: Site, name: str) -> Secrets:
    """What a party derives its coins from, once it has approved the study."""
    settings = site.settings(name)
    reserve(settings, check_study(settings, site.study), now=1_700_000_000)
    with closing(Ledger.open(settings.state)) as ledger:
        approval = open_approval(ledger, site.study.digest())
        responder = Responder(name, load_identity(settings), ledger, settings.curator, 1, settings.max_cells)
        return secrets_of(responder, approval)


def sent_by(site: Site) -> Hashes:
    """What left each party in each round."""
    found: Hashes = {}
    for entry in site.study.roster:
        with closing(Ledger.open(site.settings(entry.name).state)) as ledger:
            for step in plan_study(site.study).steps_of(entry.name):
                stored = ledger.answer(site.study.digest(), step.label)
                assert stored is not None
                found[entry.name, step.label] = stored.header["digest"]
    return found


def expected_of(site: Site, tables: Sequence[Rows], secrets: dict[str, Secrets], factor: Fraction) -> Hashes:
    """The same, as the audit answers."""
    study = site.study
    manifest = json.loads((site.release_folder() / "manifest.json").read_text())
    transcript = open_transcript(manifest["transcript"])
    found: Hashes = {}
    for step in plan_study(study).steps:
        query = read_query(manifest["queries"][step.label], study)
        query_hash = query_digest(query, step, study)
        for name in step.answerers:
            index = study.index_of(name)
            asked = Round(study, step, query, query_hash, transcript, transcript.digest(study), index)
            columns = read_rows(study, tables[index]).columns
            with scaled_noise(factor):
                payload = answer(asked, columns, secrets=secrets[name], workers=1)
            found[name, step.label] = digest_of(payload).hex()
    return found


Run = Callable[[Sequence[Rows], Sequence[str]], tuple[Site, dict[str, Secrets]]]


@pytest.fixture
def run_study(tmp_path: Path) -> Iterator[Run]:
    """Runs a study over these tables to its end, with daemons that are this program."""
    sites: list[Site] = []

    def run(tables: Sequence[Rows], program: Sequence[str]) -> tuple[Site, dict[str, Secrets]]:
        folder = tmp_path / str(len(sites))
        folder.mkdir()
        names = [column["name"] for column in binary_schema()]
        paths = [write_csv(folder / f"party-{i}.csv", names, rows) for i, rows in enumerate(tables)]
        site = make_site(folder, draft(), paths)
        sites.append(site)
        secrets = {entry.name: read_secrets(site, entry.name) for entry in site.study.roster}
        site.start_curator()
        site.submit()
        for entry in site.study.roster:
            site.start_party(entry.name, program=program)
        site.await_state(pb.STUDY_STATE_PUBLISHED, seconds=SECONDS)
        site.await_closed()
        return site, secrets

    try:
        yield run
    finally:
        for site in sites:
            site.stop_all()


def test_what_leaves_a_daemon_is_what_is_audited(run_study: Run) -> None:
    looks = []
    for tables in (TABLES, (replace_first(TABLES[0], EVERY_ROW[-1]), TABLES[1])):
        site, secrets = run_study(tables, PROGRAM)
        sent = sent_by(site)
        assert sent == expected_of(site, tables, secrets, Fraction(1))
        kinds = {step.kind for step in plan_study(site.study).steps}
        assert len(kinds) >= 3
        assert any(kind.is_sum for kind in kinds)
        assert any(kind.is_local for kind in kinds)
        check_charges(site)
        looks.append([(name, site.events(name)) for name in site.study.party_names])
    assert looks[0] == looks[1]


def test_a_daemon_with_half_the_noise_is_found_out(run_study: Run) -> None:
    """The comparison above can fail; and what such a daemon sends is what the audit shows to cost more than it says."""
    site, secrets = run_study(TABLES, ("-P", "-c", HALVED))
    sent, claimed = sent_by(site), expected_of(site, TABLES, secrets, Fraction(1))
    assert all(sent[key] != claimed[key] for key, step in _noisy(site))
    assert sent == expected_of(site, TABLES, secrets, HALF)


def _noisy(site: Site) -> list[tuple[tuple[str, str], str]]:
    """The answers with noise, but for choices, which may come out the same."""
    steps = [step for step in plan_study(site.study).steps if "marginals" in step.kind.value]
    return [((name, step.label), step.kind.value) for step in steps for name in step.answerers]
