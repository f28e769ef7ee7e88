"""What is read as a bundle: one form, one meaning, one signature."""

import base64
import json
from typing import Any

import pytest
from bundles import STATEMENT, encoded, expecting, instance, modern, promised, put
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from countermark.attestations.bundle import Bundle
from countermark.attestations.codes import Code
from countermark.attestations.envelope import PAYLOAD_TYPE
from countermark.attestations.errors import CannotTellError, CountermarkError, InputError, RefusedError
from countermark.attestations.sigstore_trust import SigstoreRoot

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ENTRY = ("verificationMaterial", "tlogEntries", 0)
CHECKPOINT = (*ENTRY, "inclusionProof", "checkpoint", "envelope")


def refusal(bundle: Any) -> CountermarkError:
    data = bundle if isinstance(bundle, bytes) else encoded(bundle)
    with pytest.raises(CountermarkError) as caught:
        expecting(instance()).verify(data, "bundle")
    assert caught.value.fix
    return caught.value


def test_the_envelope_may_be_in_the_url_safe_alphabet() -> None:
    """The library decodes that alphabet wrongly, so it gets the other one."""
    bundle = promised()
    payload = base64.urlsafe_b64encode(base64.b64decode(bundle["dsseEnvelope"]["payload"])).decode()
    proven = expecting(instance()).verify(encoded(put(bundle, ("dsseEnvelope", "payload"), payload)), "url-safe")
    assert proven.verified.payload == STATEMENT


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (("dsseEnvelope", "payload"), lambda text: text[:8] + "\n" + text[8:]),
        (("dsseEnvelope", "payload"), lambda text: text[:8] + "*" + text[8:]),
        (("dsseEnvelope", "signatures", 0, "sig"), lambda text: text + "===="),
        ((*ENTRY, "canonicalizedBody"), lambda text: " " + text),
        ((*ENTRY, "logIndex"), lambda text: "0" + text),
        ((*ENTRY, "logIndex"), lambda text: "+" + text),
        ((*ENTRY, "logIndex"), int),
        ((*ENTRY, "inclusionProof", "treeSize"), lambda text: text + " "),
        ((*ENTRY, "inclusionProof", "logIndex"), lambda text: "-1"),
        (("mediaType",), lambda text: text.replace("0.3", "0.9")),
        (("mediaType",), lambda text: None),
        (("verificationMaterial", "certificate", "rawBytes"), lambda text: "AAAA"),
        (("verificationMaterial",), lambda material: {}),
        (("verificationMaterial",), lambda material: {**material, "publicKey": {"hint": "both"}}),
        (("dsseEnvelope",), lambda envelope: None),
        (("dsseEnvelope",), lambda envelope: {**envelope, "unknown": 1}),
    ],
)
def test_what_two_readers_could_read_differently_is_invalid(path: tuple[str | int, ...], change: Any) -> None:
    bundle = promised()
    old: Any = bundle
    for part in path:
        old = old[part]
    assert isinstance(refusal(put(bundle, path, change(old))), InputError)


def test_a_field_has_one_name() -> None:
    """The library takes `log_index` for `logIndex`, and with both of them one wins."""
    bundle = promised()
    entry = bundle["verificationMaterial"]["tlogEntries"][0]
    for more in ({"log_index": "7"}, {"unknown": "7"}):
        assert isinstance(refusal(put(bundle, ENTRY, {**entry, **more})), InputError)
    renamed = {"log_index" if name == "logIndex" else name: value for name, value in entry.items()}
    assert isinstance(refusal(put(bundle, ENTRY, renamed)), InputError)


def test_a_key_stands_once() -> None:
    text = encoded(promised()).replace(b'{"mediaType"', b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "mediaType"', 1)
    assert refusal(text).code == Code.DUPLICATE_KEY


def test_null_is_absent() -> None:
    """Protobuf's JSON may write so."""
    expecting(instance()).verify(encoded(put(promised(), ("verificationMaterial", "timestampVerificationData"), None)), "null")


@pytest.mark.parametrize("number", [0, 2])
def test_there_is_one_signature(number: int) -> None:
    bundle = promised()
    signatures = bundle["dsseEnvelope"]["signatures"] * number
    assert isinstance(refusal(put(bundle, ("dsseEnvelope", "signatures"), signatures)), InputError)


def test_there_is_one_certificate() -> None:
    """The others would be bytes that nothing verifies."""
    bundle = promised()
    leaf = bundle["verificationMaterial"].pop("certificate")
    bundle["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"
    bundle["verificationMaterial"]["x509CertificateChain"] = {"certificates": [leaf]}
    expecting(instance()).verify(encoded(bundle), "one")
    bundle["verificationMaterial"]["x509CertificateChain"] = {"certificates": [leaf, leaf]}
    assert "alone" in str(refusal(bundle))


def test_there_is_one_log_entry() -> None:
    bundle = promised()
    entries = bundle["verificationMaterial"]["tlogEntries"]
    assert refusal(put(bundle, ("verificationMaterial", "tlogEntries"), entries * 2)).code == Code.UNSUPPORTED
    assert isinstance(refusal(put(bundle, ("verificationMaterial", "tlogEntries"), [])), RefusedError)


def test_a_signed_file_is_no_attestation() -> None:
    bundle = promised()
    signature = bundle.pop("dsseEnvelope")["signatures"][0]["sig"]
    error = refusal({**bundle, "messageSignature": {"signature": signature}})
    assert (error.code, "no attestation" in str(error)) == (Code.UNSUPPORTED, True)


@pytest.mark.parametrize(
    ("payload", "payload_type", "expected"),
    [
        (b'{"_type": "x"}', PAYLOAD_TYPE, (InputError, Code.SCHEMA_INVALID)),
        (b"not JSON", PAYLOAD_TYPE, (InputError, Code.SCHEMA_INVALID)),
        (b'{"_type": 1, "_type": 2}', PAYLOAD_TYPE, (InputError, Code.DUPLICATE_KEY)),
        (STATEMENT, "text/plain", (RefusedError, Code.PAYLOAD_TYPE)),
        (STATEMENT, "application/vnd.in-toto+json\u00e4", (RefusedError, Code.SIG_INVALID)),
    ],
)
def test_what_verifies_must_be_a_statement(payload: bytes, payload_type: str, expected: tuple[type[CountermarkError], Code]) -> None:
    """The library verifies any payload of any type, and counts the characters of the type instead of its bytes."""
    with pytest.raises(expected[0]) as caught:
        expecting(modern()).verify(encoded(modern().sign(payload, payload_type=payload_type)), "bundle")
    assert caught.value.code == expected[1]


def test_the_type_may_name_the_predicate() -> None:
    bundle = modern().sign(STATEMENT, payload_type="application/vnd.in-toto.anything+json")
    assert expecting(modern()).verify(encoded(bundle), "named").verified.payload == STATEMENT


class TestLogEntry:
    """Fields of a log entry that the library does not look at."""

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ((*ENTRY, "logIndex"), "7"),
            ((*ENTRY, "integratedTime"), "1772366403"),
            ((*ENTRY, "logId", "keyId"), base64.b64encode(bytes(32)).decode()),
        ],
    )
    def test_without_a_promise_it_says_nothing_on_its_own(self, path: tuple[str | int, ...], value: str) -> None:
        bundle = modern().sign(STATEMENT)
        with pytest.raises(RefusedError):
            expecting(modern()).verify(encoded(put(bundle, path, value)), "bundle")

    def test_a_time_of_zero_is_no_time(self) -> None:
        """So Rekor v2 is written by some clients."""
        expecting(modern()).verify(encoded(put(modern().sign(STATEMENT), (*ENTRY, "integratedTime"), "0")), "zero")

    def test_a_promise_needs_its_time(self) -> None:
        """Without it the library does not verify the promise, and would take the timestamp's time."""
        bundle = modern().sign(STATEMENT)
        promise = {"signedEntryTimestamp": base64.b64encode(b"whatever").decode()}
        with pytest.raises(RefusedError, match="promise"):
            expecting(modern()).verify(encoded(put(bundle, (*ENTRY, "inclusionPromise"), promise)), "bundle")

    def test_the_tree_is_the_one_of_the_checkpoint(self) -> None:
        """The library compares root hashes alone; many sizes give the same path."""
        for _ in range(3):
            bundle = promised()
        size = int(bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["treeSize"])
        assert "another tree" in str(refusal(put(bundle, (*ENTRY, "inclusionProof", "treeSize"), str(size + 1))))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("— log.example.test ", "— log.example.tesT "),
            ("— log.example.test ", "— other.example.test "),
            ("\n\n", "\n"),
            ("\n— ", "\n- "),
            ("\n— ", "\njunk\n— "),
            ("log.example.test\n", "\n"),
        ],
    )
    def test_a_checkpoint_is_a_signed_note(self, old: str, new: str) -> None:
        bundle = promised()
        text = bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["checkpoint"]["envelope"]
        assert old in text
        refusal(put(bundle, CHECKPOINT, text.replace(old, new, 1)))

    def test_witnesses_may_sign_too(self) -> None:
        """Their keys are not in the trust root, so that their lines prove nothing; they are never reported."""
        bundle = promised()
        text = bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["checkpoint"]["envelope"]
        line = f"— witness.example.test {base64.b64encode(bytes(76)).decode()}\n"
        for witnessed in (text + line, text.replace("\n\n", f"\n\n{line}")):
            expecting(instance()).verify(encoded(put(bundle, CHECKPOINT, witnessed)), "witnessed")

    def test_the_log_signs_once(self) -> None:
        bundle = promised()
        text = bundle["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["checkpoint"]["envelope"]
        refusal(put(bundle, CHECKPOINT, text + text.split("\n\n")[1]))


class TestRoot:
    def test_the_public_root_is_in_the_package(self) -> None:
        root = SigstoreRoot.public()
        assert "public sigstore instance" in root.source
        assert len(root.log_ids) >= 2

    def test_its_absence_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("countermark.attestations.sigstore_trust._SHIPPED", ("nowhere",))
        with pytest.raises(CannotTellError, match="--trusted-root"):
            SigstoreRoot.public()

    @pytest.mark.parametrize("name", ["tlogs", "certificateAuthorities", "ctlogs", "mediaType"])
    def test_a_root_lacks_nothing(self, name: str) -> None:
        root = instance().trusted_root()
        for broken in ({**root, name: []}, {key: value for key, value in root.items() if key != name}):
            with pytest.raises(InputError, match="trust root"):
                SigstoreRoot.parse(encoded(broken), "trusted_root.json")

    def test_another_version_is_not_read(self) -> None:
        root = instance().trusted_root() | {"mediaType": "application/vnd.dev.sigstore.trustedroot.v0.2+json"}
        with pytest.raises(InputError, match="unsupported"):
            SigstoreRoot.parse(encoded(root), "trusted_root.json")

    def test_timestamps_need_their_authority(self) -> None:
        root = SigstoreRoot.parse(encoded(modern().trusted_root() | {"timestampAuthorities": []}), "trusted_root.json")
        verifier = expecting(modern())
        verifier.root = root
        with pytest.raises(RefusedError, match="timestamp authority"):
            verifier.verify(encoded(modern().sign(STATEMENT)), "bundle")


def test_the_digest_is_of_the_bytes_as_they_came() -> None:
    data = json.dumps(promised(), indent=1).encode()
    assert Bundle.parse(data, "bundle").digest != Bundle.parse(encoded(json.loads(data)), "bundle").digest


def test_a_signature_twin_is_refused() -> None:
    """An ECDSA signature (r, s) has the twin (r, n - s), which holds as well; the log entry is about the first."""
    bundle = promised()
    r, s = decode_dss_signature(base64.b64decode(bundle["dsseEnvelope"]["signatures"][0]["sig"]))
    twin = base64.b64encode(encode_dss_signature(r, P256_ORDER - s)).decode()
    assert "log entry" in str(refusal(put(bundle, ("dsseEnvelope", "signatures", 0, "sig"), twin)))
