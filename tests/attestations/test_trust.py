"""The trust policy: what a file may say, and who may say what under it."""

from pathlib import Path
from typing import Any

import pytest
from trusting import ALICE, BOB, key, trust_policy

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError


def test_short_names_are_our_predicate_types(tmp_path: Path) -> None:
    policy = trust_policy(tmp_path)
    assert [role.name for role in policy.makers("https://countermark.dev/predicate/source/v1")] == ["builder"]
    assert [role.name for role in policy.makers("https://example.com/anything/v1")] == ["builder"]
    assert policy.makers("https://countermark.dev/predicate/decision/v1") == []


def test_rules_count_principals(tmp_path: Path) -> None:
    roles = trust_policy(tmp_path).roles
    assert roles["builder"].met_by(["bob"])
    assert not roles["approver"].met_by(["alice", "alice"])
    assert roles["approver"].met_by(["alice", "bob", "carol"])


def test_all_of(tmp_path: Path) -> None:
    role = trust_policy(tmp_path, roles={"builder": {"all_of": ["alice", "bob"]}}, makes={"builder": ["source"]}).roles["builder"]
    assert not role.met_by(["alice"])
    assert role.met_by(["alice", "bob"])


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"roles": {"builder": {"any_of": ["carol"]}}}, Code.UNKNOWN_NAME, "carol"),
        ({"roles": {"builder": {"threshold": {"k": 3, "of": ["alice", "bob"]}}}}, Code.SCHEMA_INVALID, "3 of 2"),
        ({"roles": {"builder": {"threshold": {"k": 2, "of": ["alice", "alice"]}}}}, Code.SCHEMA_INVALID, ""),
        ({"makes": {"gate": ["decision"]}}, Code.UNKNOWN_NAME, "gate"),
        ({"principals": {"alice": {"keys": [key("bob", ALICE)]}}}, Code.BAD_DIGEST, "another key"),
        ({"principals": {"alice": {"keys": [key("alice", ALICE, not_before="2026-01-01")]}}}, None, "not_before"),
        ({"rolls": {}}, Code.SCHEMA_INVALID, "rolls"),
        ({"single_operator": "yes"}, Code.SCHEMA_INVALID, "single_operator"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: dict[str, Any], code: Code | None, text: str) -> None:
    with pytest.raises(InputError) as caught:
        trust_policy(tmp_path, **changes)
    assert text in str(caught.value)
    assert code in (None, caught.value.code)


def test_one_key_has_one_owner(tmp_path: Path) -> None:
    """Two names for one key would meet a threshold of two with one person."""
    with pytest.raises(InputError, match="same key"):
        trust_policy(tmp_path, principals={"alice": {"keys": [key("alice", ALICE)]}, "bob": {"keys": [key("alice", ALICE)]}})


def test_one_identity_has_one_owner(tmp_path: Path) -> None:
    identity = {"keyless": [{"san": "a@example.org", "issuer": "https://id.example.org"}]}
    with pytest.raises(InputError, match="same identity"):
        trust_policy(tmp_path, principals={"alice": identity, "bob": identity})


def test_a_missing_key_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        trust_policy(
            tmp_path,
            principals={"alice": {"keys": [{"file": "nowhere.pub", "spki_sha256": "ab" * 32}]}, "bob": {"keys": [key("bob", BOB)]}},
        )
