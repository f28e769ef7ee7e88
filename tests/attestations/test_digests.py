"""Typed digests."""

import hashlib

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError

HEX = "ab" * 32


@pytest.mark.parametrize("kind", list(DigestKind))
def test_text_round_trip(kind: DigestKind) -> None:
    digest = Digest(kind, HEX)
    assert Digest.parse(str(digest)) == digest


def test_kind_is_part_of_the_identity() -> None:
    assert Digest(DigestKind.OCI_CONFIG, HEX) != Digest(DigestKind.OCI_MANIFEST, HEX)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("registry.example/app:latest", Code.TAG_NOT_DIGEST),
        ("app", Code.TAG_NOT_DIGEST),
        (f"sha256:{HEX}", Code.BAD_DIGEST),
        (f"oci-config:{HEX}", Code.BAD_DIGEST),
        (f"oci-config:sha512:{HEX}", Code.BAD_DIGEST),
        (f"oci-config:sha256:{HEX[:-1]}", Code.BAD_DIGEST),
        (f"oci-config:sha256:{HEX.upper()}", Code.BAD_DIGEST),
        (f"oci-config:sha256:{HEX}\n", Code.BAD_DIGEST),
        ("git-commit:abcdef012", Code.BAD_DIGEST),
        (f"git-commit:sha1:{'a' * 40}", Code.BAD_DIGEST),
    ],
)
def test_what_is_no_digest(text: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        Digest.parse(text)
    assert caught.value.code is code
    assert caught.value.fix


def test_of_hashes_the_bytes() -> None:
    assert Digest.of(DigestKind.FILE, b"x").raw == hashlib.sha256(b"x").digest()


@pytest.mark.parametrize("length", [40, 64])
def test_git_ids_have_two_lengths(length: int) -> None:
    assert Digest.parse(f"git-tree:{'0' * length}").algorithm == "gitTree"
