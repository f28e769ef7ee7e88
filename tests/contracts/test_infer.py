"""Drafted contracts: what recurs is pinned where it stands, drift shows at once, and noise is left out."""

import re
from pathlib import Path

import pytest

from countermark.attestations.codes import ExitCode, Outcome
from countermark.attestations.errors import NothingError
from countermark.contracts.contract import Contract
from countermark.contracts.infer import DIFFERS, infer
from countermark.contracts.verdict import ContractVerdict, evaluate
from countermark.recorders.file_trees import FolderTree

from .small_repository import COMMIT, MANIFEST, SOURCE_SHA256, lines

OTHER = "94c236b9dfbf5f70075eb47877fd9caaa5d8c249"
FILES = {
    "builder/pins.json": f'{{"engine": {{"commit": "{COMMIT}", "source_sha256": "{SOURCE_SHA256}", "max_model_len": 131072}}}}\n',
    "profiles/serving.yaml": f"""\
engine: {{commit: {COMMIT}, max_model_len: 131072}}
image: {MANIFEST}
kv:
  extra: {{spark_cache_cuda_restore: true, spark_cache_cuda_placement_library: /x}}
""",
    "deploy/compose.yaml": "services:\n  engine:\n    image: ${ENGINE_IMAGE}\n    command: serve --revision $REVISION\n",
    "deploy/.env": f"ENGINE_IMAGE=registry.example/engine@{MANIFEST}\nREVISION={COMMIT}\n",
    "Dockerfile": f"ARG ENGINE_COMMIT={COMMIT}\nFROM registry.example/engine@{MANIFEST}\n",
    "run.sh": f"#!/bin/sh\nSOURCE={SOURCE_SHA256}\nexec serve --commit {COMMIT}\n",
    "docs/START.md": f"# Start\n\nBuild `{COMMIT}`, whose sources are {SOURCE_SHA256}.\n",
    "docs/HISTORY.md": f"# History\n\nIt was {OTHER} once, now it is {COMMIT}.\n",
    "SHA256SUMS": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty.txt\n",
    "empty.txt": "",
    "package-lock.json": f'{{"integrity": "{COMMIT}"}}',
    "node_modules/x/package.json": f'{{"commit": "{COMMIT}"}}',
    "broken.json": "{",
}


def repository(folder: Path, **changed: str) -> FolderTree:
    for path, text in {**FILES, **{name.replace("__", "/"): text for name, text in changed.items()}}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return FolderTree(folder)


def verdict(text: str, tree: FolderTree) -> ContractVerdict:
    return evaluate(Contract.load(text.encode(), "contract.yaml"), tree)


def test_a_draft_holds_every_place_of_what_recurs(tmp_path: Path) -> None:
    tree = repository(tmp_path)
    text = infer(tree, "My Engine!")
    contract = Contract.load(text.encode(), "contract.yaml")
    assert contract.id == "my-engine"
    values = {pin.value for pin in contract.pins.values()}
    assert {COMMIT, SOURCE_SHA256, MANIFEST, 131072} <= values
    assert OTHER not in values
    files = {place.file for place in contract.places}
    assert files >= {
        "builder/pins.json",
        "profiles/serving.yaml",
        "deploy/.env",
        "Dockerfile",
        "run.sh",
        "docs/START.md",
        "docs/HISTORY.md",
    }
    assert not files & {"package-lock.json", "node_modules/x/package.json", "broken.json"}
    assert [invariant.checker.name for invariant in contract.invariants] == [
        "checksum.list",
        "pins.agree",
        "pins.full-length",
        "config.keys-complete",
    ]


def test_a_draft_holds_for_the_repository_but_for_what_is_wrong_with_it(tmp_path: Path) -> None:
    tree = repository(tmp_path)
    found = verdict(infer(tree, "x"), tree)
    assert {finding.checker for finding in found.findings} == {"config.keys-complete"}
    assert {finding.required for finding in found.findings} >= {"spark_cache_cuda_restore_io_workers"}


def test_pins_are_called_what_the_places_call_them(tmp_path: Path) -> None:
    contract = Contract.load(infer(repository(tmp_path), "x").encode(), "contract.yaml")
    assert contract.pins["engine.commit"].value == COMMIT
    assert contract.pins["shared.max_model_len"].value == 131072
    assert {pin.leaf for pin in contract.pins.values() if pin.value == MANIFEST} == {"manifest"}


def test_drift_shows_at_once(tmp_path: Path) -> None:
    drifted = FILES["profiles/serving.yaml"].replace(COMMIT, COMMIT[:-1] + "0")
    tree = repository(tmp_path, **{"profiles__serving.yaml": drifted})
    assert lines(verdict(infer(tree, "x"), tree), "pins.agree") == ["profiles/serving.yaml:1"]


def test_each_edit_of_a_recurring_value_is_found_by_the_draft(tmp_path: Path) -> None:
    text = infer(repository(tmp_path), "x")
    for path in ("builder/pins.json", "profiles/serving.yaml", "deploy/.env", "Dockerfile", "run.sh", "docs/START.md", "docs/HISTORY.md"):
        changed = re.sub("5ec6a9|4def0e", "000000", FILES[path], count=1)
        found = verdict(text, repository(tmp_path, **{path.replace("/", "__"): changed}))
        assert found.exit is ExitCode.NO
        assert any(line.startswith(f"{path}:") for line in lines(found, "pins.agree")), path
        repository(tmp_path)


def test_nothing_that_recurs_is_nothing_to_draft(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"commit": "{COMMIT}"}}')
    with pytest.raises(NothingError):
        infer(FolderTree(tmp_path), "x")


def test_a_contract_that_is_there_already_is_no_place(tmp_path: Path) -> None:
    tree = repository(tmp_path)
    draft = infer(tree, "engine")
    (tmp_path / "contract.yaml").write_text(draft)
    assert infer(tree, "engine") == draft


def test_drift_that_is_there_already_is_told(tmp_path: Path) -> None:
    drifted = "5be0" * 10
    tree = repository(tmp_path, **{"profiles__other.yaml": f"engine: {{commit: {drifted}}}\n"})
    told = [line for line in infer(tree, "engine").splitlines() if line.startswith(DIFFERS)]
    assert told == [
        f"{DIFFERS} profiles/other.yaml /engine/commit is {drifted}, and not engine.commit: if that is drift, add it to the places"
    ]


def test_two_values_of_one_name_are_told(tmp_path: Path) -> None:
    tree = repository(tmp_path, **{f"profiles__{name}.yaml": f"engine: {{commit: {OTHER}}}\n" for name in ("one", "two")})
    assert f"{DIFFERS} engine2.commit has a name that another value has too: if they must be one, make them one pin" in infer(
        tree, "engine"
    )


def agree(draft: str, folder: Path) -> Outcome:
    """What becomes of the invariant that all places agree."""
    judgements = verdict(draft, FolderTree(folder)).judgements
    return next(item.result.outcome for item in judgements if item.invariant.checker.name == "pins.agree")


def test_a_draft_holds_when_every_pin_moves_together(tmp_path: Path) -> None:
    """What stands before a digest in a line may be another digest, which moves with it."""
    page = f"# Start\n\nBuilt from {COMMIT} (`{COMMIT[:12]}`), on {MANIFEST}.\n"
    moved = {COMMIT: OTHER, COMMIT[:12]: OTHER[:12]}
    draft = infer(repository(tmp_path, **{"docs__START.md": page}), "x")
    assert agree(draft, tmp_path) is Outcome.PASS
    for path in FILES:
        file = tmp_path / path
        text = file.read_text()
        for old, new in moved.items():
            text = text.replace(old, new)
        file.write_text(text)
    assert agree(draft.replace(COMMIT, OTHER), tmp_path) is Outcome.PASS
    assert agree(draft, tmp_path) is Outcome.FAIL
