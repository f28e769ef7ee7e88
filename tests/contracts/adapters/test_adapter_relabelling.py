"""The verdict follows the data: other words, digests and sizes give the same verdict, and a stored boolean never decides."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import ExitCode

from .evidence_records import Record, checkers, copies, outcomes, rehash_chain, sha256

WORD = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=2, max_size=12)
HEX = st.text(st.sampled_from("0123456789abcdef"), min_size=64, max_size=64)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RIGHT, WRONG = ("restore.correctness", "pass"), ("restore.correctness", "fail")
UNCLEAR = ("restore.correctness", "inconclusive")

Change = Callable[[Any], None]


def relabel_rejected(required: str, raw: str, image: str, **flags: Any) -> Record:
    def change(value: Any) -> None:
        value["runtime"]["image_id"] = f"sha256:{image}"
        observed = raw.strip().casefold()
        value["semantic_restore"] |= {"expected": required, "observed": observed, "response_sha256": sha256(raw), **flags}

    return copies()["rejected"].changed(change)


@QUICK
@given(WORD, WORD, HEX, st.booleans())
def test_a_wrong_answer_rejects_whatever_is_stored_beside_it(required: str, given_word: str, image: str, passed: bool) -> None:
    reading = relabel_rejected(required, f" {given_word.capitalize()}", image, passed=passed).read()
    if required == given_word:
        assert not reading.rejections
    else:
        assert outcomes(reading) == {WRONG}
        (rejection,) = reading.rejections
        assert (rejection.required, rejection.observed) == (required, f" {given_word.capitalize()}")
        assert ("quality.aggregate-consistent" in checkers(reading)) is passed


@QUICK
@given(WORD, HEX)
def test_the_right_answer_in_the_same_record_is_research_only(word: str, image: str) -> None:
    record = relabel_rejected(word, f" {word}", image, passed=True).changed(lambda value: value.update(conclusion="passed"))
    reading = record.read()
    (claim,) = reading.claims
    assert (claim["outcome"], claim["claim"]) == ("pass", "research-only")
    assert not reading.rejections
    untold = record.changed(lambda value: value["structural_restore"].pop("all_ranks_verified")).read()
    assert outcomes(untold) == {UNCLEAR}


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda value: value["semantic_restore"].update(passed=True), "fail"),
        (lambda value: value["structural_restore"].update(all_ranks_verified=False), "fail"),
        (lambda value: value.update(status="qualified", conclusion="fine"), "fail"),
        (lambda value: value.update(status="splendid"), "fail"),
        (lambda value: value["semantic_restore"].pop("response_sha256"), "fail"),
        (lambda value: value["semantic_restore"].update(observed="red", response_sha256=sha256(" red")), "inconclusive"),
        (lambda value: value["semantic_restore"].update(observed="red", response_sha256="0" * 64), "inconclusive"),
        (lambda value: value["semantic_restore"].update(observed="red", response_sha256=sha256(" Red")), "inconclusive"),
        (lambda value: value["semantic_restore"].update(observed=" "), "inconclusive"),
    ],
)
def test_each_way_to_dress_up_a_rejection_fails_or_stays_open(change: Change, outcome: str) -> None:
    assert outcomes(copies()["rejected"].changed(change).read()) == {("restore.correctness", outcome)}


def test_a_wrong_answer_of_a_restore_that_did_not_verify_fails_and_does_not_reject() -> None:
    reading = copies()["rejected"].changed(lambda value: value["structural_restore"].update(all_ranks_verified=False)).read()
    assert outcomes(reading) == {WRONG}
    assert not reading.rejections


@pytest.mark.parametrize("flag", ["deployable", "qualified"])
def test_a_refused_record_may_not_be_called_deployable(flag: str) -> None:
    reading = copies()["rejected"].changed(lambda value: value["admission"].update({flag: True})).read()
    assert "status.not-deployable" in checkers(reading, "block")


def relabel_chain(required: str, published: str, restored: str, **more: Any) -> Record:
    def request(raw: str) -> Change:
        words = {"expected_oracle": required, "observed_oracle": raw.strip(), "response_sha256": sha256(raw), **more}
        return lambda value: value.update(words)

    record = rehash_chain(copies()["chain"], {"publish.json": request(published), "restore.json": request(restored)})
    summary = {
        "expected_oracle": required,
        "publish_oracle": published.strip(),
        "restore_oracle": restored.strip(),
        "publish_response_sha256": sha256(published),
        "restore_response_sha256": sha256(restored),
    }
    record.value["case"].update(summary)
    return record


@QUICK
@given(WORD, WORD)
def test_the_chain_follows_its_words(required: str, other: str) -> None:
    assert outcomes(relabel_chain(required, f" {required}", f" {required}").read()) == {RIGHT}
    wrong = relabel_chain(required, f" {required}", f" {other}").read()
    assert (outcomes(wrong) == {WRONG} and len(wrong.rejections) == 1) is (required != other)


def test_the_chain_passes_on_nothing_but_the_bytes_that_it_names() -> None:
    for name in copies()["chain"].files:
        record = copies()["chain"]
        del record.files[name]
        missing = record.read()
        assert (outcomes(missing), missing.exit) == ({UNCLEAR}, ExitCode.CANNOT_TELL)
        record.files[name] = copies()["chain"].files[name] + b"\n"
        changed = record.read()
        assert (outcomes(changed), changed.exit) == ({UNCLEAR}, ExitCode.NO)
        assert "evidence.refs-resolve" in checkers(changed, "block")


def words_of(value: Any) -> None:
    for key in ("expected_oracle", "observed_oracle"):
        value.pop(key)


def test_the_summary_of_a_chain_does_not_stand_for_what_its_files_lack() -> None:
    assert outcomes(rehash_chain(copies()["chain"], {"restore.json": words_of}).read()) == {UNCLEAR}
    without_ranks = rehash_chain(copies()["chain"], {"manifest-inspection.json": lambda value: value.update(results=[])})
    without_ranks.value["rank_restore_evidence"] = []
    assert outcomes(without_ranks.read()) == {UNCLEAR}


@pytest.mark.parametrize("digest", [None, "sha256:" + "0" * 64, "0" * 63, 5])
def test_a_file_whose_hash_is_not_stated_is_not_taken_by_its_name(digest: Any) -> None:
    reading = copies()["chain"].changed(lambda value: value["input_sha256"].update(repository_restore_json=digest)).read()
    assert (outcomes(reading), reading.exit) == ({UNCLEAR}, ExitCode.CANNOT_TELL)
    assert "restore.json" not in [file.name for file in reading.referenced]


def set_all(*path: str, **fields: Any) -> Change:
    def change(value: Any) -> None:
        for part in path:
            value = value[part]
        for item in value if isinstance(value, list) else [value]:
            item.update(fields)

    return change


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (set_all("rank_restore_evidence", outcome="recompute"), "fail"),
        (set_all("rank_restore_evidence", outcome="splendid"), "inconclusive"),
        (set_all("rank_restore_evidence", digest_prefix="0123456789ab"), "pass"),
        (set_all("rank_restore_evidence", page_bytes=1), "inconclusive"),
        (lambda value: value["rank_restore_evidence"].pop(), "inconclusive"),
        (set_all("profile", tensor_parallel_size=8), "inconclusive"),
        (set_all("case", committed_tokens=131073), "inconclusive"),
        (set_all("case", snapshot_object_count_per_rank=12), "inconclusive"),
        (set_all("case", prompt_sha256="0" * 64), "inconclusive"),
        (set_all("case", restore_oracle="blue"), "fail"),
        (lambda value: value.update(status="rejected"), "fail"),
        (lambda value: value.update(status="research-only"), "pass"),
    ],
)
def test_each_broken_step_of_the_chain_takes_its_pass_away(change: Change, outcome: str) -> None:
    reading = copies()["chain"].changed(change).read()
    assert outcomes(reading) == {("restore.correctness", outcome)}


def test_a_prefix_of_another_digest_contradicts_the_record() -> None:
    reading = copies()["chain"].changed(set_all("rank_restore_evidence", digest_prefix="0123456789ab")).read()
    assert reading.exit is ExitCode.NO


@pytest.mark.parametrize("status", ["unsupported", "live-validated", "", None, 1, {"all": "qualified"}])
def test_a_status_word_outside_of_the_table_claims_nothing(status: Any) -> None:
    reading = copies()["chain"].changed(lambda value: value.update(status=status)).read()
    assert reading.claims == ()
    assert (reading.exit, "/status" in [item.pointer for item in reading.refused]) == (ExitCode.NOTHING, True)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda inspection: inspection.update(status="failed"), "inconclusive"),
        (lambda inspection: inspection["results"].pop(), "inconclusive"),
        (lambda inspection: inspection["results"][1].update(manifest_sha256=inspection["results"][0]["manifest_sha256"]), "inconclusive"),
        (lambda inspection: inspection["results"][2].update(context_digest="0" * 64), "inconclusive"),
        (lambda inspection: inspection.update(note="another field"), "pass"),
    ],
)
def test_the_inspection_of_the_chain_counts(change: Change, outcome: str) -> None:
    reading = rehash_chain(copies()["chain"], {"manifest-inspection.json": change}).read()
    assert outcomes(reading) == {("restore.correctness", outcome)}


def relabel_event(change: Change) -> Record:
    """A copy of the event-fenced record with the payload hashes computed again."""

    def both(value: Any) -> None:
        change(value)
        for observation in value["observations"]:
            for rank in observation["rank_records"]:
                rank["canonical_payload_sha256"] = sha256(json.dumps(rank["payload"], sort_keys=True, separators=(",", ":")))

    return copies()["event"].changed(both)


@QUICK
@given(WORD, WORD, st.booleans())
def test_each_replay_is_judged_by_its_own_words(first: str, second: str, match: bool) -> None:
    def change(value: Any) -> None:
        for observation, word in zip(value["observations"], (first, second), strict=True):
            words = {"expected_oracle": first, "observed_oracle": word, "response_sha256": sha256(f" {word}"), "oracle_match": match}
            observation.update(words)

    reading = relabel_event(change).read()
    found = [claim["outcome"] for claim in reading.claims]
    assert found == [("pass" if match else "inconclusive"), "fail" if first != second else ("pass" if match else "inconclusive")]
    assert len(reading.rejections) == (first != second)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda value: value["observations"][0]["rank_records"][2]["payload"].update(outcome="recompute"), "fail"),
        (lambda value: value["observations"][0]["rank_records"].pop(), "inconclusive"),
        (lambda value: value["observations"][0]["rank_records"][1].update(rank=0), "inconclusive"),
        (lambda value: value["observations"][0]["rank_records"][1]["payload"].update(span_tokens=4096), "inconclusive"),
        (lambda value: value["observations"][0]["rank_records"][1]["payload"].update(queue_wait_ms=50.0), "inconclusive"),
        (lambda value: value["observations"][0].update(restored_tokens=130000), "inconclusive"),
        (lambda value: value["observations"][0].update(request_receipt_sha256="0" * 64), "inconclusive"),
        (lambda value: value["observations"][0].update(captured_after_utc="2026-08-30T20:53:13Z"), "inconclusive"),
        (lambda value: value["observations"][0].update(http_status=500), "inconclusive"),
        (lambda value: value["observations"][0].update(rank_records=[]), "inconclusive"),
        (lambda value: value["observations"][0]["rank_records"][0]["payload"].update(page_bytes=813068464 * 2), "inconclusive"),
    ],
)
def test_each_number_of_a_replay_that_does_not_recompute_leaves_it_open(change: Change, outcome: str) -> None:
    assert relabel_event(change).read().claims[0]["outcome"] == outcome


def test_a_payload_that_is_not_the_hashed_one_is_not_believed() -> None:
    change: Change = lambda value: value["observations"][0]["rank_records"][0]["payload"]["phase_ms"].update(restore_read=1.5)  # noqa: E731  # one change
    reading = copies()["event"].changed(change).read()
    assert reading.claims[0]["outcome"] == "inconclusive"
    assert "digest.preimage" in checkers(reading, "block")


def test_words_of_their_own_for_each_prefix_are_no_finding() -> None:
    def change(value: Any) -> None:
        value["observations"][1].update(expected_oracle="blue", observed_oracle="blue", response_sha256=sha256(" blue"))

    assert "restore.negative-control" not in checkers(relabel_event(change).read())


@pytest.mark.parametrize(
    ("status", "qualified", "deployable", "lowered"),
    [
        ("qualified", True, True, False),
        ("qualified", False, True, True),
        ("qualified", True, None, True),
        ("research-only", True, True, True),
    ],
)
def test_the_gate_is_never_told_more_than_the_record_lets_be_claimed(
    status: str, qualified: bool, deployable: bool | None, lowered: bool
) -> None:
    def change(value: Any) -> None:
        value.update(status=status)
        value["admission"].update(qualified=qualified, deployable=deployable)

    assert {claim["claim"] for claim in relabel_event(change).read().claims} == {"research-only" if lowered else None}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (
            lambda value: value["measurements"]["persistent_restore_256k"].update(replay_completion_token=917),
            ("restore.correctness", "fail"),
        ),
        (
            lambda value: value["measurements"]["arbitrary_page_boundary_restore"].update(connector_outcome="recompute"),
            ("restore.page-boundary-replay", "fail"),
        ),
        (
            lambda value: value["measurements"]["arbitrary_page_boundary_restore"].update(chunk_count=46),
            ("restore.page-boundary-replay", "inconclusive"),
        ),
        (
            lambda value: value["measurements"]["persistent_restore_128k"]["rank_restore_milliseconds"].pop("3"),
            ("restore.correctness", "inconclusive"),
        ),
        (lambda value: value["measurements"]["startup"].update(healthy_ranks=3), ("service.startup", "fail")),
        (lambda value: value["measurements"]["startup"].update(oom_killed_by_rank=[False, True]), ("service.health", "fail")),
    ],
)
def test_measurements_that_speak_against_a_word_win(change: Change, failing: tuple[str, str]) -> None:
    assert failing in outcomes(copies()["live"].changed(change).read())


def test_the_words_of_the_status_map_decide_what_is_claimed() -> None:
    def change(value: Any) -> None:
        value["status"] = {
            "startup_health": "live-validated",
            "semantic_generation": "implemented",
            "persistent_128k_restore": "research-only",
            "persistent_256k_restore_performance": "qualified",
            "shared_prefix_concurrency": "qualified",
            "tail_restore": "qualified",
        }

    reading = copies()["live"].changed(change).read()
    assert [(claim["capability"], claim["claim"]) for claim in reading.claims] == [
        ("restore.correctness", "research-only"),
        ("restore.performance", "research-only"),
    ]
    refused = [item.pointer for item in reading.refused]
    assert [f"/status/{key}" for key in ("startup_health", "semantic_generation", "shared_prefix_concurrency", "tail_restore")] == refused[
        :4
    ]
    assert reading.images == ()


@pytest.mark.parametrize(
    "observed", ["2026-08-30T05:32:01", "yesterday", "2026-08-30T05:32:01Z/2026-08-30T05:40:04Z/2026-08-30T05:41:04Z", None]
)
def test_a_time_that_is_none_is_not_recorded(observed: Any) -> None:
    reading = copies()["live"].changed(lambda value: value["conditions"].update(observed_at_utc=observed)).read()
    assert reading.claims[0]["observed"] == {"from": None, "to": None}
    assert "config.schema-valid" in checkers(reading)
