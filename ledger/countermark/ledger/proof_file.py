"""Proofs as files that a third party can check offline: inclusion (C2SP tlog-proof), and growth as a witness is asked about it.

    c2sp.org/tlog-proof@v1                 old 17
    extra BASE64 of the leaf               BASE64 of each hash of the consistency proof
    index 73894
    BASE64 of each hash of the proof       (empty line)
    (empty line)                           the newer checkpoint
    the checkpoint, with its cosignatures

The right-hand form is the body of an `add-checkpoint` request of C2SP tlog-witness, so that a proof of growth is also what any witness
can be asked with. In ours the `extra` line of a proof of inclusion holds the leaf: nothing vouches for that line, but the leaf's hash
must lead to the root, and the leaf names the payload by its digest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from countermark.ledger.merkle import HASH_BYTES, check_inclusion, leaf_hash
from countermark.ledger.note import Checkpoint
from countermark.ledger.signed_note import MAX_NOTE_BYTES, decode_base64, encode_base64, malformed, read_decimal

HEADER: Final = "c2sp.org/tlog-proof@v1"
MAX_HASHES: Final = 63
MAX_EXTRA_BYTES: Final = 65_535
MAX_PROOF_BYTES: Final = MAX_NOTE_BYTES + 2 * MAX_EXTRA_BYTES


@dataclass(frozen=True, slots=True)
class InclusionFile:
    """A `.tlog-proof`. `extra` is not authenticated; `note` is the checkpoint as it stands in the file, not verified yet."""

    index: int
    hashes: tuple[bytes, ...]
    note: str
    extra: bytes | None = None

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a file. `InputError` MALFORMED for anything that `encode` does not write."""
        lines, note = _head(data)
        if lines[0] != HEADER:
            raise malformed(f"a proof begins with the line {HEADER}")
        extra = (
            decode_base64(lines[1].removeprefix("extra "), "the extra line") if len(lines) > 1 and lines[1].startswith("extra ") else None
        )
        rest = lines[1 if extra is None else 2 :]
        if extra is not None and not 0 < len(extra) <= MAX_EXTRA_BYTES:
            raise malformed("the extra line is empty or too long")
        if not rest or not rest[0].startswith("index "):
            raise malformed("a proof has an index line")
        return cls(read_decimal(rest[0].removeprefix("index "), "an index"), _hashes(rest[1:]), note, extra)

    def encode(self) -> bytes:
        """The bytes of the file."""
        extra = [] if self.extra is None else [f"extra {encode_base64(self.extra)}"]
        return _encode([HEADER, *extra, f"index {self.index}"], self.hashes, self.note)

    def check(self, leaf: bytes, checkpoint: Checkpoint) -> None:
        """`TamperError` unless the leaf is entry `index` of the checkpoint, which the caller took from the note and verified."""
        check_inclusion(self.index, checkpoint.size, leaf_hash(leaf), self.hashes, checkpoint.root)


@dataclass(frozen=True, slots=True)
class GrowthFile:
    """That the tree of `old` entries is the beginning of the tree of `note`; also the request to a witness that last saw `old`."""

    old: int
    hashes: tuple[bytes, ...]
    note: str

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a file. `InputError` MALFORMED for anything that `encode` does not write."""
        lines, note = _head(data)
        if not lines[0].startswith("old "):
            raise malformed("a proof of growth begins with the line old SIZE")
        return cls(read_decimal(lines[0].removeprefix("old "), "a tree size"), _hashes(lines[1:]), note)

    def encode(self) -> bytes:
        """The bytes of the file."""
        return _encode([f"old {self.old}"], self.hashes, self.note)


def parse_proof(data: bytes) -> InclusionFile | GrowthFile:
    """Read a proof of either sort. `InputError` MALFORMED."""
    return GrowthFile.parse(data) if data.startswith(b"old ") else InclusionFile.parse(data)


def _head(data: bytes) -> tuple[list[str], str]:
    """The lines above the first empty line, at least one, and the note below it."""
    if len(data) > MAX_PROOF_BYTES:
        raise malformed(f"a proof of {len(data)} bytes is longer than {MAX_PROOF_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise malformed("a proof is UTF-8") from None
    head, empty_line, note = text.partition("\n\n")
    if not empty_line or not head:
        raise malformed("a proof is lines, an empty line, and a checkpoint")
    return head.split("\n"), note


def _hashes(lines: Sequence[str]) -> tuple[bytes, ...]:
    if len(lines) > MAX_HASHES:
        raise malformed(f"a proof has at most {MAX_HASHES} hashes, not {len(lines)}")
    hashes = tuple(decode_base64(line, "a hash of the proof") for line in lines)
    if any(len(value) != HASH_BYTES for value in hashes):
        raise malformed(f"a hash of the proof is not {HASH_BYTES} bytes")
    return hashes


def _encode(head: Sequence[str], hashes: Sequence[bytes], note: str) -> bytes:
    return "\n".join([*head, *map(encode_base64, hashes), "", note]).encode()
