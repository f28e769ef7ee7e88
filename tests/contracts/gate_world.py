"""A small world to ask the gate about: principals, images, receipts and policies, each with the least that makes it valid."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import load_document
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.schema import problems, problems_for_predicate
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.times import Instant
from countermark.attestations.trust import Principal, Role, TrustPolicy
from countermark.contracts.catalogue import Catalogue
from countermark.contracts.decision import Decision, DecisionHead
from countermark.contracts.evidence import Record
from countermark.contracts.gate import Question, decide
from countermark.contracts.policy import ReleasePolicy, adhoc_document
from countermark.contracts.profile import Profile

NOW = Instant.parse("2026-12-01T00:00:00Z")
ADMITTED = Instant.parse("2026-11-30T12:00:00Z")
OBSERVED = {"from": "2026-11-29T00:00:00Z", "to": "2026-11-29T01:00:00Z"}
COMMIT, OTHER_COMMIT = "5e" * 20, "6f" * 20
RESTORE = "restore.correctness"
AT_131072 = f"{RESTORE}@tp=4,dcp=1,context_tokens=131072,concurrency=1"


def config(byte: str) -> Digest:
    return Digest(DigestKind.OCI_CONFIG, byte * 32)


def manifest(byte: str) -> Digest:
    return Digest(DigestKind.OCI_MANIFEST, byte * 32)


def index(byte: str) -> Digest:
    return Digest(DigestKind.OCI_INDEX, byte * 32)


IMAGE, OTHER = config("a1"), config("b2")


@cache
def catalogue() -> Catalogue:
    data = (resources.files("countermark.contracts") / "catalogue.yaml").read_bytes()
    return Catalogue.of(load_document(data, "catalogue.yaml", "CapabilityCatalog"))


_MAKES = {
    "builder": ("source", "image", "model", "contract-verdict", "evidence-document"),
    "qualifier": ("restore-run", "benchmark-run", "quality-report", "qualification-receipt", "rejection", "supersession"),
    "approver": ("waiver", "retraction"),
    "gate": ("decision",),
}


def trust(
    *, single_operator: bool = False, members: Mapping[str, Sequence[str]] | None = None, separate: Sequence[tuple[str, str]] = ()
) -> TrustPolicy:
    people = {"builder": ["ci"], "qualifier": ["lab", "lab2"], "approver": ["alice", "bob"], "gate": ["gate"], **(members or {})}
    roles = {
        name: Role(name, tuple(people[name]), 1, frozenset(PredicateName(short).uri for short in makes) | _foreign(name))
        for name, makes in _MAKES.items()
    }
    principals = {name: Principal(name) for names in people.values() for name in names}
    digest = Digest.of(DigestKind.FILE, b"trust")
    return TrustPolicy("spark-lab", 2, digest, single_operator, principals, roles, tuple(separate), (), None, "trust.yaml")


def _foreign(role: str) -> frozenset[str]:
    return frozenset({TEST_RESULT} if role == "builder" else ())


class Ledger:
    """Records in the order in which they were said."""

    def __init__(self, policy: TrustPolicy | None = None, *, check: bool = True) -> None:
        self.trust = policy or trust()
        self.check = check
        self.records: list[Record] = []

    def say(
        self, predicate_type: str, about: Digest | Subject, by: str | tuple[str, ...], predicate: dict[str, Any], code: Code = Code.OK
    ) -> Record:
        """Append a statement; the roles follow from the trust policy, as the ledger's reader would fill them in."""
        assert not self.check or not problems_for_predicate(predicate_type, predicate), problems_for_predicate(predicate_type, predicate)
        subject = about if isinstance(about, Subject) else Subject.of(about)
        return self.say_unchecked(predicate_type, subject, by, predicate, code)

    def say_unchecked(
        self, predicate_type: str, subject: Subject, by: str | tuple[str, ...], predicate: dict[str, Any], code: Code = Code.OK
    ) -> Record:
        statement = Statement((subject,), predicate_type, predicate)
        signers = (by,) if isinstance(by, str) else by
        roles = tuple(role.name for role in self.trust.makers(predicate_type) if role.met_by(signers)) if code is Code.OK else ()
        payload = Digest.of(DigestKind.PAYLOAD, statement.encode())
        found = code if roles or code is not Code.OK else Code.SIGNER_UNTRUSTED
        record = Record(len(self.records), payload, statement, signers, roles, ADMITTED, found)
        self.records.append(record)
        return record

    def image(
        self,
        about: Digest,
        *,
        by: str = "ci",
        aliases: Sequence[tuple[Digest, bool]] = (),
        verified: bool = True,
        components: Mapping[str, Mapping[str, str]] | None = None,
        **fields: Any,
    ) -> Record:
        predicate = {
            "level": str(about.kind).removeprefix("oci-"),
            "verified": verified,
            "aliases": [{"digest": str(digest), "proven": proven, "how": "bytes"} for digest, proven in aliases],
            "layers": [],
            "labels": {},
            "published": [],
            "test_results": [],
            **fields,
        }
        if components is not None:
            predicate["built_from"] = {"components": components}
        return self.say(PredicateName.IMAGE.uri, about, by, predicate)

    def tests(self, about: Digest, result: str = "PASSED", by: str = "ci") -> Record:
        return self.say(TEST_RESULT, about, by, {"result": result, "configuration": [], "passedTests": [], "failedTests": []})

    def verdict(
        self,
        outcome: str = "pass",
        *,
        version: int = 1,
        by: str = "ci",
        pins: dict[str, dict[str, str]] | None = None,
        findings: Sequence[dict[str, Any]] = (),
        evaluated: int = 3,
        commit: str = COMMIT,
        **more: Any,
    ) -> Record:
        predicate = {
            "contract": {"id": "serving", "version": version, "digest": f"file:sha256:{'c' * 64}"},
            "outcome": outcome,
            "evaluated": evaluated,
            "of": 3,
            "findings": list(findings),
            "checkers": {"pins.agree": 1},
            "pins": {"engine": {"commit": COMMIT}} if pins is None else pins,
            **more,
        }
        about = Subject.of(Digest(DigestKind.GIT_COMMIT, commit))
        return self.say_unchecked(PredicateName.CONTRACT_VERDICT.uri, about, by, predicate)

    def document(self, *claims: dict[str, Any], by: str = "ci") -> Record:
        """An outside evidence document that makes these claims."""
        predicate = {
            "adapter": {"name": "test", "version": 1},
            "schema": "test/v1",
            "files": [{"path": "a.json", "sha256": "d" * 64, "bytes": len(json.dumps(claims)), "role": "root"}],
            "not_here": [],
            "evidence_state": {"source_reported": True, "site_reproduced": False, "independent_runs": 0},
            "claims": list(claims),
            "refused": [],
            "findings": [],
            "bound_by": [],
        }
        return self.say(PredicateName.EVIDENCE_DOCUMENT.uri, Digest.of(DigestKind.FILE, json.dumps(claims).encode()), by, predicate)

    def receipt(
        self,
        about: Digest = IMAGE,
        capability: str = RESTORE,
        *,
        outcome: str = "pass",
        by: str = "lab",
        cells: Sequence[dict[str, Any]] = ({"context_tokens": 131072, "concurrency": 1},),
        rests_on: Sequence[Record] | None = None,
        **fields: Any,
    ) -> Record:
        """A receipt with basis `reported`, resting on a document that claims just what it says, unless `rests_on` is given."""
        scope = {"image": str(about), "topology": {"tp": 4, "dcp": 1, "pp": 1}, "cells": list(cells), **fields.pop("scope", {})}
        controls = fields.pop("controls", dict.fromkeys(catalogue().capabilities[capability].controls, "not-recorded"))
        observed, claim = fields.pop("observed", OBSERVED), fields.pop("claim", None)
        claimed = {"capability": capability, "outcome": outcome, "claim": claim, "scope": scope, "controls": controls, "observed": observed}
        resting = [self.document({**claimed, "source": "/a", "derived": []})] if rests_on is None else rests_on
        predicate = {
            "capability": capability,
            "outcome": outcome,
            "basis": "reported",
            "claim": claim,
            "scope": scope,
            "controls": controls,
            "observed": observed,
            "runs": 1,
            "boots": None,
            "limitations": [],
            "rests_on": [str(record.payload) for record in resting],
            **fields,
        }
        return self.say(PredicateName.QUALIFICATION_RECEIPT.uri, about, by, predicate)

    def reject(self, about: Digest = IMAGE, *, by: str = "lab", **fields: Any) -> Record:
        predicate = {"scope": "image-wide", "reason": "the answer was wrong", "rests_on": [], "observed_time": None, **fields}
        return self.say(PredicateName.REJECTION.uri, about, by, predicate)

    def retract(self, record: Record, *, by: str | tuple[str, ...] = "alice", reason: str = "the rig was wired wrongly") -> Record:
        return self.say_unchecked(PredicateName.RETRACTION.uri, Subject.of(record.payload), by, {"reason": reason, "replacement": None})

    def supersede(self, record: Record, by_record: Record, *, by: str = "lab") -> Record:
        predicate = {"by": str(by_record.payload), "reason": "repeated", "raw_measurements_changed": False}
        return self.say(PredicateName.SUPERSESSION.uri, record.payload, by, predicate)

    def head(self) -> DecisionHead:
        return DecisionHead("countermark.local/test/00000000", len(self.records), "e" * 64, 0, len(self.records))


NO_WAIVERS = "waivable: []\n  never_waive: [IMAGE_REJECTED]\n  waiver_max_days: 14"


def policy(requires: str, *, profile: Profile | None = None, spec: str = "", waivers: str = NO_WAIVERS) -> ReleasePolicy:
    """A policy of the requirements given as YAML, lenient about age and basis, with more lines of its spec."""
    text = f"""\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {{id: lab, version: 1}}
spec:
  channel: lab
  subject: {{kinds: [oci-config, oci-manifest, oci-index]}}
  trust: trust.yaml
  {waivers}
  requires:
{requires}
{spec or "  evidence: {basis: [measured, reported], max_age: none}"}
"""
    return ReleasePolicy.of(load_document(text.encode(), "policy.yaml", "ReleasePolicy"), catalogue(), profile)


LENIENT = "  evidence: {basis: [measured, reported], max_age: none}"


def requiring(text: str, evidence: str = "{basis: [measured, reported], max_age: none}") -> ReleasePolicy:
    """The ad-hoc policy of one `--require` beside a policy with these evidence rules."""
    base = f"""\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {{id: lab, version: 1}}
spec: {{channel: lab, subject: {{kinds: [oci-config, oci-manifest, oci-index]}}, trust: trust.yaml, evidence: {evidence},
  requires: [{{id: startup, capability: service.startup}}], waivable: [startup], never_waive: [], waiver_max_days: 14}}
"""
    document = load_document(base.encode(), "policy.yaml", "ReleasePolicy")
    data = adhoc_document([text], trust="", base=document)
    return ReleasePolicy.of(load_document(data, "--require", "ReleasePolicy"), catalogue(), adhoc=True)


def decided(
    ledger: Ledger, policy: ReleasePolicy, subject: Digest = IMAGE, *, records: Sequence[Record] | None = None, **more: Any
) -> Decision:
    """The gate's decision."""
    given = tuple(ledger.records if records is None else records)
    return decide(Question(subject, policy, ledger.trust, given, ledger.head(), more.pop("now", NOW), **more))


def ask(ledger: Ledger, policy: ReleasePolicy, subject: Digest = IMAGE, **more: Any) -> Decision:
    """The gate's decision, which must obey its own schema."""
    decision = decided(ledger, policy, subject, **more)
    made = {"tool": "countermark", "tool_version": "0.1.0", "at": "2026-12-01T00:00:00Z"}
    assert not problems("decision", {"core": json.loads(decision.core_bytes), "made": made})
    return decision


def code(decision: Decision) -> str:
    """The verdict and the code of the one requirement."""
    (result,) = decision.requirements
    return f"{decision.verdict} {result.code}"
