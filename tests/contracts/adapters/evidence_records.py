"""The records that the adapters' tests read: copies in the repository, the published ones beside it, and changed copies in memory."""

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations.schema import problems
from countermark.contracts.adapters.base import Adapter
from countermark.contracts.adapters.bindings import Binding
from countermark.contracts.adapters.fields import File
from countermark.contracts.adapters.read import read_document
from countermark.contracts.adapters.reading import EvidenceReading

from ..gate_world import catalogue  # noqa: TID252  # tests are no package, so the folder above has no absolute name

COPIES = Path(__file__).parents[2] / "data" / "evidence"
PUBLISHED = Path(__file__).parents[4] / "shared" / "fixtures"

IMAGES = {
    "live": "oci-config:sha256:eef863d8bc578815a80b0e2d9f0d745102b6363415225101fd92171a2e5a55cb",
    "chain": "oci-config:sha256:35b58a7bf414059c65b8f74e4e4b17ee6a81b7008e1bffbc9bd298b5e08c739e",
    "rejected": "oci-config:sha256:df4e09a32cdbf1c0e69cc7c4c9e95d890d6c7a1e3eaac84f969912a16fd27dd3",
    "event": "oci-config:sha256:f2723a71b49509294072f5886b4fe081ac1f87dd1f931cc3cb8f538bc3eb037d",
    "campaign": "oci-manifest:sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6",
}
OF_KIND = Binding("/reported_results/*/conditions/executed_image_digest", "kind oci-manifest", "two repositories pair it with a config")
OF_IMAGE = Binding("/image", IMAGES["campaign"])
CHAIN = ("publish.json", "restore.json", "readiness.json", "manifest-inspection.json")


@dataclass
class Record:
    """A document as a value that a test may change, with the files beside it and what is bound."""

    name: str
    value: Any
    files: dict[str, bytes] = field(default_factory=dict)
    binds: Sequence[Binding] = ()
    data: bytes | None = None

    def read(self, adapter: Adapter | None = None, *, check: bool = True) -> EvidenceReading:
        """Read it; whatever comes out conforms to the schema of its predicate, which is checked unless the caller does."""
        data = json.dumps(self.value).encode() if self.data is None else self.data
        files = {name: File(name, content) for name, content in self.files.items()}
        reading = read_document(File(self.name, data), files, catalogue(), self.binds, adapter)
        assert not check or problems("evidence-document", reading.predicate()) == []
        return reading

    def changed(self, change: Callable[[Any], None]) -> "Record":
        """A copy whose value `change` has changed."""
        value = copy.deepcopy(self.value)
        change(value)
        return Record(self.name, value, dict(self.files), self.binds)


def load(folder: Path, name: str, beside: Sequence[str] = (), binds: Sequence[Binding] = ()) -> Record:
    data = (folder / name).read_bytes()
    return Record(name, json.loads(data), {other: (folder / other).read_bytes() for other in beside}, binds, data)


def copies() -> dict[str, Record]:
    """The records of the repository by short names."""
    weschera = COPIES / "weschera"
    facts = load(COPIES / "facts", "dual-spark-arms.json", (), [OF_KIND])
    facts.files = {"comparison.json": (weschera / "comparison.json").read_bytes()}
    return {
        "live": load(COPIES / "sparkring" / "pr30", "validation.json"),
        "chain": load(COPIES / "sparkring" / "snapshot-v1-safe", "validation.json", CHAIN),
        "rejected": load(COPIES / "sparkcache", "flat-v2-four-reader-semantic-rejection-eabe7fd.json"),
        "event": load(COPIES / "sparkcache", "event-fenced-flat-restore-861a965.json"),
        "explainer": facts,
        "campaign": load(weschera, "comparison.json", ["dflash2-7/quality-report.json"], [OF_IMAGE]),
        "report": load(weschera / "dflash2-7", "quality-report.json", (), [OF_IMAGE, Binding("/scope/draft_tokens", "7")]),
    }


def published() -> dict[str, Record]:
    """The same records where they were published; the test is skipped where they are not beside this checkout."""
    if not PUBLISHED.exists():
        pytest.skip("../shared holds the published records, and is not beside this checkout")
    receipts = PUBLISHED / "sparkring" / "performance" / "receipts" / "glm53-flash"
    sparkcache = PUBLISHED / "sparkcache" / "evidence" / "glm53-flash-dflash7-bf16"
    weschera = PUBLISHED / "weschera" / "evidence" / "text128-dflash-resume"
    seed = load(PUBLISHED / "seeds", "seed-c.json", (), [OF_KIND])
    seed.files = {"comparison.json": (weschera / "comparison.json").read_bytes()}
    return {
        "live": load(receipts / "dflash7-python-overlay-pr30", "validation.json"),
        "chain": load(receipts / "dflash7-snapshot-v1-safe", "validation.json", CHAIN),
        "rejected": load(sparkcache, "flat-v2-four-reader-semantic-rejection-eabe7fd.json"),
        "event": load(sparkcache, "event-fenced-flat-restore-861a965.json"),
        "explainer": seed,
        "campaign": load(weschera, "comparison.json", ["dflash2-7/quality-report.json"], [OF_IMAGE]),
        "report": load(weschera / "dflash2-7", "quality-report.json", (), [OF_IMAGE, Binding("/scope/draft_tokens", "7")]),
    }


PLACES: Mapping[str, Callable[[], dict[str, Record]]] = {"copies": copies, "published": published}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rehash_chain(record: Record, changes: Mapping[str, Callable[[Any], None]]) -> Record:
    """A copy of the chain in which some files are changed and the validation names the new bytes."""
    changed = record.changed(lambda value: None)
    keys = {name: f"repository_{name.removesuffix('.json').replace('-', '_')}_json" for name in CHAIN}
    for name, change in changes.items():
        value = json.loads(changed.files[name])
        change(value)
        changed.files[name] = json.dumps(value).encode()
        changed.value["input_sha256"][keys[name]] = hashlib.sha256(changed.files[name]).hexdigest()
    return changed


def claimed(reading: EvidenceReading) -> list[tuple[str, str, bool, tuple[tuple[str, int], ...]]]:
    """Capability, outcome, whether lowered, and the cell of each claim."""
    found = []
    fields: Any
    for fields in reading.claims:
        (cell,) = fields["scope"]["cells"]
        found.append((fields["capability"], fields["outcome"], fields["claim"] is not None, tuple(sorted(cell.items()))))
    return found


def outcomes(reading: EvidenceReading) -> set[tuple[str, str]]:
    return {(capability, outcome) for capability, outcome, _, _ in claimed(reading)}


def checkers(reading: EvidenceReading, *severities: str) -> list[str]:
    """The checkers of the findings of some severities, in order."""
    wanted = severities or ("block", "warn")
    return [finding.checker for finding in reading.findings if finding.checker and str(finding.severity) in wanted]


def set_field(*path: str | int, to: Any) -> Callable[[Any], None]:
    """A change of the one value at a path."""

    def change(value: Any) -> None:
        for part in path[:-1]:
            value = value[part]
        value[path[-1]] = to

    return change


def relabelled_image(record: Record, hexed: str) -> Record:
    """A copy of a record that is about another image."""

    def change(value: Any) -> None:
        (value["runtime"] if "runtime" in value else value["artifact"])["image_id"] = f"sha256:{hexed}"

    return record.changed(change)
