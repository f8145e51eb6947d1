"""What a container is given: enough to run, and nothing of anybody else's."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from synod.common.runtime.settings import CuratorSettings, OperatorSettings, PartySettings, load_settings
from synod.deploy.launch.bundles import (
    HEALTH_SOCKET,
    Bundle,
    bundle_curator,
    bundle_operator,
    bundle_party,
    contents,
    unpack,
    write_tar,
)
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from tests.support.parties import as_file, file_of
from tests.support.surveys import draft_survey, write_tables


@pytest.fixture
def layout(tmp_path: Path) -> SitePaths:
    layout = plan_paths(tmp_path / "site", write_tables(tmp_path / "tables"))
    layout.folder.mkdir()
    prepare(layout, draft_survey())
    return layout


def secrets_of(bundle: Bundle) -> set[bytes]:
    """Private keys and rows."""
    held = [(name, file.read()) for files in (bundle.given, bundle.kept) for name, file, _ in contents(files)]
    return {text for name, text in held if name.endswith((".key", ".csv")) or name == "identity.pem"}


def test_nobody_is_given_a_secret_of_another(layout: SitePaths) -> None:
    bundles = [bundle_curator(layout), bundle_operator(layout), *(bundle_party(layout, m) for m in layout.members)]
    assert [len(secrets_of(bundle)) for bundle in bundles] == [2, 1, 3, 3, 3]
    assert len(set().union(*map(secrets_of, bundles))) == 12
    authority = (layout.certs / "ca.key").read_bytes()
    assert not [bundle for bundle in bundles if authority in secrets_of(bundle)]


def test_the_configurations_load_where_they_are_put(layout: SitePaths, tmp_path: Path) -> None:
    unpack(bundle_curator(layout), tmp_path / "curator")
    unpack(bundle_operator(layout), tmp_path / "operator")
    unpack(bundle_party(layout, layout.members[0]), tmp_path / "north")
    curator = load_settings(CuratorSettings, tmp_path / "curator" / "given" / "curator.yaml")
    operator = load_settings(OperatorSettings, tmp_path / "operator" / "given" / "operator.yaml")
    party = load_settings(PartySettings, tmp_path / "north" / "given" / "party.yaml")
    for settings in (curator, operator, party):
        assert all(path.is_file() for _, path in settings.tls if path is not None)
    assert (curator.listen, party.address, operator.address) == ("0.0.0.0:7443", "curator:7443", "curator:7443")
    assert str(curator.state) == str(party.state) == "/var/lib/synod"
    assert str(curator.health) == str(party.health) == HEALTH_SOCKET
    assert file_of(party).read_bytes() == as_file(layout.members[0].table).read_bytes()
    assert yaml.safe_load((tmp_path / "operator" / "given" / "study.yaml").read_text())["roster"]
    assert {path.name for path in (tmp_path / "north" / "kept").iterdir()} == {"identity.pem", "ledger.sqlite"}


def test_the_files_belong_to_the_images_user_alone(layout: SitePaths, tmp_path: Path) -> None:
    bundle = bundle_party(layout, layout.members[0])
    archive = BytesIO()
    write_tar(bundle.kept, archive)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as opened:
        assert {(entry.uid, entry.gid, entry.mode) for entry in opened} == {(10001, 10001, 0o600)}
    unpack(bundle, tmp_path / "north")
    unpack(bundle, tmp_path / "north")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "north").rglob("*.*")} == {0o600}
