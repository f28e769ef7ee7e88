"""Statements of other tools in a new ledger: taken in as they are, found by their subjects and by their payload."""

import json
from pathlib import Path
from typing import Any

import pytest

from countermark.actions.appending import sign
from countermark.actions.importing import import_files
from countermark.actions.init import initialise
from countermark.actions.search import search_ledger
from countermark.attestations.predicate_types import MODEL_SIGNATURE, SIMPLE_VERIFICATION_RESULT, SLSA_PROVENANCE, TEST_RESULT
from countermark.attestations.statement import Statement, Subject

SAID: dict[str, dict[str, Any]] = {
    SLSA_PROVENANCE: {
        "buildDefinition": {"buildType": "https://example.com/b", "externalParameters": {}},
        "runDetails": {"builder": {"id": "x"}},
    },
    "https://slsa.dev/provenance/v0.2": {"builder": {"id": "https://example.com/b"}, "buildType": "https://example.com/t"},
    SIMPLE_VERIFICATION_RESULT: {"verifier": {"id": "https://example.com/v"}, "timeVerified": "2026-01-01T00:00:00Z", "properties": ["P"]},
    TEST_RESULT: {"result": "PASSED", "configuration": []},
    MODEL_SIGNATURE: {"serialization": {"method": "files", "hash_type": "sha256"}, "resources": [{"name": "a", "digest": "ab" * 32}]},
}


@pytest.mark.parametrize("predicate_type", SAID)
def test_taken_in_and_found(predicate_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = initialise(tmp_path / "box").workspace
    made = Statement((Subject({"sha256": "c0ffee" + "12" * 29}, "model"),), predicate_type, SAID[predicate_type])
    path = tmp_path / "one.intoto.jsonl"
    path.write_text(sign(made, workspace.signer("builder", None)).to_json() + "\n")
    result = import_files(workspace, [str(path)], lambda done: None)
    assert list(result.refused) == []
    (hit,) = search_ledger(workspace, "c0ffee12").hits
    assert (hit.index, hit.role, hit.predicate_type) == (1, "subject", predicate_type)
    assert json.loads(path.read_text())["payload"]
