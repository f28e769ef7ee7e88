"""Strict JSON: what is refused, and where it is said to be."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations import jsontext
from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.attestations.located import JsonValue

REFUSED = [
    pytest.param(b'{"a": 1,\n "a": 2}', Code.DUPLICATE_KEY, (2, 2), "/a", id="duplicate key"),
    pytest.param(b'{"x": {"a": 1, "a": 2}}', Code.DUPLICATE_KEY, (1, 16), "/x/a", id="nested duplicate"),
    pytest.param(b'{"a":\n NaN}', Code.BAD_NUMBER, (2, 2), "/a", id="NaN"),
    pytest.param(b"[-Infinity]", Code.BAD_NUMBER, (1, 2), "/0", id="infinity"),
    pytest.param(b"[1e400]", Code.BAD_NUMBER, (1, 2), "/0", id="beyond a double"),
    pytest.param(b"[9007199254740992]", Code.BAD_NUMBER, (1, 2), "/0", id="2^53"),
    pytest.param(b"[" + b"1" * 5000 + b"]", Code.BAD_NUMBER, (1, 2), "/0", id="5,000 digits"),
    pytest.param(b"[" * 100_000, Code.TOO_LARGE, (1, 65), None, id="100,000 deep"),
    pytest.param(b"[" * 65 + b"]" * 65 + b" ", Code.TOO_LARGE, (1, 65), None, id="65 deep"),
    pytest.param(b'["\\ud800"]', Code.SCHEMA_INVALID, (1, 2), None, id="lone surrogate"),
    pytest.param(b'{"a": 1', Code.SCHEMA_INVALID, (1, 8), None, id="truncated"),
    pytest.param(b"[01]", Code.SCHEMA_INVALID, (1, 3), None, id="leading zero"),
    pytest.param(b"[1,]", Code.SCHEMA_INVALID, (1, 4), "/1", id="trailing comma"),
    pytest.param(b"{} x", Code.SCHEMA_INVALID, (1, 4), None, id="something behind"),
    pytest.param(b'"a\nb"', Code.SCHEMA_INVALID, (1, 1), None, id="raw newline in a string"),
    pytest.param(b"", Code.SCHEMA_INVALID, (1, 1), None, id="empty"),
    pytest.param(b'{"a": 1,\n"b\xff": 2}', Code.UNREADABLE, (2, None), None, id="not UTF-8"),
    pytest.param(b"\xef\xbb\xbf{}", Code.UNREADABLE, (1, None), None, id="byte order mark"),
]


@pytest.mark.parametrize(("data", "code", "place", "pointer"), REFUSED)
def test_refuses_and_says_where(data: bytes, code: Code, place: tuple[int, int | None], pointer: str | None) -> None:
    with pytest.raises(InputError) as caught:
        jsontext.loads(data, "f.json")
    at = caught.value.at
    assert (caught.value.code, at and at.file, at and (at.line, at.column)) == (code, "f.json", place)
    assert caught.value.fix
    if pointer:
        assert at
        assert at.pointer == pointer


def test_64_deep_is_read() -> None:
    data = b"[" * 64 + b"1" + b"]" * 64
    assert jsontext.loads(data, "f") == jsontext.loads_located(data, "f").value


def test_a_limit_is_a_limit() -> None:
    assert jsontext.loads(b"[1]", "f", limit=3) == [1]
    with pytest.raises(InputError, match="TOO_LARGE"):
        jsontext.loads(b"[1] ", "f", limit=3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_both_readers_agree_with_the_library(value: JsonValue, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert jsontext.loads(data, "f") == jsontext.loads_located(data, "f").value == json.loads(data)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0123456789.eE+-nulltrfas \\u\n', max_size=40).map(str.encode))
def test_junk_is_an_input_error_or_what_the_library_reads(data: bytes) -> None:
    try:
        value = jsontext.loads(data, "f")
    except InputError:
        return
    assert value == json.loads(data)


def test_every_value_has_its_place() -> None:
    located = jsontext.loads_located(b'{"a":\n  [1, {"b/c": 2}]}', "f")
    assert str(located.at("/a/1/b~1c")) == "f:2:15 /a/1/b~1c"
    assert located.at("/a/9").line == 2, "a missing value is where its parent is"
