"""The documents that a question is judged by: the gate's own reading of policy, trust policy, catalogue and profile."""

from dataclasses import replace

from countermark.actions.gate import Asked, Documents, gate
from countermark.actions.workspace import Workspace
from countermark.contracts.policy import ReleasePolicy
from countermark.contracts.requirement import CapabilityRequirement, EvidenceRules, NotApplicable, Requirement

_SOMETHING = ("service.startup",)
"""A policy must require something. What is put in the place of this requirement comes from the evidence."""


def documents(workspace: Workspace, asked: Asked) -> Documents:
    """What the gate would decide by. A gate that is asked about no image decides nothing and reads its documents all the same."""
    return gate(workspace, replace(asked, subjects=())).documents


def rules_only(workspace: Workspace, asked: Asked) -> tuple[Documents, EvidenceRules]:
    """The documents, with the rules of evidence that hold where no requirement has its own; requirements are the caller's."""
    by = documents(workspace, replace(asked, requires=_SOMETHING))
    (requirement,) = by.policy.requires
    return by, requirement.evidence if isinstance(requirement, CapabilityRequirement) else EvidenceRules()


def told(by: Documents, requirement: Requirement | NotApplicable) -> list[str]:
    """In words: the policy, the trust policy, the rules of evidence, and what was left open."""
    lines = [f"under policy {_policy(by)}, trust policy {by.trust.id}@{by.trust.version}"]
    if isinstance(requirement, CapabilityRequirement):
        lines.append(_evidence(requirement.evidence))
        lines += [f"left open: {', '.join(requirement.any)}"] if requirement.any else []
    return [*lines, *(["one person holds all roles"] if by.trust.single_operator else [])]


def _policy(by: Documents) -> str:
    policy: ReleasePolicy = by.policy
    return f"{policy.id}@{policy.version}" + (", asked for this alone" if by.adhoc else "")


def _evidence(rules: EvidenceRules) -> str:
    return f"evidence signed by {rules.signed_by}, basis {' or '.join(sorted(rules.basis))}, max age {rules.max_age_text}"
