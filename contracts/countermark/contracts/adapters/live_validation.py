"""Live validation of one serving image, one status word for each of nine scopes: `sparkring-glm53-dflash7-pr30-live-validation/v1`.

The words are for capabilities, never for the image. A word counts only with the block of measurements that says at which size it was
earned, and only while the measurements do not speak against it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.digests import DigestKind
from countermark.attestations.located import JsonValue
from countermark.contracts.adapters.base import SchemaAdapter
from countermark.contracts.adapters.fields import Field, instant, shown
from countermark.contracts.adapters.images import Component, Named, built_from, named_image
from countermark.contracts.adapters.notes import Case, Notes, settle
from countermark.contracts.adapters.reading import Claim, Derived, Reference
from countermark.contracts.adapters.restores import ONE_REQUEST, RANK_TABLE, RANK_WORDS, ranks_complete, residual, whole_chunks, world_size
from countermark.contracts.adapters.tables import Meaning, Table, word_table
from countermark.contracts.scope import Value

WORDS: Final = {
    "qualified": Meaning.PASS,
    "research-only": Meaning.RESEARCH,
    "implemented": Meaning.BUILD,
    "unsupported": Meaning.NONE,
}


@dataclass(frozen=True, slots=True)
class _Row:
    """A status key: the capabilities it speaks of, and the block of measurements with its size; `lowered` = research-only at most."""

    key: str
    capabilities: tuple[str, ...] = ()
    block: str | None = None
    restores: bool = False
    lowered: bool = False


ROWS: Final = (
    _Row("artifact_construction"),
    _Row("startup_health", ("service.startup", "service.health"), "startup"),
    _Row("semantic_generation", ("generation.continued",)),
    _Row("arbitrary_page_boundary_restore", ("restore.page-boundary-replay",), "arbitrary_page_boundary_restore", restores=True),
    _Row("persistent_128k_restore", ("restore.correctness",), "persistent_restore_128k", restores=True),
    _Row("persistent_256k_restore_correctness", ("restore.correctness",), "persistent_restore_256k", restores=True),
    _Row("persistent_256k_restore_performance", ("restore.performance",), "persistent_restore_256k", restores=True, lowered=True),
    _Row("shared_prefix_concurrency"),
    _Row("dflash_response_quality"),
)
_COMPONENTS: Final = (
    Component("sparkcache", "/sparkcache_revision", "/sparkcache_tree", "/sparkcache_source_sha256"),
    Component("vllm-native", "/vllm_native_revision"),
    Component("vllm-python", "/vllm_python_revision", "/vllm_python_tree"),
    Component("b12x", "/b12x_revision", "/b12x_tree"),
)
_FILES: Final = ("source_receipt_sha256", "cuda_placement_library_sha256", "dflash_loader_patch_sha256", "dflash_loader_postimage_sha256")
_NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "six": 6, "eight": 8, "sixteen": 16}
_MACHINES: Final = re.compile(rf"({'|'.join(_NUMBERS)}) (\S.*) systems?\Z")


def _cell_words(row: _Row) -> str:
    parts = [
        f"`{row.block}/restored_tokens`, C1" if row.restores else "",
        "draft tokens" if row.capabilities else "",
        "`research-only`" if row.lowered else "",
    ]
    return ", ".join(filter(None, parts))


class LiveValidation(SchemaAdapter):
    """Reads the status map by its rows and word table."""

    name = "live-validation"
    version = 1
    schema_id = "sparkring-glm53-dflash7-pr30-live-validation/v1"
    tables = (
        Table(
            ("status key", "capability", "cell, claim"),
            tuple((f"`{row.key}`", ", ".join(f"`{name}`" for name in row.capabilities) or "none", _cell_words(row)) for row in ROWS),
        ),
        word_table(WORDS),
        RANK_TABLE,
    )

    def references(self, root: Field) -> Iterable[Reference]:
        """Files that it names by their SHA-256; it does not say where they lie."""
        artifact = root["artifact"]
        return [Reference(artifact[key].pointer, artifact[key].hex64) for key in _FILES if artifact[key].hex64]

    def read(self, case: Case, notes: Notes) -> None:
        """One claim for each capability of each status key that the tables map."""
        named = named_image(case, notes, case.root["artifact"]["image_id"], DigestKind.OCI_CONFIG)
        reader = _Reader(case.root, notes, named)
        reader.status()
        reader.remarks()


class _Reader:
    """Reads one document."""

    def __init__(self, root: Field, notes: Notes, named: Named | None) -> None:
        self.root = root
        self.notes = notes
        self.named = named
        self.conditions = root["conditions"]
        sizes = self.conditions["topology"]
        names = {"tp": "tensor_parallel_size", "dcp": "decode_context_parallel_size", "pp": "pipeline_parallel_size"}
        found = {leaf: sizes[key].positive for leaf, key in names.items()}
        self.sizes: dict[str, Value] = {leaf: value for leaf, value in found.items() if value is not None}
        self.observed = self._observed()

    def status(self) -> None:
        """Each status key by its row; a key or a word that stands in no table is refused."""
        rows = {row.key: row for row in ROWS}
        for key, word in self.root["status"].members:
            meaning = WORDS.get(word.text or "")
            if key not in rows or meaning is None:
                self.notes.refuse(word, f"{shown(key if key not in rows else word.value)} stands in no table of this adapter")
            elif meaning is Meaning.BUILD and not rows[key].capabilities:
                self._built()
            elif meaning in (Meaning.PASS, Meaning.RESEARCH):
                self._claims(rows[key], word, meaning)
            elif meaning is Meaning.BUILD:
                self.notes.refuse(word, "implemented is build evidence; no result of a run stands behind it")

    def _built(self) -> None:
        if self.named:
            self.notes.images.append(built_from(self.named, self.root["artifact"], _COMPONENTS))

    def _claims(self, row: _Row, word: Field, meaning: Meaning) -> None:
        block = self.root["measurements"][row.block] if row.block else None
        tokens = block["restored_tokens"] if block and row.restores else None
        if not row.capabilities or (block and not block.present) or (tokens and tokens.count is None):
            self.notes.refuse(word, "no measurement here says at which size it was earned")
        elif self.named:
            outcome, controls = self._judged(row, block)
            derived = (
                *self.named.derived,
                *([Derived("/scope/cells/0/concurrency", ONE_REQUEST, block.pointer)] if block and tokens else ()),
            )
            for capability in row.capabilities:
                scope = self._scope(self.named, tokens)
                research = meaning is Meaning.RESEARCH or row.lowered
                self.notes.claims.append(Claim(capability, outcome, scope, word.pointer, controls, research, self.observed, derived))

    def _judged(self, row: _Row, block: Field | None) -> tuple[Outcome, dict[str, Outcome]]:
        """What the measurements leave of a pass. A replay that answers otherwise than the run it replays is a wrong answer."""
        if block is None:
            return Outcome.PASS, {}
        if not row.restores:
            return settle(Outcome.PASS, self._started(block)), {}
        primed, replayed = block["prime_completion_token"].integer, block["replay_completion_token"].integer
        same = self.notes.hold(
            None if primed is None or replayed is None else primed == replayed,
            block["replay_completion_token"],
            "restore.semantic-oracle",
            required=f"token {primed}, which the primed run gave",
            observed=f"token {replayed}",
            fix="do not use this restore: it answers otherwise than the run it restores",
        )
        ended = [RANK_WORDS.get(block["connector_outcome"].text or "", Outcome.INCONCLUSIVE)] if block["connector_outcome"].present else []
        controls: dict[str, Outcome] = (
            {"exact-answer": same} if same is Outcome.FAIL and row.capabilities == ("restore.correctness",) else {}
        )
        return settle(Outcome.PASS, [same, *ended], self._measured(block)), controls

    def _started(self, block: Field) -> list[Outcome]:
        healthy, world = block["healthy_ranks"], world_size(self.sizes)
        complete = None if world is None or healthy.count is None else healthy.count == world
        killed = [item.flag for item in block["oom_killed_by_rank"].elements]
        hold = self.notes.hold
        return [
            hold(
                complete,
                healthy,
                "quality.aggregate-consistent",
                required=f"{world} healthy ranks",
                observed=shown(healthy.value),
                fix="start every rank",
            ),
            hold(
                not any(killed) if killed else None,
                block["oom_killed_by_rank"],
                "quality.aggregate-consistent",
                required="no rank killed for memory",
                observed=f"{killed.count(True)} of {len(killed)} killed",
                fix="do not call a start healthy in which a rank was killed",
            ),
        ]

    def _measured(self, block: Field) -> list[Outcome]:
        ranks = block["rank_restore_milliseconds"]
        numbers = [int(key) if key.isdecimal() and len(key) < 6 else None for key, _ in ranks.members]
        size = self.conditions["vllm_block_size_tokens"].positive or 256
        chunks = block["chunk_count"] if block["chunk_count"].present else block["rank_0_chunk_count"]
        total = ranks["0"] if ranks["0"].present else block["rank_0_end_to_end_milliseconds"]
        residual(self.notes, total, [block[f"rank_0_{phase}_milliseconds"] for phase in ("read", "h2d_submit", "cuda_sync")], total)
        complete = ranks_complete(self.notes, ranks, self.sizes, numbers) if numbers else Outcome.NOT_RUN
        return [complete, whole_chunks(self.notes, block["restored_tokens"], chunks=chunks, size=size)]

    def _scope(self, named: Named, tokens: Field | None) -> dict[str, JsonValue]:
        """What the record states, dimension by dimension; what it does not state is left out."""
        nodes, system = self._machines()
        load = {"context_tokens": tokens.count, "concurrency": 1} if tokens else {}
        cell: dict[str, JsonValue] = {**load, "draft_tokens": self.conditions["draft_tokens"].count}
        scope: dict[str, JsonValue] = {
            "image": str(named.image),
            "topology": dict(self.sizes) or None,
            "ranks": self.root["measurements"]["startup"]["healthy_ranks"].positive,
            "nodes": nodes,
            "hardware": {"system": system} if system else None,
            "publication_mode": self.conditions["sparkcache_effective_publication_schema"].text or None,
            "cells": [{name: value for name, value in cell.items() if value is not None}],
        }
        return {name: value for name, value in scope.items() if value is not None}

    def _machines(self) -> tuple[int | None, str | None]:
        """Number and name of the machines of a text like `four NVIDIA DGX Spark systems`; another text states neither."""
        found = _MACHINES.match(self.conditions["hardware"].text or "")
        return (_NUMBERS[found[1]], found[2]) if found else (None, None)

    def _observed(self) -> tuple[str | None, str | None]:
        """The interval that stands as two times in one text, or the one time there."""
        stated = self.conditions["observed_at_utc"]
        parts = [instant(part) for part in (stated.text or "").split("/")]
        known = len(parts) <= 2 and None not in parts
        if len(parts) != 1 or not known:
            self.notes.warn(
                stated,
                Code.BAD_TIME,
                "config.schema-valid",
                required="two fields, each a time by RFC 3339",
                observed=shown(stated.value),
                fix="record the two ends of an interval apart",
            )
        return (parts[0], parts[-1]) if known else (None, None)

    def remarks(self) -> None:
        """What a reader should know beside the claims."""
        if not any(self.conditions[key].git_id for key in ("target_revision", "model_revision")):
            self._unpinned("target", "model.revision-pinned")
        if not self.conditions["draft_revision"].git_id:
            self._unpinned("draft", "draft.revision-pinned")
        for name in ("persistent_restore_128k", "persistent_restore_256k"):
            block = self.root["measurements"][name]
            if block.present and not block["rank_0_page_bytes"].present:
                self.notes.refuse(block["rank_restore_milliseconds"], "times without bytes: no rate follows from them")
        self.notes.limits(self.root["limitations"].elements)

    def _unpinned(self, what: str, checker: str) -> None:
        self.notes.warn(
            self.conditions["served_model"],
            Code.RECORD_UNMAPPED,
            checker,
            required=f"repository and revision of the {what}",
            observed="a served name, which is no revision",
            fix=f"record the {what}'s repository and its whole revision",
        )
