"""A file that came with outside evidence is kept, and says nothing: not when its bytes are a statement, nor when a receipt names it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from worlds import IMAGE, World, make_world

from countermark.actions.evidence_records import record
from countermark.actions.repeat import repeat
from countermark.actions.workspace import open_reader
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.statement import canonical
from countermark.contracts.decision import Decision, core_id
from countermark.ledger.submission import Receipt

from .real_ledgers import answer, ask, without_places

MAPPING = """\
apiVersion: countermark.dev/v1
kind: EvidenceMapping
metadata: {id: outside, version: 1}
spec:
  schema_pointer: /schema
  schema: outside/v1
  image: {pointer: /image, kind: oci-config}
  references: {one.json: /one, two.json: /two}
  claims:
    - {capability: service.startup, cells: {draft_tokens: /draft}, outcome: {pointer: /status, words: {fine: pass}}}
"""


@pytest.fixture
def alone(world: World) -> World:
    """A world in which `ci`, who records documents, holds every role: whatever it signs would count."""
    world.trust(roles={name: {"any_of": ["ci"]} for name in world.roles()})
    return world


def keep(world: World, *contents: bytes) -> None:
    """Record an outside document about another image, which refers to two files of these contents."""
    folder = world.folder / "outside"
    folder.mkdir()
    names = ("one.json", "two.json")
    for name, data in zip(names, contents, strict=True):
        (folder / name).write_bytes(data)
    hashes = {name.removesuffix(".json"): hashlib.sha256(data).hexdigest() for name, data in zip(names, contents, strict=True)}
    root = {"schema": "outside/v1", "image": f"sha256:{'77' * 32}", "status": "fine", "draft": 7, **hashes}
    (folder / "root.json").write_text(json.dumps(root))
    (folder / "mapping.yaml").write_text(MAPPING)
    done = record(world.workspace, [folder / "root.json"], str(folder / "mapping.yaml"), [], str(world.key("ci")))
    assert len(done.readings[0].referenced) == 2


def decided(world: World) -> Decision:
    return ask(world.workspace, IMAGE, world.folder / "lab.yaml")


def said(world: World, *receipts: Receipt) -> list[bytes]:
    """The payloads of some entries, byte for byte."""
    with open_reader(world.workspace) as reader:
        return [reader.entry(receipt.index).payload for receipt in receipts]


def test_a_kept_file_that_reads_as_a_receipt_qualifies_nothing(alone: World, tmp_path: Path) -> None:
    """Its keeper signed that these bytes came with a document, not what they say."""
    elsewhere = make_world(tmp_path / "elsewhere")
    receipt = elsewhere.receipt()
    document = replace(receipt, index=receipt.index - 1)
    keep(alone, *said(elsewhere, document, receipt))
    assert answer(decided(alone)) == ("DENY", "SUBJECT_UNKNOWN")


def test_a_kept_file_that_reads_as_a_rejection_or_a_retraction_changes_nothing(alone: World, tmp_path: Path) -> None:
    elsewhere = make_world(tmp_path / "elsewhere")
    passed, again = alone.receipt(by="ci"), elsewhere.receipt()
    assert passed.payload == again.payload
    before = without_places(decided(alone))
    keep(alone, *said(elsewhere, elsewhere.reject(), elsewhere.retract(again)))
    assert without_places(decided(alone)) == before
    assert before["verdict"] == "ALLOW"


def test_a_receipt_that_rests_on_a_kept_file_rests_on_no_statement(alone: World) -> None:
    """What is named is in the ledger and cannot be read as a statement; that is an answer, not an error."""
    data = b"a log of the run, as text"
    keep(alone, data, b"another")
    alone.receipt(by="ci", rests_on=[str(Digest.of(DigestKind.PAYLOAD, data))])
    decision = decided(alone)
    assert answer(decision) == ("DENY", "CONTROLS_INCOMPLETE")
    assert "rests on a statement that is not in the ledger" in decision.requirements[0].observed


def test_a_kept_file_that_reads_as_a_decision_is_none(alone: World, tmp_path: Path) -> None:
    elsewhere = make_world(tmp_path / "elsewhere")
    elsewhere.receipt()
    forged = said(elsewhere, elsewhere.decide())[0]
    keep(alone, forged, forged.replace(b'"core"', b'"c0re"'))
    with pytest.raises(InputError, match="no decision"):
        repeat(alone.workspace, core_id(canonical(json.loads(forged)["predicate"]["core"])))
    alone.receipt(by="ci")
    assert repeat(alone.workspace, str(alone.decide(by="ci").payload)).differences == ()
