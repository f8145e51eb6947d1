"""What is shipped, as a list of components: CycloneDX JSON from a lock file, `python -m synod.deploy.sbom LOCK`.

It reads nothing but the lock file, which names every package with its version and the hashes that an installation
accepts. So the list is that of the image and of every installation by the lock file, and the same each time it is made.
"""

import json
import re
import sys
import uuid
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = "synod-dp"
_PACKAGE = re.compile(r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"#(?: via)?\s+(?P<parent>[a-z0-9][a-z0-9._-]*)(?: \(pyproject\.toml\))?$")


@dataclass(frozen=True, slots=True)
class Package:
    """A pinned package, the hashes of the files that may be installed for it, and which packages need it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def url(self) -> str:
        """Its package URL, by which databases of weaknesses know it."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> list[Package]:
    """The packages of a lock file, in its order."""
    starts = [match.start() for match in _PACKAGE.finditer(text)]
    return [_read_package(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _read_package(entry: str) -> Package:
    pinned = _PACKAGE.match(entry)
    assert pinned is not None, "an entry starts with its pin"
    parents = [found["parent"] for line in entry.splitlines() if (found := _VIA.fullmatch(line.strip()))]
    return Package(pinned["name"], pinned["version"], tuple(_HASH.findall(entry)), tuple(parents))


def list_components(packages: list[Package], own_version: str) -> dict[str, Any]:
    """The CycloneDX document."""
    urls = {package.name: package.url for package in packages} | {ROOT: f"pkg:pypi/{ROOT}@{own_version}"}
    needs: dict[str, list[str]] = {url: [] for url in urls.values()}
    for package in packages:
        for parent in package.needed_by:
            if parent in urls:
                needs[urls[parent]].append(package.url)
    components = [
        {
            "type": "library",
            "bom-ref": package.url,
            "name": package.name,
            "version": package.version,
            "purl": package.url,
            "properties": [{"name": "synod:accepted-sha256", "value": digest} for digest in package.hashes],
        }
        for package in packages
    ]
    root = {"type": "application", "bom-ref": urls[ROOT], "name": ROOT, "version": own_version, "purl": urls[ROOT]}
    content = json.dumps([root, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": url, "dependsOn": sorted(needed)} for url, needed in needs.items()],
    }


def main() -> None:
    """Prints the list for the lock file that is named."""
    packages = read_lock(Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump(list_components(packages, version(ROOT)), sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
