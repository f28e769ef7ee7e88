"""`query attestation`: statements of other tools, imported as they came, found by all they name, read by what they say."""

import json
from pathlib import Path
from typing import Any

import pytest
from foreign import BASE, BUILDER, POLICY, SAID, SOURCE, VERIFIER, WEIGHTS
from worlds import IMAGE, World

from countermark.actions.appending import sign
from countermark.actions.queries.attestations import AttestationRow, attestation_listing
from countermark.actions.queries.listing import Bearing, Listing
from countermark.attestations.codes import Code, Outcome
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import (
    MODEL_SIGNATURE,
    SIMPLE_VERIFICATION_RESULT_V01,
    SLSA_PROVENANCE,
    SLSA_PROVENANCE_V02,
    VERIFICATION_SUMMARY,
)
from countermark.attestations.statement import Statement, Subject
from countermark.cli.app import run

OPAQUE = "https://example.com/anything/v1"


def bring(world: World, predicate_type: str, predicate: dict[str, Any], subject: Subject | None = None) -> int:
    """Import a statement that `ci` signed elsewhere; the exit code."""
    made = Statement((subject or Subject.of(IMAGE),), predicate_type, predicate)
    path = world.folder / "brought.intoto.jsonl"
    path.write_text(sign(made, Signer.load(str(world.key("ci")))).to_json() + "\n")
    return run(["import", str(path), "--ledger", str(world.workspace.ledger)])


@pytest.fixture
def world(world: World) -> World:
    """A world in which `ci` may make the statements of others."""
    world.trust(makes={"builder": [*SAID, OPAQUE, "image"], "gate": ["decision", VERIFICATION_SUMMARY]})
    return world


def rows(listing: Listing) -> list[AttestationRow]:
    return [row for row in listing.rows if isinstance(row, AttestationRow)]


def asked(world: World, text: str, predicate_type: str | None = None) -> list[AttestationRow]:
    return rows(attestation_listing(world.workspace, text, predicate_type))


@pytest.mark.parametrize(
    ("predicate_type", "text", "place"),
    [
        (SLSA_PROVENANCE, f"git-commit:{SOURCE}", "/predicate/buildDefinition/resolvedDependencies/0/digest/gitCommit"),
        (SLSA_PROVENANCE, f"sha256:{BASE}", "/predicate/buildDefinition/resolvedDependencies/1/digest/sha256"),
        (SLSA_PROVENANCE_V02, f"sha256:{BASE}", "/predicate/materials/0/digest/sha256"),
        (VERIFICATION_SUMMARY, f"sha256:{POLICY}", "/predicate/policy/digest/sha256"),
        (MODEL_SIGNATURE, f"sha256:{WEIGHTS}", "/predicate/resources/1/digest"),
        (MODEL_SIGNATURE, str(IMAGE), "/subject/0"),
    ],
)
def test_found_by_material_policy_and_model_file(world: World, predicate_type: str, text: str, place: str) -> None:
    assert bring(world, predicate_type, SAID[predicate_type]) == 0
    (row,) = asked(world, text)
    assert (row.predicate_type, row.names_it_at, row.code, row.signer) == (predicate_type, (place,), Code.OK, "ci")
    assert row.says is not None
    assert row.bearing is Bearing.FOUND


def test_the_command_tells_what_they_say(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for predicate_type, predicate in SAID.items():
        assert bring(world, predicate_type, predicate) == 0
    capsys.readouterr()
    command = ["query", "attestation", str(IMAGE), "--ledger", str(world.workspace.ledger)]
    assert run([*command, "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    says = {row["predicate_type"]: row["says"] for row in report["rows"]}
    assert set(says) == set(SAID)
    assert says[SLSA_PROVENANCE]["builder"] == BUILDER
    assert says[SLSA_PROVENANCE]["materials"][1] == {"uri": "pkg:oci/base", "name": "base", "digest": {"sha256": BASE}}
    assert says[VERIFICATION_SUMMARY]["verifier"] == VERIFIER
    assert says[VERIFICATION_SUMMARY]["levels"] == ["SLSA_BUILD_LEVEL_3", "ACME_HERMETIC"]
    assert [file["digest"] for file in says[MODEL_SIGNATURE]["files"]] == ["d2" * 32, WEIGHTS]
    assert run(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "PASSED" in text
    assert BUILDER in text
    assert run([*command, "--type", VERIFICATION_SUMMARY, "-o", "json"]) == 0
    assert [row["predicate_type"] for row in json.loads(capsys.readouterr().out)["rows"]] == [VERIFICATION_SUMMARY]


@pytest.mark.parametrize(
    ("predicate_type", "changes", "outcome"),
    [
        (VERIFICATION_SUMMARY, {"verificationResult": "FAILED"}, Outcome.FAIL),
        (VERIFICATION_SUMMARY, {"verificationResult": "FINE"}, Outcome.ERROR),
        (SIMPLE_VERIFICATION_RESULT_V01, {"properties": []}, Outcome.NOT_RUN),
        (SIMPLE_VERIFICATION_RESULT_V01, {"verifier": None}, Outcome.ERROR),
    ],
)
def test_a_failed_summary_is_a_negative(world: World, predicate_type: str, changes: dict[str, Any], outcome: Outcome) -> None:
    assert bring(world, predicate_type, {**SAID[predicate_type], **changes}) == 0
    (row,) = asked(world, str(IMAGE))
    assert (row.outcome, row.bearing, row.says is None) == (outcome, Bearing.NEGATIVE, outcome is Outcome.ERROR)


@pytest.mark.parametrize("result", ["PASSED", "FAILED"])
def test_a_summary_of_others_opens_no_gate(world: World, result: str) -> None:
    """What somebody else concluded is found and told, and satisfies no requirement of ours."""
    world.image()
    policy = world.policy()
    gate = ["gate", str(IMAGE), "--policy", str(policy), "--ledger", str(world.workspace.ledger)]
    assert run(gate) == 1
    for predicate_type in (VERIFICATION_SUMMARY, SIMPLE_VERIFICATION_RESULT_V01):
        assert bring(world, predicate_type, SAID[predicate_type]) == 0
    assert bring(world, VERIFICATION_SUMMARY, {**SAID[VERIFICATION_SUMMARY], "verificationResult": result, "slsaVersion": "1.0"}) == 0
    assert run(gate) == 1


def test_another_type_is_kept_as_it_is(world: World) -> None:
    assert bring(world, OPAQUE, {"verificationResult": "FAILED", "at": WEIGHTS}) == 0
    (row,) = asked(world, f"sha256:{WEIGHTS}")
    assert (row.says, row.problem, row.outcome, row.bearing) == (None, None, None, Bearing.FOUND)


def test_what_nothing_names_is_said(world: World, tmp_path: Path) -> None:
    del tmp_path
    listing = attestation_listing(world.workspace, f"sha256:{BASE}")
    assert rows(listing) == []
    assert len(listing.not_found) == 1
    assert str(Code.SUBJECT_UNKNOWN) in listing.not_found[0]
