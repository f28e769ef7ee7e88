"""What a page about an image shows beside a decision: the gate's answer at each scope that was tested, receipts, and statements.

The answers are the gate's own, asked for once more for each capability at each tested scope, at the head and time of the decision.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from countermark.actions.catalogue import load_catalogue
from countermark.actions.gate import Documents
from countermark.actions.queries.receipts import ReceiptRow, RejectionRow, receipt_rows, silent
from countermark.actions.queries.view import View, When, open_view
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import load_document
from countermark.attestations.errors import Location
from countermark.attestations.located import as_list
from countermark.contracts.compare_images import Side
from countermark.contracts.decision import Decision, Result
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.policy import ReleasePolicy, adhoc_document
from countermark.contracts.rejection import Rejection
from countermark.contracts.requirement import CapabilityRequirement, EvidenceRules, Requirement
from countermark.contracts.scope import Leaves, Scope, describe

MOST_COLUMNS: Final = 40
"""More tested scopes than this cannot be read side by side."""
MOST_IMAGES: Final = 40
"""A page about more images than this tells their verdicts and requirements, and leaves their evidence to a page for each."""

_AT: Final = Location("page")
_NAMED_IN: Final = ("rests_on", "test_results")


@dataclass(frozen=True, slots=True)
class Column:
    """One scope that somebody tested: the leaves outside cells, and one cell."""

    exact: Leaves
    cell: Leaves

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        """The same for the same scope; the cells of one scope are ordered by their numbers, not by their text."""
        return describe(self.exact), tuple((leaf, value) for leaf, value in sorted(self.cell.items()) if isinstance(value, int))


@dataclass(frozen=True, slots=True)
class Answered:
    """What the gate answers about a capability at each column, in their order, and where a receipt states exactly that scope."""

    capability: str
    means: str
    results: tuple[Result, ...]
    tested: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Dossier:
    """One image.

    `names` are its other digests, `same` those of them, and itself, between which passes cross. `left_out` counts tested scopes that have
    no column. `statements` are those that a decision, an answer or a receipt names, by their payload digest, as far as they are in the
    ledger; `rules` are what evidence must be to count.
    """

    subject: Digest
    known: bool
    names: tuple[Digest, ...]
    same: frozenset[Digest]
    receipts: tuple[ReceiptRow | RejectionRow, ...]
    columns: tuple[Column, ...]
    left_out: int
    answers: tuple[Answered, ...]
    silent: tuple[str, ...]
    statements: Mapping[str, Entry]
    rules: EvidenceRules


def dossiers(workspace: Workspace, decisions: Sequence[Decision], documents: Documents) -> tuple[Dossier | None, ...]:
    """One for each decision, at the one head and effective time that all of them name, or none where they are too many for a page.

    Raises what `open_view` does.
    """
    if not 0 < len(decisions) <= MOST_IMAGES:
        return (None,) * len(decisions)
    head, instant = decisions[0].head, decisions[0].effective_time
    rules = rules_of(documents)
    with open_view(workspace, When(instant), documents.trust) as view:
        view.reader.rewind(head.size)
        return tuple(dossier(view, decision.subject, documents.policy, rules, _cited(decision)) for decision in decisions)


def rules_of(documents: Documents) -> EvidenceRules:
    """The rules of evidence that hold in a policy where no requirement has its own."""
    document = load_document(documents.files[0], "policy", "ReleasePolicy")
    general = load_document(adhoc_document(["service.startup"], trust="", base=document), "policy", "ReleasePolicy")
    (requirement,) = ReleasePolicy.of(general, load_catalogue(), adhoc=True).requires
    return requirement.evidence if isinstance(requirement, CapabilityRequirement) else EvidenceRules()


def dossier(view: View, subject: Digest, policy: ReleasePolicy, rules: EvidenceRules, named: Iterable[str] = ()) -> Dossier:
    """What a view of the ledger holds about an image; `named` are statements that shall be among those of the dossier."""
    evidence = view.evidence(subject, policy.platform)
    side = Side.of(subject, evidence)
    rows = receipt_rows(side.names, evidence, policy.catalogue)
    columns = _columns(side)
    shown = columns[:MOST_COLUMNS]
    asked = _demands(policy, rules, shown)
    results = view.decide(subject, replace(policy, profile=None, requires=asked)).requirements
    tested = {(receipt.capability, column.key) for receipt in side.receipts() for column in _of_scope(receipt.scope)}
    answers = tuple(
        Answered(
            name,
            capability.means,
            results[n * len(shown) : (n + 1) * len(shown)],
            tuple((name, column.key) in tested for column in shown),
        )
        for n, (name, capability) in enumerate(policy.catalogue.capabilities.items())
    )
    wanted = {*named, *_named(results), *(str(row.payload) for row in rows)}
    return Dossier(
        subject,
        all(result.code is not Code.SUBJECT_UNKNOWN for result in results),
        tuple(sorted((side.names.passes | side.names.rejections) - {subject})),
        side.names.passes,
        tuple(rows),
        shown,
        len(columns) - len(shown),
        answers,
        silent(rows, policy.catalogue),
        {str(entry.payload): entry for entry in _closure(evidence, wanted)},
        rules,
    )


def _columns(side: Side) -> tuple[Column, ...]:
    """Every scope that a receipt or a rejection is about, once; without any, the one that names nothing."""
    scopes = [receipt.scope for receipt in side.receipts()]
    scopes += [found.scope for found in Rejection.standing(side.names, side.evidence) if found.scope]
    found = {column.key: column for scope in scopes for column in _of_scope(scope)}
    return tuple(found[key] for key in sorted(found)) or (Column({}, {}),)


def _of_scope(scope: Scope) -> Iterator[Column]:
    yield from (Column(scope.exact, cell) for cell in scope.cells or ({},))


def _demands(policy: ReleasePolicy, rules: EvidenceRules, columns: Sequence[Column]) -> tuple[Requirement, ...]:
    """Every capability of the catalogue at every column."""
    return tuple(
        CapabilityRequirement(f"{name} {n}", _AT, capability, ({**column.exact, **column.cell},), (), rules)
        for name, capability in policy.catalogue.capabilities.items()
        for n, column in enumerate(columns)
    )


def _cited(decision: Decision) -> Iterator[str]:
    """The statements that a decision names."""
    yield from _named(decision.requirements)
    yield from (str(item.payload) for item in decision.waivers)


def _named(results: Iterable[Result]) -> Iterator[str]:
    return (str(item.payload) for result in results for item in result.evidence)


def _closure(evidence: Evidence, wanted: set[str]) -> list[Entry]:
    """The entries of these payloads and of all that they rest on, in the order of the ledger."""
    found: dict[str, Entry] = {}
    waiting = set(wanted)
    while waiting:
        entries = [entry for payload in waiting if (entry := evidence.find(payload))]
        found.update((str(entry.payload), entry) for entry in entries)
        waiting = {str(item) for entry in entries for name in _NAMED_IN for item in as_list(entry.predicate.get(name))} - found.keys()
        waiting = {payload for payload in waiting if evidence.find(payload)}
    return sorted(found.values(), key=lambda entry: entry.index)
