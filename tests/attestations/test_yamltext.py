"""Strict YAML: a scalar is what it looks like; places are kept; nothing grows without bound."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations import yamltext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue

COMMIT = "1234567890" * 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (COMMIT, COMMIT),
        ("on", "on"),
        ("no", "no"),
        ("12:30:45", "12:30:45"),
        ("2026-12-01", "2026-12-01"),
        ("0x1f", "0x1f"),
        ("0123", "0123"),
        ("1_000", "1_000"),
        (".5", ".5"),
        ("~", None),
        ("", None),
        ("true", True),
        ("-7", -7),
        ("9007199254740993", "9007199254740993"),
        ("1.5", 1.5),
        ('"1"', "1"),
        ("'true'", "true"),
    ],
)
def test_a_scalar_is_what_it_looks_like(text: str, value: JsonValue) -> None:
    found = yamltext.loads_located(f"a: {text}\n".encode(), "f").value
    assert found == {"a": value}
    assert isinstance(found, dict)
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"a: 1\nb: 2\na: 3\n", Code.DUPLICATE_KEY, 3),
        (b"a: 1\n---\nb: 2\n", Code.SCHEMA_INVALID, 2),
        (b"a: [1\n", Code.SCHEMA_INVALID, 2),
        (b"a: 1\nb: *nothing\n", Code.SCHEMA_INVALID, 2),
        (b"? [1]\n: 2\n", Code.SCHEMA_INVALID, 1),
        (b"- " * 100_000, Code.TOO_LARGE, 1),
        (b"a: 1\n\xe9: 2\n", Code.UNREADABLE, 2),
    ],
)
def test_refuses_and_says_where(data: bytes, code: Code, line: int) -> None:
    with pytest.raises(InputError) as caught:
        yamltext.loads_located(data, "f.yaml")
    assert (caught.value.code, caught.value.at and caught.value.at.line) == (code, line)


def test_flow_nesting_is_bounded() -> None:
    with pytest.raises(InputError):
        yamltext.loads_located(b"[" * 100_000, "f")


def test_aliases_cannot_multiply_without_bound() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="TOO_LARGE"):
        yamltext.loads_located("\n".join(lines).encode(), "f")


def test_merge_keys_work_as_in_compose_files() -> None:
    value = yamltext.loads_located(b"base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\n", "f").value
    assert value == {"base": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}


def test_places() -> None:
    located = yamltext.loads_located(b"a:\n  - b: 1\n    c: 2\n", "f")
    assert str(located.at("/a/0/c")) == "f:3:5 /a/0/c"


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "ignore")))
def test_junk_never_crashes(data: bytes) -> None:
    with suppress(InputError):
        yamltext.loads_located(data, "f")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x\n", Code.DUPLICATE_KEY, 4),
        ("a: 1\nb: !!binary AAAA\n", Code.UNSUPPORTED, 2),
        ("a: !env HOME\n", Code.UNSUPPORTED, 1),
        ("a: !!python/name:os.system x\n", Code.UNSUPPORTED, 1),
        ("a: !reset {}\n", Code.UNSUPPORTED, 1),
        ("a: !!int x\n", Code.UNSUPPORTED, 1),
        ("a: 1\nb: x\0y\n", Code.UNREADABLE, 2),
    ],
)
def test_what_two_readers_could_take_in_two_ways_is_refused_at_its_line(text: str, code: Code, line: int) -> None:
    with pytest.raises(InputError) as caught:
        yamltext.loads_located(text.encode(), "f")
    assert caught.value.code is code
    assert caught.value.at
    assert caught.value.at.line == line


def test_tags_of_the_core_schema_mean_what_they_say() -> None:
    found = yamltext.loads_located(b"a: !!str 1\nb: !!int 1\nc: !!map {}\nd: ! 1\ne: !!bool true\nf: !!null ~\n", "f").value
    assert found == {"a": "1", "b": 1, "c": {}, "d": "1", "e": True, "f": None}
