"""in-toto Statements: what is read, what is refused, and that the same claim is the same bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signing import statement

from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.statement import Statement, Subject, canonical


def parse(value: Any) -> Statement:
    return Statement.parse(json.dumps(value).encode(), "s")


@pytest.mark.parametrize("kind", list(DigestKind))
def test_a_typed_subject_survives(kind: DigestKind) -> None:
    digest = Digest(kind, "cd" * 32)
    made = Statement((Subject.of(digest, name="n", uri="u"),), "https://example.com/t", {"n": 1})
    read = Statement.parse(made.encode(), "s")
    assert read == made
    assert read.subjects[0].typed == (digest,)


def test_a_bare_sha256_has_no_kind() -> None:
    assert parse(statement()).subjects[0].typed == ()


@pytest.mark.parametrize("annotations", [{"ociLevel": "blob"}, {"digestKind": "git-commit"}, {"digestKind": "oci-config"}, {"ociLevel": 1}])
def test_an_unknown_annotation_gives_no_kind(annotations: dict[str, Any]) -> None:
    descriptor = {"digest": {"sha256": "ab" * 32}, "annotations": annotations}
    assert parse(statement(subject=[descriptor])).subjects[0].typed == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"_type": "https://in-toto.io/Statement/v0.1"}, Code.SCHEMA_INVALID),
        ({"subject": []}, Code.SCHEMA_INVALID),
        ({"subject": [{"name": "x"}]}, Code.SCHEMA_INVALID),
        ({"subject": [{"digest": {}}]}, Code.SCHEMA_INVALID),
        ({"subject": [{"digest": {"sha256": "NOTHEX"}}]}, Code.BAD_DIGEST),
        ({"subject": [{"digest": {"sha256": "AB" * 32}}]}, Code.BAD_DIGEST),
        ({"subject": [{"digest": {"gitCommit": "abcdef012"}}]}, Code.BAD_DIGEST),
        ({"subject": [{"digest": {"sha256": 1}}]}, Code.BAD_DIGEST),
        ({"subject": [{"digest": {"sha256": "ab" * 32}}] * 1025}, Code.SCHEMA_INVALID),
        ({"subject": [{"digest": {f"a{n}": "x" for n in range(33)}}]}, Code.SCHEMA_INVALID),
        ({"predicateType": ""}, Code.SCHEMA_INVALID),
        ({"predicate": []}, Code.SCHEMA_INVALID),
    ],
)
def test_what_is_no_statement(change: dict[str, Any], code: Code) -> None:
    with pytest.raises(InputError) as caught:
        parse(statement(**change))
    assert caught.value.code is code


def test_a_list_is_no_statement() -> None:
    with pytest.raises(InputError):
        parse([1])


def test_unknown_algorithms_are_kept_and_unknown_fields_ignored() -> None:
    read = parse(statement(subject=[{"digest": {"md5": "x", "sha256": "ab" * 32}, "mediaType": "y"}], more=1))
    assert read.subjects[0].digests == {"md5": "x", "sha256": "ab" * 32}


def test_no_floats_are_signed() -> None:
    with pytest.raises(InputError, match="BAD_NUMBER"):
        Statement((Subject({"sha256": "ab" * 32}),), "t", {"deep": [{"x": 1.5}]}).encode()


@given(st.dictionaries(st.text(), st.integers(-(2**53) + 1, 2**53 - 1) | st.text() | st.none() | st.booleans()))
def test_canonical_bytes_do_not_depend_on_order(value: dict[str, Any]) -> None:
    assert canonical(value) == canonical(dict(reversed(value.items())))
    assert json.loads(canonical(value)) == value


def test_integers_beyond_two_to_the_53_are_refused() -> None:
    with pytest.raises(InputError, match="BAD_NUMBER"):
        canonical({"n": 2**53})
