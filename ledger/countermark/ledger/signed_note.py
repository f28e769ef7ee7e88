"""Signed notes: a text, an empty line, and one line for each signature over the text (C2SP signed-note).

    example.com/log            the text; what it says is no concern of this module
    20852163
    CsUYapGGPo4dkMgI...
                               an empty line; the last one of the note parts the text from the signatures
    — example.com/log Az3g...  key name, base64(key ID || signature)

Everything here is strict, because a note that two programs read differently is as good as a forged one: Python's base64 decoder takes
several texts for the same bytes, and its `int` takes `007`, `+7` and `1_0`.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Self

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError

MAX_NOTE_BYTES = 65_536
"""Room for sixteen ML-DSA-44 cosignatures, each a line of 3.3 kB."""
MAX_SIGNATURE_LINES = 100
"""The specification asks readers to accept 16 at least."""
KEY_ID_BYTES = 4
EM_DASH = "\N{EM DASH}"

_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z")
_NOT_IN_NAME = re.compile(r"[+\x00-\x1f\ud800-\udfff]")
_HEX_KEY_ID = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class SignatureLine:
    """One signature: the name and ID of the key that is said to have made it, and its bytes, whose form the key's type says."""

    name: str
    key_id: bytes
    signature: bytes

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line without its newline. `InputError` MALFORMED for anything that `str` does not write."""
        fields = line.split(" ")
        if len(fields) != 3 or fields[0] != EM_DASH:
            raise malformed("a signature line is an em dash (U+2014), a key name and a signature, parted by one space each")
        data = decode_base64(fields[2], "a signature")
        if len(data) <= KEY_ID_BYTES:
            raise malformed("a signature line holds a key ID and no signature")
        return cls(check_name(fields[1]), data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])

    def __str__(self) -> str:
        return f"{EM_DASH} {self.name} {encode_base64(self.key_id + self.signature)}"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A note taken apart. `text` is what is signed, with its last newline; nothing in it is verified yet."""

    text: str
    lines: tuple[SignatureLine, ...]

    @classmethod
    def parse(cls, note: str | bytes) -> Self:
        """Read a note of at most `MAX_NOTE_BYTES`. `InputError` MALFORMED."""
        text, empty_line, rest = _read_text(note).rpartition("\n\n")
        lines = rest.split("\n")
        if not empty_line or lines.pop() or not lines:
            raise malformed("a note is a text, an empty line, and signature lines that each end in a newline")
        if len(lines) > MAX_SIGNATURE_LINES:
            raise malformed(f"a note with {len(lines)} signatures has more than {MAX_SIGNATURE_LINES}")
        return cls(text + "\n", tuple(SignatureLine.parse(line) for line in lines))

    def by(self, name: str, key_id: bytes) -> Iterator[SignatureLine]:
        """The lines in the name of one key. A name or an ID alone is anybody's."""
        return (line for line in self.lines if (line.name, line.key_id) == (name, key_id))

    def __str__(self) -> str:
        return f"{self.text}\n" + "".join(f"{line}\n" for line in self.lines)


class WrittenKey(NamedTuple):
    """The parts of a verifier key, `NAME+HEX8+BASE64`, none of them checked against another."""

    name: str
    key_id: bytes
    type: int
    public: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take a verifier key apart. `InputError` MALFORMED."""
        name, _, rest = text.partition("+")
        hex_id, _, encoded = rest.partition("+")
        if not _HEX_KEY_ID.match(hex_id) or not encoded:
            raise malformed(f"{text!r} is not a verifier key of the form NAME+HEX8+BASE64")
        data = decode_base64(encoded, "the key of a verifier key")
        return cls(check_name(name), bytes.fromhex(hex_id), data[0], data[1:])

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{encode_base64(bytes((self.type,)) + self.public)}"


def key_id(name: str, key_type: int, public: bytes) -> bytes:
    """SHA-256(name || 0x0a || type || public key)[:4]: a look-up aid that anyone can collide, never an identity."""
    return sha256(name.encode() + b"\n" + bytes((key_type,)) + public).digest()[:KEY_ID_BYTES]


def check_name(name: str) -> str:
    """A name without spaces and plus signs, which part the fields of a line and of a verifier key, and that a note can hold."""
    if not name or _NOT_IN_NAME.search(name) or any(character.isspace() for character in name):
        raise malformed(f"{name!r} cannot be the name of a log or key: spaces, plus signs and control characters are not allowed")
    return name


def encode_base64(data: bytes) -> str:
    """Standard base64 with padding (RFC 4648 section 4)."""
    return base64.b64encode(data).decode()


def decode_base64(text: str, what: str) -> bytes:
    """The bytes whose one standard encoding is `text`: padded, and with zeros in the bits that the last digit has to spare."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise malformed(f"{what} is not base64") from None
    if encode_base64(data) != text:
        raise malformed(f"{what} is not in canonical base64")
    return data


def read_decimal(text: str, what: str) -> int:
    """A number below 2**63 in ASCII digits, without sign or leading zeros. `InputError` MALFORMED."""
    if not _DECIMAL.match(text) or int(text) >= 2**63:
        raise malformed(f"{text[:40]!r} is not {what} in decimal without leading zeros")
    return int(text)


def malformed(message: str) -> InputError:
    """The error for a text that is not as its specification has it."""
    return InputError(Code.MALFORMED, message, fix="give the file as it was written, unedited")


def _read_text(note: str | bytes) -> str:
    """The note as text: UTF-8, and not too long to look at. Control characters have no place in any part of the form read here."""
    if len(note) > MAX_NOTE_BYTES:
        raise malformed(f"a note of {len(note)} bytes is longer than {MAX_NOTE_BYTES}")
    try:
        return (note.encode() if isinstance(note, str) else note).decode()
    except UnicodeError:
        raise malformed("the note is not UTF-8") from None
