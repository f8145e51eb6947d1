"""A launch names what does not fit in a table, to whoever holds all tables: column and rule, no value and no count."""

from pathlib import Path

import pytest

from synod.common.runtime.errors import Code
from synod.common.study.study import Study
from synod.deploy.launch.launcher import NotApprovedError, _refuse_refusals
from synod.deploy.launch.site import SitePaths, plan_paths, prepare
from synod.v1 import study_pb2 as pb
from tests.support.parties import as_file
from tests.support.surveys import draft_survey, make_rows, write_table, write_tables

BAD, COUNT = "Quarantäne-Ost", 17


@pytest.fixture
def site(tmp_path: Path) -> tuple[SitePaths, Study]:
    paths = plan_paths(tmp_path / "site", write_tables(tmp_path / "tables"))
    paths.folder.mkdir()
    return paths, prepare(paths, draft_survey())


def refuse(paths: SitePaths, study: Study, name: str, *, show_values: bool = False) -> NotApprovedError:
    parties = [pb.PartyStatus(name=own, not_approved=own == name) for own in study.party_names]
    with pytest.raises(NotApprovedError) as caught:
        _refuse_refusals(pb.StudyStatus(name=study.name, parties=parties), paths, study, show_values=show_values)
    assert caught.value.code is Code.REFUSED
    return caught.value


def test_a_misfit_is_named_by_column_and_rule(site: tuple[SitePaths, Study]) -> None:
    paths, study = site
    second = study.roster[1]
    rows = make_rows(second.rows, 3)
    for row in rows[:COUNT]:
        row[3] = BAD
    write_table(as_file(paths.members[1].table), rows)
    error = refuse(paths, study, second.name)
    why = "its table does not fit the study's schema: column ward: outside the domain"
    assert error.sentence == f"{second.name} does not approve {study.name}, because {why}."
    assert all(private not in str(error) + error.hint for private in (BAD, str(COUNT)))
    assert "out_of_domain" in error.hint
    ((table, (misfit,)),) = error.misfits.items()
    assert (table, misfit.column, misfit.rule, misfit.rows) == ("harbour.csv", "ward", "outside the domain", COUNT)
    assert misfit.examples == ()
    assert refuse(paths, study, second.name, show_values=True).misfits[table][0].examples == (BAD,)


def test_a_missing_column_is_named(site: tuple[SitePaths, Study]) -> None:
    paths, study = site
    table = as_file(paths.members[0].table)
    table.write_text(table.read_text().replace("ward", "word", 1))
    assert "because north.csv has no column 'ward'." in refuse(paths, study, study.party_names[0]).sentence


def test_where_the_table_fits_there_is_another_reason(site: tuple[SitePaths, Study]) -> None:
    paths, study = site
    error = refuse(paths, study, study.party_names[2])
    assert error.sentence == f"{study.party_names[2]} does not approve {study.name}."
    assert error.hint.startswith("To see why")


def test_nobody_is_refused_who_approves(site: tuple[SitePaths, Study]) -> None:
    paths, study = site
    _refuse_refusals(pb.StudyStatus(name=study.name, parties=[pb.PartyStatus(name="north")]), paths, study)


def site_of_persons(folder: Path, unit: str | None, rows_per_unit: int) -> tuple[SitePaths, Study]:
    """Tables in which everybody has two rows."""
    tables = write_tables(folder / "tables")
    for table in tables:
        first, *lines = table.read_text().splitlines()
        table.write_text("\n".join([f"person,{first}", *(f"p{i // 2},{line}" for i, line in enumerate(lines))]) + "\n")
    paths = plan_paths(folder / "site", tables)
    paths.folder.mkdir()
    return paths, prepare(paths, draft_survey(max_rows_per_unit=rows_per_unit), unit)


def test_persons_with_more_rows_than_the_study_says_are_named_by_column_and_rule(tmp_path: Path) -> None:
    paths, study = site_of_persons(tmp_path, "person", 1)
    why = "column person: the unit of privacy appears in more than one row"
    assert why in refuse(paths, study, study.party_names[0]).sentence


def test_persons_with_several_rows_need_a_unit(tmp_path: Path) -> None:
    paths, study = site_of_persons(tmp_path, None, 2)
    assert "no --unit COLUMN says which rows are whose" in refuse(paths, study, study.party_names[0]).sentence


def test_persons_with_as_many_rows_as_the_study_says_fit(tmp_path: Path) -> None:
    paths, study = site_of_persons(tmp_path, "person", 2)
    assert refuse(paths, study, study.party_names[0]).hint.startswith("To see why")
