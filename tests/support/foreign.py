"""Predicates of other tools as they make them, each with everything that its specification names."""

from typing import Any, Final

from countermark.attestations.predicate_types import (
    MODEL_SIGNATURE,
    SIMPLE_VERIFICATION_RESULT,
    SIMPLE_VERIFICATION_RESULT_V01,
    SLSA_PROVENANCE,
    SLSA_PROVENANCE_V02,
    TEST_RESULT,
    VERIFICATION_SUMMARY,
)

BUILDER: Final = "https://builder.example.test/ci@v3"
VERIFIER: Final = "https://verifier.example.test/v2"
SOURCE: Final = "7c" * 20
BASE: Final = "5a" * 32
WEIGHTS: Final = "e1" * 32
POLICY: Final = "b0" * 32
_SOURCE_AT: Final = "git+https://code.example.test/acme/engine@refs/heads/main"

SAID: Final[dict[str, dict[str, Any]]] = {
    SLSA_PROVENANCE: {
        "buildDefinition": {
            "buildType": "https://builder.example.test/container/v1",
            "externalParameters": {"repository": "https://code.example.test/acme/engine", "ref": "refs/heads/main"},
            "internalParameters": {"runner": "large"},
            "resolvedDependencies": [
                {"uri": _SOURCE_AT, "digest": {"gitCommit": SOURCE}},
                {"uri": "pkg:oci/base", "name": "base", "digest": {"sha256": BASE}},
            ],
        },
        "runDetails": {
            "builder": {"id": BUILDER, "version": {"ci": "3.1.4"}},
            "metadata": {"invocationId": "run/77", "startedOn": "2026-11-30T08:00:00Z", "finishedOn": "2026-11-30T08:20:00Z"},
        },
    },
    SLSA_PROVENANCE_V02: {
        "builder": {"id": BUILDER},
        "buildType": "https://builder.example.test/container/v0",
        "invocation": {"configSource": {"uri": _SOURCE_AT, "digest": {"sha1": SOURCE}, "entryPoint": "ci.yml"}, "parameters": {}},
        "metadata": {"buildInvocationId": "run/76", "buildStartedOn": "2026-11-29T08:00:00Z", "reproducible": False},
        "materials": [{"uri": "pkg:oci/base", "digest": {"sha256": BASE}}],
    },
    VERIFICATION_SUMMARY: {
        "verifier": {"id": VERIFIER, "version": {"verifier": "2.0.1"}},
        "timeVerified": "2026-12-01T09:00:00Z",
        "resourceUri": "oci://registry.example.test/acme/engine",
        "policy": {"uri": "https://verifier.example.test/policies/release", "digest": {"sha256": POLICY}},
        "inputAttestations": [{"uri": "https://builder.example.test/run/77", "digest": {"sha256": "c4" * 32}}],
        "verificationResult": "PASSED",
        "verifiedLevels": ["SLSA_BUILD_LEVEL_3", "ACME_HERMETIC"],
        "slsaVersion": "1.1",
    },
    SIMPLE_VERIFICATION_RESULT_V01: {
        "verifier": {"id": VERIFIER, "policy": {"digest": {"sha256": POLICY}}},
        "timeCreated": "2026-12-01T09:30:00.52Z",
        "properties": ["SLSA_BUILD_LEVEL_3", "ACME_RELEASE_APPROVED"],
    },
    SIMPLE_VERIFICATION_RESULT: {"verifier": {"id": VERIFIER}, "timeVerified": "2026-12-01T09:30:00Z", "properties": ["ACME_SCANNED"]},
    TEST_RESULT: {
        "result": "PASSED",
        "configuration": [{"name": "ci.yml", "digest": {"gitBlob": "ab" * 20}}],
        "url": "https://builder.example.test/run/78",
        "passedTests": ["unit", "end to end"],
        "warnedTests": [],
        "failedTests": [],
    },
    MODEL_SIGNATURE: {
        "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": False, "ignore_paths": ["model.sig"]},
        "resources": [
            {"name": "config.json", "algorithm": "sha256", "digest": "d2" * 32},
            {"name": "model-00001-of-00001.safetensors", "algorithm": "sha256", "digest": WEIGHTS},
        ],
    },
}
