"""The names of predicate types: ours, and the foreign ones that are read as they are.

A predicate type URI is a name, not an address. Ours share one base, so that the base can be changed in one place.
"""

from enum import StrEnum
from typing import Self

PREDICATE_BASE = "https://countermark.dev/predicate/"
_VERSION = "v1"

SLSA_PROVENANCE = "https://slsa.dev/provenance/v1"
SLSA_PROVENANCE_V02 = "https://slsa.dev/provenance/v0.2"
VERIFICATION_SUMMARY = "https://slsa.dev/verification_summary/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SIMPLE_VERIFICATION_RESULT_V01 = "https://in-toto.io/attestation/svr/v0.1"
SIMPLE_VERIFICATION_RESULT = "https://in-toto.io/attestation/svr/v0.2"
MODEL_SIGNATURE = "https://model_signing/signature/v1.0"


def predicate_uri(name: str) -> str:
    """The predicate type of a short name, `BASE NAME /v1`; a name that is a URI already is somebody's own, and stays."""
    return name if "://" in name else f"{PREDICATE_BASE}{name}/{_VERSION}"


class PredicateName(StrEnum):
    """The short name of each of our predicates, as trust policies and capability catalogues write it."""

    SOURCE = "source"
    IMAGE = "image"
    MODEL = "model"
    SNAPSHOT = "snapshot"
    CONTRACT_VERDICT = "contract-verdict"
    BENCHMARK_RUN = "benchmark-run"
    QUALITY_REPORT = "quality-report"
    EVIDENCE_DOCUMENT = "evidence-document"
    RESTORE_RUN = "restore-run"
    QUALIFICATION_RECEIPT = "qualification-receipt"
    REJECTION = "rejection"
    RETRACTION = "retraction"
    SUPERSESSION = "supersession"
    WAIVER = "waiver"
    DECISION = "decision"

    @property
    def uri(self) -> str:
        """The predicate type as it stands in a statement."""
        return predicate_uri(self)

    @classmethod
    def from_uri(cls, uri: str) -> Self | None:
        """The predicate that `uri` names; None for a foreign type, another version or a spelling that is not exact."""
        return next((name for name in cls if name.uri == uri), None)
