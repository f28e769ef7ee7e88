"""The pages about documents and predicates: their examples conform, their tables name the fields, and no careless edit conforms."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from countermark.attestations import jsontext, yamltext
from countermark.attestations.predicate_types import PREDICATE_BASE, PredicateName
from countermark.attestations.schema import kinds, problems, schema_text

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(json|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`.\[]+)`( \?)? \|", re.MULTILINE)
DOCUMENT_SECTIONS = [kind for kind in kinds() if kind not in set(PredicateName)]
JsonObject = dict[str, Any]


def section(kind: str) -> str:
    """The part of the documentation that describes `kind`."""
    if kind in set(PredicateName):
        return (DOCS / "predicates" / f"{kind}.md").read_text(encoding="utf-8")
    text = (DOCS / "documents.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(kind)}$(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"documents.md has no section {kind}"
    return found[1]


def examples(kind: str) -> list[JsonObject]:
    """The examples in the section of `kind`, parsed as the program parses them."""
    found = []
    for language, body in BLOCK.findall(section(kind)):
        read = jsontext.loads_located if language == "json" else yamltext.loads_located
        value = read(body.encode(), f"example of {kind}").value
        assert isinstance(value, dict)
        found.append(value)
    assert found, f"{kind} has no example"
    return found


def schema_of(kind: str) -> JsonObject:
    schema = jsontext.loads(schema_text(kind).encode(), kind)
    assert isinstance(schema, dict)
    return schema


@pytest.mark.parametrize("kind", kinds())
def test_the_examples_conform(kind: str) -> None:
    assert [problem for example in examples(kind) for problem in problems(kind, example)] == []


@pytest.mark.parametrize("kind", kinds())
def test_the_table_names_exactly_the_fields_of_the_schema(kind: str) -> None:
    schema = schema_of(kind)
    if kind in DOCUMENT_SECTIONS and "spec" in schema["properties"]:
        schema = schema["properties"]["spec"]
    listed = {name: not optional for name, optional in ROW.findall(section(kind))}
    assert listed == {name: name in schema.get("required", []) for name in schema["properties"]}


def test_there_is_one_page_for_each_predicate_and_it_names_its_type() -> None:
    assert {page.stem for page in (DOCS / "predicates").glob("*.md")} == set(PredicateName)
    assert all(f"`{PREDICATE_BASE}{name}/v1`" in section(name) for name in PredicateName)


class Places:
    """The places of a value where a closed object stands, found by walking its schema beside it."""

    def __init__(self, kind: str) -> None:
        self.root = schema_of(kind)
        self.embedded = {value["$id"]: value for value in self.root.get("$defs", {}).values() if "$id" in value}

    def resolve(self, node: JsonObject, root: JsonObject) -> tuple[JsonObject, JsonObject]:
        """The schema behind the `$ref` of `node`, joined with what stands beside the `$ref`, and the file that it stands in."""
        while "$ref" in node:
            file, _, place = node["$ref"].partition("#")
            root = self.embedded[f"https://countermark.dev{file}"] if file else root
            target = root
            for part in place.split("/")[1:]:
                target = target[part]
            required = [*target.get("required", []), *node.get("required", [])]
            node = {**target, "required": required}
        return node, root

    def walk(
        self, value: Any, node: JsonObject, root: JsonObject, path: tuple[Any, ...] = ()
    ) -> Iterator[tuple[tuple[Any, ...], JsonObject]]:
        """Each closed object: its path in the value, and its schema."""
        node, root = self.resolve(node, root)
        for branch in node.get("anyOf", []):
            if self.may_be(value, branch, root):
                yield from self.walk(value, branch, root, path)
        if isinstance(value, list) and "items" in node:
            for number, item in enumerate(value):
                yield from self.walk(item, node["items"], root, (*path, number))
        if isinstance(value, dict):
            if node.get("additionalProperties") is False:
                yield path, node
            inner = node.get("additionalProperties")
            for name, item in value.items():
                child = node.get("properties", {}).get(name, inner if isinstance(inner, dict) else {})
                yield from self.walk(item, child, root, (*path, name))

    def may_be(self, value: Any, node: JsonObject, root: JsonObject) -> bool:
        """Whether a branch of a union is the one that `value` was written for."""
        node, _ = self.resolve(node, root)
        if isinstance(value, list):
            return node.get("type") == "array"
        if not isinstance(value, dict):
            return False
        return "anyOf" in node or set(node.get("required", [])) <= set(value) <= set(node.get("properties", {}))


def changed(value: JsonObject, path: tuple[Any, ...], name: str, *new: object) -> JsonObject:
    """A copy of `value` in which the field `name` of the object at `path` is another, or gone."""
    result = copy.deepcopy(value)
    target: Any = result
    for part in path:
        target = target[part]
    target.pop(name, None)
    for item in new:
        target[name] = item
    return result


def is_open(node: JsonObject) -> bool:
    """Whether a field takes any object."""
    return node.get("type") == "object" and not node.keys() & {"properties", "additionalProperties"}


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "test-result"])
def test_no_careless_edit_of_an_example_conforms(kind: str) -> None:
    places = Places(kind)
    edits = 0
    for example in examples(kind):
        for path, schema in places.walk(example, places.root, places.root):
            node: Any = example
            for part in path:
                node = node[part]
            accepted = [name for name in schema.get("required", []) if not problems(kind, changed(example, path, name))]
            accepted += [name for name in ("unknown-field",) if not problems(kind, changed(example, path, name, 1))]
            for name, value in node.items():
                other = True if isinstance(value, list) or is_open(schema["properties"][name]) else [[None]]
                accepted += [f"{name} as {other}"] if not problems(kind, changed(example, path, name, other)) else []
            assert accepted == [], path
            edits += len(node) + 1
    assert edits >= 3


def test_a_foreign_result_may_hold_more_but_not_less() -> None:
    (example,) = examples("test-result")
    assert problems("test-result", {**example, "later": {"field": 1.5}}) == []
    assert [problem.message for problem in problems("test-result", changed(example, (), "result"))] == ["field 'result' is missing"]
    assert problems("test-result", {**example, "result": "FINE"})
