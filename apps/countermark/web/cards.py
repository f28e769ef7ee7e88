"""Statements of the ledger as cards: what each says, who signed it, and what it rests on."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from countermark.actions.dossier import Dossier
from countermark.actions.queries.receipts import ReceiptRow, RejectionRow
from countermark.actions.queries.view import short_type
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.evidence import Entry
from countermark.contracts.scope import Scope, describe
from countermark.web.waterfall import Waterfall, waterfalls
from countermark.web.wording import Badge, code_badge, counted, grouped, outcome_badge

_LONGEST: Final = 16_000
"""Characters of a statement that are shown; the ledger holds all of it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A control, a rung or a finding: its name, what came out, and a remark."""

    name: str
    badge: Badge
    note: str


@dataclass(frozen=True, slots=True)
class Card:
    """One statement. `brief` are short words about it, `facts` labelled texts, `problems` what keeps it from counting, `lists` longer
    remarks under a heading, `rests_on` payload digests with the entry that holds them, if it is on the page."""

    index: int
    kind: str
    title: str
    payload: str
    badge: Badge
    signer: str
    signature: Badge
    admitted: str
    brief: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    checks: tuple[Check, ...]
    waterfalls: tuple[Waterfall, ...]
    rests_on: tuple[tuple[str, int | None], ...]
    text: str
    cut: str

    @property
    def anchor(self) -> str:
        """Where the card stands on the page."""
        return f"entry-{self.index}"


def cards(dossiers: Iterable[Dossier], also: Iterable[Entry] = ()) -> tuple[Card, ...]:
    """A card for each statement of these images, and for each of `also`, in the order of the ledger."""
    entries = {str(entry.payload): entry for entry in also}
    rows: dict[str, ReceiptRow | RejectionRow] = {}
    for dossier in dossiers:
        entries.update(dossier.statements)
        rows.update((str(row.payload), row) for row in dossier.receipts)
    places = {payload: entry.index for payload, entry in entries.items()}
    return tuple(card(entry, rows.get(payload), places) for payload, entry in sorted(entries.items(), key=lambda item: item[1].index))


def card(entry: Entry, row: ReceiptRow | RejectionRow | None, places: Mapping[str, int]) -> Card:
    """The card of a statement; `row` is what `query receipts` makes of it, `places` the entry of each payload on the page."""
    predicate, kind = entry.predicate, short_type(entry.statement.predicate_type)
    text = json.dumps(entry.statement.predicate, indent=2, ensure_ascii=False)
    named = [str(item) for name in ("rests_on", "test_results") for item in as_list(predicate.get(name))]
    return Card(
        index=entry.index,
        kind=kind,
        title=_title(kind, predicate),
        payload=str(entry.payload),
        badge=_badge(entry, row),
        signer=entry.signer,
        signature=code_badge(entry.code),
        admitted=str(entry.admitted.whole_seconds()),
        brief=tuple(word for word in _brief(kind, predicate, row) if word),
        facts=tuple((label, value) for label, value in _facts(entry, kind, row) if value),
        problems=row.problems if isinstance(row, ReceiptRow) else (),
        lists=tuple((heading, found) for heading, found in _lists(kind, predicate) if found),
        checks=tuple(_checks(kind, predicate)),
        waterfalls=waterfalls(predicate) if kind == PredicateName.RESTORE_RUN else (),
        rests_on=tuple((payload, places.get(payload)) for payload in named),
        text=text[:_LONGEST],
        cut=f"{grouped(len(text) - _LONGEST)} more characters are in the ledger" if len(text) > _LONGEST else "",
    )


def _title(kind: str, predicate: Mapping[str, JsonValue]) -> str:
    if kind == PredicateName.QUALIFICATION_RECEIPT:
        return str(predicate.get("capability") or "no capability")
    if kind == PredicateName.REJECTION:
        return str(predicate.get("capability") or "the image")
    if kind == PredicateName.CONTRACT_VERDICT:
        contract = as_object(predicate.get("contract"))
        return f"{contract.get('id')}@{contract.get('version')}"
    return str(as_object(predicate.get("adapter")).get("name") or predicate.get("schema") or "")


def _badge(entry: Entry, row: ReceiptRow | RejectionRow | None) -> Badge:
    if isinstance(row, RejectionRow):
        return Badge("rejects", "✗", "rejected") if row.counts else Badge("lifted" if row.lifted_by else "does not count", "·", "silent")
    if isinstance(row, ReceiptRow):
        return outcome_badge(row.outcome) if not row.problems else Badge(f"{row.outcome}, with problems", "!", "unqualified")
    outcome = entry.outcome
    return outcome_badge(outcome) if outcome else Badge("statement", "·", "silent")


def _brief(kind: str, predicate: Mapping[str, JsonValue], row: ReceiptRow | RejectionRow | None) -> Iterator[str]:
    if isinstance(row, ReceiptRow):
        yield f"outcome {row.outcome}, computed" + ("" if row.stated == row.outcome else f"; the receipt says {row.stated}")
        yield f"basis {row.basis}"
        yield f"claims {row.claim}" if row.claim else ""
        yield f"observed until {row.observed_to or 'a time that is not recorded'}"
        yield from (counted(number, name) for name in ("run", "boot") if isinstance(number := predicate.get(f"{name}s"), int))
    elif kind == PredicateName.RESTORE_RUN:
        device, engine = as_object(predicate.get("device")), as_object(predicate.get("engine"))
        yield f"the engine reports {predicate.get('outcome')}"
        yield f"device {' '.join(str(device[name]) for name in ('kind', 'name', 'sm') if device.get(name))}"
        yield f"engine {engine.get('version')}"
    elif kind == PredicateName.CONTRACT_VERDICT:
        yield f"evaluated {predicate.get('evaluated')} of {predicate.get('of')}"
    elif kind == PredicateName.EVIDENCE_DOCUMENT:
        yield counted(len(as_list(predicate.get("claims"))), "claim")


def _facts(entry: Entry, kind: str, row: ReceiptRow | RejectionRow | None) -> Iterator[tuple[str, str]]:
    predicate = entry.predicate
    if isinstance(row, ReceiptRow):
        yield "tested", row.tested
    elif isinstance(row, RejectionRow):
        cells = row.cells()
        yield from ((name, cells[name]) for name in ("rejection of", "tested", "reason", "standing"))
    elif kind == PredicateName.RESTORE_RUN:
        yield from _run_facts(predicate)
    elif kind == PredicateName.EVIDENCE_DOCUMENT:
        yield "schema", str(predicate.get("schema"))
        for file in map(as_object, as_list(predicate.get("files"))):
            yield "file", f"{file.get('path')}, file:sha256:{file.get('sha256')}"
    elif kind in (PredicateName.RETRACTION, PredicateName.SUPERSESSION):
        yield "reason", _text(predicate.get("reason"))
    yield "subject", ", ".join(str(digest) for subject in entry.statement.subjects for digest in subject.typed)


def _run_facts(predicate: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    answer = as_object(predicate.get("answer"))
    ranks = [as_object(rank) for rank in as_list(predicate.get("ranks"))]
    placed = sum(size for rank in ranks if isinstance(size := rank.get("bytes"), int))
    yield "placed", f"{counted(placed, 'byte')} on {counted(len(ranks), 'rank')}"
    if answer:
        yield "answer", f'required "{answer.get("required")}": {answer.get("outcome")}'
    yield "scope", describe(Scope.of(predicate.get("scope")).exact)
    yield "engine from", _text(as_object(predicate.get("engine")).get("source"))


def _lists(kind: str, predicate: Mapping[str, JsonValue]) -> Iterator[tuple[str, tuple[str, ...]]]:
    limits = tuple(str(item) for item in as_list(predicate.get("limitations")))
    yield counted(len(limits), "limitation"), limits
    if kind == PredicateName.EVIDENCE_DOCUMENT:
        refused = [as_object(item) for item in as_list(predicate.get("refused"))]
        findings = [as_object(item) for item in as_list(predicate.get("findings"))]
        yield f"{counted(len(refused), 'value')} refused", tuple(f"{item.get('pointer')}: {item.get('why')}" for item in refused)
        told = tuple(f"{item.get('code')}: {item.get('observed') or item.get('fix')}" for item in findings)
        yield counted(len(findings), "finding"), told


def _checks(kind: str, predicate: Mapping[str, JsonValue]) -> Iterator[Check]:
    """The controls of a receipt, the rungs of a run, the findings of a contract's verdict."""
    if kind == PredicateName.QUALIFICATION_RECEIPT:
        for name, word in as_object(predicate.get("controls")).items():
            yield Check(name, outcome_badge(str(word)), "")
    if kind == PredicateName.RESTORE_RUN:
        for name, rung in as_object(predicate.get("rungs")).items():
            yield _rung(name, as_object(rung))
    if kind == PredicateName.CONTRACT_VERDICT:
        for finding in map(as_object, as_list(predicate.get("findings"))):
            name = str(finding.get("checker") or finding.get("code"))
            yield Check(name, outcome_badge(str(finding.get("outcome"))), str(finding.get("observed") or finding.get("fix") or ""))


def _rung(name: str, rung: Mapping[str, JsonValue]) -> Check:
    controls = [as_object(item) for item in as_list(rung.get("controls"))]
    caught = sum(item.get("caught_by") is not None for item in controls)
    faults = f"{caught} of {counted(len(controls), 'injected fault')} caught" if controls else ""
    note = "; ".join(part for part in (faults, str(rung.get("reason") or "")) if part)
    return Check(name, outcome_badge(str(rung.get("outcome"))), note)


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)
