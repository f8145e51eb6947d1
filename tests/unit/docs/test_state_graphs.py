"""The state graphs of docs/protocol.md: drawn so that they render, and true to the states of the code."""

import itertools
import re
from pathlib import Path

import pytest

from synod.curator.records import State
from tests.support.pages import FENCE, ROOT
from tests.support.simulation import LEGAL_MOVES

PAGE = ROOT / "docs" / "protocol.md"
EDGE = re.compile(r"^ +(\S+) --> (\S+?)(?:: ([^:;\n]+))?$")  # mermaid ends a label at a colon or a semicolon
END = "[*]"


def read_graphs(page: Path) -> list[set[tuple[str, str]]]:
    """The edges of each state graph, in the page's order."""
    bodies = [body for _, language, body in FENCE.findall(page.read_text(encoding="utf-8")) if language == "mermaid"]
    return [read_edges(body) for body in bodies if body.startswith("stateDiagram-v2\n")]


def read_edges(body: str) -> set[tuple[str, str]]:
    """The edges of one graph; a line that is none of them fails."""
    found = [EDGE.match(line) for line in body.splitlines()[1:]]
    assert all(found), body
    return {(match[1], match[2]) for match in found if match}


STUDY, CURATOR_ROUND, PARTY_ROUND, APPROVAL = read_graphs(PAGE)


def test_the_life_of_a_study_is_the_one_that_the_simulation_sees() -> None:
    inner = {(a, b) for a, b in STUDY if END not in (a, b) and a != b}
    assert inner == {(before.value, after.value) for before, after in LEGAL_MOVES}
    assert {state for edge in STUDY for state in edge} - {END} == {state.value for state in State}


def test_a_round_takes_the_steps_that_the_page_explains() -> None:
    assert {(END, "open"), ("open", "complete"), ("complete", "closed"), ("closed", END)} <= CURATOR_ROUND
    way = [END, "asked", "checked", "charged", "sent", "accepted", END]
    assert set(itertools.pairwise(way)) <= PARTY_ROUND
    assert ("sent", "charged") in PARTY_ROUND


@pytest.mark.parametrize("graph", [STUDY, CURATOR_ROUND, PARTY_ROUND, APPROVAL])
def test_every_state_has_a_way_in_and_a_way_to_the_end(graph: set[tuple[str, str]]) -> None:
    states = {state for edge in graph for state in edge}
    assert reach(graph) == states
    assert reach({(b, a) for a, b in graph}) == states


def reach(graph: set[tuple[str, str]]) -> set[str]:
    found = {END}
    while wider := {b for a, b in graph if a in found} - found:
        found |= wider
    return found


def test_a_label_that_would_not_render_is_noticed() -> None:
    with pytest.raises(AssertionError):
        read_edges("stateDiagram-v2\n    a --> b: first; second\n")
