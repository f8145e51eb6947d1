"""A choice among tables that are larger than the study's public numbers allow is refused by the party itself."""

import pytest

from synod.common.models.usefulness import own_cells, parameter_cells
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.runtime.errors import Code, SynodError
from synod.party.rounds import check_table_size
from tests.support.studies import categorical, make_study

SCHEMA = [categorical(f"x{i}", ("a", "b")) for i in range(6)]


@pytest.mark.parametrize("method", ["dp-subn", "independent"])
def test_tables_hold_to_the_studys_numbers(method: str) -> None:
    study = make_study(schema=SCHEMA, method={"name": method}, rows=(4000, 5000, 6000), epsilon="2")
    cells = own_cells(study, 4000) if method == "independent" else parameter_cells(study)
    assert cells >= 4
    candidates = tuple((x, (0,)) for x in range(1, 6))
    check_table_size(ChooseParents((0,), candidates, 2, cells, "F"), study, 4000)
    with pytest.raises(SynodError, match="larger tables") as caught:
        check_table_size(ChooseParents((0,), candidates, 2, cells + 1, "F"), study, 4000)
    assert caught.value.code is Code.REFUSED
