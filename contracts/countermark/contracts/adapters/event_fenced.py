"""Replays of stored prefixes with every rank's timing payload: `sparkcache-glm53-event-fenced-flat-restore-research/v1`.

Each observation is one restore. Right answers do not make more of the record than it says itself: under `admission/qualified: false`
research-only is the most that may be claimed.
"""

import json
from collections.abc import Iterable
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import roll_up
from countermark.contracts.adapters import admission
from countermark.contracts.adapters.answers import Answer, judge
from countermark.contracts.adapters.base import SchemaAdapter
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.images import Component, Named, built_from, named_image
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.reading import Claim, Derived, Reference
from countermark.contracts.adapters.restores import (
    ONE_REQUEST,
    RANK_TABLE,
    all_ranks,
    answer_rule,
    digest_prefix,
    objects,
    preimage,
    residual,
    stored_match,
    topology,
    whole_chunks,
    wrong_answer,
)
from countermark.contracts.adapters.tables import Meaning, Table, word_table

_COMPONENTS: Final = (
    Component("sparkcache", "/sparkcache_commit", "/sparkcache_tree", "/sparkcache_source_sha256"),
    Component("vllm-native", "/vllm_native_commit"),
    Component("vllm-python", "/vllm_python_commit", "/vllm_python_tree"),
    Component("b12x", "/b12x_commit"),
)
_BOUNDARIES: Final = {"stored-prefix-replay": "stored_prefix_log_boundary", "distinct-stored-prefix-replay": "distinct_prefix_log_boundary"}
_RECEIPTS: Final = {
    "stored-prefix-replay": "stored_prefix_request_receipt",
    "distinct-stored-prefix-replay": "distinct_prefix_request_receipt",
}
_ARITHMETIC_MS: Final = 0.002
_CANONICAL: Final = "keys sorted, no spaces, shortest decimals with a fraction kept"


class EventFenced(SchemaAdapter):
    """Reads each observation with its rank records, and what the record says it does not establish."""

    name = "event-fenced"
    version = 1
    schema_id = "sparkcache-glm53-event-fenced-flat-restore-research/v1"
    tables = (
        Table(
            ("in the record", "gives"),
            (
                (
                    "`observations/*` with the required word, every rank verified",
                    "`restore.correctness` pass at `restored_tokens`, C1, claim by status and admission",
                ),
                ("`observations/*` with another word, no rank that recomputed", "`rejection/v1`, image-wide"),
                (
                    "two observations that require the same word",
                    "finding `restore.negative-control`: one prefix restored in place of the other would not show",
                ),
                ("`rank_records/*/canonical_payload_sha256`", f"recomputed over the payload: {_CANONICAL}"),
                ("`captured_artifacts/*_log_boundary`", "recomputed over `captured_after_utc` and CR LF"),
                ("`scope/not_established`, `admission/reason`, `raw_log_retention/limitation`", "limitations"),
            ),
        ),
        word_table(admission.WORDS),
        RANK_TABLE,
    )

    def references(self, root: Field) -> Iterable[Reference]:
        """The captured artefacts but the log boundaries, whose bytes follow from the record."""
        captured = [(key, item["sha256"]) for key, item in root["captured_artifacts"].members if key not in _BOUNDARIES.values()]
        return [Reference(item.pointer, item.hex64) for _, item in captured if item.hex64]

    def read(self, case: Case, notes: Notes) -> None:
        """One claim for each observation."""
        root = case.root
        named = named_image(case, notes, root["runtime"]["image_id"], DigestKind.OCI_CONFIG)
        meaning = admission.reported(notes, root["status"])
        lowered = admission.lowered(notes, root, meaning or Meaning.NONE)
        if named:
            notes.images.append(built_from(named, root["runtime"], _COMPONENTS))
            for observation in root["observations"].elements:
                _Observation(root, observation, notes).claim(named, meaning, lowered)
        _controls(root["observations"], notes)
        _limits(root, notes)


class _Observation:
    """Reads one replay."""

    def __init__(self, root: Field, observation: Field, notes: Notes) -> None:
        self.root = root
        self.it = observation
        self.notes = notes
        self.records = observation["rank_records"].elements
        self.sizes = topology(root["runtime"]["topology"])

    def claim(self, named: Named, meaning: Meaning | None, lowered: bool) -> None:
        """The claim of the replay, unless it holds no answer or its status word says nothing."""
        answer = judge(self.it["expected_oracle"], self.it["observed_oracle"], self.it["response_sha256"])
        if answer is None:
            self.notes.refuse(self.it, "no required and observed word to judge")
            return
        structural, checks = self._ranks(), self._checks(answer)
        if answer.outcome is Outcome.FAIL and structural is not Outcome.FAIL:
            wrong_answer(self.notes, self.it, answer)
        if answer.outcome is not Outcome.FAIL and meaning in (None, Meaning.NONE):
            self.notes.refuse(self.it, "right by its words, and no status word here lets it be claimed")
            return
        controls = {"exact-answer": answer.outcome} if answer.shows else {}
        if structural is not Outcome.NOT_RUN:
            controls["all-ranks-structural"] = structural
        word = Outcome.PASS if meaning is None else admission.outcome_of(meaning)
        told = structural if structural is not Outcome.NOT_RUN else Outcome.INCONCLUSIVE
        outcome = settle(word, [answer.outcome, told], checks)
        time = self.it["captured_after_utc"].time
        claim = Claim(
            "restore.correctness",
            outcome,
            self._scope(named),
            self.it.pointer,
            controls,
            lowered,
            (time, time),
            self._derived(named, answer),
        )
        self.notes.claims.append(claim)

    def _ranks(self) -> Outcome:
        """The structural outcome of all ranks; a payload whose hash is another is not believed."""
        numbers, outcomes = [item["rank"].count for item in self.records], [item["payload"]["outcome"] for item in self.records]
        found = all_ranks(self.notes, self.it["rank_records"], self.sizes, numbers, outcomes)
        hashed = [self._payload(item) for item in self.records]
        return roll_up([found, Outcome.INCONCLUSIVE]) if Outcome.FAIL in hashed and found is not Outcome.NOT_RUN else found

    def _payload(self, record: Field) -> Outcome:
        payload, stated = record["payload"], record["canonical_payload_sha256"]
        residual(self.notes, payload["phase_ms"], [item for _, item in payload["phase_ms"].members], payload["service_ms"])
        digest_prefix(self.notes, payload["digest"], self.it["context_digest"])
        text = json.dumps(payload.value, sort_keys=True, separators=(",", ":"))
        found = Digest.of(DigestKind.FILE, text.encode()).hex
        return self.notes.hold(
            None if stated.hex64 is None else found == stated.hex64,
            stated,
            "digest.preimage",
            required=f"{found}, the SHA-256 of the payload ({_CANONICAL})",
            observed=shown(stated.value),
            fix="record the payload as it was hashed",
        )

    def _checks(self, answer: Answer) -> list[Outcome]:
        """Everything in the observation that can be computed again."""
        it, hold = self.it, self.notes.hold
        preimage(self.notes, it["response_sha256"], answer, declared=False)
        role, captured = it["role"].text or "", self.root["captured_artifacts"]
        receipt, boundary = captured[_RECEIPTS.get(role, "")]["sha256"], captured[_BOUNDARIES.get(role, "")]["sha256"]
        after = Digest.of(DigestKind.FILE, f"{it['captured_after_utc'].text}\r\n".encode()).hex
        status = it["http_status"]
        return [
            stored_match(self.notes, it["oracle_match"], answer),
            whole_chunks(self.notes, it["restored_tokens"], it["prompt_tokens"]),
            hold(
                None
                if receipt.hex64 is None or not it["request_receipt_sha256"].present
                else it["request_receipt_sha256"].text == receipt.text,
                it["request_receipt_sha256"],
                "evidence.refs-resolve",
                required=f"{receipt.text}, as captured",
                observed=shown(it["request_receipt_sha256"].value),
                fix="refer to the receipt that was captured",
            ),
            hold(
                None if boundary.hex64 is None else after == boundary.text,
                boundary,
                "digest.preimage",
                required=f"{after}, the SHA-256 of captured_after_utc and CR LF",
                observed=shown(boundary.value),
                fix="record the time at which the log was cut",
            ),
            hold(
                status.integer == 200 if status.present else None,
                status,
                "restore.semantic-oracle",
                required="status 200",
                observed=shown(status.value),
                fix="repeat it",
            ),
            *(check for record in self.records for check in self._rank_checks(record["payload"])),
        ]

    def _rank_checks(self, payload: Field) -> list[Outcome]:
        queue, service, whole = (payload[name].number for name in ("queue_wait_ms", "service_ms", "end_to_end_ms"))
        span, restored = payload["span_tokens"].count, self.it["restored_tokens"].count
        hold = self.notes.hold
        return [
            hold(
                None if queue is None or service is None or whole is None else abs(queue + service - whole) <= _ARITHMETIC_MS,
                payload["end_to_end_ms"],
                "timing.arithmetic",
                required=f"queue and service, {shown(queue)} + {shown(service)} ms",
                observed=f"{shown(whole)} ms",
                fix="record times of one clock",
            ),
            hold(
                None if span is None or restored is None else span == restored,
                payload["span_tokens"],
                "config.geometry-divides",
                required=f"{restored} tokens, as restored",
                observed=shown(span),
                fix="record the ranks of the same request",
            ),
            hold(
                payload["request_id"].text == self.it["request_id"].text if payload["request_id"].present else None,
                payload["request_id"],
                "evidence.subject",
                required=shown(self.it["request_id"].value),
                observed=shown(payload["request_id"].value),
                fix="record the ranks of the same request",
            ),
            objects(self.notes, payload["page_bytes"], payload["chunk_count"]),
        ]

    def _scope(self, named: Named) -> dict[str, JsonValue]:
        tokens, mode = self.it["restored_tokens"].count, self.root["runtime"]["publication_schema"].text
        scope: dict[str, JsonValue] = {
            "image": str(named.image),
            "topology": dict(self.sizes) or None,
            "ranks": len(self.records) or None,
            "publication_mode": mode or None,
            "cells": [{"concurrency": 1, **({} if tokens is None else {"context_tokens": tokens})}],
        }
        return {name: value for name, value in scope.items() if value is not None}

    def _derived(self, named: Named, answer: Answer) -> tuple[Derived, ...]:
        after = Derived("/observed", "captured-after: the request ended after this time", self.it["captured_after_utc"].pointer)
        request = Derived("/scope/cells/0/concurrency", ONE_REQUEST, self.it.pointer)
        return (
            *named.derived,
            request,
            *([after] if self.it["captured_after_utc"].time else []),
            *answer_rule(answer, self.it["observed_oracle"]),
        )


def _controls(observations: Field, notes: Notes) -> None:
    """What these runs do not show of one another, and what no run here shows."""
    found = observations.elements
    words = [item["expected_oracle"].text for item in found]
    if len(words) > 1 and len(set(words)) < len(words):
        notes.warn(
            observations,
            Code.CONTROLS_INCOMPLETE,
            "restore.negative-control",
            required="another required word for each stored prefix",
            observed=f"the same word {shown(words[0])} for {len(words)} prefixes: one restored in place of the other would not show",
            fix="let every prefix require a word of its own",
        )
    if found:
        notes.warn(
            observations,
            Code.CONTROLS_INCOMPLETE,
            "restore.hit-attribution",
            required="external hits above 0 and local hits of 0",
            observed="not recorded",
            fix="record the cache counters of each request",
        )


def _limits(root: Field, notes: Notes) -> None:
    notes.limits(root["scope"]["not_established"].elements)
    notes.limits(item for item in (root["admission"]["reason"], root["raw_log_retention"]["limitation"]) if item.present)
    if root["raw_log_retention"]["rank_log_files_retained"].flag is False:
        notes.find(
            root["raw_log_retention"],
            Code.RECORD_UNMAPPED,
            "evidence.raw-retained",
            Severity.INFO,
            Outcome.NOT_RUN,
            required="the raw logs by size and digest",
            observed="not retained, and the record says so",
            fix="keep the raw logs of the next run",
        )
