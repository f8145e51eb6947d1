"""The pages are held to the program: commands parse, links resolve, studies and configurations load, figures agree."""

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from synod.common.crypto.authority import AUTHORITY_DAYS, CERTIFICATE_DAYS
from synod.common.crypto.certificates import read_tls
from synod.common.models.moments import design_moments
from synod.common.runtime import yamltext
from synod.common.runtime.errors import Code, SynodError
from synod.common.runtime.jsontext import DEEPEST_DOCUMENT, LARGEST_DOCUMENT_BYTES, LONGEST_NUMBER, MOST
from synod.common.runtime.settings import CuratorSettings, OperatorSettings, PartySettings, load_settings
from synod.common.runtime.wire import CHUNK_BYTES, MESSAGE_BYTES
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.encoding import Coding
from synod.common.study.schema import LARGEST_DOMAIN, CategoricalAttribute, IntegerAttribute, PlainAttribute
from synod.common.study.study import LARGEST_ROSTER, LARGEST_SCHEMA, known_methods, load_study, parse_study
from synod.curator.release.redraw import LARGEST_MODEL_BYTES
from synod.deploy.cli.main import main
from synod.deploy.cli.terminal import show_table
from synod.deploy.launch.site import plan_paths
from synod.party.table.csv_source import BATCH_BYTES, MOST_COLUMNS
from tests.support.pages import FENCE, INSTALLATION, PAGES, ROOT, SHELL, page_ids
from tests.support.studies import study_document

Settings = PartySettings | CuratorSettings | OperatorSettings
SETTINGS: dict[str, type[Settings]] = {
    "party.yaml": PartySettings,
    "curator.yaml": CuratorSettings,
    "operator.yaml": OperatorSettings,
}
SAMPLES = {
    "party.yaml": INSTALLATION / "party" / "party.full.yaml",
    "curator.yaml": INSTALLATION / "curator" / "curator.full.yaml",
    "operator.yaml": INSTALLATION / "curator" / "operator.yaml",
}

HEREDOC = re.compile(r"^cat > (\S+) <<EOF\n(.*?)^EOF$", re.MULTILINE | re.DOTALL)
PROGRAM = r"(?:\.?venv/bin/|/opt/synod/bin/)?synod(?![\w:.-])"
CONTAINER = r"docker-compose run --rm(?: -T)? (?:party|curator|operator)(?= )"
COMMAND = re.compile(rf"(?<![\w./-])(?:{PROGRAM}|{CONTAINER})((?: [^|;&)`\n]*)?)")
REDIRECTION = re.compile(r"(?:[0-9]?>>?|<)\s*\S+")
PLACE = re.compile(r"`((?:common|party|curator|deploy|proto|tests|bench|docs|examples)/[\w./*-]*)(?:: [\w.]+)?`")
MADE_LATER = ("bench/results",)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for _, language, body in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def commands_in(text: str) -> Iterator[list[str]]:
    for found in COMMAND.findall(text.replace("\\\n", " ")):
        yield shlex.split(REDIRECTION.sub("", found), comments=True)


def resolve(arguments: list[str], *, is_mention: bool) -> None:
    """Parses a command line as click would, without running it. A mention may leave arguments out."""
    command: click.Command = main
    context: click.Context | None = None
    rest = arguments
    try:
        while True:
            context = command.make_context(command.name or "synod", list(rest), parent=context)
            if not isinstance(command, click.Group):
                return
            rest = [*context._protected_args, *context.args]
            if not rest:
                return
            _, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command = found
    except click.exceptions.Exit:
        return  # --help and --version
    except (click.exceptions.NoArgsIsHelpError, click.MissingParameter):
        if not is_mention:
            raise
    except click.BadParameter as error:
        if error.param is None or not isinstance(error.param.type, click.Path):
            raise  # a file that is not here is no fault of the page


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_every_command_in_a_shell_block_parses(page: Path) -> None:
    for block in blocks(page, *SHELL):
        for arguments in commands_in(block):
            try:
                resolve(arguments, is_mention=False)
            except click.UsageError as error:
                pytest.fail(f"{page.name}: synod {' '.join(arguments)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_every_command_in_the_prose_exists(page: Path) -> None:
    for span in re.findall(r"`([^`\n]+)`", prose(page)):
        if not span.startswith("synod "):
            continue
        for arguments in commands_in(span):
            try:
                resolve(arguments, is_mention=True)
            except click.UsageError as error:
                pytest.fail(f"{page.name}: `{span}`: {error.format_message()}")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("sudo -u synod-party /opt/synod/bin/synod party init --spent 1", "party init --spent 1"),
        ("docker-compose run --rm party party init", "party init"),
        ("docker-compose run --rm -T operator study status > here.txt", "study status"),
        (
            "kubectl exec -i -n synod-party synod-0 -- synod party approve /dev/stdin < s",
            "party approve /dev/stdin",
        ),
        ("docker run --rm -w /here synod:0.1.0 certs init authority", None),
        ("sudo systemctl start synod-party", None),
    ],
)
def test_commands_are_found_through_containers_and_other_users(line: str, command: str | None) -> None:
    assert [" ".join(arguments) for arguments in commands_in(line)] == ([command] if command else [])


def test_commands_were_found_at_all() -> None:
    found = [arguments for page in PAGES for block in blocks(page, "sh") for arguments in commands_in(block)]
    verbs = {tuple(word for word in arguments[:2] if not word.startswith("-")) for arguments in found}
    assert len(found) >= 40
    walk = {("certs", "init"), ("party", "approve"), ("study", "submit"), ("study", "fetch"), ("verify", "release")}
    assert walk <= verbs


@pytest.mark.parametrize("line", ["party aprove s.yaml", "party approve", "study status --jsn", "party serve now"])
def test_a_wrong_command_is_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        resolve(line.split(), is_mention=False)


def listed_methods() -> dict[str, set[str]]:
    """The names in the README's table of methods, by their state."""
    rows = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \| (there|not yet) \|", prose(ROOT / "README.md"), re.MULTILINE)
    found: dict[str, set[str]] = {"there": set(), "not yet": set()}
    for names, state in rows:
        found[state] |= set(re.findall(r"[\w-]+", names))
    return found


def test_the_readme_lists_every_method_and_those_that_come_later() -> None:
    assert listed_methods()["there"] == set(known_methods())


def test_a_study_with_a_method_that_comes_later_is_refused() -> None:
    for name in sorted(listed_methods()["not yet"]) or ["priview"]:
        with pytest.raises(SynodError, match=f"name must be one of {', '.join(sorted(known_methods()))}"):
            parse_study(study_document(method={"name": name}), "the test's study")


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_what_is_pasted_has_no_comments(page: Path) -> None:
    """An interactive zsh takes a comment for words of the command."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert [line for line in lines if re.search(r"(^|\s)#\s", line)] == []


def leaf_commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaf_commands(command)
        else:
            yield command


def test_every_help_text_has_an_example_that_parses() -> None:
    for command in leaf_commands(main):
        examples = list(commands_in(command.epilog or ""))
        assert examples, command.name
        for arguments in examples:
            resolve(arguments, is_mention=False)


def test_every_command_takes_exactly_what_its_options_give() -> None:
    for command in leaf_commands(main):
        assert command.callback is not None
        taken = set(inspect.signature(command.callback).parameters) - {"context"}
        given = {parameter.name for parameter in command.params if parameter.expose_value}
        assert taken == given, command.name


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_relative_links_resolve(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors_of(path), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_every_path_in_the_prose_is_there(page: Path) -> None:
    assert missing_places(prose(page)) == []


def missing_places(text: str) -> list[str]:
    """The paths in a text that lead nowhere; a word in capitals stands for any name."""
    places = [place for place in PLACE.findall(text) if not place.startswith(MADE_LATER)]
    return [place for place in places if not any(ROOT.glob(re.sub(r"\b[A-Z]+\b(?=\.py)", "*", place).rstrip("/")))]


def test_a_path_that_leads_nowhere_is_noticed() -> None:
    text = "`common/wire.py`, `common/methods/NAME.py`, `party/ledger.py: Ledger.charge`, `party/gone.py: go`"
    assert missing_places(text) == ["common/wire.py", "party/gone.py"]
    assert sum(len(PLACE.findall(prose(page))) for page in PAGES) >= 40


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def linked_from(page: Path) -> set[Path]:
    targets = {target.partition("#")[0] for target in LINK.findall(prose(page)) if "://" not in target}
    return {(page.parent / target).resolve() for target in targets if target}


def test_every_page_is_reached_from_the_readme() -> None:
    readme = ROOT / "README.md"
    assert [page_ids(page) for page in PAGES if page not in linked_from(readme) | {readme}] == []


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_sample_configurations_load_and_explain_every_key(name: str) -> None:
    path = SAMPLES[name]
    load_settings(SETTINGS[name], path)
    assert set(load_yaml(path)) == set(SETTINGS[name].model_fields)
    lines = path.read_text(encoding="utf-8").splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"[a-z_]+:", line)]
    assert all(lines[number - 1].startswith("# ") for number in keys)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("study.yaml")), ids=lambda path: path.parent.name)
def test_sample_studies_load(path: Path) -> None:
    load_study(path)


def study_blocks() -> list[tuple[str, str]]:
    return [(page.name, block) for page in PAGES for block in blocks(page, "yaml")]


@pytest.mark.parametrize(("page", "text"), study_blocks())
def test_yaml_blocks_are_studies_that_resolve(page: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    assert load_study(path).resolve().digest()


def test_yaml_blocks_were_found_at_all() -> None:
    assert study_blocks()


def heredocs() -> list[tuple[str, str]]:
    walk = ROOT / "docs" / "walk.md"
    return [found for block in blocks(walk, "sh") for found in HEREDOC.findall(block)]


def fill_in(text: str) -> str:
    """The text with a fingerprint for each one that a command would print, a table for other output."""
    numbers = iter(range(1, 100))

    def output(match: re.Match[str]) -> str:
        return f"sha256:{next(numbers):064x}" if "fingerprint" in match[1] else "table.csv"

    return re.sub(r"\$\(([^)]*)\)", output, text).replace("$name", "north")


@pytest.mark.parametrize(("target", "text"), heredocs())
def test_files_of_the_walk_through_load(target: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / Path(target).name
    path.write_text(fill_in(text), encoding="utf-8")
    if path.name in SETTINGS:
        load_settings(SETTINGS[path.name], path)
    else:
        assert path.name == "study.yaml"
        assert len(load_study(path).resolve().roster) == 3


def test_the_walk_through_writes_all_four_files() -> None:
    assert sorted(Path(target).name for target, _ in heredocs()) == sorted([*SETTINGS, "study.yaml"])


def delta(blocks_of: list[int], numbers: int, flags: int) -> float:
    """The sensitivity of a schema with such columns, in the unit of docs/privacy.md."""

    def texts(name: str, size: int) -> PlainAttribute:
        return CategoricalAttribute(name=name, type="categorical", categories=tuple(f"{name}-{i}" for i in range(size)))

    attributes: list[PlainAttribute] = [texts(f"block{i}", size) for i, size in enumerate(blocks_of)]
    attributes += [IntegerAttribute(name=f"number{i}", type="integer", min=0, max=9, bins=10) for i in range(numbers)]
    attributes += [texts(f"flag{i}", 2) for i in range(flags)]
    design = design_moments([Coding(attribute, 256) for attribute in attributes])
    return design.sensitivity / (4 * design.unit**2)


def test_worked_figures_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    nltcs = delta([], 0, 16)
    adult = delta([7, 16, 7, 14, 6, 5, 41], 6, 2)
    assert (nltcs, adult) == (36, 123.5)
    assert f"**{nltcs:.0f}**" in page
    assert f"**{adult}**" in page


def test_limits_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = [
        f"| one message | {MESSAGE_BYTES >> 20} MiB |",
        f"| one chunk of an answer, a document or a release | {CHUNK_BYTES >> 10} KiB |",
        f"| a document, all its chunks together | {LARGEST_DOCUMENT_BYTES >> 20} MiB |",
        f"{LARGEST_ROSTER} parties, {LARGEST_SCHEMA:,} attributes, {LARGEST_DOMAIN:,} categories or bins each |",
        f"1 MiB as a YAML file; {LARGEST_ROSTER} parties,",
        f"| YAML: a study file or a configuration | {yamltext.LARGEST_FILE_BYTES >> 20} MiB,",
        f" MiB, {yamltext.MOST_ITEMS:,} lines and commas, {yamltext.DEEPEST_FILE} deep,",
        f" deep, {yamltext.MOST_KEYS} keys in one mapping, {yamltext.LONGEST_TEXT:,} characters in a text,",
        f" in a text, {yamltext.LONGEST_NUMBER} in a number; no aliases, no tags |",
        f"| JSON: a study, a transcript, a manifest | {LARGEST_DOCUMENT_BYTES >> 20} MiB (`model.json`",
        f"(`model.json` {LARGEST_MODEL_BYTES >> 30} GiB), {DEEPEST_DOCUMENT} deep,",
        f" deep, {LONGEST_NUMBER} characters in a number, each key once; ",
        f"each key once; {', '.join(f'{most:,} {what}' for what, (_, most) in MOST.items())};",
        f"| CSV or Parquet | {MOST_COLUMNS:,} columns; a row of a CSV table {BATCH_BYTES >> 20} MiB |",
        f"| certificates | authority {AUTHORITY_DAYS:,} days, others {CERTIFICATE_DAYS} days,",
    ]
    assert [row for row in rows if row not in page] == []


def test_no_page_names_a_path_of_one_machine() -> None:
    texts = [
        *PAGES,
        *(ROOT / "examples").rglob("*.yaml"),
        *INSTALLATION.rglob("*.y*ml"),
        *INSTALLATION.rglob("*.service"),
    ]
    assert [
        path.name
        for path in texts
        if re.search(r"(?<![\w.~])/(home|root|work|tmp)/(?!synod-demo-release)", path.read_text())
    ] == []


# What a newcomer meets who follows the pages.


def test_a_fingerprint_to_compare_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    key = "sha256:" + "0123456789abcdef" * 4
    show_table(["party", "key", "rows"], [["north", key, "12000"]])
    shown = capsys.readouterr().out
    folded = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert "".join(folded) == key


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("max_epsilon_total:", "max_epsilon_totl:", "the key max_epsilon_totl is not known"),
        ("curator.example.org:7443", "curator.example.org", "address: must be HOST:PORT"),
        ("curator.example.org:7443", "curator.example.org:74430", "address: must be HOST:PORT"),
    ],
)
def test_a_mistake_in_a_configuration_is_named(before: str, after: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "party.yaml"
    path.write_text(SAMPLES["party.yaml"].read_text(encoding="utf-8").replace(before, after))
    with pytest.raises(SynodError) as caught:
        load_settings(PartySettings, path)
    assert told in str(caught.value)


def test_a_missing_certificate_is_a_sentence() -> None:
    files = load_settings(OperatorSettings, SAMPLES["operator.yaml"]).tls
    with pytest.raises(SynodError) as caught:
        read_tls(files)
    assert caught.value.code is Code.UNAUTHENTICATED


def test_a_table_may_be_called_like_the_curator() -> None:
    tables = [Path(name) for name in ("curator.csv", "a-2.csv", "a.csv", "b/a.csv", "operator.parquet")]
    names = [member.name for member in plan_paths(Path("launch"), tables).members]
    assert len(set(names)) == len(names)
    assert not {"certs", "curator", "operator"} & set(names)
