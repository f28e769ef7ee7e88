"""A document of our own kind: the object of benchmark-run/v1, as a harness writes it. Its value is computed again, and its claim judged.

It is valid by its schema or refused as a whole (`InvalidDocumentError`), for unlike a record of somebody else's it says what it means.
"""

from collections.abc import Iterable, Mapping

from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.statement import Statement
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field, File
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.own_kinds import checked
from countermark.contracts.adapters.reading import Claim, Reference
from countermark.contracts.adapters.tables import Table
from countermark.contracts.measurements.broken import findings
from countermark.contracts.measurements.definitions import DEFINITIONS
from countermark.contracts.measurements.judged import CAPABILITY, judge

KIND = "benchmark-run"


class BenchmarkRunAdapter(Adapter):
    """Reads one run."""

    name = KIND
    version = 1
    tables = (
        Table(
            ("definition", "formula", "unit", "capability"),
            tuple(
                (f"`{name}`", item.formula, item.unit, f"`{CAPABILITY[name]}`" if name in CAPABILITY else "none")
                for name, item in DEFINITIONS.items()
            ),
        ),
    )

    def recognises(self, root: Field) -> bool:
        """An object with what makes a run."""
        return isinstance(root.value, dict) and {"tuple", "metric", "observations", "summary"} <= root.value.keys()

    def schema(self, root: Field) -> str:
        """Ours."""
        del root
        return f"{KIND}/v1"

    def references(self, root: Field) -> Iterable[Reference]:
        """The statement of the quality report, by its payload digest."""
        stated = root["quality"].text or ""
        return [Reference("/quality", stated.removeprefix("payload:sha256:"))] if stated.startswith("payload:sha256:") else []

    def evidence_state(self, root: Field) -> Mapping[str, JsonValue]:
        """What the run says of itself."""
        return as_object(root["evidence_state"].value)

    def read(self, case: Case, notes: Notes) -> None:
        """At most one claim. Raises `InvalidDocumentError` for a document that its schema does not allow."""
        predicate = checked(KIND, case.root)
        found = judge(predicate, _quality(case.files.get("/quality")))
        at = case.root.document.at
        notes.findings.extend(findings((*found.contradictions, *found.limits), at))
        if found.contradictions or found.capability is None:
            why = "the run contradicts itself" if found.contradictions else f"no capability is shown by {found.run.definition}"
            notes.refuse(case.root["summary"], why)
            return
        observed = as_object(predicate.get("observed"))
        ends = (_text(observed.get("from")), _text(observed.get("to")))
        scope = as_object(predicate["scope"])
        notes.claims.append(Claim(found.capability, found.outcome, scope, "/summary/value", found.controls, observed=ends))


def _quality(file: File | None) -> JsonValue:
    return Statement.parse(file.data, file.name).predicate if file else None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
