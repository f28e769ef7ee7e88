"""What each adapter reads from each record: every claim, every finding that blocks or warns, and everything that it refused."""

from collections import Counter
from typing import Any

import pytest

from countermark.attestations.codes import ExitCode, Severity

from .evidence_records import IMAGES, PLACES, PUBLISHED, Record, checkers, claimed

ALL = pytest.mark.parametrize("place", PLACES)


def record(place: str, name: str) -> Record:
    return PLACES[place]()[name]


def at(tokens: int | None = None, concurrency: int | None = None, draft: int | None = None) -> tuple[tuple[str, int], ...]:
    cell = {"context_tokens": tokens, "concurrency": concurrency, "draft_tokens": draft}
    return tuple(sorted((name, value) for name, value in cell.items() if value is not None))


def controls(claim: Any) -> dict[str, str]:
    return {name: value for name, value in claim["controls"].items() if value != "not-recorded"}


@ALL
def test_live_validation_claims_by_capability_and_never_for_the_image(place: str) -> None:
    reading = record(place, "live").read()
    assert claimed(reading) == [
        ("service.startup", "pass", False, at(draft=7)),
        ("service.health", "pass", False, at(draft=7)),
        ("generation.continued", "pass", False, at(draft=7)),
        ("restore.page-boundary-replay", "pass", False, at(12032, 1, 7)),
        ("restore.correctness", "pass", False, at(131072, 1, 7)),
        ("restore.correctness", "pass", False, at(262144, 1, 7)),
        ("restore.performance", "pass", True, at(262144, 1, 7)),
    ]
    assert (reading.exit, checkers(reading, "block")) == (ExitCode.YES, [])
    assert checkers(reading, "warn") == ["config.schema-valid", "model.revision-pinned", "draft.revision-pinned"]
    assert [finding.location.line for finding in reading.findings if finding.checker == "config.schema-valid" and finding.location] == [33]
    (first, *_) = reading.claims
    scope: Any = first["scope"]
    assert scope == {
        "image": IMAGES["live"],
        "topology": {"tp": 4, "dcp": 1, "pp": 1},
        "ranks": 4,
        "nodes": 4,
        "hardware": {"system": "NVIDIA DGX Spark"},
        "publication_mode": "page-tail-cow-v1",
        "cells": [{"draft_tokens": 7}],
    }
    assert first["observed"] == {"from": "2026-08-30T05:32:01Z", "to": "2026-08-30T05:40:04Z"}
    assert all(controls(claim) == {} for claim in reading.claims)
    assert [item.pointer for item in reading.refused] == ["/measurements/persistent_restore_128k/rank_restore_milliseconds"]


@ALL
def test_live_validation_says_what_the_image_was_built_from_and_marks_it_as_reported(place: str) -> None:
    (image,) = record(place, "live").read().images
    built: Any = image.predicate["built_from"]
    assert (str(image.image), image.predicate["level"], image.predicate["verified"]) == (IMAGES["live"], "config", False)
    assert built["components"]["sparkcache"] == {
        "commit": "git-commit:5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3",
        "tree": "git-tree:94c236b9dfbf5f70075eb47877fd9caaa5d8c249",
        "source_sha256": "bc238f96e550c7ec27d4081dd1f2e741d404aaf5c8572d89ccc5e76812be4d63",
    }
    assert set(built["components"]) == {"sparkcache", "vllm-native", "vllm-python", "b12x"}
    assert (image.predicate["published"], image.predicate["labels"]) == ([], {})


@ALL
def test_the_positive_chain_holds_and_its_prefixes_are_warnings(place: str) -> None:
    reading = record(place, "chain").read()
    assert claimed(reading) == [("restore.correctness", "pass", False, at(131072, 1))]
    (claim,) = reading.claims
    assert controls(claim) == {"all-ranks-structural": "pass", "exact-answer": "pass"}
    rules = {item["field"]: item["rule"] for item in claim["derived"]}  # type: ignore[union-attr,index,call-overload]  # a list of objects
    assert "normalisation strip" in str(rules["/controls/exact-answer"])
    assert (reading.exit, checkers(reading)) == (ExitCode.YES, ["pins.full-length"] * 4)
    assert [finding.location.line for finding in reading.findings if finding.checker and finding.location] == [43, 53, 63, 73]
    assert [file.name for file in reading.referenced] == ["publish.json", "restore.json", "readiness.json", "manifest-inspection.json"]
    unnamed = [item.pointer for item in reading.not_here]
    assert [pointer for pointer in unnamed if "source_" in pointer] == [
        f"/input_sha256/source_{name}_json" for name in ("publish", "restore", "manifest_inspection")
    ]
    assert claim["observed"] == {"from": None, "to": None}


@ALL
def test_a_restore_that_verified_and_answered_wrong_rejects_its_image(place: str) -> None:
    reading = record(place, "rejected").read()
    assert claimed(reading) == [("restore.correctness", "fail", False, at(131072, 1))]
    assert controls(reading.claims[0]) == {"exact-answer": "fail"}
    (rejection,) = reading.rejections
    assert (rejection.required, rejection.observed) == ("red", " Spark")
    assert rejection.evidence == ("response-raw:sha256:0bb1366f58973e94b3cd518d4981be67c86ee35768039e392bb5c494b27bc58e",)
    assert reading.exit is ExitCode.NO
    assert checkers(reading) == [
        "digest.preimage",
        "status.semantic-fail-rejects",
        "digest.preimage",
        "restore.negative-control",
        "metric.rank-vectors",
        "timing.residual",
    ]
    residual = next(finding for finding in reading.findings if finding.checker == "timing.residual")
    assert residual.observed == "at least 240.4 ms in no named phase"
    assert [item.pointer for item in reading.refused] == ["/rollback"]
    assert [item.checker for item in reading.findings if item.severity is Severity.INFO and item.checker] == ["evidence.planned-not-passed"]


@ALL
def test_two_right_answers_of_a_research_record_stay_research(place: str) -> None:
    reading = record(place, "event").read()
    assert claimed(reading) == [("restore.correctness", "pass", True, at(131072, 1))] * 2
    assert all(controls(claim) == {"all-ranks-structural": "pass", "exact-answer": "pass"} for claim in reading.claims)
    assert Counter(checkers(reading)) == {
        "timing.residual": 8,
        "pins.full-length": 8,
        "digest.preimage": 2,
        "restore.negative-control": 1,
        "restore.hit-attribution": 1,
    }
    assert (reading.exit, len(reading.not_here)) == (ExitCode.YES, 10)
    assert [claim["observed"]["to"] for claim in reading.claims] == ["2026-08-30T20:53:12.5280514Z", "2026-08-30T20:53:52.9347373Z"]  # type: ignore[index,call-overload]  # an interval
    limits = [finding.observed for finding in reading.findings if finding.checker is None]
    assert "Concurrent restore correctness" in limits


@ALL
def test_the_explainer_keeps_failures_skips_and_the_definition_apart(place: str) -> None:
    reading = record(place, "explainer").read()
    assert claimed(reading) == [
        *(("longcontext.retrieval", "pass", False, at(120124, 1, draft)) for draft in (0, 7, 3)),
        *(("output.contract", "fail", False, at(draft=draft)) for draft in (0, 7, 3)),
        *(("decode.rate", "pass", True, at(None, 1, draft)) for draft in (0, 7, 3)),
    ]
    assert [item.pointer for item in reading.refused] == [
        "/quality_comparisons/0/semantic_checks_passed",
        "/quality_comparisons/2/semantic_checks_passed",
    ]
    told = [finding for finding in reading.findings if finding.severity is Severity.BLOCK]
    assert [finding.checker for finding in told] == ["bench.denominator-declared"] * 3
    assert [(finding.required or "")[-7:] for finding in told] == ["15.1862", "20.5093", "24.7877"]
    assert [(finding.observed or "")[:7] for finding in told] == ["15.1812", "20.5001", "24.7775"]
    assert all("decode.excl-first = (completion - 1) / (wall - TTFT)" in (finding.observed or "") for finding in told)
    assert checkers(reading).count("quality.skipped-declared") == 2
    assert checkers(reading).count("bench.output-length-band") == 1
    scope: Any = reading.claims[1]["scope"]
    assert (scope["topology"], scope["nodes"], scope["draft"]["revision"]) == ({"tp": 2}, 2, "bf582e4eacc1810f76656d1811693ff6c6737d2a")
    assert reading.claims[0]["scope"]["draft"] == {"repository": "none", "revision": "none"}  # type: ignore[index,call-overload]  # a scope


@ALL
def test_without_the_campaign_file_the_quoted_rates_stand_and_nothing_is_computed(place: str) -> None:
    quoting = record(place, "explainer")
    quoting.files = {}
    reading = quoting.read()
    assert (reading.exit, checkers(reading, "block")) == (ExitCode.YES, [])
    assert "/supplemental_sources/3/document_sha256" in [item.pointer for item in reading.not_here] or place == "copies"
    assert [entry[:3] for entry in claimed(reading) if entry[0] == "decode.rate"] == [("decode.rate", "pass", True)] * 3


def test_three_of_the_seven_documents_that_the_report_pins_are_at_hand() -> None:
    quoting = record("published", "explainer")
    weschera = PUBLISHED / "weschera"
    for name in ("SOURCE_MANIFEST.json", "evidence/text128-dflash-resume/dflash2-7/quality-report.json"):
        quoting.files[name] = (weschera / name).read_bytes()
    reading = quoting.read()
    assert (len(reading.referenced), len(reading.not_here)) == (3, 4)


@ALL
def test_the_campaign_recomputes_under_one_definition_only(place: str) -> None:
    reading = record(place, "campaign").read()
    assert [entry for entry in claimed(reading) if entry[0] == "output.contract"] == [
        ("output.contract", "fail", False, at(draft=draft)) for draft in (0, 7, 3)
    ]
    assert [entry[:3] for entry in claimed(reading) if entry[0] == "decode.rate"] == [("decode.rate", "pass", True)] * 3
    assert reading.exit is ExitCode.YES
    told = [finding.observed for finding in reading.findings if finding.checker == "bench.denominator-declared"]
    assert told == ["4 of 4 rows are decode.excl-first = (completion - 1) / (wall - TTFT)"] * 3
    assert "dflash2-7/quality-report.json" in [file.name for file in reading.referenced]
    assert sum("long_context_passed" in item.pointer for item in reading.refused) == 3


@ALL
def test_a_quality_report_alone_fails_at_the_depth_that_is_bound(place: str) -> None:
    reading = record(place, "report").read()
    assert claimed(reading) == [("output.contract", "fail", False, at(draft=7))]
    assert checkers(reading) == ["quality.output-contract"] * 2


@pytest.mark.parametrize("name", ["live", "chain", "rejected", "event", "campaign", "report"])
def test_the_copies_are_the_published_bytes(name: str) -> None:
    published, copied = PLACES["published"]()[name], PLACES["copies"]()[name]
    assert (published.data, published.files) == (copied.data, copied.files)


def test_the_facts_of_the_explainer_are_those_of_the_published_one() -> None:
    published, facts = PLACES["published"]()["explainer"].read(), PLACES["copies"]()["explainer"].read()
    assert published.predicate()["claims"] == facts.predicate()["claims"]
