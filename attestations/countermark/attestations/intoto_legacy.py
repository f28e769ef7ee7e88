"""in-toto links and layouts, which came before attestations: read strictly here, verified by the in-toto package.

Source of the formats: in-toto specification 1.0. A file is signed as a DSSE envelope or, older, as `{signed, signatures}` over canonical
JSON. Layouts and links share the media type of Statements and are told apart by `_type`. What the package verifies is what was read
here, written anew into a folder of its own. Two of its habits are stopped before it runs: it executes the commands of inspections, and it
counts one key under two key ids as two functionaries.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from cryptography.hazmat.primitives.serialization import load_der_public_key

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.documents import read_file
from countermark.attestations.envelope import MAX_ENVELOPE, PAYLOAD_TYPE, Envelope
from countermark.attestations.errors import InputError, Location, NothingError, RefusedError
from countermark.attestations.failing_closed import failing_closed
from countermark.attestations.keys import PublicKey
from countermark.attestations.located import JsonValue

MAX_LINKS = 10_000

_PEM = "-----BEGIN"
_FIX = "give a layout that has not expired, signed by every --layout-key, and the links as its steps left them"


@dataclass(frozen=True, slots=True)
class LegacyFile:
    """A link or layout. `kind` is `link` or `layout`, `content` what was signed, `envelope` is none for the older form."""

    kind: str
    content: dict[str, JsonValue]
    envelope: Envelope | None
    text: str
    source: str

    @classmethod
    def parse(cls, data: bytes, source: str) -> Self:
        """Read either form; `InputError` for anything else, and for a layout that lists one key twice."""
        value = jsontext.loads(data, source, limit=MAX_ENVELOPE)
        envelope = Envelope.from_json(value, source) if isinstance(value, dict) and "payload" in value else None
        if envelope is not None:
            if envelope.payload_type != PAYLOAD_TYPE:
                raise _error(source, "/payloadType", f"links and layouts are signed as {PAYLOAD_TYPE}", "give a link or layout")
            content, text = jsontext.loads(envelope.payload, f"{source} (payload)"), envelope.to_json()
        else:
            content = value.get("signed") if isinstance(value, dict) and value.keys() == {"signed", "signatures"} else None
            text = json.dumps(value)
        kind = content.get("_type") if isinstance(content, dict) else None
        if not isinstance(content, dict) or kind not in ("link", "layout"):
            raise _error(source, "/_type", "this is neither an in-toto link nor a layout", "give a file whose _type is link or layout")
        made = cls(str(kind), content, envelope, text, source)
        made.check_keys()
        return made

    @property
    def inspections(self) -> list[str]:
        """The names of the inspections of a layout, each of which is a command."""
        found = self.content.get("inspect") or []
        return [str(item.get("name") if isinstance(item, dict) else item) for item in (found if isinstance(found, list) else [found])]

    def check_keys(self) -> None:
        """A key that is listed under two ids would meet a threshold of two alone."""
        keys = self.content.get("keys")
        seen: dict[str, str] = {}
        for keyid, key in keys.items() if isinstance(keys, dict) else ():
            first = seen.setdefault(_identity(key, self.source), keyid)
            if first != keyid:
                raise _error(self.source, f"/keys/{keyid}", f"this is the key {first} once more", "list each key once")


@dataclass(frozen=True, slots=True)
class ProvenLayout:
    """What a verified layout says of the end of its chain: the products of its last step, each with its hashes."""

    steps: tuple[str, ...]
    products: Mapping[str, Mapping[str, str]]


def read_links(folder: Path) -> dict[str, LegacyFile]:
    """Every `.link` file below `folder` by its path in it; sublayouts keep theirs in folders."""
    try:
        paths = sorted(path for path in folder.rglob("*.link") if path.is_file())
    except OSError:
        paths = []
    if not folder.is_dir():
        raise InputError(Code.UNREADABLE, "this is not a folder", at=Location(str(folder)), fix="give the folder of the link files")
    if len(paths) > MAX_LINKS:
        raise InputError(Code.TOO_LARGE, f"more than {MAX_LINKS} links", at=Location(str(folder)), fix="give the links of this layout")
    files = (read_file(path, limit=MAX_ENVELOPE) for path in paths)
    return {str(path.relative_to(folder)): LegacyFile.parse(data, str(path)) for path, data in zip(paths, files, strict=True)}


def verify_layout(
    layout: LegacyFile, links: Mapping[str, LegacyFile], keys: Sequence[PublicKey], *, inspect_in: Path | None = None
) -> ProvenLayout:
    """Verify that each key signed the layout, that it has not expired, and that the links obey it; `RefusedError` when not.

    Inspections run, in the folder `inspect_in`, only when it is given; otherwise a layout that has any is refused.
    """
    if layout.kind != "layout":
        raise _error(layout.source, "/_type", "this is a link, not a layout", "give the layout, and its links with --links")
    for file in (layout, *links.values()):
        if file.inspections and inspect_in is None:
            message = f"the layout runs commands to verify: {', '.join(file.inspections)}"
            fix = "read them, and if you trust the signer give --run-inspections"
            raise RefusedError(Code.UNSUPPORTED, message, at=Location(file.source, pointer="/inspect"), fix=fix)
        _check_kept(file)
    with tempfile.TemporaryDirectory(prefix="countermark-") as name:
        folder = Path(name)
        for path, link in links.items():
            target = folder / "links" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(link.text, encoding="utf-8")
        (folder / "root.layout").write_text(layout.text, encoding="utf-8")
        return _verified(layout.source, folder, keys, inspect_in)


def _check_kept(file: LegacyFile) -> None:
    """The older form is verified over what the package made of it, so that a field which it does not read would be signed by nobody."""
    from in_toto.models.metadata import Metadata

    if file.envelope is None:
        with failing_closed("in-toto", file.source):
            kept = Metadata.from_dict(json.loads(file.text)).to_dict()["signed"]
        if kept != file.content:
            message = "it holds what in-toto does not read, and so nobody signed"
            raise RefusedError(Code.SIG_INVALID, message, at=Location(file.source, pointer="/signed"), fix=_FIX)


class _Metadata(Protocol):
    """The part of the package's `Metadata` that is used here."""

    signatures: Any

    def verify_signature(self, verification_key: dict[str, Any]) -> None: ...
    def get_payload(self) -> Any: ...  # noqa: ANN401  # in-toto has no types


def _verified(source: str, folder: Path, keys: Sequence[PublicKey], inspect_in: Path | None) -> ProvenLayout:
    from in_toto.models.metadata import Metadata
    from in_toto.verifylib import in_toto_verify

    links = str(folder / "links")
    with failing_closed("in-toto", source, _FIX), chdir(inspect_in) if inspect_in else nullcontext():
        metadata: _Metadata = Metadata.load(str(folder / "root.layout"))
        owners = _owners(metadata, keys)
        summary = in_toto_verify(metadata, owners, link_dir_path=links, persist_inspection_links=False)
        proven = ProvenLayout(tuple(step.name for step in metadata.get_payload().steps), summary.products)
    if not proven.steps:
        raise NothingError(
            Code.NOTHING_EVALUATED, "the layout has no steps", at=Location(source), fix="give a layout that demands something"
        )
    return proven


def _owners(metadata: _Metadata, keys: Sequence[PublicKey]) -> dict[str, Any]:
    """The keys as the package wants them, each under the key id that its signature has here: a key id is whatever its signer chose."""
    from securesystemslib.signer import SSlibKey

    signatures = metadata.signatures
    signed_as = list(signatures) if isinstance(signatures, dict) else [item["keyid"] for item in signatures]
    owners: dict[str, Any] = {}
    for key in keys:
        library_key = SSlibKey.from_crypto(load_der_public_key(key.spki))
        described = library_key.to_dict()
        keyid = next((keyid for keyid in signed_as if _signed(metadata, {**described, "keyid": keyid})), library_key.keyid)
        owners[keyid] = {**described, "keyid": keyid}
    return owners


def _signed(metadata: _Metadata, key: dict[str, Any]) -> bool:
    from in_toto.exceptions import SignatureVerificationError

    try:
        metadata.verify_signature(key)
    except SignatureVerificationError:
        return False
    return True


def _identity(key: JsonValue, source: str) -> str:
    """What makes two keys of a layout one: the key itself, however it is written."""
    value = key.get("keyval") if isinstance(key, dict) else None
    public = value.get("public") if isinstance(value, dict) else None
    if not isinstance(public, str):
        raise _error(source, "/keys", "a key of the layout has no public part", "give the layout as its owner signed it")
    return PublicKey.from_pem(public.encode(), source).fingerprint.hex if public.startswith(_PEM) else public.lower()


def _error(source: str, pointer: str, message: str, fix: str) -> InputError:
    return InputError(Code.SCHEMA_INVALID, message, at=Location(source, pointer=pointer), fix=fix)
