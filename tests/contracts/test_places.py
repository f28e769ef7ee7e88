"""Places over a tree: values, gaps, and files that are read once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from countermark.attestations.codes import Code, Outcome
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.contracts.locators.registry import locator_for
from countermark.contracts.pins import Pin, ValueType, same, shown
from countermark.contracts.places import Resolver
from countermark.contracts.terms import Place

from .small_repository import COMMIT, MANIFEST, SOURCE_SHA256, MemoryTree

AT = Location("contract.yaml", 9)


def place(file: str, locator: str, argument: str, target: str = "p.commit", kind: ValueType | None = None) -> Place:
    return Place(file, locator_for(locator, argument, AT), argument, AT, target, kind)


@dataclass(frozen=True, slots=True)
class CountingTree:
    """Remembers what was read, and refuses one path."""

    inner: MemoryTree
    refused: str = ""
    read_paths: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        if path == self.refused:
            raise InputError(Code.UNREADABLE, "it leads out", at=Location(path), fix="move it")
        return self.inner.read(path)

    def glob(self, pattern: str) -> Sequence[str]:
        if "*" in pattern and pattern == self.refused:
            raise InputError(Code.UNREADABLE, "no listing", at=Location(pattern), fix="open the folder")
        return self.inner.glob(pattern)


def test_a_glob_gives_a_value_for_each_file_in_the_order_of_names() -> None:
    tree = MemoryTree({"p/b.json": b'{"c": 2}', "p/a.json": b'{"c": 1}', "p/c.txt": b"", "q/a.json": b'{"c": 3}'})
    found = Resolver(tree).resolve([place("p/*.json", "json", "/c")])
    assert [(it.value, it.at.file, it.at.pointer) for it in found.occurrences] == [(1, "p/a.json", "/c"), (2, "p/b.json", "/c")]
    assert found.gaps == ()


def test_a_place_without_a_file_is_found_in_the_contract() -> None:
    found = Resolver(MemoryTree({})).resolve([place("p/*.json", "json", "/c")])
    (gap,) = found.gaps
    assert (gap.finding.code, gap.finding.outcome, gap.finding.location) == (Code.NOTHING_EVALUATED, Outcome.NOT_RUN, AT)
    assert gap.finding.required == "a file that matches p/*.json"


def test_each_file_without_the_value_is_a_gap_of_its_own() -> None:
    tree = MemoryTree({"a.json": b'{"c": 1}', "b.json": b'{\n "d": 1}', "c.json": b'{"c": {}}'})
    found = Resolver(tree).resolve([place("?.json", "json", "/c")])
    assert [it.at.file for it in found.occurrences] == ["a.json", "c.json"]
    assert [gap.finding.location for gap in found.gaps] == [Location("b.json", 1, 1, "/c")]
    assert "contract.yaml:9" in found.gaps[0].finding.fix


def test_a_file_that_cannot_be_parsed_costs_its_own_places_only() -> None:
    tree = MemoryTree({"a.json": b'{"c":\n oops}', "b.json": b'{"c": 1}'})
    found = Resolver(tree).resolve([place("a.json", "json", "/c"), place("b.json", "json", "/c")])
    assert [it.at.file for it in found.occurrences] == ["b.json"]
    (gap,) = found.gaps
    assert (gap.finding.outcome, gap.finding.code) == (Outcome.ERROR, Code.SCHEMA_INVALID)
    assert gap.finding.location
    assert (gap.finding.location.file, gap.finding.location.line) == ("a.json", 2)


def test_a_file_that_cannot_be_read_is_an_error_with_its_name() -> None:
    tree = CountingTree(MemoryTree({"a.json": b"{}"}), refused="a.json")
    (gap,) = Resolver(tree).resolve([place("a.json", "json", "/c")]).gaps
    assert (gap.finding.outcome, gap.finding.location, gap.finding.fix) == (Outcome.ERROR, Location("a.json"), "move it")


def test_a_pattern_that_cannot_be_looked_up_is_an_error() -> None:
    (gap,) = Resolver(CountingTree(MemoryTree({}), refused="a/*")).resolve([place("a/*", "json", "/c")]).gaps
    assert (gap.finding.outcome, gap.finding.location, gap.finding.fix) == (Outcome.ERROR, Location("a/*"), "open the folder")


def test_a_file_is_read_once_for_all_its_places_also_when_it_is_bad() -> None:
    tree = CountingTree(MemoryTree({"a.json": b'{"c": 1, "d": 2}', "bad.json": b"{"}))
    places = [place(file, "json", pointer) for file in ("a.json", "bad.json") for pointer in ("/c", "/d")]
    found = Resolver(tree).resolve(places)
    assert tree.read_paths == ["a.json", "bad.json"]
    assert (len(found.occurrences), len(found.gaps)) == (2, 2)


def test_a_value_that_two_places_name_counts_once_a_pin() -> None:
    tree = MemoryTree({"a.json": b'{"c": 1}'})
    both = [
        place("a.json", "json", "/c"),
        place("*.json", "json", "/c"),
        place("*.json", "json", "/*"),
        place("a.json", "json", "/c", "p.tree"),
    ]
    assert [it.place.target for it in Resolver(tree).resolve(both).occurrences] == ["p.commit", "p.tree"]


def pin(value: object, kind: ValueType) -> Pin:
    assert isinstance(value, str | int)
    return Pin("p.x", value, kind, AT)


@pytest.mark.parametrize(
    ("value", "kind", "locator", "wanted", "expected"),
    [
        (COMMIT, ValueType.COMMIT, "json", None, COMMIT),
        (COMMIT, ValueType.COMMIT, "json", ValueType.REVISION, COMMIT),
        (MANIFEST, ValueType.MANIFEST, "json", ValueType.SHA256, MANIFEST.removeprefix("sha256:")),
        (SOURCE_SHA256, ValueType.SHA256, "yaml", ValueType.CONFIG, f"sha256:{SOURCE_SHA256}"),
        (MANIFEST, ValueType.MANIFEST, "markdown", None, MANIFEST.removeprefix("sha256:")),
        (256, ValueType.INT, "json", None, 256),
        (256, ValueType.INT, "json", ValueType.TEXT, "256"),
        ("256", ValueType.TEXT, "json", ValueType.INT, 256),
        (True, ValueType.BOOL, "json", ValueType.TEXT, "true"),
        ("false", ValueType.TEXT, "json", ValueType.BOOL, False),
    ],
)
def test_the_type_of_a_place_says_how_the_pin_is_spelled_there(
    value: object, kind: ValueType, locator: str, wanted: ValueType | None, expected: object
) -> None:
    argument = "all-digests" if locator == "markdown" else "/x"
    spelled = place("f", locator, argument, kind=wanted).expected(pin(value, kind))
    assert (type(spelled), spelled) == (type(expected), expected)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (COMMIT, ValueType.COMMIT, ValueType.SHA256),
        (COMMIT, ValueType.COMMIT, ValueType.MANIFEST),
        (256, ValueType.INT, ValueType.BOOL),
        (256, ValueType.INT, ValueType.COMMIT),
        ("2 56", ValueType.TEXT, ValueType.INT),
        (True, ValueType.BOOL, ValueType.INT),
    ],
)
def test_a_type_that_cannot_say_the_value_is_refused(value: object, kind: ValueType, wanted: ValueType) -> None:
    with pytest.raises(InputError):
        place("f", "json", "/x", kind=wanted).expected(pin(value, kind))


def test_values_are_the_same_in_type_and_content_only() -> None:
    assert same({"a": [1, {"b": None}], "c": "x"}, {"c": "x", "a": [1, {"b": None}]})
    scalars: list[tuple[JsonValue, JsonValue]] = [(1, True), (0, False), (1, 1.0), ("1", 1), (None, False), ("a", "b")]
    nested: list[tuple[JsonValue, JsonValue]] = [([], {}), ([1], [1, 2]), ({"a": 1}, {"a": 1.0}), ({"a": 1}, {"b": 1})]
    assert not [pair for pair in (*scalars, *nested) if same(*pair)]


def test_values_are_shown_short_and_with_their_type_unless_text() -> None:
    assert (shown("x"), shown(5), shown(True), shown(None)) == ("x", "5 (an integer)", "true (a boolean)", "null (no value)")
    assert len(shown("x" * 10_000)) < 200
