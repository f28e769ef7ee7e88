"""A DIGEST of the command line: typed, or a bare `sha256:` whose kind the ledger knows."""

import re
from collections.abc import Sequence

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.ledger.read import LedgerReader

_BARE = re.compile(r"sha256:([0-9a-f]{64})\Z")
_AT = Location("DIGEST")


def resolve_subject(reader: LedgerReader, text: str, kinds: Sequence[DigestKind]) -> Digest:
    """The image that `text` names. A bare digest takes the one kind under which the ledger knows it; two kinds are an `InputError`.

    A bare digest that the ledger does not know is asked about as the first of `kinds`, and the decision says SUBJECT_UNKNOWN; where
    no kind is given, it is an `InputError`.
    """
    bare = _BARE.match(text)
    if not bare:
        return Digest.parse(text, at=_AT)
    known = [DigestKind(kind) for kind in reader.kinds_of(bare[1]) if kind in set(DigestKind) and DigestKind(kind).is_oci]
    if len(known) > 1:
        names = " and ".join(str(Digest(kind, bare[1])) for kind in known)
        raise InputError(Code.BAD_DIGEST, f"the ledger knows it as {names}", at=_AT, fix="give the one you mean with its kind")
    if not known and not kinds:
        fix = f"give it with its kind, as {Digest(DigestKind.OCI_CONFIG, bare[1])}"
        raise InputError(Code.SUBJECT_UNKNOWN, f"no record of the ledger names {text}", at=_AT, fix=fix)
    return Digest((known or list(kinds))[0], bare[1])
