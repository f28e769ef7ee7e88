"""`reject`, `retract`, `supersede`: records that take away, or that say what replaces what."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.requirement import parse_require
from countermark.ledger.read import LedgerReader
from countermark.recorders.recording import Recording

_KINDS = (DigestKind.OCI_MANIFEST, DigestKind.OCI_CONFIG, DigestKind.OCI_INDEX)


@dataclass(frozen=True, slots=True)
class Rejected:
    """What a person says of an image or a statement that must not be used."""

    subject: str
    reason: str
    capability: str | None = None
    required: str | None = None
    observed: str | None = None
    rests_on: tuple[str, ...] = ()
    observed_time: str | None = None


def rejection(workspace: Workspace, said: Rejected) -> Recording:
    """A `rejection/v1`: image-wide, or of one capability in the scope written as `CAPABILITY@k=v,…`."""
    with open_reader(workspace) as reader:
        about = _about(reader, said.subject)
        rests_on = [str(_payload(reader, text)) for text in said.rests_on]
    capability, scope = _scope(said.capability, about)
    predicate: dict[str, JsonValue] = {
        "scope": scope,
        "capability": capability,
        "reason": said.reason,
        "rests_on": [*rests_on],
        "observed_time": said.observed_time,
        **{name: value for name, value in (("required", said.required), ("observed", said.observed)) if value is not None},
    }
    return Recording(PredicateName.REJECTION, (Subject.of(about),), predicate)


def retraction(workspace: Workspace, statement: str, reason: str, replacement: str | None) -> Recording:
    """A `retraction/v1` of a statement of the ledger, by its payload digest or entry number."""
    with open_reader(workspace) as reader:
        subject = _payload(reader, statement)
        instead = str(_payload(reader, replacement)) if replacement else None
    predicate: dict[str, JsonValue] = {"reason": reason, "replacement": instead}
    return Recording(PredicateName.RETRACTION, (Subject.of(subject),), predicate, tuple(_lifts_nothing(workspace)))


def _lifts_nothing(workspace: Workspace) -> Iterator[str]:
    """What a person who retracts a rejection must know: who may lift one."""
    if workspace.trust().single_operator:
        yield "under single_operator: true a retraction lifts no rejection and no failure; name other people first"
    else:
        yield "it lifts a rejection or a failure only if its signer is an approver and did not sign that one"


def supersession(workspace: Workspace, older: str, newer: str, reason: str, *, raw_measurements_changed: bool) -> Recording:
    """A `supersession/v1`: one statement of the ledger stands in the place of another."""
    with open_reader(workspace) as reader:
        subject, by = _payload(reader, older), _payload(reader, newer)
    if subject == by:
        raise InputError(Code.SUBJECT_MISMATCH, "a statement cannot supersede itself", at=Location(newer), fix="name the newer statement")
    predicate: dict[str, JsonValue] = {"by": str(by), "reason": reason, "raw_measurements_changed": raw_measurements_changed}
    return Recording(PredicateName.SUPERSESSION, (Subject.of(subject),), predicate)


def _about(reader: LedgerReader, text: str) -> Digest:
    """An image, or a statement of the ledger."""
    return _payload(reader, text) if text.isdecimal() or text.startswith("payload:") else resolve_subject(reader, text, _KINDS)


def _payload(reader: LedgerReader, text: str) -> Digest:
    """The payload digest of a statement that is in the ledger, given as such or by its entry number."""
    if text.isdecimal():
        return reader.entry(int(text)).digest
    digest = Digest.parse(text, at=Location("PAYLOAD"))
    if digest.kind is not DigestKind.PAYLOAD or not reader.find_payload(digest.raw):
        raise InputError(
            Code.REF_NOT_HERE, f"{digest} is no statement of this ledger", fix="give a payload digest or an entry number of it"
        )
    return digest


def _scope(capability: str | None, about: Digest) -> tuple[str | None, JsonValue]:
    if capability is None:
        return None, "image-wide"
    read = parse_require(capability)
    named: Mapping[str, JsonValue] = scope if isinstance(scope := read.get("scope"), dict) else {}
    return str(read["capability"]), _as_scope(named, about)


def _as_scope(named: Mapping[str, JsonValue], about: Digest) -> dict[str, JsonValue]:
    """The dimensions of the command line as a Scope: counts of a test go into its one cell, TP, DCP and PP into the topology."""
    cell: dict[str, JsonValue] = {name: named[name] for name in ("context_tokens", "concurrency", "draft_tokens") if name in named}
    topology: dict[str, JsonValue] = {name: named.get(name) for name in ("tp", "dcp", "pp")}
    scope: dict[str, JsonValue] = {"image": str(about), "cells": [cell]}
    if any(value is not None for value in topology.values()):
        scope["topology"] = topology
    kept = ("platform", "topology", "ranks", "nodes", "model", "draft", "publication_mode")
    scope.update((name, named[name]) for name in kept if name in named)
    return scope
