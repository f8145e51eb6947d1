"""The hooks before a commit: ruff and mypy as `make lint` runs them, from `.venv`, and nothing from elsewhere."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_hooks_are_local_and_run_what_make_lint_runs() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    hooks = repositories[0]["hooks"]
    assert [hook["entry"] for hook in hooks] == [".venv/bin/ruff format", ".venv/bin/ruff check", ".venv/bin/mypy"]
    assert {hook["language"] for hook in hooks} == {"system"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\t{hook['entry'].replace('.venv/bin', '$(BIN)')}" in makefile for hook in hooks)
