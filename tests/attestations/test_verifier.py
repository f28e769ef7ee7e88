"""From an envelope to a VerifiedStatement: order of work, windows, revocation, roles, thresholds."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signing import envelope, public, statement
from trusting import ALICE, ANYTHING, BOB, STRANGER, key, trust_policy

from countermark.attestations.codes import Code
from countermark.attestations.envelope import Envelope, Signature
from countermark.attestations.errors import CountermarkError, InputError, RefusedError
from countermark.attestations.times import Instant
from countermark.attestations.verifier import KeyTrust, PolicyTrust, VerifiedStatement, Verifier

NOW = Instant.parse("2026-12-01T00:00:00Z")
BY_ALICE = Verifier(KeyTrust((public(ALICE),)))


def refused(verifier: Verifier, what: Envelope) -> Code:
    with pytest.raises(CountermarkError) as caught:
        verifier.verify(what, at=NOW)
    return caught.value.code


def test_the_verified_bytes_are_the_parsed_bytes() -> None:
    verified = BY_ALICE.verify(envelope(statement(), ALICE), at=NOW)
    assert verified.statement.predicate == {"n": 1}
    assert verified.digest.hex == dataclasses.replace(verified.digest).hex


def test_nobody_else_makes_a_verified_statement() -> None:
    good = BY_ALICE.verify(envelope(statement(), ALICE))
    with pytest.raises(TypeError):
        VerifiedStatement(good.statement, good.payload, good.payload_type, good.results, (), object())


def test_signature_comes_before_payload() -> None:
    duplicate = b'{"_type": "a", "_type": "b"}'
    assert refused(BY_ALICE, envelope(duplicate, BOB)) is Code.SIG_INVALID
    assert refused(BY_ALICE, envelope(duplicate, ALICE)) is Code.DUPLICATE_KEY


def test_payload_type_must_be_a_statement_type() -> None:
    assert refused(BY_ALICE, envelope(statement(), ALICE, media="text/plain")) is Code.PAYLOAD_TYPE
    assert BY_ALICE.verify(envelope(statement(), ALICE, media="application/vnd.in-toto.thing+json")).signers


def test_our_predicates_obey_their_schemas() -> None:
    with pytest.raises(InputError) as caught:
        BY_ALICE.verify(
            envelope(statement(predicateType="https://countermark.dev/predicate/retraction/v1", predicate={"raeson": "x"}), ALICE)
        )
    assert caught.value.code is Code.SCHEMA_INVALID
    assert caught.value.at
    assert str(caught.value.at.pointer).startswith("/predicate")


def test_every_outcome_is_kept() -> None:
    verified = BY_ALICE.verify(envelope(statement(), BOB, ALICE))
    assert [result.code for result in verified.results] == [Code.SIG_UNVERIFIABLE, Code.OK]
    assert [result.key for result in verified.signers] == [public(ALICE)]


def test_one_key_signs_once() -> None:
    verified = BY_ALICE.verify(envelope(statement(), ALICE, ALICE))
    assert len(verified.signers) == 1


@given(st.integers(0, 63), st.integers(0, 7))
def test_any_changed_bit_of_a_signature_is_refused(byte: int, bit: int) -> None:
    good = envelope(statement(), ALICE)
    sig = bytearray(good.signatures[0].sig)
    sig[byte] ^= 1 << bit
    assert refused(BY_ALICE, dataclasses.replace(good, signatures=(Signature(bytes(sig)),))) is Code.SIG_INVALID


@given(st.data())
def test_any_changed_bit_of_a_payload_is_refused(data: st.DataObject) -> None:
    good = envelope(statement(), ALICE)
    payload = bytearray(good.payload)
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert refused(BY_ALICE, dataclasses.replace(good, payload=bytes(payload))) is Code.SIG_INVALID


def test_roles(tmp_path: Path) -> None:
    verifier = Verifier(PolicyTrust(trust_policy(tmp_path)))
    verified = verifier.verify(envelope(statement(), BOB, STRANGER), at=NOW)
    assert (verified.roles, verified.principals) == (("builder",), ("bob",))
    assert refused(verifier, envelope(statement(predicateType="https://example.com/other/v1"), BOB)) is Code.SIGNER_UNTRUSTED
    assert refused(verifier, envelope(statement(), STRANGER)) is Code.SIG_INVALID


def test_a_person_with_two_keys_is_one_person(tmp_path: Path) -> None:
    people = {
        "alice": {"keys": [key("alice", ALICE), key("bob", BOB)]},
        "carol": {"keyless": [{"san": "carol@example.org", "issuer": "https://id.example.org"}]},
    }
    roles = {"builder": {"threshold": {"k": 2, "of": ["alice", "carol"]}}}
    policy = trust_policy(tmp_path, principals=people, roles=roles, makes={"builder": [ANYTHING]})
    assert refused(Verifier(PolicyTrust(policy)), envelope(statement(), ALICE, BOB)) is Code.THRESHOLD


@given(st.permutations([ALICE, BOB, STRANGER, ALICE]), st.lists(st.text(max_size=64), min_size=4, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_thresholds_count_principals_under_any_relabelling(tmp_path: Path, order: list[Any], names: list[str]) -> None:
    policy = trust_policy(tmp_path, roles={"builder": {"threshold": {"k": 2, "of": ["alice", "bob"]}}}, makes={"builder": [ANYTHING]})
    verifier = Verifier(PolicyTrust(policy))
    signed = envelope(statement(), *order)
    relabelled = tuple(Signature(item.sig, name) for item, name in zip(signed.signatures, names, strict=True))
    assert verifier.verify(dataclasses.replace(signed, signatures=relabelled)).principals == ("alice", "bob")
    without_bob = tuple(item for item, signer in zip(relabelled, order, strict=True) if signer is not BOB)
    assert refused(verifier, dataclasses.replace(signed, signatures=without_bob)) is Code.THRESHOLD


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"not_before": "2026-12-02T00:00:00Z"}, Code.KEY_WINDOW),
        ({"not_after": "2026-11-30T00:00:00+00:00"}, Code.KEY_WINDOW),
        ({"revoked": {"reason": "retired", "since": "2026-11-01T00:00:00Z"}}, Code.KEY_REVOKED),
        ({"revoked": {"reason": "compromised", "since": "2026-12-24T00:00:00Z"}}, Code.KEY_REVOKED),
    ],
)
def test_keys_that_do_not_count(tmp_path: Path, more: dict[str, Any], code: Code) -> None:
    people = {"alice": {"keys": [key("alice", ALICE, **more)]}, "bob": {"keys": [key("bob", BOB)]}}
    verifier = Verifier(PolicyTrust(trust_policy(tmp_path, principals=people)))
    assert refused(verifier, envelope(statement(), ALICE)) is code
    both = verifier.verify(envelope(statement(), ALICE, BOB), at=NOW)
    assert both.principals == ("bob",), "a key that does not count lends its owner's name to nothing"


@pytest.mark.parametrize(
    "more", [{"not_before": "2026-11-30T00:00:00Z"}, {"revoked": {"reason": "retired", "since": "2026-12-02T00:00:00Z"}}]
)
def test_keys_that_count(tmp_path: Path, more: dict[str, Any]) -> None:
    people = {"alice": {"keys": [key("alice", ALICE, **more)]}, "bob": {"keys": [key("bob", BOB)]}}
    verifier = Verifier(PolicyTrust(trust_policy(tmp_path, principals=people)))
    assert verifier.verify(envelope(statement(), ALICE), at=NOW).principals == ("alice",)


def test_errors_name_the_file_and_the_fix() -> None:
    with pytest.raises(RefusedError) as caught:
        BY_ALICE.verify(envelope(statement(), BOB))
    assert caught.value.at
    assert caught.value.at.file == "test"
    assert caught.value.fix


REVOKED = {"revoked": {"since": "2026-11-01T00:00:00Z", "reason": "retired"}}
EXPIRED = {"not_after": "2026-11-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("signer", "makes", "alice", "code"),
    [
        (ALICE, "builder", {}, None),
        (ALICE, "approver", {}, Code.THRESHOLD),
        (BOB, "nobody", {}, Code.SIGNER_UNTRUSTED),
        (STRANGER, "builder", {}, Code.SIG_INVALID),
        (ALICE, "builder", REVOKED, Code.KEY_REVOKED),
        (ALICE, "builder", EXPIRED, Code.KEY_WINDOW),
        (BOB, "builder", REVOKED, None),
    ],
)
def test_what_a_signer_may_make_is_known_before_it_is_made(
    tmp_path: Path, signer: Ed25519PrivateKey, makes: str, alice: dict[str, Any], code: Code | None
) -> None:
    """Asked before and judged afterwards, the answers are the same."""
    people = {"alice": {"keys": [key("alice", ALICE, **alice)]}, "bob": {"keys": [key("bob", BOB)]}}
    roles = {makes: [ANYTHING]} if makes != "nobody" else {}
    verifier = Verifier(PolicyTrust(trust_policy(tmp_path, principals=people, makes=roles)))
    made = envelope(statement(predicateType=ANYTHING), signer)
    if code is None:
        verifier.check_signer(public(signer), ANYTHING, at=NOW)
        assert verifier.verify(made, at=NOW).signers
        return
    assert refused(verifier, made) is code
    with pytest.raises(RefusedError) as caught:
        verifier.check_signer(public(signer), ANYTHING, at=NOW)
    assert caught.value.code is code
