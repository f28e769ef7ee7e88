"""A document of our own kind: quality-report/v1. Every outcome is judged again from the raw responses that are at hand."""

from collections.abc import Iterable, Mapping

from countermark.attestations.codes import Outcome
from countermark.attestations.located import JsonValue, as_object
from countermark.attestations.outcomes import quality_outcome, roll_up
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.fields import Field
from countermark.contracts.adapters.notes import Case, Notes
from countermark.contracts.adapters.own_kinds import checked
from countermark.contracts.adapters.reading import SOURCE_REPORTED, Claim, Reference
from countermark.contracts.adapters.tables import Table
from countermark.contracts.controls import control
from countermark.contracts.measurements.broken import findings
from countermark.contracts.quality.judged import contradictions

KIND = "quality-report"


class OwnQualityReport(Adapter):
    """Reads one report; its checks together are the claim that the raw responses keep their output rules."""

    name = KIND
    version = 1
    tables = (
        Table(
            ("rule", "the response keeps it when", "`required` is"),
            (
                ("`exact`", "it is the required text, under the declared normalisation", "the text"),
                ("`one-code-block`", "it is one fenced block, at most a line end behind it", "words for people"),
                ("`no-fence`", "no Markdown fence stands in it", "words for people"),
                ("`json-schema`", "it is one JSON text that the schema allows", "the schema as JSON (2020-12)"),
                ("`regex-fullmatch`", "the expression matches all of it", "the expression"),
                ("`markers`", "each of the texts stands in it", "a JSON list of texts"),
            ),
        ),
    )

    def recognises(self, root: Field) -> bool:
        """An object with what makes a report."""
        return isinstance(root.value, dict) and {"tuple", "scope", "basis", "checks"} <= root.value.keys()

    def schema(self, root: Field) -> str:
        """Ours."""
        del root
        return f"{KIND}/v1"

    def references(self, root: Field) -> Iterable[Reference]:
        """The raw responses, by their digests."""
        stated = [check["response"] for check in root["checks"].elements]
        return [Reference(item.pointer, item.text.rpartition(":")[2]) for item in stated if item.text]

    def evidence_state(self, root: Field) -> Mapping[str, JsonValue]:
        """A measured report was made by whoever records it."""
        return {**SOURCE_REPORTED, "site_reproduced": root["basis"].text == "measured"}

    def read(self, case: Case, notes: Notes) -> None:
        """One claim. Raises `InvalidDocumentError` for a document that its schema does not allow."""
        report = checked(KIND, case.root)
        responses = {file.digest.hex: file.data for file in case.files.values()}
        against = tuple(contradictions(report, responses))
        notes.findings.extend(findings(against, case.root.document.at))
        if against or not case.root["checks"].elements:
            notes.refuse(case.root["checks"], "the report contradicts itself" if against else "there are no checks")
            return
        shown = control(PredicateName.QUALITY_REPORT.uri, report, "raw-bytes")
        outcome = roll_up([quality_outcome(dict(report)), *([shown] if shown else [])])
        observed = as_object(report.get("observed"))
        ends = tuple(value if isinstance(value, str) else None for value in (observed.get("from"), observed.get("to")))
        notes.claims.append(
            Claim(
                "output.contract",
                outcome if outcome is not Outcome.ERROR else Outcome.INCONCLUSIVE,
                as_object(report["scope"]),
                "/checks",
                {"raw-bytes": shown} if shown else {},
                observed=(ends[0], ends[1]),
            )
        )
