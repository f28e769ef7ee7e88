"""The document `RestorePlan`, as typed values: which ranks to restore where, within what bounds, and what to prove about it.

Paths in it are relative to its own folder. Its schema is checked by the reader of documents; here are the rules that span fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest
from countermark.attestations.documents import Document, load_document, read_file
from countermark.attestations.errors import InputError, InvalidDocumentError
from countermark.attestations.located import JsonValue
from countermark.cuda_restore.identity import CHUNK_TOKENS
from countermark.cuda_restore.reader import LoadedManifest
from countermark.cuda_restore.request import Authenticate
from countermark.cuda_restore.session import RankSource
from countermark.cuda_restore.slabs import READERS, RETAINED_BYTES, Bounds
from countermark.cuda_restore.wire import refusal

KIND: Final = "RestorePlan"
DEFAULT_RUNGS: Final = (1, 2, 3, 4)
LIVE_RUNG: Final = 5


@dataclass(frozen=True, slots=True)
class RankPlan:
    """One rank: its manifest, the folder of its objects, and its device, `cpu` or `cuda:N`."""

    rank: int
    manifest: Path
    chunks: Path
    device: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A stored request and the answer that it must get, after `normalisation`."""

    file: Path
    required: str
    normalisation: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where a server counts, and the names of its counters of restored tokens and of local cache hits."""

    url: str
    restored_tokens: str
    local_hit_tokens: str


@dataclass(frozen=True, slots=True)
class LivePlan:
    """A served model to be asked. `prompts` are stored, two or more that require different words; `control` must miss the cache."""

    endpoint: str
    model: str
    prompts: tuple[Prompt, ...]
    control: Prompt
    metrics: Metrics
    timeout_s: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """A restore to be qualified. `faults` is `None` for all of them; `image` is `None` when nothing is to be derived for any."""

    id: str
    version: int
    digest: Digest
    source: str
    context_digest: str
    committed_tokens: int
    ranks: tuple[RankPlan, ...]
    image: Digest | None
    bounds: Bounds
    authenticate: Authenticate
    rungs: tuple[int, ...]
    faults: tuple[str, ...] | None
    live: LivePlan | None
    scope: dict[str, JsonValue] | None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the plan at `path`. `InputError` when it cannot be read, `InvalidDocumentError` with every mistake in it."""
        return cls.of(load_document(read_file(path), str(path), KIND), path.parent)

    @classmethod
    def of(cls, document: Document, folder: Path) -> Self:
        """The values of a document that fits its schema; `folder` is what its paths are relative to."""
        spec = document.spec
        mistakes = _mistakes(document)
        if mistakes:
            raise InvalidDocumentError(mistakes)
        faults = spec.get("faults", "all")
        return cls(
            id=document.id,
            version=document.version,
            digest=document.digest,
            source=document.source,
            context_digest=spec["context_digest"],
            committed_tokens=spec["committed_tokens"],
            ranks=tuple(_rank(entry, folder) for entry in spec["ranks"]),
            image=Digest.parse(spec["image"]) if "image" in spec else None,
            bounds=Bounds(spec.get("readers", READERS), spec.get("retained_bytes", RETAINED_BYTES)),
            authenticate=Authenticate(spec.get("authenticate", Authenticate.OBJECT)),
            rungs=tuple(sorted(spec.get("rungs", DEFAULT_RUNGS))),
            faults=None if faults == "all" else tuple(faults),
            live=_live(spec["live"], folder) if "live" in spec else None,
            scope=spec.get("scope"),
        )

    def sources(self) -> tuple[RankSource, ...]:
        """What each rank is to restore, in the order of the plan."""
        return tuple(
            RankSource(rank=one.rank, manifest=one.manifest, chunks=one.chunks, bounds=self.bounds, authenticate=self.authenticate)
            for one in self.ranks
        )

    def check(self, loaded: Sequence[LoadedManifest]) -> None:
        """Check that every manifest is of the context that the plan names, and of its rank; `InputError` for the first that is not."""
        for one, manifest_file in zip(self.ranks, loaded, strict=True):
            found = manifest_file.manifest
            facts = (
                ("/context_digest", found.context_digest, self.context_digest),
                ("/committed_tokens", found.committed_tokens, self.committed_tokens),
                ("/identity/tp_shard_rank", found.identity.rank, one.rank),
            )
            for pointer, told, wanted in facts:
                if told != wanted:
                    message = f"the manifest says {told}, the plan {wanted}"
                    raise refusal(str(manifest_file.path), pointer, message, "plan what is stored", Code.SUBJECT_MISMATCH)


def _mistakes(document: Document) -> list[InputError]:
    """Everything that a schema cannot say."""
    spec = document.spec
    mistakes = []
    ranks = [entry["rank"] for entry in spec["ranks"]]
    for place, rank in enumerate(ranks):
        if rank in ranks[:place]:
            mistakes.append(_mistake(document, f"/spec/ranks/{place}/rank", f"rank {rank} stands twice", "list each rank once"))
    tokens = spec["committed_tokens"]
    if tokens < 1 or tokens % CHUNK_TOKENS:
        text = f"{tokens} tokens are not a positive multiple of {CHUNK_TOKENS}"
        mistakes.append(_mistake(document, "/spec/committed_tokens", text, "write the tokens of the manifests"))
    if LIVE_RUNG in spec.get("rungs", DEFAULT_RUNGS) and "live" not in spec:
        mistakes.append(_mistake(document, "/spec/rungs", "rung 5 needs a served model", "add live, or leave rung 5 out"))
    if "live" in spec and Decimal(spec["live"]["timeout_s"]) <= 0:
        mistakes.append(_mistake(document, "/spec/live/timeout_s", "no time to answer", "write seconds above 0"))
    words = [prompt["required"] for prompt in spec.get("live", {}).get("prompts", [])]
    if words and len(set(words)) < len(words):
        text = f"the stored prompts require {words}; one prefix taken for another would not show"
        mistakes.append(_mistake(document, "/spec/live/prompts", text, "store prompts that require different words"))
    return mistakes


def _mistake(document: Document, pointer: str, message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=document.at(pointer), fix=fix)


def _rank(entry: dict[str, Any], folder: Path) -> RankPlan:
    return RankPlan(entry["rank"], folder / entry["manifest"], folder / entry["chunks"], entry["device"])


def _live(entry: dict[str, Any], folder: Path) -> LivePlan:
    return LivePlan(
        endpoint=entry["endpoint"],
        model=entry["model"],
        prompts=tuple(_prompt(prompt, folder) for prompt in entry["prompts"]),
        control=_prompt(entry["control"], folder),
        metrics=Metrics(**entry["metrics"]),
        timeout_s=Decimal(entry["timeout_s"]),
    )


def _prompt(entry: dict[str, Any], folder: Path) -> Prompt:
    return Prompt(folder / entry["file"], entry["required"], tuple(entry.get("normalisation", ())))
