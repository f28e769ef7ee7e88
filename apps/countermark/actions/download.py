"""`attestation download`: statements of a ledger as files that other tools verify, each byte of what was signed as it was."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from countermark.actions.new_files import write_new
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations import jsontext
from countermark.attestations.bundle import MEDIA_TYPE
from countermark.attestations.codes import Code
from countermark.attestations.envelope import MAX_ENVELOPE
from countermark.attestations.errors import InputError, Location, NothingError
from countermark.attestations.located import as_object
from countermark.ledger.leaf import NO_HASH
from countermark.ledger.read import Entry, Head, LedgerReader

FORMATS: Final = ("intoto", "sigstore")


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The files that were written, the entries in them, and the head that they were read at."""

    files: tuple[Path, ...]
    entries: tuple[int, ...]
    head: Head


def download(workspace: Workspace, text: str, form: str, target: Path) -> Downloaded:
    """Write every statement about a digest, or with that payload digest, each proven to be in the log.

    `intoto` is one `.intoto.jsonl` file at `target`, an envelope a line. `sigstore` is a folder with a `.sigstore.json` for each: the
    bundle as it was received, or one that holds the envelope and names its key; what came in the form of PEP 740 is an `.attestation`,
    since readers of bundles do not know that form. Nothing is overwritten. `NothingError` without a hit.
    """
    if form not in FORMATS:
        raise InputError(Code.UNKNOWN_NAME, f"there is no format {form!r}", at=Location("--format"), fix=f"use {' or '.join(FORMATS)}")
    with open_reader(workspace) as reader:
        found = [entry for index in _indices(reader, text) if (entry := reader.entry(index)).statement is not None]
        if not found:
            message = f"no statement of {reader.head.size} entries is about {text}"
            raise NothingError(Code.SUBJECT_UNKNOWN, message, fix="look for it with `countermark search`")
        entries = tuple(entry.index for entry in found)
        if form == "intoto":
            write_new(target, "".join(f"{entry.envelope.to_json()}\n" for entry in found).encode())
            return Downloaded((target,), entries, reader.head)
        target.mkdir(parents=True, exist_ok=True)
        files = [(target / f"{name}.{_form(data)}", data) for entry in found for name, data in _bundles(reader, entry)]
        for path, data in files:
            write_new(path, data)
        return Downloaded(tuple(path for path, _ in files), entries, reader.head)


def _indices(reader: LedgerReader, text: str) -> list[int]:
    kind, _, hexed = text.rpartition(":")
    if len(hexed) not in (40, 64):
        raise InputError(Code.BAD_DIGEST, f"{text!r} is no full digest", at=Location("DIGEST"), fix="find it with `countermark search`")
    hits = [hit for hit in reader.search_prefix(hexed) if hit.role in ("subject", "payload") and hit.index < reader.head.size]
    return sorted({hit.index for hit in hits if kind in ("", "sha256") or hit.kind in (kind.removesuffix(":sha256"), "unknown")})


def _form(data: bytes) -> str:
    """The ending of a file by the form of what is in it, which admission parsed."""
    return (
        "attestation"
        if "verification_material" in as_object(jsontext.loads(data, "a stored bundle", limit=MAX_ENVELOPE))
        else "sigstore.json"
    )


def _bundles(reader: LedgerReader, entry: Entry) -> Iterator[tuple[str, bytes]]:
    """The bundle that an entry came as, or one for each of its signatures, since a bundle holds one."""
    if entry.leaf.bundle_sha256 != NO_HASH:
        yield str(entry.index), reader.payload(entry.leaf.bundle_sha256)
        return
    for number, item in enumerate(entry.leaf.signatures):
        envelope = {
            "payload": base64.b64encode(entry.payload).decode(),
            "payloadType": entry.leaf.payload_type,
            "signatures": [{"sig": base64.b64encode(item.signature).decode(), "keyid": item.key_sha256.hex()}],
        }
        material = {"publicKey": {"hint": base64.b64encode(item.key_sha256).decode()}, "tlogEntries": []}
        bundle = {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope}
        yield f"{entry.index}-{number}" if number else str(entry.index), json.dumps(bundle).encode() + b"\n"
