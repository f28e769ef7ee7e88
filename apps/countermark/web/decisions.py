"""The page of decisions: verdict, requirements, matrix, evidence, and the documents that they were made by.

A view is made of a decision's core as it is written, so that a decision of today and one of the ledger are shown alike, and what the
page says is what the decision's id stands for.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countermark.actions.dossier import Dossier
from countermark.attestations.located import JsonValue, as_integer, as_list, as_object
from countermark.attestations.statement import canonical
from countermark.contracts.explain_text import NOTES
from countermark.web.cards import cards
from countermark.web.matrix import Matrix, matrix
from countermark.web.rendering import render
from countermark.web.wording import MEANINGS, Badge, outcome_badge, status_badge

_ONE_INPUT: Final = ("policy", "trust", "catalogue", "profile")
_MANY_INPUTS: Final = ("contract_verdicts", "waivers")


@dataclass(frozen=True, slots=True)
class Shown:
    """A decision to show: its id and core, and, of a recorded one, its entry and the pointers at which it differs when made again."""

    id: str
    core: Mapping[str, JsonValue]
    dossier: Dossier | None
    entry: int | None = None
    differences: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """A statement that was weighed: its entry, where that is on the page."""

    payload: str
    entry: int | None
    signer: str
    why: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement with its answer; `evidence` is what the answer rests on, `considered` what it does not rest on, and why.

    A reason that stands in what was observed is not told twice.
    """

    anchor: str
    id: str
    capability: str
    badge: Badge
    outcome: str
    code: str
    facts: tuple[tuple[str, str], ...]
    evidence: tuple[Weighed, ...]
    considered: tuple[Weighed, ...]
    holds: bool
    applies: bool
    waived_by: str


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver that was weighed; `why` says why it changes nothing."""

    name: str
    facts: tuple[tuple[str, str], ...]
    used: bool
    why: str


@dataclass(frozen=True, slots=True)
class View:
    """One decision as the template reads it."""

    anchor: str
    id: str
    core_sha256: str
    core_text: str
    verdict: Badge
    mode: str
    subject: str
    names: tuple[str, ...]
    policy: str
    effective_time: str
    evaluated: int
    satisfied: int
    requirements: tuple[Requirement, ...]
    waivers: tuple[Waiver, ...]
    notes: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str, str], ...]
    checkers: tuple[tuple[str, str], ...]
    gathered: bool
    matrix: Matrix | None
    silent: tuple[str, ...]
    rules: str
    ledger: Mapping[str, JsonValue]
    protected_to: int
    entry: int | None
    differences: tuple[str, ...] | None


def decisions_page(command: str, shown: Sequence[Shown], made: Mapping[str, JsonValue]) -> str:
    """The page of one or more decisions; `made` says which program made them, and when."""
    views = [_view(item, f"decision-{n}") for n, item in enumerate(shown)]
    found = cards(item.dossier for item in shown if item.dossier)
    return render("decisions.html", command=command, decisions=views, cards=found, made=made, meanings=MEANINGS, badge=status_badge)


def _view(shown: Shown, anchor: str) -> View:
    core, dossier = shown.core, shown.dossier
    places = {payload: entry.index for payload, entry in dossier.statements.items()} if dossier else {}
    inputs, ledger = as_object(core.get("inputs")), as_object(core.get("ledger"))
    encoded = canonical(core)
    requirements = [as_object(item) for item in as_list(core.get("requirements"))]
    return View(
        anchor=anchor,
        id=shown.id,
        core_sha256=hashlib.sha256(encoded).hexdigest(),
        core_text=encoded.decode(),
        verdict=outcome_badge(str(core.get("verdict"))),
        mode=str(core.get("mode")),
        subject=str(core.get("subject")),
        names=tuple(map(str, dossier.names)) if dossier else (),
        policy=_named(as_object(inputs.get("policy"))),
        effective_time=str(core.get("effective_time")),
        evaluated=as_integer(core.get("evaluated")) or 0,
        satisfied=as_integer(core.get("satisfied")) or 0,
        requirements=tuple(_requirement(item, f"{anchor}-{n}", places) for n, item in enumerate(requirements)),
        waivers=tuple(_waiver(as_object(item), places) for item in as_list(core.get("waivers"))),
        notes=tuple(_note(str(item)) for item in as_list(core.get("notes"))),
        inputs=_inputs(inputs),
        checkers=tuple((name, str(version)) for name, version in as_object(core.get("checkers")).items()),
        gathered=dossier is not None,
        matrix=matrix(dossier, anchor) if dossier and dossier.known else None,
        silent=dossier.silent if dossier else (),
        rules=_rules(dossier) if dossier else "",
        ledger=ledger,
        protected_to=as_integer(ledger.get("protected_to")) or 0,
        entry=shown.entry,
        differences=shown.differences,
    )


def _requirement(item: Mapping[str, JsonValue], anchor: str, places: Mapping[str, int]) -> Requirement:
    outcome, observed, at = str(item.get("outcome")), str(item.get("observed") or ""), as_object(item.get("location"))
    weighed = [as_object(found) for found in as_list(item.get("evidence"))]
    facts = (
        ("required", str(item.get("required") or "")),
        ("observed", observed),
        ("left open", ", ".join(map(str, as_list(item.get("any"))))),
        ("can change on", _text(item.get("next_expiry"))),
        ("fix", str(item.get("fix") or "")),
        ("policy line", ":".join(str(at[name]) for name in ("file", "line") if at.get(name) is not None)),
    )
    return Requirement(
        anchor=anchor,
        id=str(item.get("id")),
        capability=_text(item.get("capability")),
        badge=status_badge(str(item.get("status"))),
        outcome=outcome,
        code=", ".join(map(str, as_list(item.get("codes")))) or str(item.get("code")),
        facts=tuple((label, text) for label, text in facts if text),
        evidence=tuple(_weighed(found, places, observed) for found in weighed if found.get("used") is True),
        considered=tuple(_weighed(found, places, observed) for found in weighed if found.get("used") is not True),
        holds=outcome == "pass",
        applies=outcome != "not-applicable",
        waived_by=_text(item.get("waived_by")),
    )


def _waiver(item: Mapping[str, JsonValue], places: Mapping[str, int]) -> Waiver:
    payload = str(item.get("payload"))
    facts = (
        ("requirement", _text(item.get("requirement"))),
        ("codes", ", ".join(map(str, as_list(item.get("codes"))))),
        ("reason", _text(item.get("reason"))),
        ("ticket", _text(item.get("ticket"))),
        ("asked by", _text(item.get("requested_by"))),
        ("approved by", ", ".join(map(str, as_list(item.get("approved_by")))) or "nobody"),
        ("holds from", _text(item.get("not_before"))),
        ("until", _text(item.get("expires"))),
        ("entry", _text(places.get(payload))),
        ("payload", payload),
    )
    name = _named(item) if "id" in item else "a waiver that cannot be read"
    return Waiver(name, tuple((label, text) for label, text in facts if text), item.get("used") is True, _text(item.get("why")))


def _weighed(item: Mapping[str, JsonValue], places: Mapping[str, int], observed: str) -> Weighed:
    payload = str(item.get("payload"))
    why = _text(item.get("why"))
    return Weighed(payload, places.get(payload), str(item.get("signer")), "" if why and why in observed else why)


def _note(text: str) -> tuple[str, str]:
    name, _, count = text.partition(":")
    return text, NOTES[name].format(count) if name in NOTES else ""


def _inputs(inputs: Mapping[str, JsonValue]) -> tuple[tuple[str, str, str], ...]:
    """What each document is for, its id and version, and its digest."""
    found = [(name, as_object(inputs[name])) for name in _ONE_INPUT if name in inputs]
    found += [(name.replace("_", " ")[:-1], as_object(item)) for name in _MANY_INPUTS for item in as_list(inputs.get(name))]
    return tuple((name, _named(item), str(item.get("digest"))) for name, item in found)


def _named(item: Mapping[str, JsonValue]) -> str:
    return f"{item.get('id')}@{item.get('version')}"


def _rules(dossier: Dossier) -> str:
    rules = dossier.rules
    return f"signed by {rules.signed_by}, basis {' or '.join(sorted(rules.basis))}, greatest age {rules.max_age_text}"


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)
