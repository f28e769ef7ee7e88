"""The demo's second half: published records of real images, endorsed, and what the gate makes of each claim."""

from dataclasses import dataclass
from pathlib import Path

from countermark.actions.evidence_records import EvidenceRecorded, endorse, record
from countermark.actions.gate import Asked, gate
from countermark.actions.workspace import Workspace
from countermark.attestations.codes import Code
from countermark.attestations.predicate_types import PredicateName
from countermark.contracts.decision import Decision


@dataclass(frozen=True, slots=True)
class Published:
    """One record: its files below the folder of records, and what a person binds because it does not say so itself."""

    files: tuple[str, ...]
    binds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A question to the gate, and the answer that the records bear."""

    image: str
    require: str
    policy: str
    verdict: str
    codes: tuple[Code, ...]


LIVE = "oci-config:sha256:eef863d8bc578815a80b0e2d9f0d745102b6363415225101fd92171a2e5a55cb"
REJECTED = "oci-config:sha256:df4e09a32cdbf1c0e69cc7c4c9e95d890d6c7a1e3eaac84f969912a16fd27dd3"
CHAIN = "oci-config:sha256:35b58a7bf414059c65b8f74e4e4b17ee6a81b7008e1bffbc9bd298b5e08c739e"
FENCED = "oci-config:sha256:f2723a71b49509294072f5886b4fe081ac1f87dd1f931cc3cb8f538bc3eb037d"
CAMPAIGN = "oci-manifest:sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6"

_SAFE = "sparkring/snapshot-v1-safe"
RECORDS = (
    Published(("sparkring/pr30/validation.json",)),
    Published(tuple(f"{_SAFE}/{name}.json" for name in ("validation", "publish", "restore", "readiness", "manifest-inspection"))),
    Published(("sparkcache/flat-v2-four-reader-semantic-rejection-eabe7fd.json",)),
    Published(("sparkcache/event-fenced-flat-restore-861a965.json",)),
    Published(
        ("facts/dual-spark-arms.json", "weschera/comparison.json"),
        ("/reported_results/*/conditions/executed_image_digest=kind oci-manifest because two public repositories pair it with a config",),
    ),
)

_LAB, _SERVING = "lab-as-published", "serving-production"
_AT_131072 = "tp=4,dcp=1,context_tokens=131072,concurrency=1"
_TOO_OLD = (Code.EVIDENCE_EXPIRED, Code.EVIDENCE_BASIS)
ROWS = (
    Row(LIVE, "service.startup@tp=4,dcp=1", _LAB, "ALLOW", (Code.OK,)),
    Row(LIVE, f"restore.correctness@{_AT_131072}", _LAB, "ALLOW", (Code.OK,)),
    Row(LIVE, f"restore.correctness@{_AT_131072}", _SERVING, "DENY", _TOO_OLD),
    Row(LIVE, "restore.correctness@tp=4,dcp=1,context_tokens=200000,concurrency=1", _LAB, "DENY", (Code.CAP_SCOPE,)),
    Row(LIVE, "restore.performance@tp=4,dcp=1,context_tokens=262144,concurrency=1", _LAB, "DENY", (Code.CAP_RESEARCH_ONLY,)),
    Row(LIVE, "prefix.shared-concurrent@tp=4,dcp=1,concurrency=8", _LAB, "DENY", (Code.CAP_NO_EVIDENCE,)),
    Row(REJECTED, "restore.structural@tp=4,dcp=1,context_tokens=131072", _LAB, "DENY", (Code.IMAGE_REJECTED,)),
    Row(CHAIN, f"restore.correctness@{_AT_131072}", _LAB, "ALLOW", (Code.OK,)),
    Row(CHAIN, "restore.correctness@tp=2,dcp=1,context_tokens=131072,concurrency=1", _LAB, "DENY", (Code.CAP_SCOPE,)),
    Row(FENCED, f"restore.correctness@{_AT_131072}", _LAB, "DENY", (Code.CAP_RESEARCH_ONLY,)),
    Row(CAMPAIGN, "output.contract@draft_tokens=7", _LAB, "DENY", (Code.CAP_FAILED,)),
    Row(CAMPAIGN, "longcontext.retrieval@context_tokens=120124,concurrency=1,draft_tokens=7", _LAB, "ALLOW", (Code.OK,)),
    Row(CAMPAIGN, "longcontext.retrieval@context_tokens=131072,concurrency=1,draft_tokens=7", _LAB, "DENY", (Code.CAP_SCOPE,)),
)


def records_folder() -> Path | None:
    """Where the published records lie: beside this module in a wheel, among the tests in a checkout."""
    here = Path(__file__).resolve().parent
    places = (here / "evidence", *(parent / "tests" / "data" / "evidence" for parent in here.parents))
    return next((place for place in places if place.is_dir()), None)


def record_all(workspace: Workspace, folder: Path) -> tuple[list[EvidenceRecorded], EvidenceRecorded]:
    """Record each document as a builder, and endorse them all as a qualifier."""
    recorded = [record(workspace, [folder / name for name in item.files], None, item.binds, None) for item in RECORDS]
    documents = [
        str(item.receipt.index)
        for done in recorded
        for item in done.appended
        if item.statement.predicate_type == PredicateName.EVIDENCE_DOCUMENT.uri
    ]
    return recorded, endorse(workspace, documents, (), None)


def ask(workspace: Workspace, policies: Path, row: Row) -> Decision:
    """The decision about one row."""
    (decision,) = gate(workspace, Asked((row.image,), policies / f"{row.policy}.yaml", (row.require,))).decisions
    return decision
