"""Keys that stay where they are: in a PKCS #11 token or a key service, behind a URI of securesystemslib.

The public half is read from the file that COUNTERMARK_PUBLIC_KEY names; a PKCS #11 token (`hsm:ID?label=LABEL`) is asked for it
otherwise. Nothing is taken on the token's word: what it signs is verified under that public key like any other signature.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from cryptography.hazmat.primitives import serialization

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, Location
from countermark.attestations.keys import PASSWORD_VARIABLE, PublicKey, read_key_file

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

PUBLIC_KEY_VARIABLE: Final = "COUNTERMARK_PUBLIC_KEY"
TOKEN: Final = "hsm"
"""The URI scheme of PKCS #11 tokens; the library of the token is named by PYKCS11LIB."""

_FIX: Final = f"install the library that the URI needs, check the token and its PIN ({PASSWORD_VARIABLE})"

Secret: TypeAlias = Callable[[str], str]
T = TypeVar("T")


def opened(uri: str, password: bytes | None = None) -> tuple[Callable[[bytes], bytes], PublicKey]:
    """What signs with the key behind a URI, and its public half.

    `password` is the PIN, by default COUNTERMARK_PASSWORD. `CannotTellError` where the library, the token, the PIN or the key is missing;
    also while signing.
    """
    from securesystemslib.signer import Signer as LibrarySigner
    from securesystemslib.signer import SSlibKey

    secret = _secret(uri, password)
    public = public_half(uri, password)
    key = SSlibKey.from_crypto(serialization.load_der_public_key(public.spki))
    signer = _asked(uri, lambda: LibrarySigner.from_priv_key_uri(uri, key, secret))
    return lambda data: bytes.fromhex(_asked(uri, lambda: signer.sign(data)).signature), public


def public_half(uri: str, password: bytes | None = None) -> PublicKey:
    """The public key behind a URI, from the file that is named for it, or from the token itself; see `opened` for errors."""
    file = os.environ.get(PUBLIC_KEY_VARIABLE, "")
    if file:
        return PublicKey.from_pem(read_key_file(Path(file)), file)
    if not uri.startswith(f"{TOKEN}:"):
        fix = f"export it and name the file in {PUBLIC_KEY_VARIABLE}"
        raise CannotTellError(Code.UNREADABLE, f"the public key of {uri} is not known", fix=fix)
    key = _asked(uri, lambda: _from_token(uri, _secret(uri, password)))
    return PublicKey.from_pem(str(key.keyval["public"]).encode(), uri)


def _from_token(uri: str, secret: Secret) -> "SSlibKey":
    from urllib.parse import parse_qs, urlsplit

    from securesystemslib.signer import HSMSigner

    parts = urlsplit(uri)
    label = parse_qs(parts.query).get("label", [None])[0]
    _, key = HSMSigner.import_(int(parts.path) if parts.path else None, label, secret)
    return key


def _secret(uri: str, password: bytes | None) -> Secret:
    """The PIN when the library asks for it."""

    def give(name: str) -> str:
        text = password.decode() if password is not None else os.environ.get(PASSWORD_VARIABLE, "")
        if not text:
            fix = f"set {PASSWORD_VARIABLE} to it"
            raise CannotTellError(Code.UNREADABLE, f"the {name} is not known", at=Location(uri), fix=fix)
        return text

    return give


def _asked(uri: str, act: Callable[[], T]) -> T:
    """What the library gives. A token has errors of its own, each of which leaves open whether it could sign."""
    from securesystemslib.exceptions import Error as LibraryError

    expected: tuple[type[Exception], ...] = (ValueError, TypeError, OSError, ImportError, LibraryError, *_token_errors())
    try:
        return act()
    except expected as error:
        what = str(error) or type(error).__name__
        raise CannotTellError(Code.UNREADABLE, f"{uri} cannot be used: {what}", fix=_FIX) from None


def _token_errors() -> tuple[type[Exception], ...]:
    try:
        from pkcs11.exceptions import PKCS11Error
    except ImportError:
        return ()
    return (PKCS11Error,)
