"""The wheel: one package `synod` with all that it needs, also where there is no clone."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.notebooks import NOTEBOOKS, as_program, code_cells

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("synod", "common", "curator", "party", "deploy", "examples", "proto/gen")
DOCUMENTS = ("pyproject.toml", "README.md", "LICENSE")
NOT_SHIPPED = {"synod/deploy/Dockerfile", "synod/deploy/base-image"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what packages are built from: building writes beside it."""
    tree = tmp_path_factory.mktemp("packages") / "tree"
    for name in SOURCES:
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in DOCUMENTS:
        shutil.copy(ROOT / name, tree / name)
    return tree


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    """The wheel as `make wheel` builds it: from the sdist."""
    return build(tree, tree.parent / "dist")


def build(tree: Path, out: Path, *options: str) -> Path:
    """Builds, and returns the wheel."""
    command = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir", str(out), *options]
    built = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_package_and_nothing_else(tree: Path, wheel: Path) -> None:
    held = names_in(wheel)
    assert {name.split("/")[0] for name in held} == {"synod", "synod_dp-0.1.0.dist-info"}
    package = {name for name in held if name.startswith("synod/")}
    followed = {
        (Path(folder) / name).relative_to(tree).as_posix()
        for folder, _, names in os.walk(tree / "synod", followlinks=True)
        for name in names
    }
    assert package == followed - NOT_SHIPPED
    assert package >= {
        "synod/py.typed",
        "synod/v1/party_pb2.py",
        "synod/v1/party_pb2.pyi",
        "synod/deploy/cli/__main__.py",
        "synod/deploy/curator/curator.basic.yaml",
        "synod/deploy/curator/synod-curator.service",
        "synod/deploy/party/docker-compose.yml",
        "synod/deploy/kubernetes/overlays/party/statefulset.yaml",
        "synod/examples/hospitals/study.yaml",
        "synod/examples/hospitals/release.ipynb",
    }


def test_the_tree_and_its_sdist_give_the_same_wheel(tree: Path, wheel: Path) -> None:
    with tarfile.open(wheel.parent / "synod_dp-0.1.0.tar.gz") as sdist:
        assert not [member.name for member in sdist if member.issym() or member.islnk()]
    direct = build(tree, tree.parent / "direct", "--wheel")
    assert names_in(direct) == names_in(wheel)
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(wheel) as other:
        assert [name for name in names_in(wheel) if one.read(name) != other.read(name)] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo_and_notebook_run_where_only_the_wheel_is(wheel: Path, tmp_path: Path) -> None:
    """An environment with the wheel and the packages that it depends on, but not this repository."""
    venv, here = tmp_path / "venv", tmp_path / "here"
    (here / "common").mkdir(parents=True)
    for trap in (here / "common" / "__init__.py", here / "synod.py"):
        trap.write_text("raise SystemExit('imported from the working directory')\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["MPLBACKEND"] = "agg"

    def run(*command: str | Path) -> str:
        ran = subprocess.run(
            command, cwd=here, env=environment, capture_output=True, text=True, timeout=400, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    own = Path(run(python, "-P", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # As a line of a .pth file: the .pth files in there, one of which leads to this repository, are then not read.
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "dependencies.pth").write_text("".join(f"{folder}\n" for folder in dependencies))
    assert Path(run(python, "-P", "-c", "import synod; print(synod.__file__)").strip()) == own / "synod" / "__init__.py"

    assert "published" in run(venv / "bin" / "synod", "demo")
    assert "Proven: the release is whole" in run(venv / "bin" / "synod", "verify", "demo-release")
    assert {path.name for path in here.iterdir()} == {"common", "synod.py", "demo-release"}

    given = "{'sex': 'F', 'age': (80, 97), 'diagnosis': ['stroke', 'copd']}"
    code = f"import synod; print(synod.load_release('demo-release').sample(5, given={given}).num_rows)"
    assert run(python, "-P", "-c", code).strip() == "5"

    for notebook in NOTEBOOKS:
        (here / "notebook.py").write_text(as_program(notebook))
        told = run(python, "-P", "notebook.py").splitlines()
        assert [line for line in told if line.endswith(" ran")] == [
            f"cell {number} ran" for number, _ in enumerate(code_cells(notebook), 1)
        ]
