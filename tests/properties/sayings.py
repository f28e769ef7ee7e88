"""Random things that people say of a few images, signed by their real keys, and ledgers to which they are admitted in some order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import strategies as st
from worlds import ALIAS, IMAGE, OTHER, PEOPLE, World

from countermark.actions.appending import sign
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import PREDICATE_BASE, PredicateName
from countermark.attestations.statement import Statement, Subject
from countermark.ledger.submission import Receipt

from .real_ledgers import take

INDEX = Digest(DigestKind.OCI_INDEX, "e5" * 32)
SUBJECTS = (IMAGE, OTHER, ALIAS, INDEX)


@dataclass
class Draft(World):
    """A world that signs what is said, and keeps the envelopes instead of admitting them."""

    lines: list[str] = field(default_factory=list)
    signers: dict[str, Signer] = field(default_factory=dict)
    documents: list[Receipt] = field(default_factory=list)

    def say(self, predicate: str, about: Digest | Subject, fields: dict[str, Any], *, by: str) -> Receipt:
        """Sign a statement; its number among all that were signed stands in the place of an index."""
        subject = about if isinstance(about, Subject) else Subject.of(about)
        uri = predicate if "://" in predicate else f"{PREDICATE_BASE}{predicate}/v1"
        if by not in self.signers:
            self.signers[by] = Signer.load(str(self.key(by)))
        envelope = sign(Statement((subject,), uri, fields), self.signers[by])
        self.lines.append(envelope.to_json())
        return Receipt(len(self.lines) - 1, Digest.of(DigestKind.PAYLOAD, envelope.payload), duplicate=False)

    def document(self, *claims: dict[str, Any]) -> Receipt:
        """As in every world, and kept in mind."""
        self.documents.append(super().document(*claims))
        return self.documents[-1]

    @classmethod
    def of(cls, world: World) -> "Draft":
        """A draft for the people of a world."""
        return cls(world.workspace, world.folder)


@dataclass(frozen=True)
class Saying:
    """One thing that somebody says; which fields count depends on the verb. `target` counts the sayings before it, round and round."""

    verb: Literal["pass", "fail", "reject", "alias", "tested", "retract", "supersede"]
    by: str
    image: Digest
    other: Digest
    tokens: int
    flag: bool
    target: int


SAYING = st.builds(
    Saying,
    verb=st.sampled_from(["pass", "pass", "pass", "fail", "reject", "alias", "alias", "tested", "retract", "supersede"]),
    by=st.sampled_from(PEOPLE),
    image=st.sampled_from((IMAGE, IMAGE, *SUBJECTS)),
    other=st.sampled_from(SUBJECTS),
    tokens=st.sampled_from([131072, 131072, 262144]),
    flag=st.booleans(),
    target=st.integers(0, 5),
)
SAYINGS = st.lists(SAYING, min_size=1, max_size=7)
_OWN = {"pass": "lab", "fail": "lab", "alias": "ci", "tested": "ci"}


def signed(world: World, sayings: Sequence[Saying]) -> list[str]:
    """The envelopes of these sayings."""
    draft, said = Draft.of(world), list[Receipt]()
    for number, saying in enumerate(sayings):
        said.append(_said(draft, saying, number, said))
    return draft.lines


def _said(draft: Draft, saying: Saying, number: int, said: Sequence[Receipt]) -> Receipt:
    mark = f"saying {number}"
    by = _OWN.get(saying.verb, saying.by) if saying.flag else saying.by
    if saying.verb in ("retract", "supersede") and said:
        target = said[saying.target % len(said)].payload
        if saying.verb == "retract":
            return draft.say(PredicateName.RETRACTION, target, {"reason": mark, "replacement": None}, by=by)
        fields = {"by": str(target), "reason": mark, "raw_measurements_changed": saying.flag}
        return draft.say(PredicateName.SUPERSESSION, target, fields, by=by)
    if saying.verb == "reject":
        scope = {"image": str(saying.image), "cells": [{"context_tokens": saying.tokens}]}
        capability: dict[str, Any] = {"capability": "restore.correctness", "scope": scope} if saying.flag else {"capability": None}
        return draft.reject(saying.image, by=by, reason=mark, **capability)
    if saying.verb == "alias":
        return draft.image(saying.image, aliases=[(saying.other, saying.flag)], by=by, labels={"n": mark})
    if saying.verb == "tested":
        results = draft.tests(saying.image, passedTests=[mark])
        return draft.image(saying.image, by=by, labels={"n": mark}, test_results=[str(results.payload)])
    claim: dict[str, Any] = {"claim": "research-only"} if saying.flag and saying.target == 0 else {}
    outcome = "fail" if saying.verb == "fail" else "pass"
    return draft.receipt(saying.image, outcome=outcome, by=by, context_tokens=saying.tokens, limitations=[mark], **claim)


def admit(world: World, lines: Sequence[str]) -> None:
    """Import the envelopes in this order at a time when anybody might say anything, and trust as strictly as before since then."""
    strict = world.workspace.trust_file.read_bytes()
    everything = ["image", "evidence-document", "qualification-receipt", "rejection", "retraction", "supersession"]
    everything.append("https://in-toto.io/attestation/test-result/v0.1")
    anybody = {"any_of": list(world.people())}
    world.trust(makes=dict.fromkeys(world.roles(), everything), roles=dict.fromkeys(world.roles(), anybody))
    try:
        result = take(world, lines)
    finally:
        world.workspace.trust_file.write_bytes(strict)
    assert not result.refused, [item.refusal.reason for item in result.refused]
