"""A decision as a SLSA Verification Summary Attestation v1, for those who trust the verifier and read no more.

Source: SLSA v1.2, "Verification Summary Attestation". A level is stated for each requirement that holds and was not waived; a
summary of a DENY is stated too, since the absence of a summary says nothing.
"""

from typing import Final

from countermark.attestations.located import JsonValue
from countermark.attestations.times import Instant
from countermark.contracts.decision import Decision, Mode, Result, Verdict

LEVEL: Final = "QUALIFIED:"


def verification_summary(decision: Decision, verified_at: Instant) -> dict[str, JsonValue]:
    """The predicate of `https://slsa.dev/verification_summary/v1`. PASSED needs an ALLOW in enforce mode."""
    passed = decision.verdict is Verdict.ALLOW and decision.mode is Mode.ENFORCE
    policy = decision.inputs.policy
    used = {item.payload for result in decision.requirements for item in result.evidence if item.used}
    used |= {waiver.payload for waiver in decision.waivers if waiver.used}
    inputs: list[JsonValue] = [{"digest": {"sha256": digest.hex}} for digest in sorted(used)]
    levels: list[JsonValue] = [*dict.fromkeys(_level(decision))]
    return {
        "verifier": {"id": decision.head.origin},
        "timeVerified": str(verified_at),
        "resourceUri": f"{decision.subject}#{decision.channel}",
        "policy": {"uri": policy.id, "digest": {"sha256": policy.digest.hex}},
        "inputAttestations": inputs,
        "verificationResult": "PASSED" if passed else "FAILED",
        "verifiedLevels": levels,
    }


def _level(decision: Decision) -> list[str]:
    """What holds. A capability of which any requirement fails, waived or not, has no level: the level does not say for which scope."""
    applied = [result for result in decision.requirements if result.evaluated]
    short = {_named(result) for result in applied if not result.satisfied}
    return [f"{LEVEL}{_named(result)}" for result in applied if _named(result) not in short]


def _named(result: Result) -> str:
    return result.capability or result.id
