"""The rooms and who may enter which: parsed from the imports of every module, not from good intentions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("common", "party", "curator", "deploy")
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

# Shells decide when, never what. They alone may hold the network, generated code, an event loop, a log or a clock.
SHELLS = {
    "common/runtime/health.py",
    "common/runtime/logs.py",
    "common/runtime/wire.py",
    "party/client.py",
    "party/daemon.py",
    "party/doctor.py",
    "curator/context.py",
    "curator/server.py",
    "curator/rpc.py",
    "curator/session.py",
    "curator/study_handler.py",
}
OUTSIDE = {"grpc", "grpc_health", "grpc_reflection", "synod.v1", "asyncio", "logging", "time"}
CORE = [module for module in MODULES if module not in SHELLS and not module.startswith("deploy/")]
MAY_NOT_ENTER = {
    "common": {"party", "curator", "deploy", "tests", "bench"},
    "party": {"curator", "deploy", "tests", "bench"},
    "curator": {"party", "deploy", "tests", "bench"},
    "deploy": {"tests", "bench"},
}
GENERATORS = (
    "random",
    "secrets",
    "default_rng",
    "Generator",
    "PCG64",
    "RandomState",
    "token_bytes",
    "Coins",
    "urandom",
)


def tree_of(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(), module)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """The full names of all that a module imports, at its top, inside functions and for type checkers alike."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def roots_of(module: str) -> set[str]:
    """What a module imports from: a room by its name, generated code as `synod.v1`, others by their package."""
    return {root_of(name) for name in imports_of(tree_of(module))}


def root_of(name: str) -> str:
    first, *rest = name.split(".")
    if first != "synod" or not rest:
        return first
    return rest[0] if rest[0] in ROOMS else f"synod.{rest[0]}"


def test_the_tree_is_there() -> None:
    assert len(MODULES) > 50
    assert set(MODULES) >= SHELLS
    assert "common/crypto/paillier.py" in CORE
    assert "curator/methods/hpdp_dp.py" in CORE


@pytest.mark.parametrize("module", MODULES)
def test_no_room_calls_back_into_another(module: str) -> None:
    assert not roots_of(module) & MAY_NOT_ENTER[module.split("/", maxsplit=1)[0]]


def outside_of(module: str) -> set[str]:
    """What a module has of the outside world: imports, and clocks that it reads."""
    calls = {ast.unparse(node.func) for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call)}
    clocks = {call for call in calls if call.split(".")[-1] in ("now", "utcnow", "today", "monotonic", "sleep")}
    return roots_of(module) & OUTSIDE | clocks


@pytest.mark.parametrize("module", CORE)
def test_the_core_has_no_network_loop_log_or_clock(module: str) -> None:
    assert outside_of(module) == set()


def test_no_shell_is_excused_without_need() -> None:
    assert [shell for shell in sorted(SHELLS) if not outside_of(shell)] == []


def everything_ours() -> list[str]:
    """Every Python file of the repository, read as git lists a folder: what `synod/` links to is read once."""
    rooms = (*ROOMS, "bench", "tests")
    return sorted(path.relative_to(ROOT).as_posix() for room in rooms for path in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("module", everything_ours())
def test_rooms_are_imported_through_the_package(module: str) -> None:
    """`common` and `deploy` are names that any project may have; only `synod` is ours."""
    assert not {name for name in imports_of(tree_of(module)) if name.split(".")[0] in (*ROOMS, "proto")}


TESTS = [module for module in everything_ours() if module.startswith("tests/")]


def borrowed_from_tests(tree: ast.AST) -> set[str]:
    """What a module imports from tests/ other than from tests/support/."""
    names = {name for name in imports_of(tree) if name.split(".")[0] == "tests"}
    return {name for name in names if not name.startswith("tests.support.")}


@pytest.mark.parametrize("module", TESTS)
def test_tests_share_only_what_is_in_support(module: str) -> None:
    """A test module imports synod, bench, tests.support and libraries, and never another test module or conftest."""
    assert borrowed_from_tests(tree_of(module)) == set()
    assert not roots_of(module) & {"conftest", *(Path(test).stem for test in TESTS if "/test_" in test)}


@pytest.mark.parametrize("module", [module for module in TESTS if module.startswith("tests/support/")])
def test_every_module_of_support_is_short_and_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(tree_of(module)) is not None
    assert len((ROOT / module).read_text().splitlines()) <= 300


def test_the_package_holds_links_to_the_rooms() -> None:
    links = {path.name: path.readlink().as_posix() for path in (ROOT / "synod").iterdir() if path.is_symlink()}
    assert links == {
        **{room: f"../{room}" for room in (*ROOMS, "examples")},
        "v1": "../proto/gen/synod/v1",
    }


def test_one_module_imports_phe() -> None:
    assert [module for module in MODULES if "phe" in roots_of(module)] == ["common/crypto/paillier.py"]


def test_one_room_of_a_party_reads_tables() -> None:
    readers = [m for m in MODULES if m.startswith("party/") and roots_of(m) & {"pyarrow", "csv", "pandas", "duckdb"}]
    assert readers == ["party/table/encode.py", "party/table/source.py"]


def test_nothing_is_imported_behind_the_parsers_back() -> None:
    for module in MODULES:
        calls = {ast.unparse(node.func) for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call)}
        assert not {call for call in calls if call.split(".")[-1] in ("__import__", "import_module", "exec", "eval")}


def inner_imports(module: str) -> set[str]:
    """The modules of the rooms that a module imports."""
    found = set()
    for name in imports_of(tree_of(module)):
        parts = name.removeprefix("synod.").split(".")
        for length in (len(parts), len(parts) - 1):
            path = "/".join(parts[:length])
            found |= {file for file in (f"{path}.py", f"{path}/__init__.py") if file in MODULES}
    return found


def test_imports_run_one_way() -> None:
    remaining = {module: inner_imports(module) - {module} for module in MODULES}
    while remaining:
        free = {module for module, needed in remaining.items() if not needed & remaining.keys()}
        assert free, f"these import each other: {sorted(remaining)}"
        remaining = {module: needed for module, needed in remaining.items() if module not in free}


def public_definitions(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Public functions, classes and methods; magic methods are described by their class."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{inside}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{node.name}.")


@pytest.mark.parametrize("module", MODULES)
def test_every_room_and_every_public_name_says_what_it_is_for(module: str) -> None:
    tree = tree_of(module)
    assert ast.get_docstring(tree) is not None
    undocumented = [name for name, node in public_definitions(tree.body) if ast.get_docstring(node) is None]  # type: ignore[arg-type]
    assert undocumented == []


def evaluated_on_import(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when a module is imported: its statements and class bodies, and defaults of arguments."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend([*node.args.defaults, *(default for default in node.args.kw_defaults if default)])
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("module", MODULES)
def test_no_generator_is_made_on_import(module: str) -> None:
    calls = [ast.unparse(node.func) for node in evaluated_on_import(tree_of(module)) if isinstance(node, ast.Call)]
    assert not [call for call in calls if set(call.split(".")) & set(GENERATORS)]


@pytest.mark.parametrize("module", MODULES)
def test_rng_coins_and_clock_have_no_default_in_the_core(module: str) -> None:
    for node in ast.walk(tree_of(module)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or module not in CORE:
            continue
        positional = [argument.arg for argument in [*node.args.posonlyargs, *node.args.args]]
        keyword = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        defaults = [argument.arg for argument, default in keyword if default is not None]
        held_back = {"rng", "coins", "now", "clock"}
        if not node.name.startswith("_"):
            assert not held_back & {*positional, *defaults}, f"{node.name} at line {node.lineno}"


def test_the_parser_sees_what_it_looks_for() -> None:
    tree = ast.parse("if x:\n    import grpc.aio\ndef f():\n    from synod.v1 import party_pb2\n")
    assert set(imports_of(tree)) == {"grpc.aio", "synod.v1.party_pb2"}
    made = ast.parse("class A:\n    rng = np.random.default_rng()\ndef f(x=secrets.token_bytes(3)):\n    Coins(b'')\n")
    calls = {ast.unparse(node.func) for node in evaluated_on_import(made) if isinstance(node, ast.Call)}
    assert calls == {"np.random.default_rng", "secrets.token_bytes"}
    borrowed = ast.parse(
        "from tests.support import pages\nfrom tests.support.keys import seeded\nimport tests.unit.x\n"
    )
    assert borrowed_from_tests(borrowed) == {"tests.unit.x"}
    assert root_of("synod.v1.party_pb2") == "synod.v1"
    assert root_of("synod.party.rounds.check_round") == "party"
    assert inner_imports("party/daemon.py") >= {"party/rounds.py", "common/runtime/errors.py"}
