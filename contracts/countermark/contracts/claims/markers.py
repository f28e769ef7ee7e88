"""Claim markers: HTML comments in Markdown that say exactly what the text beside them claims.

`<!-- claim: STATUS CAPABILITY[@k=v,…] DIGEST -->` claims a status, in the grammar of `--require`, for one image.
`<!-- claim: number PAYLOAD#POINTER -->` claims that the number before it, on its line, stands at that place of a recorded statement, or
of a recorded file; a number with fewer decimals is compared as rounded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Final

from countermark.attestations.codes import Code, Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.catalogue import suggest
from countermark.contracts.locators.base import Found
from countermark.contracts.locators.registry import LOCATORS
from countermark.contracts.requirement import format_require, parse_require, read_demand

_NUMBER: Final = re.compile(r"(?<![\w.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|[.,]\d)")
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?\Z", re.ASCII)
_FORMS: Final = "write `claim: STATUS CAPABILITY@k=v,… KIND:sha256:HEX64` or `claim: number payload:sha256:HEX64#/pointer`"
_STORED: Final = (DigestKind.PAYLOAD, DigestKind.FILE)


@dataclass(frozen=True, slots=True)
class StatusMarker:
    """A status that is claimed for an image in a capability and scope, as `--require` takes it."""

    status: Status
    ask: str
    image: Digest
    at: Location


@dataclass(frozen=True, slots=True)
class NumberMarker:
    """A number as it is written, and where it is recorded; `digest` is that of a statement's payload, or of a file."""

    written: str
    digest: Digest
    pointer: str
    at: Location

    def equals(self, recorded: JsonValue) -> bool:
        """Whether the recorded value, rounded to the decimals of the written one, is the written one. Text may be a decimal number."""
        if isinstance(recorded, bool) or not _DECIMAL.match(shown(recorded)):
            return False
        written, value = Decimal(self.written.replace(",", "")), Decimal(shown(recorded))
        unit = Decimal(1).scaleb(min(0, int(written.as_tuple().exponent)))
        return any(value.quantize(unit, rounding=mode) == written for mode in (ROUND_HALF_EVEN, ROUND_HALF_UP))


def shown(value: JsonValue) -> str:
    """A recorded number as text, never in exponent form."""
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)


def markers(data: bytes, path: str, capabilities: Mapping[str, object]) -> Iterator[StatusMarker | NumberMarker | InputError]:
    """Every marker of a text in reading order; what is none, though it begins like one, is an error at its place."""
    for found in LOCATORS["markdown"].parse(data, path).find("claims"):
        if isinstance(found, Found):
            try:
                yield _marker(str(found.value), found.at, data.decode(), capabilities)
            except InputError as error:
                yield InputError(error.code, error.message, at=found.at, fix=error.fix)


def _marker(text: str, at: Location, page: str, capabilities: Mapping[str, object]) -> StatusMarker | NumberMarker:
    words = text.split()
    if len(words) == 2 and words[0] == "number":
        return _number(words[1], at, page)
    if len(words) != 3 or words[0] not in set(Status):
        raise InputError(Code.SCHEMA_INVALID, f"{text!r} is no claim", fix=_FORMS)
    status, require, image = words
    demand = parse_require(require)
    capability, scope = str(demand["capability"]), demand.get("scope", {})
    if capability not in capabilities:
        raise InputError(Code.UNKNOWN_NAME, f"there is no capability {capability!r}", fix=suggest(capability, capabilities))
    fields = scope if isinstance(scope, dict) else {}
    read_demand(fields, at)
    digest = Digest.parse(image)
    if not digest.kind.is_oci:
        raise InputError(Code.BAD_DIGEST, f"{image} is not an image", fix="name an oci-index, oci-manifest or oci-config")
    return StatusMarker(Status(status), format_require(capability, fields), digest, at)


def _number(reference: str, at: Location, page: str) -> NumberMarker:
    digest, mark, pointer = reference.partition("#")
    stored = Digest.parse(digest)
    if stored.kind not in _STORED or not mark or (pointer and not pointer.startswith("/")):
        raise InputError(Code.SCHEMA_INVALID, f"{reference!r} names no place of a statement or file", fix=_FORMS)
    line = page.split("\n")[(at.line or 1) - 1]
    before = line[: line.rfind("<!--", 0, at.column)] if "<!--" in line[: at.column] else ""
    numbers = _NUMBER.findall(before)
    if not numbers:
        raise InputError(Code.SCHEMA_INVALID, "no number stands before this marker on its line", fix="put the marker behind the number")
    return NumberMarker(numbers[-1], stored, pointer, at)
