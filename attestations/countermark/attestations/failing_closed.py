"""The one place of the program that catches every exception: around calls of another library that verify.

Whatever goes wrong while verifying is a failure to verify, never a pass and never a crash that leaves the verdict open. The documented
errors are not the only ones: sigstore raises `TypeError` for an Ed25519 leaf and `binascii.Error` for a bad checkpoint, in-toto `KeyError`
for a signature without a key id. A panic of a library in Rust is no `Exception`: rfc3161-client panics at a certificate whose name OpenSSL
does not read. Our own code is not called inside, so that its mistakes stay crashes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from countermark.attestations.codes import Code
from countermark.attestations.errors import Location, RefusedError

_RUST: Final = "pyo3_runtime"
"""The module of the class of Rust's panics, which cannot be imported."""


@contextmanager
def failing_closed(library: str, source: str, fix: str = "give it as its signer made it") -> Iterator[None]:
    """Turn whatever `library` raises while it verifies `source` into `RefusedError` SIG_INVALID."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != _RUST:
            raise
        message = f"{library} does not verify it: {first_line(error)}"
        raise RefusedError(Code.SIG_INVALID, message, at=Location(source), fix=fix) from None


def first_line(error: BaseException) -> str:
    """What a library's error says, in one line: pydantic writes one for each mistake, and an address to read."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:300] or type(error).__name__
