"""A chain of records that name one another by hash: `sparkring-glm53-dflash7-snapshot-v1-safe-validation/v1`.

The validation sums up what four other files report. Its status counts for what those files show: without them at hand, and with the
very bytes that it names, nothing passes.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from countermark.attestations.codes import Outcome
from countermark.attestations.digests import DigestKind
from countermark.attestations.located import JsonValue
from countermark.attestations.outcomes import roll_up
from countermark.contracts.adapters.admission import WORDS, outcome_of, reported
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
    stored_match,
    whole_chunks,
    wrong_answer,
)
from countermark.contracts.adapters.tables import Meaning, Table, word_table
from countermark.contracts.pins import same
from countermark.contracts.scope import Value

FILES: Final = {
    "repository_publish_json": "publish.json",
    "repository_restore_json": "restore.json",
    "repository_readiness_json": "readiness.json",
    "repository_manifest_inspection_json": "manifest-inspection.json",
}
"""The keys of the hashes of the files that lie beside the validation, and their names there."""
_COMPONENTS: Final = (Component("sparkcache", "/sparkcache_commit", "/sparkcache_tree", "/sparkcache_source_sha256"),)


class SnapshotSafe(SchemaAdapter):
    """Reads the validation and the files that it names."""

    name = "snapshot-safe"
    version = 1
    schema_id = "sparkring-glm53-dflash7-snapshot-v1-safe-validation/v1"
    tables = (
        Table(("hash under `input_sha256`", "file beside the validation"), tuple((f"`{key}`", f"`{name}`") for key, name in FILES.items())),
        Table(
            ("in the chain", "gives"),
            (
                (
                    "`status`, the four files at hand, every rank verified, the required word",
                    "`restore.correctness` at `case/committed_tokens`, C1",
                ),
                ("a file that is not at hand or has another hash", "the claim is inconclusive"),
                ("another word than required, no rank that recomputed", "`rejection/v1`, image-wide"),
                ("`rank_restore_evidence/*/request_id` equal on all ranks", "C1; else the concurrency is not recorded"),
                ("`response_sha256`", "of the raw word: one space, then the recorded word; this reader declares `strip`"),
                ("`limitations/*`", "limitations; none of them is a claim"),
            ),
        ),
        word_table(WORDS),
        RANK_TABLE,
    )

    def references(self, root: Field) -> Iterable[Reference]:
        """The files beside it, then those that it names by hash alone."""
        named = root["input_sha256"]
        beside = [Reference(named[key].pointer, named[key].hex64, name) for key, name in FILES.items()]
        others = [item for key, item in named.members if key not in FILES]
        logs = [item["bounded_log_input_sha256"] for item in root["rank_restore_evidence"].elements]
        unnamed = [root["artifact"]["build_receipt_sha256"], *others, *logs]
        return [*beside, *(Reference(item.pointer, item.hex64) for item in unnamed if item.hex64)]

    def read(self, case: Case, notes: Notes) -> None:
        """At most one claim: the restore that the chain is about."""
        named = named_image(case, notes, case.root["artifact"]["image_id"], DigestKind.OCI_CONFIG)
        meaning = reported(notes, case.root["status"])
        if named:
            notes.images.append(built_from(named, case.root["artifact"], _COMPONENTS))
            _Chain(case, notes).claim(named, meaning)
        for key, item in case.root["limitations"].members:
            notes.limit(item, f"{key}: {shown(item.value)}")


class _Chain:
    """Reads the validation, with the files that its hashes lead to."""

    def __init__(self, case: Case, notes: Notes) -> None:
        self.case = case
        self.notes = notes
        self.root = case.root
        self.it = case.root["case"]
        self.files = {name: case.file(case.root["input_sha256"][key]) for key, name in FILES.items()}
        profile = case.root["profile"]
        sizes = {"tp": profile["tensor_parallel_size"].positive, "dcp": profile["decode_context_parallel_size"].positive}
        self.sizes: dict[str, Value] = {leaf: size for leaf, size in sizes.items() if size is not None}

    def claim(self, named: Named, meaning: Meaning | None) -> None:
        """The claim, unless there is no answer to judge or the status word says nothing."""
        answers = self._answers()
        if not answers:
            self.notes.refuse(self.it, "no required and observed word to judge")
            return
        structural, outcomes = self._ranks(), [answer.outcome for _, answer in answers]
        wrong = [(at, answer) for at, answer in answers if answer.outcome is Outcome.FAIL]
        if wrong and structural is not Outcome.FAIL:
            wrong_answer(self.notes, self.it, wrong[0][1])
        if not wrong and meaning in (None, Meaning.NONE):
            self.notes.refuse(self.root["status"], "right by its words, and no status word here lets it be claimed")
            return
        judged = [outcome for (_, answer), outcome in zip(answers, outcomes, strict=True) if answer.shows]
        controls = {"exact-answer": roll_up(judged)} if judged else {}
        if structural is not Outcome.NOT_RUN:
            controls["all-ranks-structural"] = structural
        word = Outcome.PASS if meaning is None else outcome_of(meaning)
        outcome = settle(word, [*outcomes, structural, self._complete(answers, structural)], self._checks())
        derived = (*named.derived, *self._one_request(), *answer_rule(answers[0][1], answers[0][0]))
        lowered = meaning is not Meaning.PASS
        self.notes.claims.append(
            Claim("restore.correctness", outcome, self._scope(named), self.it.pointer, controls, lowered, derived=derived)
        )

    def _answers(self) -> list[tuple[Field, Answer]]:
        """The restored answer as the raw record has it, where that is at hand, and as the validation sums it up."""
        places = [(self.it, "restore_oracle", "restore_response_sha256")]
        if raw := self.files["restore.json"]:
            places.insert(0, (raw, "observed_oracle", "response_sha256"))
        found = []
        for at, observed, sha256 in places:
            answer = judge(at["expected_oracle"], at[observed], at[sha256])
            if answer:
                preimage(self.notes, at[sha256], answer, declared=True)
                found.append((at[observed], answer))
        return found

    def _complete(self, answers: Sequence[tuple[Field, Answer]], structural: Outcome) -> Outcome:
        """Inconclusive unless every file is at hand with the hash that is named, and the restore itself records words and ranks."""
        raw = any(at.document is not self.root.document for at, _ in answers)
        return Outcome.PASS if all(self.files.values()) and raw and structural is not Outcome.NOT_RUN else Outcome.INCONCLUSIVE

    def _ranks(self) -> Outcome:
        records = self.root["rank_restore_evidence"]
        numbers = [item["rank"].count for item in records.elements]
        for item in records.elements:
            digest_prefix(self.notes, item["digest_prefix"], self.it["context_digest"])
        return all_ranks(self.notes, records, self.sizes, numbers, [item["outcome"] for item in records.elements])

    def _checks(self) -> list[Outcome]:
        ranks = self.root["rank_restore_evidence"].elements
        return [
            whole_chunks(self.notes, self.it["committed_tokens"], self.it["prompt_tokens"]),
            objects(self.notes, self.it["snapshot_encoded_bytes_per_rank"], self.it["snapshot_object_count_per_rank"]),
            *(self._same(item["page_bytes"], self.it["snapshot_encoded_bytes_per_rank"], "restore.counters") for item in ranks),
            *self._requests(),
            *self._inspection(),
            *self._readiness(),
        ]

    def _requests(self) -> list[Outcome]:
        """The two requests of the chain are those that the validation sums up, and the published answer was right too."""
        checks = []
        for name, role in (("publish.json", "publish"), ("restore.json", "restore")):
            raw = self.files[name]
            if raw is None:
                continue
            names = {key: key for key in ("prompt_sha256", "prompt_tokens", "expected_oracle")}
            names |= {"observed_oracle": f"{role}_oracle", "response_sha256": f"{role}_response_sha256"}
            checks += [self._same(raw[mine], self.it[summed], "evidence.refs-resolve") for mine, summed in names.items()]
            checks.append(self._same_value(raw["http_status"], 200, "restore.semantic-oracle"))
            answer = judge(raw["expected_oracle"], raw["observed_oracle"], raw["response_sha256"])
            if answer:
                preimage(self.notes, raw["response_sha256"], answer, declared=True)
                checks += [answer.outcome, stored_match(self.notes, raw["oracle_match"], answer)]
        return checks

    def _inspection(self) -> list[Outcome]:
        """Each rank's manifest is of this context and size, and no two ranks hold the same bytes."""
        inspected = self.files["manifest-inspection.json"]
        if inspected is None:
            return []
        results, checks = inspected["results"].elements, [self._same_value(inspected["status"], "verified", "quality.aggregate-consistent")]
        for item in results:
            checks.append(self._same(item["context_digest"], self.it["context_digest"], "evidence.subject"))
            checks.append(self._same(item["snapshot_encoded_bytes"], self.it["snapshot_encoded_bytes_per_rank"], "restore.counters"))
            checks.append(self._same(item["object_count"], self.it["snapshot_object_count_per_rank"], "restore.counters"))
        for key in ("manifest_sha256", "snapshot_sha256"):
            digests = [item[key].text for item in results]
            checks.append(self._distinct(inspected["results"], key, digests))
        ranks = {item["rank"].count for item in results}
        restored = {item["rank"].count for item in self.root["rank_restore_evidence"].elements}
        words = {"required": f"manifests of {len(restored)} ranks", "observed": f"manifests of {len(ranks)} ranks"}
        checks.append(
            self.notes.hold(
                ranks == restored, inspected["results"], "metric.rank-vectors", **words, fix="inspect the manifest of every rank"
            )
        )
        return checks

    def _readiness(self) -> list[Outcome]:
        """Another prompt, whose words are not recorded: only what it reports of itself can be held against it."""
        ready = self.files["readiness.json"]
        if ready is None:
            return []
        self.notes.refuse(
            self.root["input_sha256"]["repository_readiness_json"], "another prompt without its words: its answer is not evaluated"
        )
        return [
            self._same_value(ready["semantic_match"], True, "evidence.refs-resolve"),
            self._same_value(ready["status"], "verified", "evidence.refs-resolve"),
        ]

    def _distinct(self, at: Field, key: str, digests: list[str | None]) -> Outcome:
        known = [digest for digest in digests if digest is not None]
        words = {"required": f"another {key} for each of {len(digests)} ranks", "observed": f"{len(set(known))} different"}
        return self.notes.hold(
            len(set(known)) == len(digests) if known else None, at, "identity.rank-unique", **words, fix="record the manifest of each rank"
        )

    def _same(self, found: Field, summed: Field, checker: str) -> Outcome:
        if not found.present or not summed.present:
            return Outcome.NOT_RUN
        required = f"{shown(summed.value)}, as {summed.pointer} of the validation"
        return self.notes.hold(
            same(found.value, summed.value),
            found,
            checker,
            required=required,
            observed=shown(found.value),
            fix="sum up what the files report",
        )

    def _same_value(self, found: Field, wanted: JsonValue, checker: str) -> Outcome:
        if not found.present:
            return Outcome.NOT_RUN
        return self.notes.hold(
            same(found.value, wanted),
            found,
            checker,
            required=shown(wanted),
            observed=shown(found.value),
            fix="do not build on a step that did not hold",
        )

    def _one_request(self) -> tuple[Derived, ...]:
        requests = {item["request_id"].text for item in self.root["rank_restore_evidence"].elements}
        one = len(requests) == 1 and None not in requests
        return (Derived("/scope/cells/0/concurrency", ONE_REQUEST, "/rank_restore_evidence"),) if one else ()

    def _scope(self, named: Named) -> dict[str, JsonValue]:
        tokens, ranks = self.it["committed_tokens"].count, len(self.root["rank_restore_evidence"].elements)
        cell: dict[str, JsonValue] = {"context_tokens": tokens, "concurrency": 1 if self._one_request() else None}
        scope: dict[str, JsonValue] = {
            "image": str(named.image),
            "topology": dict(self.sizes) or None,
            "ranks": ranks or None,
            "publication_mode": self.root["profile"]["publication_schema"].text or None,
            "cells": [{name: value for name, value in cell.items() if value is not None}],
        }
        return {name: value for name, value in scope.items() if value is not None}
