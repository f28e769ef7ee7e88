"""The schemas themselves: valid, closed, described, whole-text patterns, and self-contained when printed."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from countermark.attestations import jsontext
from countermark.attestations.codes import Code, ExitCode, Outcome, Severity, Status
from countermark.attestations.digests import DigestKind
from countermark.attestations.predicate_types import PredicateName
from countermark.attestations.schema import DOCUMENT_KINDS, kinds, problems, schema_text

FILES = {
    file.name.removesuffix(".json"): jsontext.loads(file.read_bytes(), file.name)
    for file in (resources.files("countermark.attestations") / "schemas").iterdir()
}
OPEN_OBJECTS = {"Contract", "contract-verdict", "test-result", "report", "lock", "common"}  # pins, parameters, facts, rows, foreign fields


def nodes(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of a schema file with its path."""
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            yield from nodes(item, f"{path}/{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from nodes(item, f"{path}/{number}")


def common(name: str) -> Any:
    file: Any = FILES["common"]
    return file["$defs"][name]


def without_groups(pattern: str) -> str:
    """A pattern with its character classes and groups taken out, the inner ones first."""
    shorter = re.sub(r"\[[^]]*\]|\([^()]*\)", "", pattern)
    return shorter if shorter == pattern else without_groups(shorter)


def test_there_is_one_file_for_each_kind_and_one_for_what_they_share() -> None:
    assert set(FILES) == {*kinds(), "common"} - {"waiver"}
    assert len({name.lower() for name in FILES}) == len(FILES), "names that differ in case alone do not live together on every disk"


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_is_a_valid_schema_with_its_own_versioned_id(name: str) -> None:
    schema: Any = FILES[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://countermark.dev/schema/{name}/v1"


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_property_and_every_shared_type_is_described(name: str) -> None:
    bare = [
        f"{path}/{field}/{key}"
        for path, node in nodes(FILES[name])
        for field in ("properties", "$defs")
        if isinstance(node.get(field), dict) and not path.endswith(("/properties", "/if", "/then"))
        for key, value in node[field].items()
        if not value.get("description")
    ]
    assert bare == []


@pytest.mark.parametrize("name", sorted(set(FILES) - OPEN_OBJECTS))
def test_no_object_is_open(name: str) -> None:
    assert [path for path, node in nodes(FILES[name]) if node.get("type") == "object" and "additionalProperties" not in node] == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_pattern_is_about_the_whole_text(name: str) -> None:
    patterns = [node["pattern"] for _, node in nodes(FILES[name]) if isinstance(node.get("pattern"), str)]
    assert [pattern for pattern in patterns if not (pattern.startswith("^") and pattern.endswith("$"))] == []
    assert [pattern for pattern in patterns if "|" in without_groups(pattern)] == [], (
        "an alternative outside a group is anchored on one side only"
    )


@pytest.mark.parametrize("kind", kinds())
def test_the_printed_schema_needs_no_other_file(kind: str) -> None:
    schema: Any = jsontext.loads(schema_text(kind).encode(), kind)
    messages = [error.message for error in Draft202012Validator(schema).iter_errors({"unheard-of": 1})]
    assert messages, "a schema that takes anything"


def test_the_kinds_are_documents_predicates_and_outputs() -> None:
    assert kinds() == (*DOCUMENT_KINDS, *PredicateName, "test-result", "report", "lock", "anchor", "audit", "backup", "decision-bundle")


def test_the_closed_lists_are_those_of_the_code() -> None:
    assert common("Code")["enum"] == list(Code)
    assert common("Outcome")["enum"] == list(Outcome)
    assert common("Reported")["enum"] == [*Outcome, "not-recorded"]
    assert common("Status")["enum"] == list(Status)
    assert common("Severity")["enum"] == list(Severity)
    assert common("PredicateName")["enum"] == list(PredicateName)
    report: Any = FILES["report"]
    assert report["properties"]["exit"]["enum"] == list(ExitCode)


@pytest.mark.parametrize("digest_kind", DigestKind)
def test_the_digest_pattern_takes_each_kind_at_full_length_only(digest_kind: DigestKind) -> None:
    pattern = common("Digest")["pattern"]
    head = f"{digest_kind}:" if digest_kind.is_git else f"{digest_kind}:sha256:"
    assert re.fullmatch(pattern, head + "a" * 64)
    assert bool(re.fullmatch(pattern, head + "a" * 40)) == digest_kind.is_git
    assert not any(re.fullmatch(pattern, head + tail) for tail in ("a" * 63, "a" * 65, "A" * 64, "g" * 64, ""))


def test_a_trailing_newline_does_not_pass_a_pattern() -> None:
    value = {"reason": "typo", "replacement": "payload:sha256:" + "a" * 64}
    assert problems("retraction", value) == []
    assert problems("retraction", {**value, "replacement": value["replacement"] + "\n"})
