"""Small ledgers of real, signed entries: images, records, receipts, rejections, decisions, by people who each hold one role."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import yaml

from countermark.actions.appending import record
from countermark.actions.decisions import record_decisions
from countermark.actions.gate import Asked, gate
from countermark.actions.init import initialise
from countermark.actions.keyring import generate
from countermark.actions.workspace import Workspace, public_key
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.predicate_types import TEST_RESULT, PredicateName
from countermark.attestations.statement import Subject
from countermark.attestations.times import Instant
from countermark.ledger.submission import Receipt
from countermark.recorders.recording import Recording

OBSERVED = {"from": "2024-05-31T00:00:00Z", "to": "2024-06-01T00:00:00Z"}
"""Before any clock that a test may run under."""
NOW = Instant.parse("2024-06-11T00:00:00Z")
"""Ten days after the observations."""
COMMIT, OTHER_COMMIT = "5e" * 20, "6f" * 20
MODEL = {"repository": "example/model", "revision": "42" * 20}
RESTORE = "restore.correctness"
AT_131072 = "tp=4,dcp=1,context_tokens=131072,concurrency=1"
PEOPLE = ("ci", "lab", "alice", "release-gate")

POLICY = """\
apiVersion: countermark.dev/v1
kind: ReleasePolicy
metadata: {id: $name, version: 1}
spec:
  channel: $channel
  subject: {kinds: [oci-config, oci-manifest]}
  trust: trust.yaml
  evidence: {basis: [measured, reported], max_age: $max_age}
  requires:
    - id: restore
      capability: restore.correctness
      scope: {topology: TP4/DCP1, context_tokens: 131072, concurrency: 1}
  waivable: []
  never_waive: [IMAGE_REJECTED]
  waiver_max_days: 14
"""


def config(byte: str) -> Digest:
    return Digest(DigestKind.OCI_CONFIG, byte * 32)


def manifest(byte: str) -> Digest:
    return Digest(DigestKind.OCI_MANIFEST, byte * 32)


IMAGE, OTHER, THIRD, BUILT_ON, UNTESTED, UNKNOWN = map(config, ("a1", "b2", "c3", "d7", "f6", "99"))
ALIAS = manifest("d4")


@dataclass
class World:
    """A ledger of four people: `ci` builds, `lab` qualifies, `alice` approves, `release-gate` decides."""

    workspace: Workspace
    folder: Path
    at: dict[str, Receipt] = field(default_factory=dict)

    def say(self, predicate: str, about: Digest | Subject, fields: dict[str, Any], *, by: str) -> Receipt:
        """Record a statement, signed by one of the people."""
        subject = about if isinstance(about, Subject) else Subject.of(about)
        done = record(self.workspace, Recording(predicate, (subject,), fields), "builder", str(self.key(by)))
        return done.receipt

    def key(self, person: str) -> Path:
        return self.folder / "keys" / f"{person}.pem"

    def fingerprint(self, person: str) -> Digest:
        return public_key(str(self.key(person))).fingerprint

    def image(
        self,
        about: Digest = IMAGE,
        *,
        aliases: Sequence[tuple[Digest, bool]] = (),
        commit: str | None = None,
        by: str = "ci",
        **fields: Any,
    ) -> Receipt:
        predicate: dict[str, Any] = {
            "level": str(about.kind).removeprefix("oci-"),
            "verified": True,
            "aliases": [{"digest": str(digest), "proven": proven, "how": "bytes"} for digest, proven in aliases],
            "layers": [],
            "labels": {},
            "published": [],
            "test_results": [],
            **fields,
        }
        if commit:
            predicate["built_from"] = {"components": {"engine": {"commit": f"git-commit:{commit}"}}}
        return self.say(PredicateName.IMAGE, about, predicate, by=by)

    def tests(self, about: Digest = IMAGE, result: str = "PASSED", **fields: Any) -> Receipt:
        predicate = {"result": result, "configuration": [], "passedTests": [], "failedTests": [], **fields}
        return self.say(TEST_RESULT, about, predicate, by="ci")

    def verdict(self, outcome: str = "pass", *, commit: str = COMMIT, checkers: Mapping[str, int] | None = None) -> Receipt:
        """A verdict of the contract `serving`."""
        finding = {"code": "CONTRACT_VIOLATED", "severity": "block", "outcome": "fail", "evidence": [], "fix": "mend it"}
        predicate = {
            "contract": {"id": "serving", "version": 1, "digest": f"file:sha256:{'c' * 64}"},
            "outcome": outcome,
            "evaluated": 3,
            "of": 3,
            "findings": [] if outcome == "pass" else [finding],
            "checkers": dict(checkers or {"pins.agree": 1}),
            "pins": {"engine": {"commit": commit}},
            "binds_image": ["engine"],
        }
        return self.say(PredicateName.CONTRACT_VERDICT, Digest(DigestKind.GIT_COMMIT, OTHER_COMMIT), predicate, by="ci")

    def document(self, *claims: dict[str, Any]) -> Receipt:
        """An outside evidence document that makes these claims."""
        text = json.dumps(claims)
        file = Digest.of(DigestKind.FILE, text.encode())
        predicate = {
            "adapter": {"name": "worlds", "version": 1},
            "schema": "worlds/v1",
            "files": [{"path": "a.json", "sha256": file.hex, "bytes": len(text), "role": "root"}],
            "not_here": [],
            "evidence_state": {"source_reported": True, "site_reproduced": False, "independent_runs": 0},
            "claims": list(claims),
            "refused": [],
            "findings": [],
            "bound_by": [],
        }
        return self.say(PredicateName.EVIDENCE_DOCUMENT, file, predicate, by="ci")

    def receipt(
        self,
        about: Digest = IMAGE,
        capability: str = RESTORE,
        *,
        outcome: str = "pass",
        context_tokens: int = 131072,
        by: str = "lab",
        scope: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Receipt:
        """A receipt of basis `reported`, resting on a document that claims just what it says."""
        cell = {"context_tokens": context_tokens, "concurrency": 1}
        tested = {"image": str(about), "topology": {"tp": 4, "dcp": 1, "pp": 1}, "cells": [cell], **(scope or {})}
        controls = dict.fromkeys(_controls(capability), "not-recorded")
        observed = fields.pop("observed", OBSERVED)
        common = {"capability": capability, "outcome": outcome, "scope": tested, "controls": controls, "observed": observed}
        document = self.document({**common, "claim": None, "source": "/a", "derived": []})
        own = {"basis": "reported", "runs": 1, "boots": None, "rests_on": [str(document.payload)], "limitations": []}
        return self.say(PredicateName.QUALIFICATION_RECEIPT, about, {**common, **own, **fields}, by=by)

    def reject(self, about: Digest = IMAGE, *, by: str = "lab", **fields: Any) -> Receipt:
        predicate = {"scope": "image-wide", "reason": "the answer was wrong", "rests_on": [], "observed_time": None, **fields}
        return self.say(PredicateName.REJECTION, about, predicate, by=by)

    def retract(self, receipt: Receipt, *, by: str = "alice") -> Receipt:
        return self.say(PredicateName.RETRACTION, receipt.payload, {"reason": "the rig was wired wrongly", "replacement": None}, by=by)

    def policy(self, name: str = "lab", *, channel: str = "lab", max_age: str = "none") -> Path:
        """A policy file that demands a correct restore at 131,072 tokens."""
        path = self.folder / f"{name}.yaml"
        path.write_text(Template(POLICY).substitute(name=name, channel=channel, max_age=max_age))
        return path

    def decide(self, about: Digest = IMAGE, policy: Path | None = None, *, by: str = "release-gate") -> Receipt:
        """Decide by a policy and record it; the entry of the decision."""
        decided = gate(self.workspace, Asked((str(about),), policy or self.policy()))
        (done,) = record_decisions(self.workspace, decided.decisions, decided.documents.files, str(self.key(by)))
        return done.receipts[0]

    def roles(self) -> dict[str, Any]:
        """The roles of the trust policy, as it writes them."""
        found: dict[str, Any] = yaml.safe_load(self.workspace.trust_file.read_text())["spec"]["roles"]
        return found

    def people(self) -> dict[str, Any]:
        """The principals of the trust policy, as it writes them."""
        found: dict[str, Any] = yaml.safe_load(self.workspace.trust_file.read_text())["spec"]["principals"]
        return found

    def edit(self, statement: str, *values: object) -> None:
        """Change the ledger behind the program's back, past its guards."""
        with closing(sqlite3.connect(self.workspace.ledger)) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                db.execute(f'DROP TRIGGER "{name}"')
            db.execute(statement, values)
            db.commit()

    def trust(self, **changes: Any) -> None:
        """Change the `spec` of the trust policy."""
        document = yaml.safe_load(self.workspace.trust_file.read_text())
        document["spec"].update(changes)
        self.workspace.trust_file.write_text(yaml.safe_dump(document))


def make_world(folder: Path) -> World:
    """An empty ledger in `folder`, with a key and a role for each of the people."""
    workspace = initialise(folder).workspace
    for person in PEOPLE:
        generate(folder / "keys" / f"{person}.pem")
    world = World(workspace, folder)
    document = yaml.safe_load(workspace.trust_file.read_text())
    operator = document["spec"]["principals"]["operator"]
    keys = {person: [{"file": f"keys/{person}.pub", "spki_sha256": world.fingerprint(person).hex}] for person in PEOPLE}
    world.trust(
        single_operator=False,
        principals={"operator": operator, **{person: {"keys": key} for person, key in keys.items()}},
        roles=dict(zip(("builder", "qualifier", "approver", "gate"), ({"any_of": [person]} for person in PEOPLE), strict=True)),
    )
    return world


def full_world(folder: Path) -> World:
    """A world with an entry of every kind; `at` has the receipts of those that tests ask about."""
    world = make_world(folder)
    at = world.at
    at["image"] = world.image(IMAGE, aliases=[(ALIAS, True)], commit=COMMIT, layers=layers("11", "33"))
    at["tests"] = world.tests(IMAGE, passedTests=["x", "y"])
    at["verdict"] = world.verdict()
    at["pass"] = world.receipt(scope={"model": MODEL})
    at["fail"] = world.receipt(OTHER, outcome="fail")
    at["rejection"] = world.reject(THIRD)
    at["taken back"] = world.receipt(context_tokens=262144)
    at["retraction"] = world.retract(at["taken back"])
    at["other image"] = world.image(OTHER, commit=OTHER_COMMIT, layers=layers("11", "22"))
    at["other tests"] = world.tests(OTHER, "FAILED", passedTests=["x"], failedTests=["y"])
    at["built on"] = world.image(BUILT_ON, base=str(IMAGE))
    at["untested"] = world.image(UNTESTED)
    serving = world.policy("serving", channel="production")
    for name, image in (("allow", IMAGE), ("deny", THIRD)):
        at[name] = world.decide(image, serving)
    return world


def layers(*bytes_: str) -> list[dict[str, Any]]:
    return [{"sha256": byte * 32, "bytes": 100} for byte in bytes_]


def _controls(capability: str) -> list[str]:
    text = (resources.files("countermark.contracts") / "catalogue.yaml").read_text()
    found: list[str] = yaml.safe_load(text)["spec"]["capabilities"][capability]["controls"]
    return found
