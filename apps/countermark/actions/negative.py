"""`reject`, `retract`, `supersede`: records that take away, or that say what replaces what."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countermark.actions.catalogue import load_catalogue
from countermark.actions.subjects import resolve_subject
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.statement import Subject
from countermark.contracts.requirement import parse_require, read_demand
from countermark.contracts.scope import CELL_LEAVES, HARDWARE_LEAVES, TOPOLOGY_LEAVES
from countermark.ledger.read import LedgerReader
from countermark.recorders.recording import Recording


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
    """An image, or a statement of the ledger. A bare digest that the ledger does not know is refused: what is rejected must be certain."""
    if _is_number(text) or text.startswith("payload:"):
        return _payload(reader, text)
    about = resolve_subject(reader, text, ())
    if not about.kind.is_oci:
        message = f"{about} is neither an image nor a statement of this ledger, and rejecting it would have no effect"
        raise InputError(Code.BAD_DIGEST, message, at=Location("DIGEST"), fix="name an oci-index, oci-manifest or oci-config, or a payload")
    return about


def _payload(reader: LedgerReader, text: str) -> Digest:
    """The payload digest of a statement that is in the ledger, given as such or by its entry number."""
    digest = None if _is_number(text) else Digest.parse(text, at=Location("PAYLOAD"))
    named = digest is None or digest.kind is DigestKind.PAYLOAD
    indices = (int(text),) if digest is None else reader.find_payload(digest.raw) if named else ()
    statement = next((entry for entry in map(reader.entry, indices) if entry.statement), None)
    if statement is None:
        fix = "give a payload digest or an entry number of it"
        raise InputError(Code.REF_NOT_HERE, f"{digest or f'entry {text}'} is no statement of this ledger", fix=fix)
    return statement.digest


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _scope(capability: str | None, about: Digest) -> tuple[str | None, JsonValue]:
    """The capability, which the catalogue must know, and the scope."""
    if capability is None:
        return None, "image-wide"
    read, at = parse_require(capability), Location("--capability")
    named = as_object(read.get("scope"))
    return load_catalogue().get(str(read["capability"]), at).id, _as_scope(named, about, at)


def _as_scope(named: Mapping[str, JsonValue], about: Digest, at: Location) -> dict[str, JsonValue]:
    """The dimensions of the command line as a Scope: counts of a test go into its one cell, TP, DCP and PP into the topology.

    A dimension that is `any` is left out: what a rejection does not name, it rejects whatever it is.
    """
    leaves = {leaf: values[0] for leaf, values in read_demand(named, at).leaves.items()}
    groups = {"topology": TOPOLOGY_LEAVES, "hardware": HARDWARE_LEAVES}
    grouped = {name: {leaf: leaves[leaf] for leaf in inside if leaf in leaves} for name, inside in groups.items()}
    inside = {*TOPOLOGY_LEAVES, *HARDWARE_LEAVES, *CELL_LEAVES}
    scope: dict[str, JsonValue] = {"image": str(about), "cells": [{leaf: leaves[leaf] for leaf in CELL_LEAVES if leaf in leaves}]}
    scope.update((name, {**found}) for name, found in grouped.items() if found)
    scope.update((name, named[name]) for name in leaves if name not in inside)
    return scope
