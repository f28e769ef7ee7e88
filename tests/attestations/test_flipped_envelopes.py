"""One flipped bit anywhere in a DSSE envelope: `verify attestation` never passes it, whatever algorithm the key is of.

The one exception is `keyid`, its name and its value: DSSE makes it a hint that nobody signed, so that it may say anything.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from flips import SHARES, passed, spans

from countermark.actions.appending import sign
from countermark.actions.clock import now
from countermark.actions.verify_attestation import Expectation, check_files
from countermark.attestations.codes import ExitCode
from countermark.attestations.keys import Algorithm, Signer, generate_pem
from countermark.attestations.statement import Statement, Subject
from countermark.attestations.verifier import KeyTrust
from countermark.cli.app import run

SIGNING = [Algorithm.ED25519, Algorithm.ECDSA_P256_SHA256, Algorithm.ECDSA_P384_SHA384, Algorithm.ML_DSA_65]
STATEMENT = Statement((Subject({"gitCommit": "a" * 40}, "engine"),), "https://example.com/anything/v1", {"passed": True})


def signer_of(algorithm: Algorithm) -> Signer:
    return Signer.from_pem(generate_pem(algorithm)[0], "test key")


def passing(path: Path, signer: Signer) -> Callable[[bytes], bool]:
    """Whether `verify attestation` says yes of a text at `path`, about anything in it."""
    trust = KeyTrust((signer.public,))

    def passes(text: bytes) -> bool:
        path.write_bytes(text)
        return any(item.exit is ExitCode.YES for item in check_files([str(path)], trust, now(), Expectation()))

    return passes


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", ["one.json", "many.intoto.jsonl"])
@pytest.mark.parametrize("algorithm", SIGNING, ids=lambda algorithm: algorithm.name)
def test_no_flipped_bit_passes(algorithm: Algorithm, name: str, share: int | None, tmp_path: Path) -> None:
    signer = signer_of(algorithm)
    text = sign(STATEMENT, signer).to_json().encode() + b"\n"
    passes = passing(tmp_path / name, signer)
    assert passes(text)
    hint = spans(text, f'"keyid": "{signer.public.fingerprint.hex}"')
    member = min(hint)
    assert passed(text, share, passes, always=[len(text) - 1, text.index(b'"payloadType"') + 2]) <= hint
    assert passed(text, 0, passes, always=[member + 3, max(hint) - 3]) == {member + 3, max(hint) - 3}, "a key id is believed"


def test_the_command_says_no_and_never_yes(tmp_path: Path) -> None:
    signer = signer_of(Algorithm.ED25519)
    (tmp_path / "key.pub").write_bytes(signer.public.to_pem())
    text = sign(STATEMENT, signer).to_json().encode()
    path = tmp_path / "one.json"

    def code(data: bytes) -> int:
        path.write_bytes(data)
        return run(["verify", "attestation", str(path), "--key", str(tmp_path / "key.pub")])

    assert code(text) == ExitCode.YES
    for at, expected in (
        (text.index(b'"payload": "') + 20, {ExitCode.NO, ExitCode.INVALID}),
        (text.index(b'"sig": "') + 12, {ExitCode.NO, ExitCode.INVALID}),
        (0, {ExitCode.INVALID}),
    ):
        assert code(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]) in expected
