"""What an adapter is given, and the notes that it takes while it reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.findings import Finding
from countermark.contracts.adapters.bindings import Bindings
from countermark.contracts.adapters.fields import Field, File
from countermark.contracts.adapters.reading import Claim, ImageDraft, Refusal

Holds = bool | None
"""Whether something holds; none where the operands that would tell are not recorded."""


@dataclass(frozen=True, slots=True)
class Case:
    """A document, the files at hand by the pointer of the reference to each, and what is bound."""

    root: Field
    files: Mapping[str, File]
    bindings: Bindings

    def file(self, at: Field) -> Field | None:
        """The document that a reference leads to; none where it is not at hand. `InputError` where it cannot be read."""
        found = self.files.get(at.pointer)
        return Field.of(found) if found else None


@dataclass(slots=True)
class Notes:
    """Claims, refusals and findings, in the order in which an adapter comes to them."""

    claims: list[Claim] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    images: list[ImageDraft] = field(default_factory=list)

    def refuse(self, at: Field, why: str) -> None:
        """Something that is not mapped, or not believed."""
        self.refused.append(Refusal(at.pointer, why))

    def hold(self, holds: Holds, at: Field, checker: str, *, required: str, observed: str, fix: str) -> Outcome:
        """What one check says: pass, or fail with a finding that blocks, or not-run where its operands are not recorded."""
        if holds is None:
            return Outcome.NOT_RUN
        if not holds:
            self.find(at, Code.RECORD_CONTRADICTED, checker, Severity.BLOCK, Outcome.FAIL, required=required, observed=observed, fix=fix)
        return Outcome.PASS if holds else Outcome.FAIL

    def warn(self, at: Field, code: Code, checker: str, *, required: str, observed: str, fix: str) -> None:
        """A finding that a reader should know, and that takes nothing from what is claimed."""
        self.find(at, code, checker, Severity.WARN, Outcome.INCONCLUSIVE, required=required, observed=observed, fix=fix)

    def limit(self, at: Field, text: str) -> None:
        """A limitation in the document's own words: no claim is made of it, and every receipt carries it on."""
        fix = "read it before relying on the record"
        found = Finding(Code.RECORD_UNMAPPED, Outcome.NOT_APPLICABLE, fix, Severity.INFO, location=at.at, observed=text)
        self.findings.append(found)

    def limits(self, fields: Iterable[Field]) -> None:
        """The texts among some fields, each a limitation; what is no text is refused."""
        for item in fields:
            if item.text:
                self.limit(item, item.text)
            else:
                self.refuse(item, "a limitation that is no text")

    def find(
        self, at: Field, code: Code, checker: str, severity: Severity, outcome: Outcome, *, evidence: tuple[str, ...] = (), **words: str
    ) -> None:
        """Any other finding; `words` are its `required`, `observed` and `fix`."""
        self.findings.append(Finding(code, outcome, severity=severity, checker=checker, location=at.at, evidence=evidence, **words))


def settle(reported: Outcome, answers: Iterable[Outcome] = (), checks: Iterable[Outcome] = ()) -> Outcome:
    """The outcome of a claim: what is reported, unless the document speaks against it.

    A wrong answer fails whatever is reported. An answer that cannot be told, or a check that fails and so makes the record contradict
    itself, leaves a pass inconclusive. What was not run says nothing.
    """
    given = set(answers)
    if Outcome.FAIL in (reported, *given):
        return Outcome.FAIL
    doubtful = given - {Outcome.PASS, Outcome.NOT_RUN} or Outcome.FAIL in set(checks)
    return Outcome.INCONCLUSIVE if doubtful else reported
