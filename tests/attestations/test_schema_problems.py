"""What people are told about a value that breaks its schema."""

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.predicate_types import PREDICATE_BASE, TEST_RESULT
from countermark.attestations.schema import Problem, problems, problems_for_predicate, schema_text

HEX = "ab" * 32
PAYLOAD = f"payload:sha256:{HEX}"
SCOPE = {"image": f"oci-config:sha256:{HEX}", "cells": [{"concurrency": 1}]}


def policy(**spec: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "channel": "lab",
        "subject": {"kinds": ["oci-config"]},
        "trust": "trust.yaml",
        "requires": [],
        "waivable": [],
        "never_waive": [],
        "waiver_max_days": 1,
    }
    return {
        "apiVersion": "countermark.dev/v1",
        "kind": "ReleasePolicy",
        "metadata": {"id": "p", "version": 1},
        "spec": {name: value for name, value in {**usual, **spec}.items() if value is not None},
    }


def contract(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "countermark.dev/v1",
        "kind": "Contract",
        "metadata": {"id": "c", "version": 1},
        "spec": {"pins": {}, "places": [], "invariants": [], **spec},
    }


def the_only(found: list[Problem] | None) -> Problem:
    assert found is not None
    assert len(found) == 1, found
    return found[0]


def test_a_conforming_value_has_no_problems() -> None:
    assert problems("ReleasePolicy", policy()) == []
    assert problems("Contract", contract()) == [], "nothing to evaluate is exit 5, not a broken document"


def test_a_misspelt_field_is_pointed_at_and_the_right_name_is_told() -> None:
    found = problems("ReleasePolicy", policy(waivable=None, waiveable=[]))
    assert found == [
        Problem("/spec", "field 'waivable' is missing", "add 'waivable': ids of the requirements that may be waived"),
        Problem("/spec/waiveable", "unknown field 'waiveable'", "write 'waivable'"),
    ]


def test_an_unknown_field_without_a_near_name_lists_the_names() -> None:
    found = the_only(problems("retraction", {"reason": "x", "zzz": 1}))
    assert (found.pointer, found.fix) == ("/zzz", "remove it; the fields here are reason, replacement")


def test_all_problems_are_told_in_the_order_of_their_places() -> None:
    found = problems("supersession", {"raw_measurements_changed": "no", "by": "sha256:12", "reason": ""})
    assert [problem.pointer for problem in found] == ["/by", "/raw_measurements_changed", "/reason"]
    assert found[0].fix == "write `payload:sha256:` and 64 lower-case hex digits"
    assert found[1].message == "expected true or false, found 'no'"
    assert found[2].message == "0 given, at least 1 needed"


def test_a_pointer_is_escaped() -> None:
    assert the_only(problems("retraction", {"reason": "x", "a/b~c": 1})).pointer == "/a~1b~0c"


def test_the_message_never_holds_a_whole_instance() -> None:
    found = the_only(problems("supersession", {"by": "x" * 5000, "reason": "r", "raw_measurements_changed": False}))
    assert len(found.message) < 200


@pytest.mark.parametrize("value", [True, 1, "x", None, [], 1.5])
def test_a_value_that_is_no_object_is_told_so(value: object) -> None:
    assert the_only(problems("retraction", value)).message.startswith("expected an object, found ")


@pytest.mark.parametrize(
    ("requirement", "pointer", "fix"),
    [
        (
            {"id": "a", "capability": "Restore"},
            "/capability",
            "write a capability id: lower-case words joined by dots, like `restore.correctness`",
        ),
        ({"id": "a", "contract": "c", "min_version": 0}, "/min_version", "write an integer from 1, below 2^53"),
        ({"id": "a"}, "", "add 'capability': which capability"),
        ({"id": "a", "capability": "x.y", "scope": {"tp": "anny"}}, "/scope/tp", "write 'any'"),
        ({"id": "a", "capability": "x.y", "scope": {"tp": "two"}}, "/scope/tp", "write tensor-parallel size, `any`, or `$profile.NAME`"),
        ({"id": "a", "capability": "x.y", "scope": {"tp": 0}}, "/scope/tp", "write an integer from 1, below 2^53"),
        (
            {"id": "a", "capability": "x.y", "scope": {"concurrency": [1, "2"]}},
            "/scope/concurrency/1",
            "write an integer from 1, below 2^53",
        ),
        ({"id": "a", "capability": "x.y", "evidence": {"signed_by": "qualifer"}}, "/evidence/signed_by", "write 'qualifier'"),
        ({"id": "a", "capability": "x.y", "when": {"profile.n": {"above": 1}}}, "/when/profile.n/above", None),
    ],
)
def test_of_a_union_the_branch_that_was_meant_is_explained(requirement: object, pointer: str, fix: str | None) -> None:
    found = problems("ReleasePolicy", policy(requires=[requirement]))
    assert found[0].pointer == f"/spec/requires/0{pointer}"
    assert fix is None or found[0].fix == fix


def test_a_misspelt_field_in_a_union_is_explained_by_the_nearest_branch() -> None:
    found = problems("ReleasePolicy", policy(requires=[{"id": "a", "contract": "c", "min_verson": 1}]))
    assert the_only(found) == Problem("/spec/requires/0/min_verson", "unknown field 'min_verson'", "write 'min_version'")


@pytest.mark.parametrize(("locators", "ending"), [({}, "it has none"), ({"json": "/a", "toml": "/b"}, "it has json and toml")])
def test_a_place_has_exactly_one_locator(locators: dict[str, str], ending: str) -> None:
    found = the_only(problems("Contract", contract(places=[{"file": "f", "is": "any-known", **locators}])))
    assert found.pointer == "/spec/places/0"
    assert found.message.endswith(ending)


def test_a_fact_is_not_compared_with_a_pin() -> None:
    facts = {"wire": {"file": "f", "json": "", "is": "a.b"}}
    assert the_only(problems("Contract", contract(facts=facts))).pointer == "/spec/facts/wire/is"


def test_a_short_commit_among_the_pins_is_refused() -> None:
    found = the_only(problems("Contract", contract(pins={"x": {"commit": "5ec6a9953", "level": "5ec6a9953", "a_sha256": HEX}})))
    assert (found.pointer, found.fix) == (
        "/spec/pins/x/commit",
        "write a whole git object id: 40 or 64 lower-case hex digits, in quotes in YAML",
    )


@pytest.mark.parametrize("name", ["Upper", "", "a/b", "-a", "a" * 65])
def test_a_malformed_name_in_a_map_is_pointed_at(name: str) -> None:
    trust = {"single_operator": True, "principals": {name: {"keyless": [{"san": "a", "issuer": "b"}]}}}
    spec = {**trust, "roles": {}, "makes": {}, "separate": [], "logs": []}
    document = {"apiVersion": "countermark.dev/v1", "kind": "TrustPolicy", "metadata": {"id": "t", "version": 1}, "spec": spec}
    assert the_only(problems("TrustPolicy", document)).pointer == "/spec/principals/" + name.replace("/", "~1")


@pytest.mark.parametrize(
    ("time", "good"),
    [
        ("2026-12-01T00:00:00Z", True),
        ("2026-12-01T00:00:00.123456789+05:30", True),
        ("2026-12-01T00:00:00", False),
        ("2026-12-01", False),
        ("2026-12-01 00:00:00Z", False),
        ("2026-02-30T00:00:00Z", False),
        ("2026-12-01T24:00:00Z", False),
        ("2026-12-01T00:00:00.1234567890Z", False),
        ("2026-12-01T00:00:00Z\n", False),
        (1764547200, False),
    ],
)
def test_a_time_has_an_offset_and_is_a_real_time(time: object, good: bool) -> None:
    rejection = {"scope": "image-wide", "reason": "r", "rests_on": [], "observed_time": time}
    assert [problem.pointer for problem in problems("rejection", rejection)] == ([] if good else ["/observed_time"])


@pytest.mark.parametrize(
    ("count", "good"), [(0, True), (2**53 - 1, True), (2**53, False), (-1, False), (True, False), ("1", False), (1.5, False)]
)
def test_counts_are_integers_below_2_to_53(count: object, good: bool) -> None:
    receipt = {
        "capability": "a.b",
        "outcome": "pass",
        "basis": "measured",
        "scope": SCOPE,
        "controls": {},
        "observed": None,
        "runs": count,
        "boots": None,
        "rests_on": [PAYLOAD],
        "limitations": [],
    }
    assert [problem.pointer for problem in problems("qualification-receipt", receipt)] == ([] if good else ["/runs"])


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({"topology": "TP4/DCP1"}, True),
        ({"topology": "TP4/DCP1/PP2"}, True),
        ({"topology": "TP4"}, False),
        ({"topology": {"tp": 2, "dcp": None}}, True),
        ({"draft": {"repository": "none", "revision": "none"}}, True),
        ({"draft": {"repository": "a/b", "revision": "none"}}, False),
        ({"model": {"repository": "none", "revision": "none"}}, False),
        ({"platform": None, "boots": None, "settings": None}, True),
        ({"cells": []}, False),
        ({"cells": None}, False),
        ({"image": f"file:sha256:{HEX}"}, False),
        ({"platform": "arm64"}, False),
    ],
)
def test_the_forms_of_a_scope(change: dict[str, object], good: bool) -> None:
    rejection: dict[str, object] = {"scope": {**SCOPE, **change}, "reason": "r", "rests_on": [], "observed_time": None}
    assert (problems("rejection", rejection) == []) == good


def test_only_a_draft_has_a_target() -> None:
    named = {"repository": "a/b", "revision": "a" * 40}
    model = {**named, "role": "draft", "files": [], "verified": True, "drafts_for": named}
    assert problems("model", model) == []
    assert the_only(problems("model", {**model, "role": "target"})).pointer == "/drafts_for"


def test_a_kind_without_a_schema_is_told_with_the_nearest_name() -> None:
    with pytest.raises(InputError) as caught:
        schema_text("Contrct")
    assert (caught.value.code, caught.value.fix) == (Code.UNKNOWN_NAME, "did you mean 'Contract'?")
    with pytest.raises(InputError, match="there is no schema 'common'"):
        problems("common", {})


def test_predicates_are_checked_by_their_type() -> None:
    assert problems_for_predicate(f"{PREDICATE_BASE}retraction/v1", {"reason": "x"}) == []
    assert the_only(problems_for_predicate(f"{PREDICATE_BASE}retraction/v1", {})).message == "field 'reason' is missing"
    assert problems_for_predicate(TEST_RESULT, {"result": "PASSED", "configuration": []}) == []
    assert problems_for_predicate(TEST_RESULT, {}) != []
    assert problems_for_predicate("https://example.com/other/v1", {"anything": 1.5}) is None
    assert problems_for_predicate(f"{PREDICATE_BASE}retraction/v2", {}) is None, "another version is another type"
