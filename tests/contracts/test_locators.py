"""Locators: values with their line, column and pointer; what is missing is said; what is not built is refused."""

import json

import pytest

from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.errors import InputError, Location
from countermark.attestations.located import JsonValue
from countermark.attestations.schema import schema_text
from countermark.contracts.locators.base import Absent, Found
from countermark.contracts.locators.markdown import Markdown
from countermark.contracts.locators.registry import LOCATORS, locator_for
from countermark.contracts.locators.structured import JsonPointers, YamlPointers

from .small_repository import COMMIT, SOURCE_SHA256

JSON = b"""{
  "a": {"b/c": ["x", 1, true, null, 1.5], "~": "t"},
  "ranks": [{"image": "i0"}, {"name": "n"}, {"image": "i2"}],
  "": 7
}"""


def found(pointer: str, data: bytes = JSON) -> list[tuple[JsonValue, int | None, int | None, str | None]]:
    parsed = JsonPointers().parse(data, "f.json").find(pointer)
    return [(it.value, it.at.line, it.at.column, it.at.pointer) for it in parsed if isinstance(it, Found)]


def absent(pointer: str, data: bytes = JSON) -> list[Location]:
    return [it.at for it in JsonPointers().parse(data, "f.json").find(pointer) if isinstance(it, Absent)]


def test_a_pointer_finds_a_value_and_its_place() -> None:
    assert found("/a/b~1c/0") == [("x", 2, 17, "/a/b~1c/0")]
    assert found("/a/~0") == [("t", 2, 48, "/a/~0")]
    assert found("/") == [(7, 4, 7, "/")]
    assert [value for value, *_ in found("")] == [
        {"a": {"b/c": ["x", 1, True, None, 1.5], "~": "t"}, "ranks": [{"image": "i0"}, {"name": "n"}, {"image": "i2"}], "": 7}
    ]


def test_types_stay_as_they_are_written() -> None:
    assert [value for value, *_ in found("/a/b~1c/*")] == ["x", 1, True, None, 1.5]
    assert [type(value) for value, *_ in found("/a/b~1c/*")] == [str, int, bool, type(None), float]


def test_a_star_stands_for_each_element_and_tells_which_one_has_nothing() -> None:
    assert [(value, pointer) for value, _, _, pointer in found("/ranks/*/image")] == [("i0", "/ranks/0/image"), ("i2", "/ranks/2/image")]
    assert [(at.line, at.pointer) for at in absent("/ranks/*/image")] == [(3, "/ranks/1/image")]
    assert [pointer for *_, pointer in found("/*/0")] == ["/ranks/0"]


@pytest.mark.parametrize(
    ("pointer", "line"),
    [("/b", 1), ("/a/x/y", 2), ("/ranks/3", 3), ("/ranks/-", 3), ("/ranks/01", 3), ("/ranks/-1", 3), ("/ranks/" + "9" * 5000, 3)],
)
def test_what_is_missing_stands_where_its_parent_does(pointer: str, line: int) -> None:
    assert found(pointer) == []
    assert [(at.line, at.pointer) for at in absent(pointer)] == [(line, pointer)]


def test_a_star_over_nothing_is_missing() -> None:
    assert [at.pointer for at in absent("/x/*", b'{"x": []}')] == ["/x/*"]


def test_yaml_keeps_text_that_other_readers_turn_into_numbers() -> None:
    data = b"commit: 1234567890123456789012345678901234567890\ntime: 12:30:45\non: off\nn: 5\n"
    page = YamlPointers().parse(data, "f.yaml")
    values = [it.value for it in page.find("/*") if isinstance(it, Found)]
    assert values == ["1234567890123456789012345678901234567890", "12:30:45", "off", 5]
    assert [it.at.line for it in page.find("/*")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b'{"a": 1,\n "a": 2}', Code.DUPLICATE_KEY, 2),
        (b'{"a":\n NaN}', Code.BAD_NUMBER, 2),
        (b"[" * 100_000, Code.TOO_LARGE, 1),
        (b'{"a":', Code.SCHEMA_INVALID, 1),
    ],
)
def test_a_file_that_two_readers_read_differently_is_refused_with_its_line(data: bytes, code: Code, line: int) -> None:
    with pytest.raises(InputError) as caught:
        JsonPointers().parse(data, "f.json")
    assert (caught.value.code, caught.value.at and caught.value.at.line) == (code, line)


def digests(text: str) -> list[str]:
    return [str(it.value) for it in Markdown().parse(text.encode(), "f.md").find("all-digests") if isinstance(it, Found)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"at `{COMMIT}`.", [COMMIT]),
        (f"engine@sha256:{SOURCE_SHA256} and /commit/{COMMIT}", [SOURCE_SHA256, COMMIT]),
        (f"in a name: engine-{COMMIT}.json", [COMMIT]),
        (COMMIT.upper(), [COMMIT.upper()]),
        (COMMIT[:-1], [COMMIT[:-1]]),
        (COMMIT + "0", [COMMIT + "0"]),
        ("1234567890" * 4, ["1234567890" * 4]),
        (COMMIT.replace("0", "O"), [COMMIT.replace("0", "O")]),
        ("see 5ec6a9953, then (5ec6a99) and `sha256:5ec6a9953ad5`…", ["5ec6a9953", "5ec6a99", "5ec6a9953ad5"]),
        ("the end is 5ec6a99.", ["5ec6a99"]),
        (f"{COMMIT[:20]}-{COMMIT[20:]}", [COMMIT[:20], COMMIT[20:]]),
        (f"# {COMMIT[:30]}\n# {COMMIT[30:]}", [COMMIT[:30], COMMIT[30:]]),
    ],
)
def test_digests_whole_cut_and_misspelt_are_found_in_prose(text: str, found: list[str]) -> None:
    assert digests(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "131072 tokens, 1048576 bytes, 20261201, deadbeef, defaced, DEADBEEF1",
        "550e8400-e29b-41d4-a716-446655440000",
        "version 0.1.dev20051+g487ecf187 of file-b00c6d4.json, b00c6d4.json, v1.2e3f4a5b",
        "0x1234abcd #ff00aa11 spark_5ec6a99",
        "c3VwZXJsb25nYmFzZTY0c3RyaW5ndGhhdGlzbm90aGV4YXRhbGw",
    ],
)
def test_numbers_words_versions_and_names_are_no_digests(text: str) -> None:
    assert digests(text) == []


def test_a_digest_in_prose_has_line_and_column() -> None:
    page = Markdown().parse(f"# T\r\n\r\nis `{COMMIT}`\r\n".encode(), "f.md")
    assert page.find("all-digests") == (Found(COMMIT, Location("f.md", 3, 5)),)
    assert Markdown().parse(b"", "f.md").find("all-digests") == (Absent(Location("f.md", 1)),)


def test_prose_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(InputError) as caught:
        Markdown().parse(b"a\nb\xff", "f.md")
    assert (caught.value.code, caught.value.at) == (Code.UNREADABLE, Location("f.md", 2))


@pytest.mark.parametrize("argument", ["no group", "(two) (groups)", "(", "(?P<open>"])
def test_a_regular_expression_has_one_group(argument: str) -> None:
    with pytest.raises(InputError, match="text: ") as caught:
        locator_for("text", argument, Location("c.yaml", 3))
    assert (caught.value.exit, caught.value.code, caught.value.at) == (ExitCode.INVALID, Code.UNSUPPORTED, Location("c.yaml", 3))


def test_the_registry_and_the_schema_know_the_same_locators() -> None:
    place = json.loads(schema_text("Contract"))["$defs"]["place"]
    assert {name for branch in place["oneOf"] for name in branch["required"]} == set(LOCATORS)
