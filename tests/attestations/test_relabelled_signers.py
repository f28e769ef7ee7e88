"""Thresholds count principals, whatever they, their keys and their signatures are called."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signing import envelope_json, public, statement
from trusting import ALICE, ANYTHING, BOB, STRANGER, key, trust_policy

from countermark.attestations.envelope import Envelope
from countermark.attestations.errors import RefusedError
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust, Verifier

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=80)
_PEOPLE = {"alice": ALICE, "bob": BOB, "mallory": STRANGER}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    signers=st.lists(st.sampled_from(sorted(_PEOPLE)), min_size=1, max_size=6),
    hints=st.lists(st.one_of(_WORDS, st.sampled_from([public(private).fingerprint.hex for private in _PEOPLE.values()])), min_size=6),
    names=st.lists(st.from_regex(r"[a-z][a-z0-9._-]{0,20}", fullmatch=True), min_size=2, max_size=2, unique=True),
)
def test_a_threshold_counts_principals_whatever_they_are_called(
    policies: dict[str, TrustPolicy], signers: list[str], hints: list[str], names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two of alice and bob, under any names, with any key ids on any number of signatures in any order: met by both of them alone."""
    if ",".join(names) not in policies:
        first, second = names
        people = {first: {"keys": [key("alice", ALICE)]}, second: {"keys": [key("bob", BOB)]}}
        roles = {"builder": {"threshold": {"k": 2, "of": names}}}
        policies[",".join(names)] = trust_policy(
            tmp_path_factory.mktemp("policy"), principals=people, roles=roles, makes={"builder": [ANYTHING]}
        )
    made = envelope_json(statement(), *(_PEOPLE[name] for name in signers))
    for signature, hint in zip(made["signatures"], hints, strict=False):
        signature["keyid"] = hint
    try:
        verified = Verifier(PolicyTrust(policies[",".join(names)])).verify(Envelope.parse(json.dumps(made).encode(), "test"))
    except RefusedError:
        assert not {"alice", "bob"} <= set(signers)
    else:
        assert verified.principals == tuple(sorted(names))
        assert {"alice", "bob"} <= set(signers)


@pytest.fixture(scope="module")
def policies() -> dict[str, TrustPolicy]:
    """Policies that were made, by the names in them."""
    return {}
