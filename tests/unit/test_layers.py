"""The rooms and who may enter which: parsed from the imports of every module, not from good intentions."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from synod.common.study.study import known_methods

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("common", "party", "curator", "deploy")
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

# Shells decide when, never what. They alone may hold the network, generated code, an event loop, a log or a clock.
SHELLS = {
    "common/console/serve.py",
    "common/runtime/health.py",
    "common/runtime/logs.py",
    "common/runtime/wire.py",
    "party/client.py",
    "party/daemon.py",
    "party/doctor.py",
    "curator/callers/admission.py",
    "curator/context.py",
    "curator/events/webhook.py",
    "curator/server.py",
    "curator/rpc.py",
    "curator/session.py",
    "curator/study_handler.py",
}
OUTSIDE = {"grpc", "grpc_health", "grpc_reflection", "asyncio", "logging", "time"}
MESSAGES = {  # what the core knows of generated code: the queries, which are values on both sides, and no service
    "common/protocol/parts.py": {"google.protobuf"},
    "common/protocol/queries/agreements.py": {"synod.v1.query_pb2"},
    "common/protocol/queries/base.py": {"google.protobuf", "synod.v1.query_pb2"},
    "common/protocol/queries/marginals.py": {"synod.v1.query_pb2"},
    "common/protocol/queries/moments.py": {"synod.v1.query_pb2"},
    "common/protocol/queries/parents.py": {"synod.v1.query_pb2"},
    "common/protocol/queries/parsing.py": {"synod.v1.query_pb2"},
    "common/protocol/queries/rows.py": {"synod.v1.query_pb2"},
}
METHOD_ROOMS = ("common/methods/", "curator/methods/")
MOST_LINES = 400
MOST_FILES = 15
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


@cache
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


def generated_in(names: Iterable[str]) -> set[str]:
    """The generated modules among imported names, and the runtime that they need."""
    found = {name for name in names if name.startswith(("synod.v1", "google"))}
    return {"google.protobuf" if name.startswith("google.protobuf") else name for name in found}


@pytest.mark.parametrize("module", CORE)
def test_the_core_has_no_generated_code_but_the_messages_of_queries(module: str) -> None:
    assert generated_in(imports_of(tree_of(module))) == MESSAGES.get(module, set())


def test_only_queries_know_their_messages() -> None:
    assert set(MESSAGES) <= set(CORE)
    users = {module for module, names in MESSAGES.items() if "synod.v1.query_pb2" in names}
    assert {module.rpartition("/")[0] for module in users} == {"common/protocol/queries"}


def test_no_shell_is_excused_without_need() -> None:
    needs = {shell: outside_of(shell) | generated_in(imports_of(tree_of(shell))) for shell in SHELLS}
    assert [shell for shell, need in sorted(needs.items()) if not need] == []


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
    """What a module imports from tests/ other than from tests/support/ and tests/mutants/, which hold no tests."""
    names = {name for name in imports_of(tree) if name.split(".")[0] == "tests"}
    return {name for name in names if not name.startswith(("tests.support.", "tests.mutants."))}


@pytest.mark.parametrize("module", TESTS)
def test_tests_share_only_what_is_in_support(module: str) -> None:
    """A test module imports synod, bench, tests.support, tests.mutants and libraries, and never another test module or
    conftest.
    """
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
    engines = ("engines/database", "engines/duckdb", "engines/postgresql", "engines/select")
    names = ("csv_source", "detect", "encode", *engines, "folder", "source", "text", "units")
    assert readers == [f"party/table/{name}.py" for name in names]


def hidden_imports(tree: ast.AST) -> set[str]:
    """Calls that run or import what no import statement shows."""
    calls = {ast.unparse(node.func).split(".")[-1] for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return calls & {"__import__", "import_module", "exec", "eval"}


def test_one_module_imports_behind_the_parsers_back() -> None:
    found = {module: hidden for module in MODULES if (hidden := hidden_imports(tree_of(module)))}
    assert found == {"common/runtime/discovery.py": {"import_module"}}


# A method is two files: nothing else knows one by its name or its class.


def describes(tree: ast.AST) -> set[int]:
    """The nodes that are docstrings."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, owners)]
    return {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}


def named_methods(tree: ast.AST) -> set[str]:
    """The methods that a module's texts name, docstrings excepted; a method whose name is a word of English only where
    the text is nothing else, or says that it is a name.
    """
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    said = [str(node.value) for node in texts if id(node) not in describes(tree)]
    return {name for name in known_methods() if any(_pattern(name).search(text) for text in said)}


def _pattern(name: str) -> re.Pattern[str]:
    if "-" in name:
        return re.compile(rf"(?<![\w-]){name}(?![\w-])")
    return re.compile(rf"^{name}$|`{name}`|name: *{name}\b")


def method_tests(tree: ast.AST) -> set[str]:
    """Calls of isinstance that look at a study's method."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"]
    return {text for text in map(ast.unparse, calls) if "method" in text}


def method_files(names: Iterable[str]) -> set[str]:
    """The files of single methods among imported names."""
    files = "|".join(name.replace("-", "_") for name in known_methods())
    return {name for name in names if re.match(rf"synod\.(common|curator)\.methods\.({files})\b", name)}


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(METHOD_ROOMS)])
def test_no_module_outside_of_methods_knows_one(module: str) -> None:
    tree = tree_of(module)
    assert (named_methods(tree), method_tests(tree), method_files(imports_of(tree))) == (set(), set(), set())


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith(METHOD_ROOMS)])
def test_a_method_does_not_know_another_by_its_file(module: str) -> None:
    others = {name for name in method_files(imports_of(tree_of(module))) if name.split(".")[3] != Path(module).stem}
    assert others == set()


def test_every_method_has_its_two_files() -> None:
    for name in known_methods():
        assert {f"{room}{name.replace('-', '_')}.py" for room in METHOD_ROOMS} <= set(MODULES)


@pytest.mark.parametrize("module", [module for module in everything_ours() if module.startswith("bench/")])
def test_bench_does_not_test_for_classes_of_methods(module: str) -> None:
    assert method_tests(tree_of(module)) == set()


@pytest.mark.parametrize("module", [module for module in everything_ours() if not module.startswith("tests/")])
def test_no_file_is_too_long_to_read(module: str) -> None:
    assert len((ROOT / module).read_text().splitlines()) <= MOST_LINES


def test_no_folder_has_too_many_files_side_by_side() -> None:
    folders = [folder for room in ROOMS for folder in (ROOT / room, *(ROOT / room).rglob("*")) if folder.is_dir()]
    files = {folder: [path for path in folder.iterdir() if path.is_file()] for folder in folders}
    crowded = {folder.as_posix() for folder, found in files.items() if len(found) > MOST_FILES}
    assert {folder for folder in crowded if not folder.endswith("__pycache__")} == set()


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
    assert generated_in(["synod.v1.party_pb2_grpc", "google.protobuf.message.Message", "synod.party.rounds"]) == {
        "synod.v1.party_pb2_grpc",
        "google.protobuf",
    }
    assert hidden_imports(ast.parse("importlib.import_module(x)\nexec(y)")) == {"import_module", "exec"}
    assert inner_imports("party/daemon.py") >= {"party/rounds.py", "common/runtime/errors.py"}


def test_a_method_is_seen_by_its_name_and_by_its_class() -> None:
    named = ast.parse(
        'def f():\n    """Of dp-subn."""\n    return f"{x} as dp-subn does", "are independent", "independent"'
    )
    assert named_methods(named) == {"dp-subn", "independent"}
    assert named_methods(ast.parse('"""hpdp-dp"""\nx = {"as if they were independent": "my-dp-subn-2"}')) == set()
    assert named_methods(ast.parse("match m.name:\n    case 'hpdp-dp':\n        pass")) == {"hpdp-dp"}
    assert method_tests(ast.parse("isinstance(\n    study.method,\n    X)")) == {"isinstance(study.method, X)"}
    assert method_tests(ast.parse("isinstance(value, Method)")) == set()
    assert method_files(["synod.common.methods.dp_subn.DpSubn", "synod.common.methods.networks.resolved"]) == {
        "synod.common.methods.dp_subn.DpSubn"
    }
