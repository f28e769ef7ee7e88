"""What a receipt rests on, and whether that bears it.

Nothing that a receipt says about itself is taken on its word: its controls, basis, scope and time are held against the statements
it rests on. A receipt that says more or other than they do is contradicted, and one that says less is as good as it says.
"""

from collections.abc import Iterator
from functools import cached_property

from countermark.attestations.codes import Outcome, Severity
from countermark.attestations.located import JsonValue, as_list, as_object
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.catalogue import Capability
from countermark.contracts.controls import control, reported, worst
from countermark.contracts.evidence import Entry, Evidence
from countermark.contracts.measurements.judged import judged
from countermark.contracts.receipt import Receipt, instant_ended
from countermark.contracts.scope import Leaves, Scope


class Basis:
    """The statements that a receipt rests on, and what they leave of it."""

    def __init__(self, receipt: Receipt, capability: Capability, evidence: Evidence) -> None:
        self._receipt = receipt
        self._capability = capability
        self._evidence = evidence
        self._named = as_list(receipt.entry.predicate.get("rests_on"))
        self._entries = [entry for item in self._named if (entry := evidence.find(str(item)))]

    @cached_property
    def controls(self) -> dict[str, Outcome | None]:
        """Each control of the capability as it recomputes; None where no operands of it are in the ledger."""
        return {name: self._control(name) for name in self._capability.controls}

    @property
    def kind(self) -> str:
        """`measured` when every control recomputes, `reported` when some does not."""
        return "measured" if self.controls and None not in self.controls.values() else "reported"

    @property
    def devices(self) -> frozenset[str]:
        """The kinds of device of the restore runs among them."""
        runs = [entry.predicate.get("device") for entry in self._entries if _is(entry, PredicateName.RESTORE_RUN)]
        return frozenset(str(device.get("kind")) if isinstance(device, dict) else "unknown" for device in runs)

    def unusable(self) -> Iterator[str]:
        """Statements that are not there, or that nobody who may has made, or that were taken back."""
        if not self._named:
            yield "it rests on nothing"
        if self._incomplete:
            yield "it rests on a statement that is not in the ledger"
        for entry in self._entries:
            if not entry.counts_as():
                yield f"it rests on a statement by {entry.signer}, who may not make it [{entry.code}]"
            elif self._evidence.taken_back(entry):
                yield "it rests on a statement that was taken back"

    def contradictions(self) -> Iterator[str]:
        """Where the receipt says more or other than what it rests on, as far as that is in the ledger."""
        if self._incomplete or not self._entries:
            return
        if self._receipt.outcome is Outcome.PASS:
            yield from (f"its control {name} fails" for name, outcome in self.controls.items() if outcome is Outcome.FAIL)
            if self._documents:
                yield from self._beyond_claims()
            for entry in self._entries:
                yield from () if entry in self._documents else self._beyond(entry)
        stated = self._receipt.entry.predicate.get("basis")
        if stated != self.kind:
            yield f"it says that its basis is {stated}, and that computes to {self.kind}"

    @property
    def _incomplete(self) -> bool:
        return len(self._entries) < len(self._named)

    @property
    def _documents(self) -> list[Entry]:
        return [entry for entry in self._entries if _is(entry, PredicateName.EVIDENCE_DOCUMENT)]

    @property
    def _cells(self) -> list[Leaves]:
        """What the receipt says was tested, point by point."""
        scope = self._receipt.scope
        return [{**scope.exact, **cell} for cell in scope.cells or ({},)]

    @cached_property
    def _claims(self) -> list[dict[str, JsonValue]]:
        """The claims of outside documents about this capability of this image that may be about what the receipt says was tested."""
        lists = [claims for entry in self._documents if isinstance(claims := entry.predicate.get("claims"), list)]
        return [claim for claims in lists for claim in claims if isinstance(claim, dict) and self._concerns(claim)]

    def _concerns(self, claim: dict[str, JsonValue]) -> bool:
        scope = Scope.of(claim.get("scope"))
        same = claim.get("capability") == self._capability.id and scope.image == self._receipt.scope.image
        return same and any(scope.covers_as_failure(cell) for cell in self._cells)

    def _control(self, name: str) -> Outcome | None:
        shown = [control(entry.statement.predicate_type, entry.predicate, name, ranks=self._ranks) for entry in self._entries]
        stated = [controls.get(name) for claim in self._claims if isinstance(controls := claim.get("controls"), dict)]
        return worst([*shown, *map(reported, stated)])

    def _beyond_claims(self) -> Iterator[str]:
        passing = [claim for claim in self._claims if claim.get("outcome") == "pass"]
        if len(passing) < len(self._claims):
            yield "the document that it rests on does not claim a pass there"
        if self._outside([Scope.of(claim.get("scope")) for claim in passing]):
            yield "it covers more than the document that it rests on claims"
        if any(claim.get("claim") is not None for claim in passing) and not self._receipt.research_only:
            yield "the document that it rests on claims no more than research-only"
        times = [instant_ended(claim.get("observed")) for claim in passing]
        ended = self._receipt.observed_to
        if ended and not any(time and time >= ended for time in times):
            yield "it says that it was observed later than the document that it rests on says"

    @property
    def _ranks(self) -> int | None:
        """How many ranks the topology of the receipt has; none where it does not say."""
        tp, pp = (self._receipt.scope.exact.get(leaf) for leaf in ("tp", "pp"))
        return tp * (pp if isinstance(pp, int) else 1) if isinstance(tp, int) else None

    def _beyond(self, entry: Entry) -> Iterator[str]:
        """A statement beside documents: the source of the engine or the quality report that a control asks about, or a run."""
        if _is(entry, PredicateName.QUALITY_REPORT) and "quality-passed" in self._capability.controls:
            yield from self._beyond_quality(entry)
            return
        if not _is(entry, PredicateName.SOURCE) or "clean-source" not in self._capability.controls:
            yield from self._beyond_run(entry)
            return
        engines = [run.predicate.get("engine") for run in self._entries if _is(run, PredicateName.RESTORE_RUN)]
        commits = {engine.get("source") for engine in engines if isinstance(engine, dict)}
        if commits != {entry.predicate.get("commit")}:
            yield "it rests on the source of another engine than ran"

    def _beyond_quality(self, entry: Entry) -> Iterator[str]:
        """The report must be the one that a run names, and of the same deployment (catalogue BM-01)."""
        runs = [run.predicate for run in self._entries if _is(run, PredicateName.BENCHMARK_RUN)]
        if str(entry.payload) not in [run.get("quality") for run in runs]:
            yield "it rests on a quality report that its run does not name"
        used = as_object(entry.predicate.get("tuple"))
        for name in ("image", "model", "draft"):
            if any(used.get(name) != as_object(run.get("tuple")).get(name) for run in runs):
                yield f"it rests on a quality report of another {name} than was measured"

    def _beyond_benchmark(self, entry: Entry) -> Iterator[str]:
        """A run that contradicts itself bears nothing, and one that breaks a rule of its claim bears no pass."""
        report = self._evidence.find(str(entry.predicate.get("quality")))
        quality = report.predicate if report is not None and report in self._entries else None
        found = judged(entry.predicate, quality)
        if found is None or found.contradictions:
            told = ", ".join(dict.fromkeys(item.checker for item in found.contradictions)) if found else "it cannot be read"
            yield f"it rests on a benchmark run that contradicts itself: {told}"
        elif found.outcome is not Outcome.PASS:
            broken = dict.fromkeys(item.checker for item in found.limits if item.severity is Severity.BLOCK)
            yield f"it rests on a benchmark run that bears no pass: {', '.join(broken) or found.outcome}"
        elif found.capability != self._capability.id:
            yield f"it rests on a benchmark run that shows {found.capability}"

    def _beyond_run(self, entry: Entry) -> Iterator[str]:
        name, image, scope = PredicateName.from_uri(entry.statement.predicate_type), self._receipt.scope.image, entry.predicate.get("scope")
        if name is None or str(name) not in self._capability.evidence:
            yield f"it rests on a {name or entry.statement.predicate_type}, which cannot show {self._capability.id}"
        elif image is None or not entry.is_about(image):
            yield "it rests on a run of another image"
        elif entry.outcome not in (None, Outcome.PASS):
            yield f"it rests on a {name} whose outcome is {entry.outcome}"
        elif scope is not None and self._outside([Scope.of(scope)]):
            yield f"it covers more than the {name} that it rests on"
        if name is PredicateName.BENCHMARK_RUN:
            yield from self._beyond_benchmark(entry)

    def _outside(self, scopes: list[Scope]) -> bool:
        """Whether something that the receipt says was tested is covered by none of these scopes."""
        return not all(any(scope.covers_as_pass(cell) for scope in scopes) for cell in self._cells)


def _is(entry: Entry, name: PredicateName) -> bool:
    return entry.statement.predicate_type == name.uri
