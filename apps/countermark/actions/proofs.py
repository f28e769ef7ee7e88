"""`ledger prove` and `verify proof`: that an entry is in the log, or that a log only grew, for somebody who has no ledger."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from countermark.actions.believed_logs import read_note, read_policy
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import CannotTellError, InputError, Location, NothingError, TamperError
from countermark.ledger.cosigned import newest_witnessed, note_at
from countermark.ledger.freshness import Freshness
from countermark.ledger.leaf import Leaf
from countermark.ledger.merkle import check_consistency
from countermark.ledger.proof_file import MAX_PROOF_BYTES, GrowthFile, InclusionFile, parse_proof
from countermark.ledger.read import LedgerReader
from countermark.ledger.witness_policy import Witnessed, WitnessPolicy


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What a proof shows: the checkpoint it leads to, and an entry with its leaf where that is one of ours, or an older size."""

    witnessed: Witnessed
    index: int | None = None
    leaf: Leaf | None = None
    old: int | None = None


def prove_entry(workspace: Workspace, entry: str, size: int | None, policy: Path | None) -> bytes:
    """The `.tlog-proof` of an entry, given by number or payload digest, with the leaf in its extra line.

    It leads to the checkpoint of `size` entries, or the newest that the policy's witnesses hold, or the head.
    """
    with open_reader(workspace) as reader:
        index = _index_of(reader, entry)
        note = _note_for(reader, index, size, policy)
        proof = reader.prove(index)
        return InclusionFile(index, proof.hashes, note, proof.leaf).encode()


def prove_growth(workspace: Workspace, old: int, size: int | None) -> bytes:
    """The proof that the tree of `old` entries is the beginning of that of `size`, or of the head."""
    with open_reader(workspace) as reader:
        note = note_at(reader, reader.head.size if size is None else size)
        if size is not None:
            reader.rewind(size)
        return GrowthFile(old, reader.prove_growth(old), note).encode()


def check_proof(
    path: Path,
    policy: WitnessPolicy,
    *,
    leaf: Path | None = None,
    payload: Path | None = None,
    held: Path | None = None,
    fresh: Freshness | None = None,
) -> ProofResult:
    """Check a proof of either sort under a policy.

    `leaf` is the file of the entry's bytes, where they are not in the proof; `payload` what the entry is said to name; `held` the older
    checkpoint of a proof of growth; `fresh` how old the checkpoint may be. `TamperError` when the proof fails, `CannotTellError` when
    something to compare with is missing, or the checkpoint is STALE.
    """
    proof = parse_proof(read_file(path, limit=MAX_PROOF_BYTES))
    witnessed = policy.open(proof.note)
    if isinstance(proof, GrowthFile):
        result = _check_growth(proof, witnessed, policy, held, Location(str(path)))
    else:
        result = _check_inclusion(proof, witnessed, leaf, payload, Location(str(path)))
    if fresh:
        fresh.check(policy, witnessed.cosignatures, result.leaf.admitted_ms if result.leaf else None)
    return result


def _check_inclusion(proof: InclusionFile, witnessed: Witnessed, leaf_file: Path | None, payload: Path | None, at: Location) -> ProofResult:
    encoded = proof.extra if leaf_file is None else read_file(leaf_file)
    if encoded is None:
        fix = "give the bytes of the entry with --leaf"
        raise CannotTellError(Code.INCOMPLETE, "the proof does not say of which entry it is", at=at, fix=fix)
    proof.check(encoded, witnessed.checkpoint)
    leaf = _as_leaf(encoded) if leaf_file else Leaf.decode(encoded)
    if payload:
        _check_payload(leaf, payload)
    return ProofResult(witnessed, index=proof.index, leaf=leaf)


def _as_leaf(encoded: bytes) -> Leaf | None:
    """The leaf, where the entry of whatever log is one of ours."""
    try:
        return Leaf.decode(encoded)
    except InputError:
        return None


def _check_payload(leaf: Leaf | None, path: Path) -> None:
    """The file holds the payload that the leaf names: its bytes, or an envelope with them."""
    data = read_file(path)
    at = Location(str(path))
    if leaf is None:
        raise NothingError(Code.NOTHING_EVALUATED, "the entry names no payload", at=at, fix="leave --payload out for another log's entries")
    if sha256(data).digest() == leaf.payload_sha256:
        return
    try:
        inside = Envelope.parse(data, str(path)).payload
    except InputError:
        inside = data
    if sha256(inside).digest() != leaf.payload_sha256:
        message = f"the proof is about payload:sha256:{leaf.payload_sha256.hex()}, and this is another"
        raise TamperError(Code.TAMPERED, message, at=at, fix="ask for the proof of this payload, or the payload of this proof")


def _check_growth(proof: GrowthFile, witnessed: Witnessed, policy: WitnessPolicy, held: Path | None, at: Location) -> ProofResult:
    if held is None:
        fix = "give the checkpoint that you hold with --checkpoint"
        raise CannotTellError(Code.INCOMPLETE, f"the proof begins at {proof.old} entries, and nothing says their root", at=at, fix=fix)
    new = witnessed.checkpoint
    logs_only = WitnessPolicy(policy.logs, {}, {}, None, policy.source)
    old = logs_only.open(read_note(held)).checkpoint
    if old.origin != new.origin or old.size != proof.old:
        message = f"the checkpoint held is of {old.origin} at {old.size}, and the proof of {new.origin} from {proof.old}"
        raise InputError(Code.SUBJECT_MISMATCH, message, at=at, fix=f"ask for the proof with `ledger prove --from {old.size}`")
    check_consistency(old.size, new.size, old.root, new.root, proof.hashes)
    return ProofResult(witnessed, old=old.size)


def _index_of(reader: LedgerReader, text: str) -> int:
    if text.isascii() and text.isdecimal():
        return int(text[:20])
    wanted = Digest.parse(f"payload:{text}" if text.startswith("sha256:") else text, at=Location("ENTRY"))
    found = reader.find_payload(wanted.raw) if wanted.kind is DigestKind.PAYLOAD else ()
    if not found:
        raise InputError(Code.REF_NOT_HERE, f"no entry of the log has the payload {wanted}", fix="give a payload digest or an entry number")
    return found[0]


def _note_for(reader: LedgerReader, index: int, size: int | None, policy: Path | None) -> str:
    """The checkpoint that the proof leads to; the reader then looks at the log as it was at that size."""
    if size is None and policy is not None:
        found = newest_witnessed(reader, read_policy(policy), above=index)
        if found is None:
            fix = "have a newer checkpoint cosigned: `ledger prove --from`, then `ledger witness`"
            raise CannotTellError(Code.UNTRUSTED, f"no checkpoint over entry {index} is held by a quorum of witnesses", fix=fix)
        note, size = found[0], found[1].checkpoint.size
    else:
        size = reader.head.size if size is None else size
        note = note_at(reader, size)
    reader.entry(index)
    reader.rewind(size)
    return note
