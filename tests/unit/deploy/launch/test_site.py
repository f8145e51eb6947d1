"""The policies that a launch writes have room for its one study, of the kind that it is."""

from pathlib import Path
from typing import Any

import pytest

from synod.common.runtime.errors import SynodError
from synod.common.runtime.settings import PartySettings, load_settings
from synod.deploy.launch.site import plan_paths, prepare
from synod.party.approval import check_study
from tests.support.surveys import draft_survey, write_tables


@pytest.mark.parametrize("changes", [{}, {"delta": "1e-9"}, {"delta": "0.000001", "epsilon": "0.125"}])
def test_the_policies_of_a_launch_have_room_for_its_study(tmp_path: Path, changes: dict[str, Any]) -> None:
    paths = plan_paths(tmp_path / "site", write_tables(tmp_path / "tables"))
    paths.folder.mkdir()
    study = prepare(paths, draft_survey(**changes))
    for member in paths.members:
        settings = load_settings(PartySettings, member.config)
        assert settings.cap == study.budget
        assert check_study(settings, study).cost == study.budget


def test_what_only_the_tables_rows_show_is_told_in_a_sentence(tmp_path: Path) -> None:
    """How large a delta may be follows from the rows, which a launch counts itself."""
    paths = plan_paths(tmp_path / "site", write_tables(tmp_path / "tables"))
    paths.folder.mkdir()
    with pytest.raises(SynodError, match=r"delta 0\.1 is too large"):
        prepare(paths, draft_survey(delta="0.1"))
