"""From a recorded document to receipts and rejections, and from those to the gate's verdicts of the published records."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import Digest
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import problems
from countermark.contracts.adapters.reading import EvidenceReading
from countermark.contracts.adapters.receipts import ReceiptDraft, receipts_of
from countermark.contracts.basis import Basis
from countermark.contracts.evidence import Evidence
from countermark.contracts.receipt import Receipt

from ..gate_world import Ledger, ask, catalogue, code, policy, requiring  # noqa: TID252  # tests are no package, so the folder above has no absolute name
from .evidence_records import IMAGES, PLACES, Record, copies, relabelled_image, set_field

ROWS = Path(__file__).parents[4] / "shared" / "acceptance" / "seeds_rows.yaml"
RULES = {
    "lab-as-published": "{basis: [measured, reported], max_age: none}",
    "serving-production": "{basis: [measured], max_age: 90d}",
}
LIVE, CHAIN, REJECTED, EVENT, CAMPAIGN = (IMAGES[name] for name in ("live", "chain", "rejected", "event", "campaign"))


def endorse(ledger: Ledger, reading: EvidenceReading) -> list[ReceiptDraft]:
    """Record a reading as a builder and endorse it as a qualifier, as the commands do."""
    predicate = reading.predicate()
    recorded = ledger.say(PredicateName.EVIDENCE_DOCUMENT.uri, reading.subject, "ci", predicate)
    drafts = list(receipts_of(predicate, recorded.payload, catalogue()))
    for draft in drafts:
        ledger.say(draft.name.uri, draft.image, "lab", dict(draft.predicate))
    return drafts


def world(*records: Record) -> Ledger:
    ledger = Ledger()
    for record in records:
        endorse(ledger, record.read())
    return ledger


@pytest.fixture(scope="module", params=PLACES)
def every(request: pytest.FixtureRequest) -> Ledger:
    """A ledger with every published record, endorsed."""
    return world(*PLACES[request.param]().values())


VERDICTS = [
    (LIVE, "service.startup@tp=4,dcp=1", "ALLOW OK"),
    (LIVE, "service.health@tp=4,dcp=1,draft_tokens=7", "ALLOW OK"),
    (LIVE, "generation.continued@tp=4,dcp=1", "ALLOW OK"),
    (LIVE, "restore.page-boundary-replay@tp=4,dcp=1,context_tokens=12032", "ALLOW OK"),
    (LIVE, "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1", "ALLOW OK"),
    (LIVE, "restore.correctness@tp=4,dcp=1,context_tokens=262144,concurrency=1", "ALLOW OK"),
    (LIVE, "restore.correctness@tp=4,dcp=1,context_tokens=262144,concurrency=2", "DENY CAP_SCOPE"),
    (LIVE, "restore.correctness@tp=4,dcp=1,context_tokens=200000,concurrency=1", "DENY CAP_SCOPE"),
    (LIVE, "restore.performance@tp=4,dcp=1,context_tokens=262144,concurrency=1", "DENY CAP_RESEARCH_ONLY"),
    (LIVE, "prefix.shared-concurrent@tp=4,dcp=1,concurrency=2", "DENY CAP_NO_EVIDENCE"),
    (LIVE, "response.quality@draft_tokens=7", "DENY CAP_NO_EVIDENCE"),
    (REJECTED, "restore.structural@tp=4,dcp=1,context_tokens=131072", "DENY IMAGE_REJECTED"),
    (REJECTED, "service.startup", "DENY IMAGE_REJECTED"),
    (CHAIN, "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1", "ALLOW OK"),
    (CHAIN, "restore.correctness@tp=2,dcp=1,context_tokens=131072,concurrency=1", "DENY CAP_SCOPE"),
    (CHAIN, "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=2", "DENY CAP_SCOPE"),
    (CHAIN, "response.quality@draft_tokens=7", "DENY CAP_NO_EVIDENCE"),
    (EVENT, "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1", "DENY CAP_RESEARCH_ONLY"),
    (EVENT, "prefix.shared-concurrent@tp=4,dcp=1,concurrency=2", "DENY CAP_NO_EVIDENCE"),
    (CAMPAIGN, "output.contract@draft_tokens=7", "DENY CAP_FAILED"),
    (CAMPAIGN, "output.contract@draft_tokens=3", "DENY CAP_FAILED"),
    (CAMPAIGN, "output.contract@draft_tokens=0", "DENY CAP_FAILED"),
    (CAMPAIGN, "longcontext.retrieval@context_tokens=131072,concurrency=1,draft_tokens=7", "DENY CAP_SCOPE"),
    (CAMPAIGN, "longcontext.retrieval@context_tokens=120124,concurrency=1,draft_tokens=7", "ALLOW OK"),
    (CAMPAIGN, "longcontext.retrieval@context_tokens=120124,concurrency=1,draft_tokens=5", "DENY CAP_SCOPE"),
    (CAMPAIGN, "decode.rate@concurrency=1,draft_tokens=7", "DENY CAP_RESEARCH_ONLY"),
]


@pytest.mark.parametrize(("image", "required", "verdict"), VERDICTS)
def test_the_published_records_get_their_verdicts(every: Ledger, image: str, required: str, verdict: str) -> None:
    assert code(ask(every, requiring(required, RULES["lab-as-published"]), Digest.parse(image))) == verdict


@pytest.mark.parametrize(("image", "required"), [row[:2] for row in VERDICTS if row[2] == "ALLOW OK"])
def test_none_of_them_is_measured_so_none_is_served_in_production(every: Ledger, image: str, required: str) -> None:
    decision = ask(every, requiring(required, RULES["serving-production"]), Digest.parse(image))
    (result,) = decision.requirements
    assert result.code in (Code.EVIDENCE_EXPIRED, Code.EVIDENCE_BASIS)
    assert "EVIDENCE_BASIS" in result.observed


def test_the_table_of_the_acceptance_script_comes_out_of_the_records() -> None:
    if not ROWS.exists():
        pytest.skip("../shared holds the acceptance table, and is not beside this checkout")
    ledger = world(*PLACES["published"]().values())
    table = yaml.safe_load(ROWS.read_text(encoding="utf-8"))
    for row in table["rows"]:
        image = table["images"][row["image"]]
        subject = Digest.parse(f"{image['kind']}:sha256:{image['hex']}")
        verdict, found = code(ask(ledger, requiring(row["require"], RULES[row["policy"]]), subject)).split()
        wanted = row["code"] if isinstance(row["code"], list) else [row["code"]]
        assert (verdict, found in wanted) == (row["verdict"], True), (row, found)


def test_a_denial_tells_what_failed_and_what_was_not_measured(every: Ledger) -> None:
    def observed(draft: int) -> str:
        (result,) = ask(every, requiring(f"output.contract@draft_tokens={draft}"), Digest.parse(CAMPAIGN)).requirements
        return result.observed

    assert "Only Python code, no Markdown fence" in observed(7)
    assert "Final content exactly 703" in observed(7)
    assert "Expected one code block" in observed(3)
    assert "skipped, not measured" in observed(3)
    assert "703" not in observed(3)


@pytest.mark.parametrize("name", ["live", "chain", "rejected", "event", "explainer", "campaign", "report"])
def test_the_gate_computes_what_was_endorsed(name: str) -> None:
    ledger = Ledger()
    drafts = endorse(ledger, copies()[name].read())
    evidence = Evidence.of(ledger.records, ledger.trust)
    receipts = [Receipt.of(entry) for entry in evidence.of_type(PredicateName.QUALIFICATION_RECEIPT)]
    assert len(receipts) + len(evidence.of_type(PredicateName.REJECTION)) == len(drafts)
    for receipt in receipts:
        basis = Basis(receipt, catalogue().capabilities[receipt.capability], evidence)
        assert list(basis.contradictions()) == list(basis.unusable()) == []
        assert receipt.entry.predicate["basis"] == basis.kind
        stated = {name: None if value == "not-recorded" else Outcome(str(value)) for name, value in receipt.controls.items()}
        assert stated == basis.controls


def test_a_rejection_holds_the_raw_answer_and_what_was_done_to_it() -> None:
    (draft,) = endorse(Ledger(), copies()["rejected"].read())
    fields: Any = draft.predicate
    assert (draft.name, str(draft.image), fields["scope"], fields["capability"]) == (PredicateName.REJECTION, REJECTED, "image-wide", None)
    assert (fields["required"], fields["observed"]) == (
        "red",
        {
            "raw_sha256": "0bb1366f58973e94b3cd518d4981be67c86ee35768039e392bb5c494b27bc58e",
            "text": " Spark",
            "normalised": "spark",
            "normalisation": ["strip", "casefold"],
        },
    )
    assert "4 ranks" in fields["reason"]


def test_a_rejection_without_a_hash_holds_the_word() -> None:
    record = copies()["rejected"].changed(lambda value: value["semantic_restore"].pop("response_sha256"))
    (draft,) = endorse(Ledger(), record.read())
    assert (draft.predicate["required"], draft.predicate["observed"]) == ("red", "spark")


def test_cells_of_one_capability_make_one_receipt_as_long_as_they_pass() -> None:
    drafts = [draft.predicate for draft in endorse(Ledger(), copies()["live"].read())]
    (restore,) = [draft for draft in drafts if draft["capability"] == "restore.correctness"]
    scope: Any = restore["scope"]
    assert [cell["context_tokens"] for cell in scope["cells"]] == [131072, 262144]
    assert (restore["runs"], restore["boots"], restore["basis"], restore["claim"]) == (1, None, "reported", None)
    assert "it has no variability estimate" in str(restore["limitations"])
    failures = [draft.predicate for draft in endorse(Ledger(), copies()["campaign"].read()) if draft.predicate["outcome"] == "fail"]
    assert [draft["scope"]["cells"] for draft in failures] == [[{"draft_tokens": draft}] for draft in (0, 7, 3)]  # type: ignore[index,call-overload]  # a scope


def test_two_replays_are_two_runs_of_one_receipt() -> None:
    (draft,) = endorse(Ledger(), copies()["event"].read())
    fields: Any = draft.predicate
    assert (fields["runs"], fields["claim"]) == (2, "research-only")
    assert fields["observed"] == {"from": "2026-08-30T20:53:12.5280514Z", "to": "2026-08-30T20:53:52.9347373Z"}


def test_one_replay_that_stays_open_leaves_no_pass_in_its_cell() -> None:
    record = copies()["event"].changed(lambda value: value["observations"][1].update(http_status=500))
    outcomes = {draft.predicate["outcome"] for draft in endorse(Ledger(), record.read())}
    assert outcomes == {"inconclusive"}


def forged(change: Any) -> tuple[ReceiptDraft, ...]:
    """The drafts of a predicate that somebody changed after it was read."""
    predicate: Any = copies()["chain"].read().predicate()
    change(predicate)
    return receipts_of(predicate, Digest.parse(f"payload:sha256:{'a' * 64}"), catalogue())


def test_a_control_that_fails_fails_the_receipt_whatever_the_claim_says() -> None:
    (draft,) = forged(set_field("claims", 0, "controls", "clean-source", to="fail"))
    assert draft.predicate["outcome"] == "fail"


def test_controls_that_all_recompute_are_measured() -> None:
    (draft,) = forged(
        lambda predicate: predicate["claims"][0]["controls"].update(dict.fromkeys(predicate["claims"][0]["controls"], "pass"))
    )
    assert draft.predicate["basis"] == "measured"


@pytest.mark.parametrize("outcome", ["skipped", "not-run", "error", "not-applicable"])
def test_a_claim_without_an_outcome_makes_no_receipt(outcome: str) -> None:
    assert forged(set_field("claims", 0, "outcome", to=outcome)) == ()


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (set_field("claims", 0, "capability", to="restore.splendour"), Code.UNKNOWN_NAME),
        (set_field("claims", to=None), Code.SCHEMA_INVALID),
        (set_field("claims", 0, "scope", "image", to="latest"), Code.SCHEMA_INVALID),
        (lambda predicate: predicate.clear(), Code.SCHEMA_INVALID),
    ],
)
def test_a_predicate_that_is_none_is_refused(change: Any, wanted: Code) -> None:
    with pytest.raises(InputError) as caught:
        forged(change)
    assert caught.value.code is wanted


@pytest.mark.parametrize("name", ["live", "chain", "event"])
def test_another_image_in_the_same_record_gets_the_same_verdict_and_the_published_one_none(name: str) -> None:
    other = Digest.parse(f"oci-config:sha256:{'5a' * 32}")
    ledger = world(relabelled_image(copies()[name], other.hex))
    required = "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1"
    lenient = requiring(required, RULES["lab-as-published"])
    assert code(ask(ledger, lenient, other)) == ("DENY CAP_RESEARCH_ONLY" if name == "event" else "ALLOW OK")
    assert code(ask(ledger, lenient, Digest.parse(IMAGES[name]))) == "DENY SUBJECT_UNKNOWN"


def test_a_right_record_of_another_image_does_not_lift_a_rejection() -> None:
    ledger = world(copies()["rejected"], relabelled_image(copies()["chain"], Digest.parse(REJECTED).hex))
    decision = ask(ledger, policy("    - {id: s, capability: service.startup}"), Digest.parse(REJECTED))
    assert code(decision) == "DENY IMAGE_REJECTED"


def test_from_a_record_without_a_topology_none_is_allowed() -> None:
    ledger = world(copies()["live"].changed(lambda value: value["conditions"].pop("topology")))
    required = requiring("restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1")
    decision = ask(ledger, required, Digest.parse(LIVE))
    assert code(decision) == "DENY CAP_SCOPE"
    assert "tp not recorded" in decision.requirements[0].observed


@pytest.mark.parametrize("name", ["live", "chain", "rejected", "event", "explainer"])
def test_what_a_document_says_of_its_images_can_be_recorded(name: str) -> None:
    reading = copies()[name].read()
    assert len(reading.images) == (0 if name == "explainer" else 1)
    for image in reading.images:
        assert problems("image", image.predicate) == []
