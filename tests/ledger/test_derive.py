"""What is derived from a payload: rows to find it by, and whether it is a notice."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_box import BASE, TEST_RESULT, Box

from countermark.attestations.digests import Digest
from countermark.ledger.derive import Derived, derive, withheld
from countermark.ledger.leaf import EntryKind
from countermark.ledger.submission import DOCUMENT_TYPE, Submission

STATEMENT = "application/vnd.in-toto+json"
IMAGE = {"digest": {"sha256": "ab" * 32}, "annotations": {"ociLevel": "config"}}


def _derived(submission: Submission) -> Any:
    return derive(submission.kind, submission.payload_type, submission.payload)


def _body(predicate_type: str, predicate: object, **subject: object) -> bytes:
    subjects = [subject or {"digest": {"sha256": "00" * 32}}]
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": predicate_type, "predicate": predicate}
    return json.dumps(statement).encode()


@pytest.mark.parametrize(
    ("name", "predicate", "notice"),
    [
        (f"{BASE}rejection/v1", {}, True),
        (f"{BASE}retraction/v1", {}, True),
        (f"{BASE}supersession/v1", {}, True),
        (f"{BASE}contract-verdict/v1", {"outcome": "pass", "evaluated": 1, "of": 1, "findings": []}, True),
        (f"{BASE}image/v1", {"aliases": []}, False),
        (f"{BASE}image/v1", {"aliases": [{"digest": "x"}]}, True),
        (f"{BASE}image/v1", {"aliases": [], "built_from": {"components": {"a": {}}}}, True),
        (f"{BASE}image/v1", {"aliases": [], "built_from": {"components": {}}}, False),
        (f"{BASE}quality-report/v1", {"checks": [{"outcome": "pass"}]}, False),
        (f"{BASE}quality-report/v1", {"checks": [{"outcome": "skipped"}]}, True),
        (f"{BASE}qualification-receipt/v1", {"outcome": "pass", "controls": {}}, False),
        (f"{BASE}qualification-receipt/v1", {"outcome": "fail", "controls": {}}, True),
        (f"{BASE}restore-run/v1", {}, True),
        (TEST_RESULT, {"result": "PASSED"}, False),
        (TEST_RESULT, {"result": "FAILED"}, True),
        (TEST_RESULT, None, True),
        (f"{BASE}rejection/v2", {}, False),
        ("https://example.com/anything/v1", {"outcome": "fail"}, False),
    ],
)
def test_a_notice_is_what_could_turn_a_no_into_a_yes(name: str, predicate: object, notice: bool) -> None:
    assert derive(EntryKind.ATTESTATION, STATEMENT, _body(name, predicate)).notice is notice


@pytest.mark.parametrize("kind", list(EntryKind))
def test_key_events_documents_and_incarnations_are_notices(kind: EntryKind) -> None:
    expected = kind in (EntryKind.KEY_EVENT, EntryKind.POLICY, EntryKind.INCARNATION)
    assert derive(kind, "text/plain", b"anything").notice is expected


def test_an_image_id_and_a_manifest_digest_are_not_the_same(small: Box) -> None:
    config = derive(EntryKind.ATTESTATION, STATEMENT, _body("x", {}, **IMAGE)).subjects[0]
    bare = derive(EntryKind.ATTESTATION, STATEMENT, _body("x", {}, digest={"sha256": "ab" * 32})).subjects[0]
    assert (config.kind, bare.kind, config.digest) == ("oci-config", "unknown", bare.digest)


@pytest.mark.parametrize("payload_type", ["application/vnd.countermark.file", "application/json", "", "application/vnd.in-toto+jsonl"])
def test_what_was_not_signed_as_a_statement_is_none_whatever_its_bytes_are(payload_type: str) -> None:
    body = _body(f"{BASE}rejection/v1", {"outcome": "fail"}, **IMAGE)
    assert derive(EntryKind.ATTESTATION, STATEMENT, body).notice
    assert derive(EntryKind.ATTESTATION, payload_type, body) == Derived(notice=False)
    assert derive(EntryKind.ATTESTATION, "application/vnd.in-toto.rejection+json", body).notice


def test_members_of_a_tuple_are_found_but_are_no_subject() -> None:
    predicate = {
        "tuple": {
            "image": f"oci-config:sha256:{'ab' * 32}",
            "model": {"repository": "org/m", "revision": "42" * 20},
            "draft": {"repository": "none", "revision": "none"},
            "profile": "not a digest",
        },
        "rests_on": [f"payload:sha256:{'cd' * 32}"],
    }
    found = derive(EntryKind.ATTESTATION, STATEMENT, _body(f"{BASE}benchmark-run/v1", predicate, **IMAGE)).subjects
    assert [(row.kind, row.role, row.name) for row in found] == [
        ("oci-config", "subject", None),
        ("oci-config", "tuple", "image"),
        ("git-commit", "tuple", "org/m"),
        ("payload", "rests-on", None),
    ]
    assert [row.pos for row in found] == [0, 1, 2, 3]


def test_aliases_and_components_of_an_image_are_found() -> None:
    predicate = {
        "aliases": [{"digest": f"oci-manifest:sha256:{'cd' * 32}"}, {"digest": 7}, None],
        "built_from": {"components": {"cache": {"commit": f"git-commit:{'5e' * 20}", "tree": f"git-tree:{'94' * 20}"}, "bad": None}},
    }
    found = derive(EntryKind.ATTESTATION, STATEMENT, _body(f"{BASE}image/v1", predicate, **IMAGE)).subjects
    assert [(row.kind, row.role, row.name) for row in found[1:]] == [
        ("oci-manifest", "alias", None),
        ("git-commit", "component", "cache"),
        ("git-tree", "component", "cache"),
    ]


def test_a_foreign_algorithm_is_found_by_its_digest_and_text_that_is_no_digest_is_not() -> None:
    found = derive(EntryKind.ATTESTATION, STATEMENT, _body("x", {}, digest={"sha512": "ab" * 64, "file": "not hex"})).subjects
    assert [(row.kind, row.digest) for row in found] == [("unknown", b"\xab" * 64)]


def test_a_key_event_and_a_document_are_found_by_their_digests(small: Box) -> None:
    event = _derived(small.key_event())
    assert event.key_event.principal == "ci"
    assert [(row.kind, row.digest, row.role) for row in event.subjects] == [("spki", small.second.public.fingerprint.raw, "key")]
    document = derive(EntryKind.POLICY, DOCUMENT_TYPE, b"a: 1")
    assert [(row.kind, row.role) for row in document.subjects] == [("file", "document")]


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b"[" * 100_000, b'{"payload": "file"}', b'{"payload": 1}'])
def test_what_is_no_withhold_notice_withholds_nothing(payload: bytes) -> None:
    assert withheld(EntryKind.WITHHOLD, payload) is None


def test_a_withhold_notice_names_a_payload() -> None:
    digest = Digest.parse(f"payload:sha256:{'ab' * 32}")
    payload = json.dumps({"payload": str(digest)}).encode()
    assert withheld(EntryKind.WITHHOLD, payload) == digest.raw
    assert withheld(EntryKind.ATTESTATION, payload) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["aliases", "digest", "tuple", "components"]), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(st.sampled_from(list(EntryKind)), st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_payload_can_be_derived_from(kind: EntryKind, payload: bytes) -> None:
    assert derive(kind, "application/octet-stream", payload) == derive(kind, "application/octet-stream", payload)


@given(json_values)
def test_any_predicate_can_be_derived_from(predicate: object) -> None:
    for name in ("image", "restore-run", "benchmark-run", "qualification-receipt"):
        derive(
            EntryKind.ATTESTATION, STATEMENT, _body(f"{BASE}{name}/v1", {"built_from": predicate, "tuple": predicate, "aliases": predicate})
        )
