"""Keys: four algorithms that sign, two that are verified only, and keys that prove nothing."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, RefusedError
from countermark.attestations.keys import PASSWORD_VARIABLE, Algorithm, PublicKey, Signer, generate_pem, refuse_weak_ed25519

SIGNING = [Algorithm.ED25519, Algorithm.ECDSA_P256_SHA256, Algorithm.ECDSA_P384_SHA384, Algorithm.ML_DSA_65]


@pytest.mark.parametrize("password", [None, b"secret"])
@pytest.mark.parametrize("algorithm", SIGNING)
def test_sign_and_verify(algorithm: Algorithm, password: bytes | None) -> None:
    private, public = generate_pem(algorithm, password)
    signer = Signer.from_pem(private, "k", password)
    signature = signer.sign(b"data")
    assert signer.public == public == PublicKey.from_pem(public.to_pem(), "k")
    assert public.verify(b"data", signature) is algorithm
    with pytest.raises(RefusedError, match="SIG_INVALID"):
        public.verify(b"date", signature)


@pytest.mark.parametrize("algorithm", SIGNING)
def test_any_changed_bit_of_a_signature_is_refused(algorithm: Algorithm) -> None:
    private, public = generate_pem(algorithm)
    signature = Signer.from_pem(private, "k").sign(b"data")
    for byte in {0, 1, len(signature) // 2, len(signature) - 1}:
        for bit in range(8):
            changed = signature[:byte] + bytes([signature[byte] ^ 1 << bit]) + signature[byte + 1 :]
            with pytest.raises(RefusedError):
                public.verify(b"data", changed)


def test_password(monkeypatch: pytest.MonkeyPatch) -> None:
    private, public = generate_pem(Algorithm.ED25519, b"secret")
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    with pytest.raises(CannotTellError, match=PASSWORD_VARIABLE):
        Signer.from_pem(private, "k")
    with pytest.raises(InputError, match="UNREADABLE"):
        Signer.from_pem(private, "k", b"wrong")
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    assert Signer.from_pem(private, "k").public == public


def _rsa(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def _public(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> PublicKey:
    encoded = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return PublicKey.from_pem(encoded, "k")


def test_rsa_is_verified_in_two_forms_and_never_signs() -> None:
    key = _rsa()
    public = _public(key)
    v15 = key.sign(b"data", padding.PKCS1v15(), hashes.SHA256())
    pss = key.sign(b"data", padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    long_salt = key.sign(b"data", padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.MAX_LENGTH), hashes.SHA256())
    assert public.verify(b"data", v15) is Algorithm.RSA_PKCS1V15_SHA256
    assert public.verify(b"data", pss) is Algorithm.RSA_PSS_SHA256
    with pytest.raises(RefusedError):
        public.verify(b"data", long_salt)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with pytest.raises(InputError, match="UNSUPPORTED"):
        Signer.from_pem(private, "k")


def test_other_keys_are_refused() -> None:
    with pytest.raises(InputError, match="UNSUPPORTED"):
        _public(ec.generate_private_key(ec.SECP521R1()))
    with pytest.raises(InputError, match="UNSUPPORTED"):
        _public(_rsa(1024))


SMALL_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.mark.parametrize("encoded", SMALL_ORDER)
@pytest.mark.parametrize("sign_bit", [0, 0x80])
def test_keys_for_which_anyone_can_sign_are_refused(encoded: str, sign_bit: int) -> None:
    raw = bytearray.fromhex(encoded)
    raw[31] |= sign_bit
    with pytest.raises(InputError, match="anyone can sign"):
        refuse_weak_ed25519(bytes(raw))


def test_a_weak_key_is_refused_when_it_is_read() -> None:
    prefix = bytes.fromhex("302a300506032b6570032100")
    with pytest.raises(InputError, match="anyone can sign"):
        PublicKey.from_pem(prefix + bytes.fromhex(SMALL_ORDER[1]), "k")


@given(st.binary(max_size=120))
def test_junk_is_no_key(data: bytes) -> None:
    with pytest.raises(CountermarkError):
        PublicKey.from_pem(data, "k")
    with pytest.raises(CountermarkError):
        Signer.from_pem(data, "k")


def test_a_missing_key_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Signer.load(str(tmp_path / "none.pem"))
    assert caught.value.code is Code.UNREADABLE


def test_a_key_service_needs_its_public_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNTERMARK_PUBLIC_KEY", raising=False)
    with pytest.raises(CannotTellError, match="COUNTERMARK_PUBLIC_KEY"):
        Signer.load("awskms:alias/nothing")
