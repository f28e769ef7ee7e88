"""Every example of the design's documents page conforms to the schema of its kind."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from countermark.attestations import jsontext, yamltext
from countermark.attestations.located import JsonValue
from countermark.attestations.schema import problems

PAGE = Path(__file__).parents[3] / "shared" / "design" / "07-documents.md"
BLOCK = re.compile(r"^```(json|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A predicate does not name its own type; one field of each example that no other kind has does.
TELLING_FIELD = {
    "source_trees": "source",
    "aliases": "image",
    "drafts_for": "model",
    "context_digest": "snapshot",
    "pins": "contract-verdict",
    "metric": "benchmark-run",
    "checks": "quality-report",
    "rungs": "restore-run",
    "adapter": "evidence-document",
    "rests_on": "qualification-receipt",
    "replacement": "retraction",
    "raw_measurements_changed": "supersession",
    "core": "decision",
    "command": "report",
}
ALSO_TELLING = {"observed_time": "rejection"}  # a rejection rests on statements too


def kind_of(value: JsonValue) -> str:
    """The kind that an example is of; the test fails when nothing tells."""
    assert isinstance(value, dict)
    named = value.get("kind")
    if isinstance(named, str):
        return named
    for table in (ALSO_TELLING, TELLING_FIELD):
        for field, kind in table.items():
            if field in value:
                return kind
    pytest.fail(f"an example with the fields {list(value)} is of no known kind")


def examples() -> Iterator[tuple[int, JsonValue]]:
    """Each example with its number on the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    for number, (language, body) in enumerate(BLOCK.findall(text), start=1):
        read = jsontext.loads_located if language == "json" else yamltext.loads_located
        yield number, read(body.encode(), f"example {number}").value


@pytest.mark.skipif(not PAGE.is_file(), reason="the design pages are not beside this repository")
def test_every_example_conforms() -> None:
    found = [(kind_of(value), value) for _, value in examples()]
    wrong = {(number, kind): problems(kind, value) for number, (kind, value) in enumerate(found, start=1) if problems(kind, value)}
    assert wrong == {}
    assert len(found) > 15
    assert {kind for kind, _ in found} >= {*TELLING_FIELD.values(), "Contract", "ReleasePolicy", "TrustPolicy", "EvidenceMapping"}
