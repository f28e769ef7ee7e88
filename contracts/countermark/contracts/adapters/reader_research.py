"""A restore that verified and answered wrong: `sparkcache-glm53-flat-v2-reader-research/v1`.

Structure is not meaning. When the record reports that every rank verified, and the answer is not the required one, the image is
rejected as a whole. The control beside it was computed anew: it shows that the model can answer, and is no evidence for any restore.
"""

from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.digests import DigestKind
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters import admission
from countermark.contracts.adapters.answers import Answer, judge
from countermark.contracts.adapters.base import SchemaAdapter
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.images import Component, Named, built_from, named_image
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.reading import Claim, Derived
from countermark.contracts.adapters.restores import (
    ONE_REQUEST,
    RESIDUAL,
    answer_rule,
    objects,
    preimage,
    ranks_complete,
    stored_match,
    topology,
    whole_chunks,
    wrong_answer,
)
from countermark.contracts.adapters.tables import Meaning, Table, word_table

_COMPONENTS: Final = (Component("sparkcache", "/sparkcache_commit", "/sparkcache_tree", "/sparkcache_source_sha256"),)
_REJECTION: Final = "semantic-rejection"
_PHASES: Final = ("read_and_hash_ms", "placement_ms", "final_completion_ms")
"""Phases that follow one another; the wait for an arena lies inside of the placement."""


class ReaderResearch(SchemaAdapter):
    """Reads one restore, its control and what was rolled back to."""

    name = "reader-research"
    version = 1
    schema_id = "sparkcache-glm53-flat-v2-reader-research/v1"
    tables = (
        Table(
            ("in the record", "gives"),
            (
                (
                    "`semantic_restore` another word than required, `structural_restore/all_ranks_verified` not false",
                    "`rejection/v1`, image-wide",
                ),
                (
                    "`semantic_restore` another word, `all_ranks_verified` false",
                    "`restore.correctness` fail at `stored_context/tokens`, C1",
                ),
                (
                    "`semantic_restore` the required word under the declared normalisation, `all_ranks_verified` true",
                    "`restore.correctness` pass there, claim by status and admission",
                ),
                ("`response_sha256` of another text than `observed`", "finding `digest.preimage`"),
                ("`recomputation_control`", "a control, never a restore"),
                ("`rollback`", "another image, not evaluated"),
            ),
        ),
        word_table(admission.WORDS),
    )

    def read(self, case: Case, notes: Notes) -> None:
        """One claim about the restore, or none where it holds no answer."""
        root = case.root
        named = named_image(case, notes, root["runtime"]["image_id"], DigestKind.OCI_CONFIG)
        meaning = admission.reported(notes, root["status"])
        if named:
            notes.images.append(built_from(named, root["runtime"], _COMPONENTS))
            _restore(root, notes, named, meaning)
        _control(root["recomputation_control"], root["semantic_restore"], notes)
        _rollback(root["rollback"], notes)
        _timing(root["structural_restore"], notes)
        if root["admission"]["reason"].text:
            notes.limit(root["admission"]["reason"], root["admission"]["reason"].text)


def _restore(root: Field, notes: Notes, named: Named, meaning: Meaning | None) -> None:
    restore, structural, context = root["semantic_restore"], root["structural_restore"], root["stored_context"]
    answer = judge(restore["expected"], restore["observed"], restore["response_sha256"])
    lowered = admission.lowered(notes, root, meaning or Meaning.NONE)
    if answer is None:
        notes.refuse(restore, "no required and observed word to judge")
        return
    preimage(notes, restore["response_sha256"], answer, declared=False)
    sizes, ranks = topology(root["runtime"]["topology"]), structural["ranks"].elements
    checks = [
        stored_match(notes, restore["passed"], answer),
        _concluded(notes, root["conclusion"], answer),
        ranks_complete(notes, structural["ranks"], sizes, [rank.count for rank in ranks]),
        whole_chunks(notes, context["tokens"]),
        objects(notes, context["encoded_bytes_per_rank"], context["objects_per_rank"]),
    ]
    controls = {"exact-answer": answer.outcome} if answer.shows else {}
    verified = structural["all_ranks_verified"].flag
    if verified is False:
        controls["all-ranks-structural"] = Outcome.FAIL
    elif answer.outcome is Outcome.FAIL:
        wrong_answer(notes, restore, answer)
    if answer.outcome is not Outcome.FAIL and meaning in (None, Meaning.NONE):
        notes.refuse(restore, "right by its words, and no status word here lets it be claimed")
        return
    word = Outcome.PASS if meaning is None else admission.outcome_of(meaning)
    cell: dict[str, JsonValue] = {"concurrency": 1, **({"context_tokens": found} if (found := context["tokens"].count) is not None else {})}
    mode = root["runtime"]["publication_schema"].text
    scope: dict[str, JsonValue] = {
        "image": str(named.image),
        **({"topology": dict(sizes)} if sizes else {}),
        **({"ranks": len(ranks)} if ranks else {}),
        **({"publication_mode": mode} if mode else {}),
        "cells": [cell],
    }
    derived = (
        *named.derived,
        Derived("/scope/cells/0/concurrency", ONE_REQUEST, restore.pointer),
        *answer_rule(answer, restore["observed"]),
    )
    told = Outcome.INCONCLUSIVE if verified is None else Outcome.PASS if verified else Outcome.FAIL
    outcome = settle(word, [answer.outcome, told], checks)
    notes.claims.append(Claim("restore.correctness", outcome, scope, restore.pointer, controls, lowered, derived=derived))


def _concluded(notes: Notes, conclusion: Field, answer: Answer) -> Outcome:
    """A record that concludes on a rejection reports no pass, whatever its words show."""
    return notes.hold(
        answer.outcome is Outcome.FAIL if conclusion.text == _REJECTION and answer.outcome is not Outcome.INCONCLUSIVE else None,
        conclusion,
        "quality.aggregate-consistent",
        required="a conclusion that follows from the answer",
        observed=f"{_REJECTION}, and the answer is the required one",
        fix="conclude what the answer shows",
    )


def _control(control: Field, restore: Field, notes: Notes) -> None:
    """The control was recomputed, so it says nothing of a restore; here is what it cannot show either."""
    answer = judge(control["expected"], control["observed"], control["response_sha256"])
    if answer is None:
        return
    preimage(notes, control["response_sha256"], answer, declared=False)
    stored_match(notes, control["passed"], answer)
    notes.hold(
        None if answer.outcome in (Outcome.NOT_RUN, Outcome.INCONCLUSIVE) else answer.outcome is Outcome.PASS,
        control,
        "restore.negative-control",
        required=answer.required,
        observed=answer.observed,
        fix="find out why the model does not answer even when it computes anew",
    )
    same = control["expected"].text == restore["expected"].text
    words = "it requires the same word as the stored prompt, and no cache counters show that it was computed anew"
    notes.warn(
        control,
        Code.CONTROLS_INCOMPLETE,
        "restore.negative-control",
        required="another required word than the stored prompt's, and external hits of 0",
        observed=words if same else "no cache counters show that it was computed anew",
        fix="let the control require a word of its own, and record its cache counters",
    )


def _rollback(rollback: Field, notes: Notes) -> None:
    if rollback["image_id"].present:
        notes.refuse(rollback, f"another image, {shown(rollback['image_id'].value)}, of which nothing is recorded here: not evaluated")
    recheck = rollback["qualified_fallback_restore_recheck"]
    if recheck.present and recheck.text != "passed":
        notes.find(
            recheck,
            Code.RECORD_UNMAPPED,
            "evidence.planned-not-passed",
            Severity.INFO,
            Outcome.NOT_RUN,
            required="a result",
            observed=shown(recheck.value),
            fix="record the recheck when it was done; what is planned is no pass",
        )


def _timing(structural: Field, notes: Notes) -> None:
    """Minimum and maximum over ranks are no vectors; still, what even the longest phases leave open is told."""
    largest = [structural[phase]["maximum"].number for phase in _PHASES]
    total = structural["cache_service_ms"]["minimum"].number
    known = [value for value in largest if value is not None]
    if not known:
        return
    notes.warn(
        structural,
        Code.EVIDENCE_INCONCLUSIVE,
        "metric.rank-vectors",
        required="the value of each rank",
        observed="a minimum and a maximum for each phase",
        fix="record the phases of each rank",
    )
    if total and len(known) == len(largest) and total - sum(known) > RESIDUAL * total:
        notes.warn(
            structural["cache_service_ms"],
            Code.EVIDENCE_INCONCLUSIVE,
            "timing.residual",
            required=f"named phases account for {1 - RESIDUAL:.0%} of {total:.3f} ms",
            observed=f"at least {total - sum(known):.1f} ms in no named phase",
            fix="time the remaining work, so that the phases add up",
        )
