"""Notebooks as what they do: their code cells, in order, as one program."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def code_cells(notebook: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def as_program(notebook: Path) -> str:
    """All cells in one namespace, as a kernel runs them; each says when it is done."""
    parts = [f"{code}\nprint('cell {number} ran')\n" for number, code in enumerate(code_cells(notebook), 1)]
    return "\n".join(parts)
