"""A small repository in memory, with a contract that it keeps: what the tests of the contract half begin from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.contract import Contract
from countermark.contracts.tree import Tree
from countermark.contracts.verdict import ContractVerdict, evaluate

COMMIT = "5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3"
SOURCE_SHA256 = "bc238f96e550c7ec27d4081dd1f2e741d404aaf5c8572d89ccc5e76812be4d63"
MANIFEST = "sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6"

CONTRACT = f"""\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {{id: small, version: 1}}
spec:
  pins:
    engine:
      commit: {COMMIT}
      source_sha256: {SOURCE_SHA256}
    image:
      manifest: "{MANIFEST}"
    geometry:
      tokens: 256
  binds_image: [engine]
  places:
    - {{file: builder/pins.json, json: /engine/commit, is: engine.commit}}
    - {{file: builder/pins.json, json: /engine/source_sha256, is: engine.source_sha256}}
    - {{file: builder/pins.json, json: /geometry/tokens, is: geometry.tokens}}
    - {{file: profiles/*.yaml, yaml: /source/commit, is: engine.commit}}
    - {{file: profiles/*.yaml, yaml: /ranks/*/image, is: image.manifest}}
    - {{file: docs/QUICKSTART.md, markdown: all-digests, is: any-known}}
  invariants:
    - {{id: agree, check: pins.agree}}
    - {{id: whole, check: pins.full-length}}
"""

_PROFILE = f"""\
# made by hand
source:
  commit: {COMMIT}
ranks:
  - image: {MANIFEST}
  - image: {MANIFEST}
"""

FILES: Mapping[str, bytes] = {
    "builder/pins.json": json.dumps(
        {"engine": {"commit": COMMIT, "source_sha256": SOURCE_SHA256}, "geometry": {"tokens": 256}}, indent=2
    ).encode(),
    "profiles/one.yaml": _PROFILE.encode(),
    "profiles/two.yaml": _PROFILE.encode(),
    "docs/QUICKSTART.md": f"# Start\n\nBuild `{COMMIT}` and run\n`registry.example/engine@{MANIFEST}`.\n".encode(),
}


@dataclass(frozen=True, slots=True)
class MemoryTree:
    """Files by path; its patterns know `*` and `?` only."""

    files: Mapping[str, bytes]

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise InputError(Code.UNREADABLE, "no such file", at=Location(path), fix="add it")
        return self.files[path]

    def glob(self, pattern: str) -> Sequence[str]:
        parts = pattern.split("/")
        split = {path: path.split("/") for path in sorted(self.files)}
        return [path for path, own in split.items() if len(own) == len(parts) and all(map(fnmatchcase, own, parts))]


def small_contract(text: str = CONTRACT) -> Contract:
    """The contract, or another one, as the file `contract.yaml`."""
    return Contract.load(text.encode(), "contract.yaml")


def edited(file: str, old: str, new: str) -> Tree:
    """The small repository with the first `old` in `file` replaced."""
    text = FILES[file].decode()
    assert old in text
    return MemoryTree({**FILES, file: text.replace(old, new, 1).encode()})


def verdict_on(tree: Tree, text: str = CONTRACT) -> ContractVerdict:
    """What the contract says of a tree."""
    return evaluate(small_contract(text), tree)


def lines(verdict: ContractVerdict, checker: str | None = None) -> list[str]:
    """`file:line` of each finding, of one checker if named."""
    at = [finding.location for finding in verdict.findings if checker in (None, finding.checker)]
    return [f"{place.file}:{place.line}" for place in at if place]
