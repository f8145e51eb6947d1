"""`synod study draft`: a first study out of one or several tables, for a person to edit.

Reads real rows, so its output is not private: what was read from rows is marked, and must be replaced by public
knowledge, or justified by it, before the study leaves the house. What the draft could not decide is invalid until a
person decides it.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from textwrap import wrap
from typing import Any

import yaml

from synod.common.runtime.errors import invalid
from synod.common.runtime.settings import CsvFormat
from synod.common.runtime.yamltext import load_yaml
from synod.common.study.schema import write_decimal
from synod.deploy.launch.site import plan_names
from synod.deploy.study.profile import Profiled, profile_tables
from synod.deploy.study.propose import Proposal, propose
from synod.party.table.detect import shown
from synod.party.table.source import Source

TEMPLATE = Path(__file__).with_name("draft.yaml")
WIDTH = 118


def draft_study(sources: Sequence[Source], unit: str | None = None) -> str:
    """A study as YAML text. `unit` is the column that tells persons apart: it is no part of the schema, and says how
    many rows a person has.
    """
    profiled = profile_tables(sources, unit)
    proposals = [propose(profile, is_order_open=profiled.is_order_open) for profile in profiled.columns]
    opening = TEMPLATE.read_text(encoding="utf-8").replace("SOURCE", ", ".join(source.name for source in sources))
    return "\n".join([opening.rstrip(), *_head(profiled), *_schema(proposals, profiled.partial), ""])


def _head(profiled: Profiled) -> Iterator[str]:
    """Collusion, how many rows a person has, a roster to fill in, and how each file is written."""
    yield f"collusion: {1 if len(profiled.rows) != 1 else 0}"
    if len(profiled.rows) == 1:
        yield from _comment("collusion 0 is for one table alone; with two or more organizations write 1 or more.", "")
    if profiled.most_rows is not None:
        yield f"max_rows_per_unit: {profiled.most_rows}  # read from rows: what is the most that one person can have?"
    yield "# roster:  # `synod launch` fills it in; elsewhere one line for each organization, in which rows are public:"
    for name, rows in zip(plan_names(list(profiled.rows)), profiled.rows.values(), strict=True):
        yield f'#   - {{name: {name}, key: "sha256:...", rows: {rows}}}'
    for source, layout in profiled.layouts.items():
        if layout is not None and shown(layout):
            yield f"# {source.name} is written so; its party.yaml needs: {format_line(layout)}"


def format_line(layout: CsvFormat) -> str:
    """The line of a party's configuration that says how its file is written."""
    return f"format: {_flow(shown(layout))}"


def write_format(config: Path, layout: CsvFormat | None) -> str:
    """Adds the format to a party's configuration, as its last line; says what was done."""
    content = load_yaml(config)
    if not isinstance(content, dict):
        raise invalid(f"{config} is not a configuration: it must be a mapping of keys.")
    if layout is None or not shown(layout):
        return f"{config} needs no `format`: the table is plain CSV, or has types."
    line = format_line(layout)
    if "format" in content:
        if content["format"] == yaml.safe_load(line)["format"]:
            return f"{config} has this `format` already."
        raise invalid(f"{config} has another `format` already.", f"Remove it; the table needs `{line}`.")
    text = config.read_text(encoding="utf-8")
    config.write_text(text + ("" if text.endswith("\n") else "\n") + line + "\n", encoding="utf-8")
    return f"{config} has a new last line: {line}"


def _schema(proposals: Sequence[Proposal], partial: Sequence[str]) -> Iterator[str]:
    kept = [proposal for proposal in proposals if not proposal.left_out]
    yield "schema:" if kept else "schema: []"
    for proposal in proposals:
        if proposal.left_out:
            yield from _comment(f"left out: {_flow(proposal.name)}, because {proposal.left_out}.", "  ")
        else:
            yield from _attribute(proposal)
    for name in partial:
        yield from _comment(f"left out: {_flow(name)}, because not every table has it.", "  ")


def _attribute(proposal: Proposal) -> Iterator[str]:
    for remark in proposal.remarks:
        yield from _comment(f"{remark}.", "  ")
    if proposal.undecided:
        yield from _comment(f"UNDECIDED: {proposal.undecided}.", "  ")
    mark = "  - "
    for key, value in proposal.keys.items():
        is_open = bool(proposal.undecided) and value in ([], None)
        note = "UNDECIDED, see above" if is_open else proposal.notes.get(key, "")
        yield f"{mark}{key}: {_flow(value)}" + (f"  # {note}" if note else "")
        mark = "    "
    for key, value in proposal.instead.items():
        if proposal.keys.get(key) != value:
            yield f"    #{key}: {_flow(value)}"


def _comment(text: str, indent: str) -> Iterator[str]:
    yield from wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, Decimal):
        return write_decimal(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list) and any(isinstance(item, Decimal) for item in value):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
