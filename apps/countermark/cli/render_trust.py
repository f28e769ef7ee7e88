"""The report of `verify trust`."""

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.attestations.trust import TrustPolicy
from countermark.cli.report import Report


def trust_report(policy: TrustPolicy) -> Report:
    """Who holds which role; principals in both roles of a pair that is to be kept apart are findings."""
    roles = policy.roles.values()
    lines = [f"{policy.id}@{policy.version}  {policy.digest}"]
    lines.extend(f"  {role.name:<10} {role.k} of {', '.join(role.members)}; makes {len(role.makes)} predicate types" for role in roles)
    if policy.single_operator:
        lines.append("  single_operator is true: every decision says that one person holds all roles")
    findings = tuple(_overlap(policy, *pair) for pair in policy.separate if _both(policy, *pair))
    keys = len(policy.keys())
    return Report(evaluated=keys, of=keys, findings=findings, text="\n".join(lines))


def _both(policy: TrustPolicy, first: str, second: str) -> set[str]:
    roles = policy.roles
    return set(roles[first].members) & set(roles[second].members) if first in roles and second in roles else set()


def _overlap(policy: TrustPolicy, first: str, second: str) -> Finding:
    who = ", ".join(sorted(_both(policy, first, second)))
    return Finding(
        Code.SEPARATION,
        Outcome.FAIL,
        f"give {first} and {second} to different principals",
        Severity.WARN,
        subject=policy.source,
        observed=f"{who} holds both {first} and {second}",
    )
