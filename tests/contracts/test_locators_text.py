"""Locators of sources without types: values with file, line and column, as the programs that read these files take them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError, Location
from countermark.contracts.locators.base import Absent, Found, Parsed
from countermark.contracts.locators.registry import LOCATORS

Spot = tuple[str, str | None]
"""A value and `file:line:column`."""


def spots(parsed: Parsed, argument: str) -> list[Spot]:
    return [(str(it.value), f"{it.at.file}:{it.at.line}:{it.at.column}") for it in parsed.find(argument) if isinstance(it, Found)]


def parsed(locator: str, text: str, path: str = "f", **beside: str) -> Parsed:
    return LOCATORS[locator].parse(text.encode(), path, {name.replace("dot", "."): data.encode() for name, data in beside.items()})


ENV = """\
# a comment
PLAIN=value # and its comment
export EXPORTED=a#b
EMPTY=
SINGLE='$PLAIN "x" # no comment'
DOUBLE="two \\"words\\" $PLAIN" # comment
NESTED=${PLAIN}-${MISSING:-default}
INHERITED
PLAIN=again
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("PLAIN", [("value", "f:2:7"), ("again", "f:9:7")]),
        ("EXPORTED", [("a#b", "f:3:17")]),
        ("EMPTY", [("", "f:4:7")]),
        ("SINGLE", [('$PLAIN "x" # no comment', "f:5:8")]),
        ("DOUBLE", [('two "words" value', "f:6:8")]),
        ("NESTED", [("value-default", "f:7:8")]),
        ("INHERITED", []),
        ("MISSING", []),
    ],
)
def test_environment_files(name: str, found: list[Spot]) -> None:
    assert spots(parsed("env", ENV), name) == found


def test_a_line_that_assigns_nothing_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parsed("env", "A=1\n- no\n")
    assert caught.value.at == Location("f", 2)


SCRIPT = """\
#!/bin/sh
# exec vllm --revision comment
REVISION=5ec6a99
export IMAGE="repo@sha256:1" PORT=${PORT:-8000}
if [ -n "$X" ]; then exec vllm serve "$MODEL" \\
    --revision "$REVISION" --port=$PORT --port "9000" \\
    --enable --json '{"a": "$x", "b": 1}' --twice 1 --twice 2; fi
ARGS=(--image "$IMAGE" --seed -1)
cat <<'END'
--revision in-a-document "unclosed
END
run --host "$(hostname)" --peer $1 --who "$UNKNOWN"
SWITCH=a
SWITCH=b
run --switch $SWITCH
"""


@pytest.mark.parametrize(
    ("flag", "found"),
    [
        ("--revision", [("5ec6a99", "f:3:10")]),
        ("--port", [("8000", "f:4:35"), ("9000", "f:6:48")]),
        ("--enable", [("true", "f:7:5")]),
        ("--json", [('{"a": "$x", "b": 1}', "f:7:21")]),
        ("--twice", [("1", "f:7:51"), ("2", "f:7:61")]),
        ("--image", [("repo@sha256:1", "f:4:14")]),
        ("--seed", [("-1", "f:8:31")]),
        ("--rev", []),
    ],
)
def test_flags_of_shell_scripts(flag: str, found: list[Spot]) -> None:
    assert spots(parsed("args", SCRIPT), flag) == found


@pytest.mark.parametrize("flag", ["--host", "--peer", "--who", "--switch"])
def test_what_only_a_run_would_show_is_an_error(flag: str) -> None:
    with pytest.raises(InputError, match="known only when this runs") as caught:
        parsed("args", SCRIPT).find(flag)
    assert caught.value.code is Code.UNSUPPORTED
    assert caught.value.at


@pytest.mark.parametrize(("text", "column"), [("run 'x", 5), ('run "x\n', 5), ("run $(x", 5), ('a "b" ${x', 7)])
def test_a_quote_that_is_not_closed_is_refused_where_it_begins(text: str, column: int) -> None:
    with pytest.raises(InputError, match="not closed") as caught:
        parsed("args", text)
    assert caught.value.at == Location("f", 1, column)


DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG BASE=registry.example/base@sha256:aa
ARG OPTIONAL
FROM --platform=linux/arm64 ${BASE} AS builder
ARG COMMIT="5ec6a99"
ENV PLACE=here
LABEL org.commit="${COMMIT}" \\
  # a comment in between
      org.words="two words" org.place=$PLACE
RUN <<END
FROM nowhere "
END
from BUILDER AS second
LABEL old value
FROM scratch
FROM other:latest
FROM second
"""


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("FROM", [("registry.example/base@sha256:aa", "f:2:10"), ("other:latest", "f:16:6")]),
        ("ARG BASE", [("registry.example/base@sha256:aa", "f:2:10")]),
        ("ARG OPTIONAL", []),
        ("ARG COMMIT", [("5ec6a99", "f:5:12")]),
        ("LABEL org.commit", [("5ec6a99", "f:5:12")]),
        ("LABEL org.words", [("two words", "f:9:17")]),
        ("LABEL org.place", [("here", "f:6:11")]),
        ("LABEL old", [("value", "f:14:11")]),
        ("LABEL none", []),
    ],
)
def test_dockerfiles(argument: str, found: list[Spot]) -> None:
    assert spots(parsed("dockerfile", DOCKERFILE), argument) == found


COMPOSE = """\
services:
  one:
    image: ${IMAGE:-fallback:1}
    command: >
      vllm serve --revision ${REVISION}
      --len 5 '--quoted=$REVISION'
    environment: {LEVEL: "${LEVEL-3}", BOTH: "a${LEVEL-3}", COST: $$5, NUMBER: 8}
    volumes:
      - ${NEEDED:?set it}:/model
  two:
    command: ["--revision", "${REVISION}", "--len=$$HOME"]
    entrypoint: [sh, -c, "exec v --len 9 --home $$HOME"]
"""


def compose(locator: str = "compose") -> Parsed:
    return parsed(locator, COMPOSE, "compose.yaml", dotenv="REVISION=abc\nIMAGE=\n")


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/services/one/image", [("fallback:1", "compose.yaml:3:5")]),
        ("/services/one/environment/LEVEL", [("3", "compose.yaml:7:19")]),
        ("/services/one/environment/BOTH", [("a3", "compose.yaml:7:40")]),
        ("/services/one/environment/COST", [("$5", "compose.yaml:7:61")]),
        ("/services/*/environment/NUMBER", [("8", "compose.yaml:7:72")]),
    ],
)
def test_compose_values_after_interpolation(pointer: str, found: list[Spot]) -> None:
    assert spots(compose(), pointer) == found


def test_a_value_from_the_environment_file_stands_there() -> None:
    page = parsed("compose", "a: ${REVISION}\nb: x${REVISION}\n", "compose.yaml", dotenv="# .\nREVISION=abc\n")
    assert spots(page, "/a") == [("abc", ".env:2:10")]
    assert spots(page, "/b") == [("xabc", "compose.yaml:2:1")]


def test_a_variable_that_is_required_and_not_set_costs_the_values_with_it_only() -> None:
    assert spots(compose(), "/services/one/environment/NUMBER")
    for pointer in ("/services/one/volumes/0", "/services/one"):
        with pytest.raises(InputError, match="NEEDED is not set: set it") as caught:
            compose().find(pointer)
        assert (caught.value.at and caught.value.at.line) == 9


@pytest.mark.parametrize(
    ("flag", "found"),
    [
        ("--revision", [("abc", ".env:1:10"), ("abc", ".env:1:10")]),
        ("--len", [("5", "compose.yaml:6:13"), ("$HOME", "compose.yaml:11:52"), ("9", "compose.yaml:12:40")]),
        ("--quoted", [("abc", ".env:1:10")]),
        ("--none", []),
    ],
)
def test_flags_in_compose_commands(flag: str, found: list[Spot]) -> None:
    assert spots(compose("compose-args"), flag) == found


def test_what_a_shell_in_a_container_would_expand_is_an_error() -> None:
    with pytest.raises(InputError, match="known only when this runs"):
        compose("compose-args").find("--home")


TOML = """\
top = 1 # one
[tool.sparkcache]
commit = "5ec6a99"
"quoted.key" = [1, {k = "v", l = 'w'},
  3]
[[tool.profile]]
name = "a"
when = 1979-05-27T07:32:00Z
[[tool.profile]]
name = \"\"\"b
c\"\"\"
sub.deep = true
[tool.profile.inner]
x = 1.5
"""


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/top", [("1", "f:1:1")]),
        ("/tool/sparkcache/commit", [("5ec6a99", "f:3:1")]),
        ("/tool/sparkcache/quoted.key/0", [("1", "f:4:17")]),
        ("/tool/sparkcache/quoted.key/1/l", [("w", "f:4:30")]),
        ("/tool/sparkcache/quoted.key/2", [("3", "f:5:3")]),
        ("/tool/profile/*/name", [("a", "f:7:1"), ("b\nc", "f:10:1")]),
        ("/tool/profile/0/when", [("1979-05-27T07:32:00+00:00", "f:8:1")]),
        ("/tool/profile/1/sub/deep", [("True", "f:12:1")]),
        ("/tool/profile/1/inner/x", [("1.5", "f:14:1")]),
    ],
)
def test_toml_pointers(pointer: str, found: list[Spot]) -> None:
    assert spots(parsed("toml", TOML), pointer) == found


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\na = 2\n", 2), ("a =", 1), ("x = 1\na = 99999999999999999999\n", 2), ("a = nan", 1), ("[a]\n[a]\n", 2)]
)
def test_toml_that_is_wrong_or_no_json_value_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parsed("toml", text)
    assert caught.value.at
    assert caught.value.at.line == line


SUMS = "aa  ./README.md\nBB *docs/a b.md\nSHA256 (x.bin) = cc\n\\dd  new\\nline\n\nee  README.md\n"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("README.md", [("aa", "f:1:1"), ("ee", "f:6:1")]),
        ("docs/a b.md", [("BB", "f:2:1")]),
        ("x.bin", [("cc", "f:3:18")]),
        ("new\nline", [("dd", "f:4:2")]),
        ("gone", []),
    ],
)
def test_checksum_lists(path: str, found: list[Spot]) -> None:
    assert spots(parsed("sums", SUMS), path) == found


def test_a_line_that_lists_nothing_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        parsed("sums", "aa  b\nsome words\n")
    assert caught.value.at == Location("f", 2)


def test_a_regular_expression_gives_its_group_line_by_line() -> None:
    text = "version: 1.2, version: 1.3\r\n\nversion: 2\n"
    assert spots(parsed("text", text), r"version: ([0-9.]+)") == [("1.2", "f:1:10"), ("1.3", "f:1:24"), ("2", "f:3:10")]
    assert parsed("text", text).find("(none)") == (Absent(Location("f", 1)),)


PAGE = """\
# Start

```console
$ docker logs --tail 120 \\
    rank0
it isn't a command
$ curl -f 'http://h:8/health'
```

<!-- claim: image=x
  status=qualified -->

```
don't
```

~~~bash
start --execute && generate
~~~

```python
run --no
```
"""


def test_the_commands_of_a_page_are_what_its_shell_blocks_show() -> None:
    assert spots(parsed("markdown", PAGE), "commands") == [
        ("docker logs --tail 120 rank0", "f:4:3"),
        ("curl -f http://h:8/health", "f:7:3"),
        ("start --execute", "f:18:1"),
        ("generate", "f:18:20"),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!--\n```sh\nhidden\n```\n-->\n```sh\nseen\n```\n", ["seen"]),
        ("<!-- one line --> more\n```sh\nseen\n```\n", ["seen"]),
        ("```sh\necho '<!--'\n```\n```sh\nseen\n```\n", ["echo <!--", "seen"]),
        ("<!--\n```sh\nhidden\n```\n", []),
    ],
)
def test_what_a_comment_hides_is_not_shown(text: str, shown: list[str]) -> None:
    assert [str(found.value) for found in parsed("markdown", text).find("commands") if isinstance(found, Found)] == shown


def test_the_claims_of_a_page_are_its_marked_comments() -> None:
    assert spots(parsed("markdown", PAGE), "claims") == [("image=x status=qualified", "f:10:13")]


ARGUMENTS = {
    "json": "/a/*",
    "yaml": "/a/*",
    "toml": "/a/*",
    "env": "A",
    "args": "--a",
    "compose": "/services/*",
    "compose-args": "--a",
    "dockerfile": "LABEL a",
    "markdown": "commands",
    "sums": "a",
    "text": "(a)",
}
SIGNS = st.text(alphabet="a=A-\"'`$\\{}[]():;#|&<>\n\t ~,.0@sSEFROMLBERVIC", max_size=60)


@given(st.sampled_from(sorted(ARGUMENTS)), SIGNS | st.binary(max_size=40))
def test_no_text_crashes_a_locator(name: str, data: str | bytes) -> None:
    raw = data.encode() if isinstance(data, str) else data
    with suppress(InputError):
        assert LOCATORS[name].parse(raw, "f").find(ARGUMENTS[name])


def test_every_locator_is_tried_by_random_texts() -> None:
    assert set(ARGUMENTS) == set(LOCATORS)
