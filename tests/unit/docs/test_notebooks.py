"""Notebooks: code that can be read and run, and nothing that a run has left in them."""

import ast
import json
from pathlib import Path

import pytest

import synod
from tests.support.notebooks import NOTEBOOKS, code_cells


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["release.ipynb"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_it_holds_code_and_no_outputs(notebook: Path) -> None:
    document = json.loads(notebook.read_text("utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 4)
    kinds = {
        "code": {"cell_type", "metadata", "source", "outputs", "execution_count"},
        "markdown": {"cell_type", "metadata", "source"},
    }
    for cell in document["cells"]:
        assert set(cell) == kinds[cell["cell_type"]]
        assert not cell.get("outputs")
    assert code_cells(notebook)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_it_uses_public_names_alone(notebook: Path) -> None:
    """But for the generator of the demo's tables, which docs/demo-table.md shows."""
    tree = ast.parse("\n".join(code_cells(notebook)))
    used = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "synod"
    }
    assert used <= set(synod.__all__)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"synod.deploy.demo"}
