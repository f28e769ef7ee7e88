"""Release policies: what they demand, and one error for each mistake in them."""

import json
from typing import Any

import pytest

from countermark.attestations.codes import Code, ExitCode, Status
from countermark.attestations.digests import DigestKind
from countermark.attestations.documents import Document, load_document
from countermark.attestations.errors import CountermarkError, InputError, NothingError
from countermark.contracts.policy import ReleasePolicy, adhoc_document
from countermark.contracts.requirement import (
    DAY_NS,
    CapabilityRequirement,
    ContractRequirement,
    EvidenceRules,
    NotApplicable,
    parse_require,
)

from .gate_world import catalogue, policy
from .test_profile import profile

RESTORE = "    - {{id: restore, capability: restore.correctness, scope: {{{}}}}}"


def restore(scope: str, **more: Any) -> CapabilityRequirement:
    (found,) = policy(RESTORE.format(scope), **more).requires
    assert isinstance(found, CapabilityRequirement)
    return found


def adhoc(*texts: str, base: Document | None = None) -> ReleasePolicy:
    data = adhoc_document(texts, trust="trust.yaml", base=base)
    return ReleasePolicy.of(load_document(data, "--require", "ReleasePolicy"), catalogue(), adhoc=True)


def test_every_combination_of_the_values_is_a_point() -> None:
    found = restore("topology: TP4/DCP1, context_tokens: [131072, 262144], concurrency: [1, 2], model: any")
    assert len(found.points) == 4
    assert found.points[1] == {"tp": 4, "dcp": 1, "context_tokens": 131072, "concurrency": 2}
    assert found.any == ("model",)


def test_a_policy_reads_the_profile() -> None:
    found = restore("topology: $profile.topology, context_tokens: $profile.max_model_len_tokens, concurrency: any", profile=profile())
    assert found.points == ({"tp": 2, "dcp": 1, "pp": 1, "context_tokens": 131072},)


def test_a_requirement_knows_the_line_that_demands_it() -> None:
    found = policy("    - {id: a, contract: serving, min_version: 2}\n    - {id: b, capability: service.startup}").requires
    assert [str(item.location) for item in found] == ["policy.yaml:12:7 /spec/requires/0", "policy.yaml:13:7 /spec/requires/1"]
    assert isinstance(found[0], ContractRequirement)
    assert (found[0].contract, found[0].min_version) == ("serving", 2)


def test_rules_for_evidence_are_those_of_the_requirement_over_those_of_the_policy_over_the_defaults() -> None:
    line = "    - {id: s, capability: service.startup, evidence: {max_age: 36h, min_runs: 3, accept: [qualified, research-only]}}"
    (found,) = policy(line, spec="  evidence: {basis: [reported], max_age: none, signed_by: approver}").requires
    assert isinstance(found, CapabilityRequirement)
    rules = found.evidence
    assert (rules.signed_by, rules.min_runs, rules.min_boots) == ("approver", 3, 1)
    assert rules.basis == {"reported"}
    assert rules.max_age_ns == 36 * DAY_NS // 24
    assert rules.accept == {Status.QUALIFIED, Status.RESEARCH_ONLY}
    (plain,) = policy("    - {id: s, capability: service.startup}", spec="  evidence: {}").requires
    assert isinstance(plain, CapabilityRequirement)
    assert plain.evidence == EvidenceRules("qualifier", frozenset({"measured"}), 90 * DAY_NS, 1, 1, frozenset({Status.QUALIFIED}))


def test_a_requirement_that_does_not_apply_says_why() -> None:
    line = "    - {{id: c, when: {{profile.max_num_seqs: {{gt: 1}}}}, capability: prefix.shared-concurrent, scope: {}}}"
    scope = "{topology: $profile.topology, concurrency: $profile.max_num_seqs}"
    (idle,) = policy(line.format(scope), profile=profile()).requires
    assert isinstance(idle, NotApplicable)
    assert idle.why == "profile.max_num_seqs is 1, required gt 1"
    (busy,) = policy(line.format(scope), profile=profile(max_num_seqs=8)).requires
    assert isinstance(busy, CapabilityRequirement)
    assert busy.points == ({"tp": 2, "dcp": 1, "pp": 1, "concurrency": 8},)


STARTUP = "    - {id: s, capability: service.startup}"
MISTAKES = [
    ("    - {id: s, capability: service.startpu}", "", Code.UNKNOWN_NAME, "did you mean 'service.startup'?"),
    (RESTORE.format("topology: any, context_tokens: [1]"), "", Code.SCHEMA_INVALID, "add concurrency to its scope"),
    (RESTORE.format("tp: 4, context_tokens: 1, concurrency: 1"), "", Code.SCHEMA_INVALID, "add dcp to its scope"),
    (RESTORE.format("topology: TP4/DCP1, tp: 2, context_tokens: 1, concurrency: 1"), "", Code.SCHEMA_INVALID, "name it once"),
    (RESTORE.format("topology: any, tp: 2, context_tokens: 1, concurrency: 1"), "", Code.SCHEMA_INVALID, "name it or leave it open"),
    (RESTORE.format("topology: $profile.topology, context_tokens: 1, concurrency: 1"), "", Code.UNKNOWN_NAME, "give --profile FILE"),
    (f"{STARTUP}\n{STARTUP}", "", Code.DUPLICATE_KEY, "give each its own"),
    (STARTUP, "  evidence: {max_age: 99999d}", Code.BAD_NUMBER, "write none"),
    (STARTUP, "  evidence: {max_age: 999999999999999999999999999999d}", Code.BAD_NUMBER, "write none"),
    (STARTUP, "  evidence: {max_age: 90}", Code.SCHEMA_INVALID, ""),
    (STARTUP, "  evidence: {max_age: 3 months}", Code.SCHEMA_INVALID, ""),
    (STARTUP, "  evidence: {accept: [rejected]}", Code.SCHEMA_INVALID, ""),
    (STARTUP, "  evidence: {maxAge: 90d}", Code.SCHEMA_INVALID, "max_age"),
    ("    - {id: s, capability: service.startup, when: {profile.max_num_seqs: {more: 1}}}", "", Code.SCHEMA_INVALID, ""),
    (RESTORE.format(f"context_tokens: {list(range(99))}, concurrency: {list(range(1, 99))}, topology: any"), "", Code.TOO_LARGE, "split"),
]


@pytest.mark.parametrize(("requires", "spec", "code", "fix"), MISTAKES)
def test_each_mistake_is_an_error_with_its_line_and_a_fix(requires: str, spec: str, code: Code, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        policy(requires, spec=spec)
    error = caught.value
    assert (error.code, error.exit) == (code, ExitCode.INVALID)
    assert error.at
    assert error.at.line
    assert fix in error.fix


def test_a_policy_that_requires_nothing_evaluates_nothing() -> None:
    with pytest.raises(NothingError) as caught:
        policy("    []")
    assert (caught.value.code, caught.value.exit) == (Code.NOTHING_EVALUATED, ExitCode.NOTHING)


def test_a_waiver_rule_for_no_requirement_is_an_error() -> None:
    text = f"""\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {{id: lab, version: 1}}
spec: {{channel: lab, subject: {{kinds: [oci-config]}}, trust: t, waivable: [strtup], never_waive: [], waiver_max_days: 1, requires: [
  {STARTUP.strip(" -").replace("id: s", "id: startup")}]}}
"""
    with pytest.raises(InputError, match="strtup") as caught:
        ReleasePolicy.of(load_document(text.encode(), "policy.yaml", "ReleasePolicy"), catalogue())
    assert caught.value.fix == "did you mean 'startup'?"


def test_an_adhoc_requirement_asks_what_the_command_line_says() -> None:
    found = adhoc("restore.correctness@tp=4,dcp=1,context_tokens=131072,model=org/model@" + "5e" * 20)
    (requirement,) = found.requires
    assert isinstance(requirement, CapabilityRequirement)
    assert requirement.points == ({"tp": 4, "dcp": 1, "context_tokens": 131072, "model": "org/model@" + "5e" * 20},)
    assert requirement.any == ("concurrency",)
    assert requirement.evidence.basis == {"measured"}
    assert found.kinds == {DigestKind.OCI_INDEX, DigestKind.OCI_MANIFEST, DigestKind.OCI_CONFIG}
    assert str(requirement.location).startswith("--require restore.correctness@tp=4,dcp=1")


def test_an_adhoc_requirement_may_leave_all_of_a_dimension_open() -> None:
    (requirement,) = adhoc("restore.correctness@context_tokens=1,concurrency=any").requires
    assert isinstance(requirement, CapabilityRequirement)
    assert requirement.any == ("concurrency", "topology")


def test_an_adhoc_policy_is_a_document_and_has_its_own_digest() -> None:
    one = adhoc("service.startup", "service.startup@tp=2")
    assert [item.id for item in one.requires] == ["service.startup", "service.startup.2"]
    assert one.digest == adhoc("service.startup", "service.startup@tp=2").digest != adhoc("service.startup").digest
    assert json.loads(adhoc_document(["service.startup"], trust="t"))["spec"]["trust"] == "t"


def test_require_beside_a_policy_keeps_its_kinds_trust_and_evidence() -> None:
    text = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: production, version: 3}
spec: {channel: production, subject: {kinds: [oci-manifest], platform: linux/arm64}, trust: other.yaml, evidence: {max_age: 30d},
  requires: [{id: startup, capability: service.startup}], waivable: [startup], never_waive: [IMAGE_REJECTED], waiver_max_days: 14}
"""
    base = load_document(text.encode(), "policy.yaml", "ReleasePolicy")
    found = adhoc("service.health@tp=4", base=base)
    (requirement,) = found.requires
    assert isinstance(requirement, CapabilityRequirement)
    assert (found.id, found.version, found.channel, found.trust) == ("production", 3, "production", "other.yaml")
    assert found.kinds == {DigestKind.OCI_MANIFEST}
    assert found.platform == "linux/arm64"
    assert (requirement.capability.id, requirement.evidence.max_age_ns) == ("service.health", 30 * DAY_NS)
    assert found.digest != base.digest


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("service.startup@tp", Code.SCHEMA_INVALID),
        ("service.startup@tp=", Code.SCHEMA_INVALID),
        ("service.startup@", Code.SCHEMA_INVALID),
        ("service.startup@tp=four", Code.SCHEMA_INVALID),
        ("service.startup@tp=-4", Code.SCHEMA_INVALID),
        ("service.startup@tp=٤", Code.SCHEMA_INVALID),
        ("service.startup@tp=0", Code.SCHEMA_INVALID),
        ("service.startup@tp=9999999999999999999", Code.SCHEMA_INVALID),
        ("service.startup@tpp=4", Code.UNKNOWN_NAME),
        ("service.startup@tp=4,tp=4", Code.DUPLICATE_KEY),
        ("service.startup@hardware=x", Code.SCHEMA_INVALID),
        ("service.startup@topology=TP4", Code.SCHEMA_INVALID),
        ("service.startup@model=org/model@main", Code.SCHEMA_INVALID),
        ("service.startup@settings=abc", Code.SCHEMA_INVALID),
        ("service.strtup", Code.UNKNOWN_NAME),
        ("startup", Code.SCHEMA_INVALID),
        ("", Code.SCHEMA_INVALID),
        ("Ünknown.thing", Code.SCHEMA_INVALID),
    ],
)
def test_an_adhoc_requirement_that_is_no_requirement(text: str, code: Code) -> None:
    with pytest.raises(CountermarkError) as caught:
        adhoc(text)
    assert (caught.value.code, caught.value.exit) == (code, ExitCode.INVALID)
    assert caught.value.fix


def test_parse_require_gives_a_requirement_of_a_policy() -> None:
    assert parse_require("decode.rate@draft_tokens=7,topology=TP4/DCP1") == {
        "id": "decode.rate",
        "capability": "decode.rate",
        "scope": {"draft_tokens": 7, "topology": "TP4/DCP1"},
    }
