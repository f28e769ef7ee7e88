"""`contract …`: write the baseline of a contract, and draft a contract for a repository that has none."""

import json
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.new_files import write_new
from countermark.actions.verify_contract import load_contract, repository_root
from countermark.attestations.codes import Code
from countermark.attestations.documents import read_file
from countermark.attestations.errors import InputError, InvalidDocumentError, Location, NothingError
from countermark.contracts.contract import Contract
from countermark.contracts.infer import infer
from countermark.contracts.lock import Lock, lock_document, lock_file_name
from countermark.contracts.places import Resolver
from countermark.recorders.file_trees import FolderTree


@dataclass(frozen=True, slots=True)
class Locked:
    """A baseline, where it lies, and whether it was written now or already there."""

    path: Path
    facts: int
    written: bool


def lock(path: Path, root: Path | None, target: Path | None) -> Locked:
    """Write the facts of a contract as the baseline of its version, beside the contract unless `target` names another folder.

    A version has one baseline: `InputError` when another one is already there.
    """
    root = root or repository_root(path)
    contract = load_contract(path, root)
    if not contract.facts:
        raise NothingError(Code.NOTHING_EVALUATED, "the contract has no facts", at=Location(contract.source), fix="add `facts` to it")
    document = _facts(contract, FolderTree(root))
    file = (target or path.parent) / lock_file_name(contract.id, contract.version)
    if file.exists():
        _same(file, document)
        return Locked(file, len(contract.facts), written=False)
    write_new(file, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    return Locked(file, len(contract.facts), written=True)


def _facts(contract: Contract, tree: FolderTree) -> dict[str, object]:
    files = Resolver(tree)
    found = {name: files.resolve([place]) for name, place in contract.facts.items()}
    mistakes = [
        InputError(gap.finding.code, f"fact {name}: {gap.finding.observed}", at=gap.finding.location, fix=gap.finding.fix)
        for name, it in found.items()
        for gap in it.gaps
    ]
    if mistakes:
        raise InvalidDocumentError(mistakes)
    facts = {name: it.occurrences for name, it in found.items()}
    return {**lock_document(contract.id, contract.version, contract.digest, facts)}


def _same(file: Path, document: dict[str, object]) -> None:
    there = Lock.load(read_file(file), str(file))
    if dict(there.facts) != document["facts"]:
        message = f"a baseline of {there.id}@{there.version} with other facts is already there"
        raise InputError(Code.DUPLICATE, message, at=Location(str(file)), fix="raise the version of the contract, and lock that")


def draft(repository: Path) -> str:
    """The YAML text of a contract over the files of a folder."""
    folder = FolderTree(repository)
    return infer(folder, repository.resolve().name)


def write_draft(file: Path, text: str) -> None:
    """Write a draft; `InputError` where there is a file already, which somebody may have worked on."""
    write_new(file, text.encode())
