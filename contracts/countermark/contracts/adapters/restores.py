"""Checks that the records of restores share: ranks, geometry, prefixes of digests, and time that no phase accounts for."""

from collections.abc import Sequence
from typing import Final

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.outcomes import roll_up
from countermark.contracts.adapters.answers import DECLARED, Answer
from countermark.contracts.adapters.fields import Field, shown
from countermark.contracts.adapters.notes import Notes
from countermark.contracts.adapters.reading import Derived
from countermark.contracts.adapters.tables import Table
from countermark.contracts.scope import Value, expand

CHUNK_TOKENS: Final = 256
"""Tokens of one logical chunk of the cache that these records are about; they do not state it themselves."""
OBJECT_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a whole stored object of a flat snapshot; the last one may be smaller."""
RESIDUAL: Final = 0.10
"""The share of a total that may lie in no named phase before an outside record draws a warning."""

_TOPOLOGY_LENGTH: Final = 32
_MAX_SIZE: Final = 1 << 20

RANK_WORDS: Final = {"verified": Outcome.PASS, "recompute": Outcome.FAIL, "corrupt": Outcome.FAIL, "rejected": Outcome.FAIL}
RANK_TABLE: Final = Table(
    ("rank outcome", "the rank's restore"),
    (*((f"`{word}`", str(found)) for word, found in RANK_WORDS.items()), ("anything else", "inconclusive")),
)
ONE_REQUEST: Final = "one-request-block: the record describes one request at a time"


def topology(at: Field) -> dict[str, Value]:
    """The parallel sizes of a text like `TP4/DCP1`; none where it is another, or where a size is beyond all machines."""
    sizes = expand("topology", at.text) if len(at.text or "") <= _TOPOLOGY_LENGTH else {}
    return sizes if all(isinstance(size, int) and size < _MAX_SIZE for size in sizes.values()) else {}


def world_size(sizes: dict[str, Value]) -> int | None:
    """The number of ranks of a topology: tensor-parallel times pipeline-parallel; decode-context-parallel ranks are among them."""
    tp, pp = sizes.get("tp"), sizes.get("pp", 1)
    return tp * pp if isinstance(tp, int) and isinstance(pp, int) else None


def all_ranks(notes: Notes, at: Field, sizes: dict[str, Value], ranks: Sequence[int | None], outcomes: Sequence[Field]) -> Outcome:
    """Whether each rank of the world reports once, and how its restore ended; `not-run` where nothing is reported."""
    if not outcomes:
        return Outcome.NOT_RUN
    complete = ranks_complete(notes, at, sizes, ranks)
    words = [RANK_WORDS.get(item.text or "", Outcome.INCONCLUSIVE) for item in outcomes]
    for item, outcome in zip(outcomes, words, strict=True):
        if outcome is Outcome.INCONCLUSIVE:
            notes.refuse(item, f"{shown(item.value)} is no outcome of a rank that this adapter knows")
    return roll_up([*words, Outcome.PASS if complete is Outcome.PASS else Outcome.INCONCLUSIVE])


def ranks_complete(notes: Notes, at: Field, sizes: dict[str, Value], ranks: Sequence[int | None]) -> Outcome:
    """Whether the ranks are exactly those of the world."""
    world = world_size(sizes)
    return notes.hold(
        None if world is None else len(ranks) == world and set(ranks) == set(range(world)),
        at,
        "metric.rank-vectors",
        required=f"each of {world} ranks once",
        observed=f"ranks {', '.join(shown(rank) for rank in ranks) or 'none'}",
        fix="record every rank of the topology",
    )


def whole_chunks(
    notes: Notes, committed: Field, prompt: Field | None = None, chunks: Field | None = None, size: int = CHUNK_TOKENS
) -> Outcome:
    """Whether a restored span is made of whole chunks: as many as a prompt has, or as are counted, where that is recorded."""
    tokens, longest, counted = committed.count, prompt.count if prompt else None, chunks.count if chunks else None
    holds = None if tokens is None else tokens % size == 0 and (longest is None or longest // size * size == tokens)
    observed = f"{shown(committed.value)} tokens" + (f" of a prompt of {longest}" if longest is not None else "")
    if holds and counted is not None:
        holds, observed = counted * size == tokens, f"{observed} in {counted} chunks"
    required = f"whole chunks of {size} tokens, as many as the prompt fills"
    return notes.hold(
        holds, committed, "config.geometry-divides", required=required, observed=observed, fix="record the span that was restored"
    )


def objects(notes: Notes, size: Field, count: Field) -> Outcome:
    """Whether the number of objects is that of the bytes they hold."""
    have, counted = size.count, count.count
    return notes.hold(
        None if have is None or counted is None else -(-have // OBJECT_BYTES) == counted,
        count,
        "manifest.objects-contiguous",
        required=f"{-(-(have or 0) // OBJECT_BYTES)} objects of at most {OBJECT_BYTES} bytes for {have} bytes",
        observed=f"{counted} objects",
        fix="record bytes and objects of the same snapshot",
    )


def digest_prefix(notes: Notes, short: Field, whole: Field) -> Outcome:
    """Whether a shortened digest begins the whole one. It is a search term even then, never an identity, and that is a warning."""
    text, full = short.text, whole.hex64
    begins = None if text is None or full is None else bool(text) and full.startswith(text)
    if begins and len(text or "") < 64:
        notes.find(
            short,
            Code.BAD_DIGEST,
            "pins.full-length",
            Severity.WARN,
            Outcome.FAIL,
            required="64 hex digits",
            observed=shown(text),
            fix="record the whole digest; a prefix is a search term, never an identity",
        )
    words = {"required": f"the beginning of {full}", "observed": shown(text)}
    return notes.hold(begins, short, "pins.full-length", **words, fix="record the digest of the same context")


def residual(notes: Notes, at: Field, phases: Sequence[Field], total: Field) -> None:
    """Warn of time that lies in no named phase; nothing is said where a phase or the total is not recorded."""
    parts, whole = [item.number for item in phases], total.number
    known = [part for part in parts if part is not None]
    if whole is None or whole <= 0 or not known or len(known) < len(parts):
        return
    rest = whole - sum(known)
    if rest > RESIDUAL * whole:
        notes.warn(
            at,
            Code.EVIDENCE_INCONCLUSIVE,
            "timing.residual",
            required=f"named phases account for {1 - RESIDUAL:.0%} of {whole:.3f} ms",
            observed=f"{rest:.3f} ms in no named phase ({sum(known) / whole:.1%} accounted for)",
            fix="time the remaining work, so that the phases add up",
        )


def preimage(notes: Notes, at: Field, answer: Answer, *, declared: bool) -> None:
    """A finding where the recorded hash is not that of the recorded words.

    A reader that declares the normalisation tells it in what it derives, and finds nothing where that explains the hash.
    """
    if answer.sha256 is None or answer.steps == ("none",) or (declared and answer.steps == DECLARED):
        return
    explained = f"it is the hash of {shown(repr(answer.raw))}, so {' and '.join(answer.steps)} was applied and not declared"
    harmless = answer.steps == DECLARED and answer.outcome is Outcome.PASS
    notes.find(
        at,
        Code.RECORD_CONTRADICTED,
        "digest.preimage",
        Severity.WARN if harmless else Severity.BLOCK,
        Outcome.FAIL,
        required=f"the SHA-256 of {shown(repr(answer.observed))}, or a declared normalisation",
        observed=explained if answer.raw is not None else "the hash of a text that no known normalisation turns into the recorded one",
        fix="record the raw response, or declare what was done to it before it was compared",
        evidence=(str(answer.digest),),
    )


def stored_match(notes: Notes, at: Field, answer: Answer) -> Outcome:
    """Whether a stored boolean says of an answer what the words beside it say."""
    right = answer.outcome in (Outcome.PASS, Outcome.NOT_RUN)
    settled = answer.outcome is not Outcome.INCONCLUSIVE and at.present
    return notes.hold(
        at.flag is right if settled else None,
        at,
        "quality.aggregate-consistent",
        required=f"{str(right).lower()}, as {shown(repr(answer.observed))} against {shown(repr(answer.required))} computes to",
        observed=shown(at.value),
        fix="compute it from the answer, or leave it out",
    )


def answer_rule(answer: Answer, at: Field) -> tuple[Derived, ...]:
    """How the raw answer was found again, where it was."""
    if answer.raw is None:
        return ()
    return (
        Derived(
            "/controls/exact-answer",
            f"normalisation {' '.join(answer.steps)}: SHA-256 of the raw {shown(repr(answer.raw))} is the recorded one",
            at.pointer,
        ),
    )


def wrong_answer(notes: Notes, at: Field, answer: Answer) -> None:
    """The finding that rejects an image: its restore was reported as structurally verified, and the answer was another one."""
    notes.find(
        at,
        Code.IMAGE_REJECTED,
        "status.semantic-fail-rejects",
        Severity.BLOCK,
        Outcome.FAIL,
        required=answer.required,
        observed=answer.observed if answer.raw is None else answer.raw,
        fix="build a new image: bytes that verify and an answer that is wrong reject this one as a whole",
        evidence=(str(answer.digest),) if answer.raw is not None else (),
    )
