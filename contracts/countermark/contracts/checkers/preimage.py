"""`digest.preimage` (catalogue QA-19): a hash says of which bytes it is, and where they are here it is recomputed."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping

import rfc8785

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.checkers.parameters import choice, pointer, text
from countermark.contracts.checkers.records import Block, RecordChecker, record_fields
from countermark.contracts.pins import as_text, shown


def _sorted_json(value: JsonValue) -> bytes:
    """Keys sorted at every level, no blanks, numbers as Python writes them: 0.0 keeps its fraction, unlike in RFC 8785."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


_FORMS: Mapping[str, Callable[[JsonValue], bytes]] = {
    "text": lambda value: as_text(value).encode(),
    "text-crlf": lambda value: f"{as_text(value)}\r\n".encode(),
    "json-sorted": _sorted_json,
    "json-rfc8785": rfc8785.dumps,
}
_KINDS = ("prompt-text", "prompt-tokens", "response-raw", "response-normalised", "file", "object", "stream", "payload")


class Preimage(RecordChecker):
    """Recomputes a hash from the value that it is declared to be of."""

    name = "digest.preimage"
    rule = "Every hash has a declared preimage, and is the SHA-256 of it where it is here."
    ids = ("QA-19",)
    parameters = record_fields(
        "digest",
        digest=pointer("the hash"),
        of=pointer("the value that it is of"),
        form=choice("the bytes of the value: UTF-8 text, text and CR LF, or JSON in one of two canonical forms; text by default", *_FORMS),
        raw=text("the text itself, where the record does not keep it"),
        content=text("the path of the file that it is of"),
        declared=pointer("where the record itself says what the hash is of"),
    )

    def applies(self, block: Block) -> bool:
        """A hash without anything said about it cannot be held to it."""
        return not {"of", "raw", "content", "declared"}.isdisjoint(block.given)

    def judge(self, block: Block) -> Iterator[Finding]:
        """One finding for a hash of something else, and one for a hash of nobody knows what."""
        digest = block.one("digest")
        if "declared" in block.given:
            declared = block.maybe("declared")
            if declared is None or declared.value not in _KINDS:
                observed = shown(declared.value) if declared else "nothing"
                fix = "say what the hash is of"
                yield self.violation(block.place("declared"), required=f"one of {', '.join(_KINDS)}", observed=observed, fix=fix)
        found = self._preimage(block)
        if found:
            what, data = found
            made = hashlib.sha256(data).hexdigest()
            if str(digest.value).removeprefix("sha256:") != made:
                fix = "record the hash of what is recorded, or declare its form"
                yield self.violation(digest.at, required=f"{made}, the SHA-256 of {what}", observed=shown(digest.value), fix=fix)

    @staticmethod
    def _preimage(block: Block) -> tuple[str, bytes] | None:
        """What the hash is of, in words and in bytes; none when it is not here to be hashed."""
        if "content" in block.given:
            path = str(block.given["content"])
            return path, block.case.tree.read(path)
        if "of" not in block.given and "raw" not in block.given:
            return None
        form = str(block.given.get("form", "text"))
        value = block.given["raw"] if "raw" in block.given else block.one("of").value
        try:
            return f"{shown(value)!r} as {form}", _FORMS[form](value)
        except rfc8785.CanonicalizationError as error:
            raise InputError(Code.BAD_NUMBER, str(error), at=block.place("of"), fix="declare another form") from None
