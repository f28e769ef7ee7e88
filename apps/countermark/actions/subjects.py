"""A DIGEST of the command line: typed, or a bare `sha256:` whose kind the ledger knows."""

import re
from collections.abc import Iterable, Sequence

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.ledger.read import LedgerReader

_BARE = re.compile(r"sha256:([0-9a-f]{64})\Z")
_AT = Location("DIGEST")


def bare_hex(text: str) -> str | None:
    """The hex of a digest that is given without its kind."""
    found = _BARE.match(text)
    return found[1] if found else None


def one_kind(hexed: str, kinds: Iterable[DigestKind]) -> DigestKind | None:
    """The one kind under which the ledger knows a hex, if it knows it; several are an `InputError`."""
    known = sorted(kinds)
    if len(known) > 1:
        names = " and ".join(str(Digest(kind, hexed)) for kind in known)
        raise InputError(Code.BAD_DIGEST, f"the ledger knows it as {names}", at=_AT, fix="give the one you mean with its kind")
    return known[0] if known else None


def resolve_subject(reader: LedgerReader, text: str, kinds: Sequence[DigestKind]) -> Digest:
    """The image that `text` names. A bare digest takes the one kind under which the ledger knows it.

    One that the ledger does not know is asked about as the first of `kinds`, and the decision says SUBJECT_UNKNOWN; where no kind is
    given, it is an `InputError`.
    """
    hexed = bare_hex(text)
    if hexed is None:
        return Digest.parse(text, at=_AT)
    stated = reader.kinds_of(hexed)
    known = one_kind(hexed, (kind for kind in DigestKind if kind.is_oci and kind in stated))
    if known is None and not kinds:
        fix = f"give it with its kind, as {Digest(DigestKind.OCI_CONFIG, hexed)}"
        raise InputError(Code.SUBJECT_UNKNOWN, f"no record of the ledger names {text}", at=_AT, fix=fix)
    return Digest(known or kinds[0], hexed)
