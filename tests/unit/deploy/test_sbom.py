"""The list of components: every pin of the lock file with its hashes, who needs whom, the same each time; and an audit
that says when it could not be made.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from synod.deploy.sbom import Package, list_components, read_lock

ROOT = Path(__file__).resolve().parents[3]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PIP_AUDIT = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --output ] && file=$2; shift; done
{script}
"""


def test_every_pin_is_listed_with_all_its_hashes() -> None:
    packages = read_lock(LOCK)
    pins = re.findall(r"^\S+==\S+", LOCK, re.MULTILINE)
    assert [f"{package.name}=={package.version}" for package in packages] == pins
    assert sum(len(package.hashes) for package in packages) == LOCK.count("--hash=sha256:")
    assert all(package.hashes for package in packages)


def test_an_entry_says_who_needs_it() -> None:
    text = (
        f"a-b==1.2 \\\n    --hash=sha256:{'0' * 64}\n    # via\n    #   -c requirements-dev.lock\n    #   c.d\n"
        f"    #   synod-dp (pyproject.toml)\nc.d==3 \\\n    --hash=sha256:{'1' * 64}\n"
        "    # via synod-dp (pyproject.toml)\n"
    )
    packages = read_lock(text)
    assert packages[0].hashes == ("0" * 64,)
    assert packages[1] == Package("c.d", "3", ("1" * 64,), ("synod-dp",))
    needs = {entry["ref"]: entry["dependsOn"] for entry in list_components(packages, "9")["dependencies"]}
    assert needs == {
        "pkg:pypi/a-b@1.2": [],
        "pkg:pypi/c.d@3": ["pkg:pypi/a-b@1.2"],
        "pkg:pypi/synod-dp@9": ["pkg:pypi/a-b@1.2", "pkg:pypi/c.d@3"],
    }


def test_the_list_is_the_same_each_time_and_nothing_hangs_loose() -> None:
    made = [json.dumps(list_components(read_lock(LOCK), "0.1.0")) for _ in range(2)]
    assert made[0] == made[1]
    document = json.loads(made[0])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    references = {component["bom-ref"] for component in document["components"]}
    needed = {url for entry in document["dependencies"] for url in entry["dependsOn"]}
    assert needed == references, "whatever is shipped is there because something needs it"
    changed = list_components(read_lock(LOCK.replace("cffi==", "cffi==9")), "0.1.0")
    assert changed["serialNumber"] != document["serialNumber"]


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        (None, 0, "NOT audited: pip-audit is not installed."),
        ('echo "no route to the database" >&2; exit 1', 0, "NOT audited: no route to the database"),
        ('echo "{}" > "$file"; echo "found 1" >&2; exit 1', 1, "found 1"),
        ('echo "{}" > "$file"; exit 0', 0, "No known weaknesses"),
    ],
)
def test_an_audit_fails_on_findings_and_skips_with_the_reason(
    tmp_path: Path, script: str | None, code: int, told: str
) -> None:
    if script is not None:
        program = tmp_path / "pip-audit"
        program.write_text(PIP_AUDIT.format(script=script))
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [str(ROOT / ".ci" / "audit"), "requirements.lock"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, told in ran.stdout) == (code, True), ran.stdout + ran.stderr
    if "NOT" in told:
        environment["AUDIT"] = "required"
        assert (
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=60, check=False).returncode == 1
        )
