"""The quick validator accepts nothing that jsonschema, which it stands before, refuses."""

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations import schema as schemas
from countermark.attestations import yamltext
from countermark.attestations.conformance import Conformance
from countermark.attestations.located import JsonValue, walk

ROOT = Path(__file__).parents[2]
CONTRACT = yamltext.loads_located((ROOT / "examples" / "serving" / "contract.yaml").read_bytes(), "contract.yaml").value
ODD = ["", "x\n", "\n", "٣", "é", "A", " ", "Z", "0", "/", "~2", "$profile.", "2026-02-30T00:00:00Z", "2026-12-31T23:59:60Z"]
WORDS = [*ODD, "2026-12-02T00:00:00+25:00", "2026-12-02T24:00:00Z", "2026-12-02t00:00:00z", "a" * 4000]
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2**53, 2**64, 10**40, -(10**40)]),
    st.floats(allow_nan=False),
    st.sampled_from(WORDS),
    st.text(max_size=5),
    st.lists(st.integers(0, 1), max_size=3),
    st.dictionaries(st.sampled_from(["id", "x", "", "apiVersion"]), st.integers(), max_size=2),
)


@cache
def definitions() -> Mapping[str, Mapping[str, Any]]:
    """Every shared definition that says how a text is formed."""
    found = schemas._schema("common")["$defs"]
    return {name: definition for name, definition in found.items() if "pattern" in definition or "format" in definition}


def accepts(kind: str, value: object) -> bool:
    """What jsonschema, which decides, says."""
    return not list(schemas._validator(kind).iter_errors(value))  # type: ignore[arg-type]  # jsonschema takes JSON of any shape


@st.composite
def formed(draw: st.DrawFn) -> tuple[str, str]:
    """A text that a definition accepts, or one an odd character away from it."""
    name = draw(st.sampled_from(sorted(definitions())))
    pattern = definitions()[name].get("pattern")
    text = draw(st.from_regex(pattern)) if pattern else draw(st.sampled_from(WORDS))
    at = draw(st.integers(0, len(text)))
    return name, draw(st.sampled_from([text, text[:at] + draw(st.sampled_from(ODD)) + text[at:], text[:at], text.upper()]))


@given(formed())
def test_a_text_of_a_definition(made: tuple[str, str]) -> None:
    name, text = made
    definition = {"$id": "/schema/under-test", **definitions()[name]}
    if Conformance(definition).holds(text):
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend

        strict = extend(Draft202012Validator, {"pattern": schemas._whole_text})  # type: ignore[no-untyped-call]  # untyped stub
        assert strict(definition, format_checker=Draft202012Validator.FORMAT_CHECKER).is_valid(text), (name, text)


@given(st.data())
def test_a_document_that_was_changed_somewhere(data: st.DataObject) -> None:
    document = copy.deepcopy(CONTRACT)
    for _ in range(data.draw(st.integers(1, 3))):
        _change(document, data)
    if schemas._conformance("Contract").holds(document):
        assert accepts("Contract", document)


def _change(document: JsonValue, data: st.DataObject) -> None:
    parents = [node for _, node in walk(document) if isinstance(node, dict | list) and node]
    parent = data.draw(st.sampled_from(parents))
    keys: list[Any] = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    key, how = data.draw(st.sampled_from(keys)), data.draw(st.sampled_from(["put", "drop", "add"]))
    if how == "drop":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(data.draw(VALUES)) if how == "add" else parent.__setitem__(key, data.draw(VALUES))
    else:
        parent[data.draw(st.sampled_from(WORDS)) if how == "add" else key] = data.draw(VALUES)


@pytest.mark.parametrize("kind", schemas.kinds())
def test_every_kind_has_a_conformance_that_refuses_what_is_nothing(kind: str) -> None:
    name = schemas._known(kind)
    for value in _nothing():
        assert not schemas._conformance(name).holds(value) or accepts(name, value)


def _nothing() -> Iterator[object]:
    yield from ({}, [], None, "", 0, {"apiVersion": "countermark.dev/v1"}, {1: 2}, "\ud800", {"\ud800": 1})


def test_what_python_holds_and_json_cannot_is_left_to_jsonschema() -> None:
    assert [Conformance({"type": kind}).holds(value) for kind, value in (("string", "\ud800"), ("object", {1: 2}))] == [False, False]


def test_the_contract_of_the_example_conforms_at_once() -> None:
    assert schemas._conformance("Contract").holds(CONTRACT)
    assert accepts("Contract", CONTRACT)
