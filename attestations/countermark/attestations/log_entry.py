"""What a bundle says about its place in a transparency log, cross-checked field by field.

The sigstore library verifies the inclusion proof, the checkpoint's signature and the promise, and reads nothing else: a changed tree
size, outer index, log id or time passes it. Here each of these is either covered by a signature that the library checks, or equal to
something that is, or the bundle is refused. Sources: `sigstore_rekor.proto`; C2SP signed-note and tlog-checkpoint.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from countermark.attestations.codes import Code
from countermark.attestations.envelope import decode_base64
from countermark.attestations.errors import Location, RefusedError
from countermark.attestations.times import Instant

if TYPE_CHECKING:
    from sigstore_models.rekor.v1 import TransparencyLogEntry

_NOTE = re.compile(r"(?P<origin>[^\n]+)\n(?P<size>0|[1-9][0-9]{0,18})\n(?P<root>[^\n]+)\n(?:[^\n]+\n)*\n(?P<signatures>(?:[^\n]+\n)+)\Z")
_SIGNATURE = re.compile(r"— (?P<name>[^ +]+) (?P<blob>[^ ]+)\Z")
_HINT_BYTES = 4


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a log of `size` entries with this root hash holds the entry; as proven by its inclusion proof and checkpoint."""

    origin: str
    index: int
    size: int
    root_hash: bytes


@dataclass(frozen=True, slots=True)
class _Note:
    origin: str
    size: int
    root_hash: bytes
    signatures: tuple[tuple[str, bytes], ...]


def check_entry(entry: "TransparencyLogEntry", log_ids: frozenset[bytes], source: str) -> LogPosition:
    """The position that the entry claims; `RefusedError` when one of its fields is not bound to what the library verifies."""
    checker = _Checker(entry, source)
    checker.check_log(log_ids)
    checker.check_promise()
    return checker.check_checkpoint()


def promised_time(entry: "TransparencyLogEntry") -> Instant | None:
    """When the log promised to integrate the entry, if it did; signed by the log together with the outer index and the log id."""
    if entry.inclusion_promise is None or not entry.integrated_time:
        return None
    return Instant(entry.integrated_time * 1_000_000_000)


@dataclass(frozen=True, slots=True)
class _Checker:
    entry: "TransparencyLogEntry"
    source: str

    def refuse(
        self, field: str, message: str, code: Code = Code.SIG_INVALID, fix: str = "give the bundle as its signer made it"
    ) -> RefusedError:
        at = Location(self.source, pointer=f"/verificationMaterial/tlogEntries/0/{field}")
        return RefusedError(code, message, at=at, fix=fix)

    def check_log(self, log_ids: frozenset[bytes]) -> None:
        """The library tries every key of the root for a log id that it does not know."""
        if self.entry.log_id.key_id not in log_ids:
            raise self.refuse(
                "logId/keyId", "the trust root names no such log", Code.SIG_UNVERIFIABLE, "give --trusted-root of that instance"
            )

    def check_promise(self) -> None:
        """A promise signs time, outer index and log id. Without one there is no time, and both indexes are one."""
        if self.entry.inclusion_promise is not None:
            if not self.entry.integrated_time:
                raise self.refuse("integratedTime", "the log's promise has no time, so that it cannot be verified")
        elif self.entry.integrated_time:
            raise self.refuse("integratedTime", "the log did not promise this time")
        elif self.entry.log_index != self.entry.inclusion_proof.log_index:
            raise self.refuse("logIndex", "the entry's index is not the one that was proven")

    def check_checkpoint(self) -> LogPosition:
        """The checkpoint is for the tree of the proof and is signed by the log of the entry, once."""
        proof = self.entry.inclusion_proof
        note = self.note(proof.checkpoint.envelope if proof.checkpoint else "")
        if (note.size, note.root_hash) != (proof.tree_size, proof.root_hash):
            raise self.refuse("inclusionProof/treeSize", "the inclusion proof is for another tree than the checkpoint")
        own = [name for name, blob in note.signatures if blob[:_HINT_BYTES] == self.entry.log_id.key_id[:_HINT_BYTES]]
        if len(own) != 1 or not (note.origin == own[0] or note.origin.startswith(f"{own[0]} - ")):
            raise self.refuse("inclusionProof/checkpoint/envelope", "the checkpoint is not signed once by the log of the entry")
        return LogPosition(note.origin, proof.log_index, note.size, note.root_hash)

    def note(self, text: str) -> _Note:
        found = _NOTE.match(text)
        lines = [_SIGNATURE.match(line) for line in found["signatures"][:-1].split("\n")] if found else []
        if not found or not all(lines):
            raise self.refuse("inclusionProof/checkpoint/envelope", "this is not a signed checkpoint")
        signatures = tuple((line["name"], self.decode(line["blob"])) for line in lines if line)
        return _Note(found["origin"], int(found["size"]), self.decode(found["root"]), signatures)

    def decode(self, text: str) -> bytes:
        return decode_base64(text, self.source, "/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope")
