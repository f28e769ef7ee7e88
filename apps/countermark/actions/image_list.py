"""A file of images: one digest a line with `#` comments, or a JSON list of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from countermark.actions.subjects import bare_hex, resolve_subject
from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.documents import read_file
from countermark.attestations.errors import InputError, InvalidDocumentError, Location, NothingError
from countermark.ledger.read import LedgerReader

MAX_IMAGES = 100_000
_MAX_TOLD = 100


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image as a file names it, and where."""

    text: str
    at: Location


def read_images(path: Path) -> tuple[ListedImage, ...]:
    """The images of a file, in its order.

    `InputError` for every line that is no digest of an image, or for more than 100,000; `NothingError` for a file that names none.
    """
    data = read_file(path)
    listed = tuple(_elements(data, path) if data.lstrip()[:1] == b"[" else _lines(data, path))
    if not listed:
        fix = "put one digest on each line, or give a JSON list"
        raise NothingError(Code.NOTHING_EVALUATED, "the file names no image", at=Location(str(path)), fix=fix)
    if len(listed) > MAX_IMAGES:
        message = f"{len(listed)} images, and no more than {MAX_IMAGES} are taken at once"
        raise InputError(Code.TOO_LARGE, message, at=Location(str(path)), fix="split the file")
    _raise_all([mistake for item in listed if (mistake := _mistake(item))])
    return listed


def resolve_images(reader: LedgerReader, listed: Sequence[ListedImage], kinds: Sequence[DigestKind]) -> dict[Digest, Location]:
    """Each image once, with where it is named first; `InputError` for all that the ledger knows under several kinds."""
    found: dict[Digest, Location] = {}
    mistakes: list[InputError] = []
    for item in listed:
        try:
            found.setdefault(resolve_subject(reader, item.text, kinds), item.at)
        except InputError as error:
            mistakes.append(InputError(error.code, error.message, at=item.at, fix=error.fix))
    _raise_all(mistakes)
    return found


def _lines(data: bytes, path: Path) -> Iterator[ListedImage]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(Code.UNREADABLE, "it is no UTF-8 text", at=Location(str(path)), fix="write one digest on each line") from None
    for number, line in enumerate(text.split("\n"), start=1):
        stated = line.partition("#")[0].strip()
        if stated:
            yield ListedImage(stated, Location(str(path), number))


def _elements(data: bytes, path: Path) -> Iterator[ListedImage]:
    located = jsontext.loads_located(data, str(path))
    for number, item in enumerate(located.value if isinstance(located.value, list) else ()):
        at = located.at(f"/{number}")
        if not isinstance(item, str):
            raise InputError(Code.BAD_DIGEST, "an element of the list is no text", at=at, fix="write each digest as text")
        yield ListedImage(item, at)


def _mistake(item: ListedImage) -> InputError | None:
    if bare_hex(item.text):
        return None
    try:
        kind = Digest.parse(item.text, at=item.at).kind
    except InputError as error:
        return error
    fix = "name an oci-index, oci-manifest or oci-config"
    return None if kind.is_oci else InputError(Code.BAD_DIGEST, f"a {kind} is no image", at=item.at, fix=fix)


def _raise_all(mistakes: Sequence[InputError]) -> None:
    if not mistakes:
        return
    told = list(mistakes[:_MAX_TOLD])
    if len(told) < len(mistakes):
        told.append(InputError(Code.TOO_LARGE, f"and {len(mistakes) - len(told)} more lines like these", at=told[-1].at, fix=told[-1].fix))
    raise InvalidDocumentError(told)
