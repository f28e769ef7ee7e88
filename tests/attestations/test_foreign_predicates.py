"""Standard predicates of others: what they say in typed form, what makes them unreadable, and that a no is never read as a yes."""

import copy
import json
from typing import Any

import pytest
from bundles import REAL, put
from foreign import BASE, BUILDER, POLICY, SAID, SOURCE, VERIFIER, WEIGHTS

from countermark.attestations.bundle import Bundle
from countermark.attestations.codes import Outcome
from countermark.attestations.foreign_predicates import (
    ModelFile,
    ModelSignature,
    Provenance,
    Reading,
    Resource,
    SuiteResult,
    Summary,
    VerificationResult,
)
from countermark.attestations.predicate_types import (
    MODEL_SIGNATURE,
    SIMPLE_VERIFICATION_RESULT,
    SIMPLE_VERIFICATION_RESULT_V01,
    SLSA_PROVENANCE,
    SLSA_PROVENANCE_V02,
    TEST_RESULT,
    VERIFICATION_SUMMARY,
)
from countermark.attestations.statement import Statement

NEEDED: dict[str, list[str]] = {
    SLSA_PROVENANCE: [
        "buildDefinition",
        "buildDefinition/buildType",
        "buildDefinition/externalParameters",
        "runDetails",
        "runDetails/builder/id",
    ],
    SLSA_PROVENANCE_V02: ["builder", "builder/id", "buildType"],
    VERIFICATION_SUMMARY: ["verifier/id", "resourceUri", "policy", "verificationResult", "verifiedLevels"],
    SIMPLE_VERIFICATION_RESULT_V01: ["verifier/id", "timeCreated", "properties"],
    SIMPLE_VERIFICATION_RESULT: ["verifier/id", "timeVerified", "properties"],
    TEST_RESULT: ["result", "configuration"],
    MODEL_SIGNATURE: ["serialization/method", "serialization/hash_type", "resources", "resources/0/digest", "resources/1/name"],
}


def said(predicate_type: str, **changes: Any) -> Reading:
    return Reading.of(predicate_type, {**SAID[predicate_type], **changes})


class TestWhatTheySay:
    def test_provenance_v1(self) -> None:
        claim = said(SLSA_PROVENANCE).claim
        assert isinstance(claim, Provenance)
        assert (claim.builder, claim.build_type) == (BUILDER, "https://builder.example.test/container/v1")
        assert [material.digest for material in claim.materials] == [{"gitCommit": SOURCE}, {"sha256": BASE}]
        assert (claim.invocation, claim.started, claim.finished) == ("run/77", "2026-11-30T08:00:00Z", "2026-11-30T08:20:00Z")

    def test_provenance_v02_counts_the_configuration_as_a_material_once(self) -> None:
        claim = said(SLSA_PROVENANCE_V02).claim
        assert isinstance(claim, Provenance)
        assert [material.digest for material in claim.materials] == [{"sha1": SOURCE}, {"sha256": BASE}]
        source = {name: SAID[SLSA_PROVENANCE_V02]["invocation"]["configSource"][name] for name in ("uri", "digest")}
        again = said(SLSA_PROVENANCE_V02, materials=[source]).claim
        assert isinstance(again, Provenance)
        assert len(again.materials) == 1
        bare = said(SLSA_PROVENANCE_V02, materials=None, invocation=None).claim
        assert isinstance(bare, Provenance)
        assert bare.materials == ()

    def test_published_provenance(self) -> None:
        """A real one, of PyPI."""
        (path,) = (path for path in REAL if "slsa" in path.name)
        statement = Statement.parse(Bundle.parse(path.read_bytes(), path.name).envelope.payload, path.name)
        claim = Reading.of(statement.predicate_type, statement.predicate).claim
        assert isinstance(claim, Provenance)
        assert claim.builder == "https://github.com/trailofbits/pypi-attestations/.github/workflows/release.yml@refs/tags/v0.0.19"
        assert [material.digest for material in claim.materials] == [{"gitCommit": "08802efe1f8e5fec4ad842d6b8ce97656092ee72"}]

    def test_a_summary(self) -> None:
        claim = said(VERIFICATION_SUMMARY).claim
        assert isinstance(claim, Summary)
        assert (claim.verifier, claim.result, claim.levels) == (VERIFIER, "PASSED", ("SLSA_BUILD_LEVEL_3", "ACME_HERMETIC"))
        assert claim.policy == Resource("https://verifier.example.test/policies/release", None, {"sha256": POLICY})
        assert claim.outcome is Outcome.PASS

    @pytest.mark.parametrize("predicate_type", [SIMPLE_VERIFICATION_RESULT_V01, SIMPLE_VERIFICATION_RESULT])
    def test_a_simple_result(self, predicate_type: str) -> None:
        claim = said(predicate_type).claim
        assert isinstance(claim, VerificationResult)
        assert (claim.verifier, claim.outcome) == (VERIFIER, Outcome.PASS)
        assert claim.properties == tuple(SAID[predicate_type]["properties"])

    def test_tests(self) -> None:
        claim = said(TEST_RESULT).claim
        assert isinstance(claim, SuiteResult)
        assert (claim.passed, claim.failed, claim.outcome) == (("unit", "end to end"), (), Outcome.PASS)

    def test_a_model(self) -> None:
        claim = said(MODEL_SIGNATURE).claim
        assert isinstance(claim, ModelSignature)
        assert claim.files[1] == ModelFile("model-00001-of-00001.safetensors", "sha256", WEIGHTS)
        assert claim.outcome is None


class TestANoIsNeverAYes:
    """Only `Outcome.PASS` satisfies anything."""

    @pytest.mark.parametrize(
        ("predicate_type", "changes", "outcome"),
        [
            (VERIFICATION_SUMMARY, {"verificationResult": "FAILED"}, Outcome.FAIL),
            (VERIFICATION_SUMMARY, {"verificationResult": "passed"}, Outcome.ERROR),
            (VERIFICATION_SUMMARY, {"verificationResult": True}, Outcome.ERROR),
            (VERIFICATION_SUMMARY, {"verifiedLevels": "SLSA_BUILD_LEVEL_3"}, Outcome.ERROR),
            (VERIFICATION_SUMMARY, {"timeVerified": "yesterday"}, Outcome.ERROR),
            (SIMPLE_VERIFICATION_RESULT_V01, {"properties": []}, Outcome.NOT_RUN),
            (SIMPLE_VERIFICATION_RESULT_V01, {"properties": [True]}, Outcome.ERROR),
            (SIMPLE_VERIFICATION_RESULT, {"properties": None}, Outcome.ERROR),
            (TEST_RESULT, {"result": "FAILED"}, Outcome.FAIL),
            (TEST_RESULT, {"result": "WARNED"}, Outcome.INCONCLUSIVE),
            (TEST_RESULT, {"result": "OK"}, Outcome.ERROR),
            (TEST_RESULT, {"failedTests": ["unit"]}, Outcome.FAIL),
        ],
    )
    def test_a_verdict(self, predicate_type: str, changes: dict[str, Any], outcome: Outcome) -> None:
        assert said(predicate_type, **changes).outcome is outcome

    @pytest.mark.parametrize(("predicate_type", "path"), [(kind, path) for kind, paths in NEEDED.items() for path in paths])
    def test_what_a_specification_requires_is_there(self, predicate_type: str, path: str) -> None:
        parts = tuple(int(part) if part.isdecimal() else part for part in path.split("/"))
        for wrong in (None, 7, [7], {"x": 7}):
            reading = Reading.of(predicate_type, put(SAID[predicate_type], parts, wrong))
            if wrong == {"x": 7} and path in ("policy", "buildDefinition/externalParameters"):
                continue  # any object will do
            assert (reading.claim, reading.outcome) == (None, Outcome.ERROR)
            assert reading.problem is not None
            assert reading.problem.startswith(f"/predicate/{path}")

    @pytest.mark.parametrize("predicate", [None, [], "PASSED", 7, True, {}])
    @pytest.mark.parametrize("predicate_type", SAID)
    def test_no_predicate_at_all(self, predicate_type: str, predicate: Any) -> None:
        assert Reading.of(predicate_type, predicate).outcome is Outcome.ERROR


def test_other_types_are_opaque() -> None:
    """Neither read nor wrong; a name that is nearly one of these is another."""
    for other in ("https://example.com/anything/v1", "https://slsa.dev/provenance/v2", f"{VERIFICATION_SUMMARY}/"):
        reading = Reading.of(other, SAID[VERIFICATION_SUMMARY])
        assert (reading.claim, reading.problem, reading.outcome, reading.to_json()) == (None, None, None, None)


@pytest.mark.parametrize("predicate_type", SAID)
def test_further_fields_change_nothing_and_all_is_json(predicate_type: str) -> None:
    more = {**copy.deepcopy(SAID[predicate_type]), "acme_more": {"deep": [1, 2, 3]}}
    assert Reading.of(predicate_type, more) == said(predicate_type)
    assert json.loads(json.dumps(said(predicate_type).to_json()))
