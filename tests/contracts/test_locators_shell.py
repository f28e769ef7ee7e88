"""Shell scripts and Compose commands of which a part is known only when they run: never a guess, and never silence."""

import pytest

from countermark.attestations.errors import InputError
from countermark.contracts.locators.base import Absent, Found
from countermark.contracts.locators.registry import LOCATORS

A, B = "27dfe854627c6eb5f0908d84297772e96b883aaf", "17dfe854627c6eb5f0908d84297772e96b883aaf"


def read(text: str, flag: str = "--commit", locator: str = "args") -> list[object]:
    found = LOCATORS[locator].parse(text.encode(), "run.sh").find(flag)
    assert not any(isinstance(it, Absent) for it in found)
    return [it.value for it in found if isinstance(it, Found)]


@pytest.mark.parametrize(
    "between",
    [
        f"f() {{ local C={B}; }}",
        f"if true; then C={B}; fi",
        f"{{ C={B}; }}",
        f"while :; do C={B}; done",
        f"for C in {B}; do :; done",
        f"read C <<< {B}",
        f"printf -v C {B}",
        "unset C",
        ". ./env.sh",
        "source env.sh",
        'eval "$SETTINGS"',
        f"eval 'C={B}'",
        "(( C = 5 ))",
        "let C=5",
        f": ${{D:-{B}}}; C=$D",
        "C[0]=x",
        "declare C",
        f"test -f x && C={B}",
        f"C={B} true",
        f"function g {{ C={B}; }}",
    ],
)
def test_a_name_that_is_set_in_a_second_way_is_known_only_when_the_script_runs(between: str) -> None:
    with pytest.raises(InputError, match="known only when this runs"):
        read(f"C={A}\n{between}\nexec x --commit $C\n")
    with pytest.raises(InputError, match="known only when this runs"):
        read(f"C={A}\n{between}\nexec x --commit ${{C:-{A}}}\n")


@pytest.mark.parametrize("between", [f"C={A}", f"if true; then C={A}; fi", "export C", "(( C == 5 ))", "echo $C", 'test -n "$C"', "D=5"])
def test_a_name_that_keeps_its_value_is_known(between: str) -> None:
    assert read(f"C={A}\n{between}\nexec x --commit $C\n") == [A]


def test_a_default_that_is_assigned_where_a_name_is_empty_leaves_it_unknown() -> None:
    with pytest.raises(InputError, match="known only when this runs"):
        read(f"C={A}\n: ${{C:={B}}}\nexec x --commit $C\n")


@pytest.mark.parametrize(
    "between", ["(( y = 1 << N ))", "y=$((1<<N))", "cat <<<EOF", 'echo "<<E"', "cat <<'E-F'\n--commit C\nE-F", "cat <<\\E.2\n'\nE.2"]
)
def test_what_is_no_here_document_hides_nothing(between: str) -> None:
    assert read(f"x --commit {A}\n{between}\nexec x --commit {B}\n") == [A, B]


def test_a_here_document_that_never_ends_is_refused_where_it_begins() -> None:
    with pytest.raises(InputError, match="here-document <<E is not closed") as caught:
        read(f"x --commit {A}\ncat <<E\nx --commit {B}\n")
    assert caught.value.at
    assert (caught.value.at.line, caught.value.at.column) == (2, 5)


@pytest.mark.parametrize(
    "second",
    [
        f'bash -c "exec x --commit {B}"',
        f"nohup /bin/sh -ec 'exec x --commit {B}'",
        f'eval "exec x --commit {B}"',
        f"eval exec x --commit {B}",
        f"y=$(x --commit {B})",
        f'y="$(x --commit {B})"',
        f"y=`x --commit {B}`",
        f"sh <<E\nexec x --commit {B}\nE",
        f"cat <<E | bash\nexec x --commit {B}\nE",
        f"x --com'mit' {B}",
        f"diff <(x --commit {B}) y",
        f"bash -c \"bash -c 'x --commit {B}'\"",
    ],
)
def test_commands_inside_words_are_read(second: str) -> None:
    assert read(f"x --commit {A}\n{second}\n") == [A, B]


def test_a_value_inside_a_quoted_command_stands_where_it_is_written() -> None:
    found = LOCATORS["args"].parse(f'x\nbash -c "exec x --commit {B}"\n'.encode(), "run.sh").find("--commit")
    assert [(it.at.line, it.at.column) for it in found] == [(2, 26)]


@pytest.mark.parametrize(
    "second",
    [
        f'ARGS="--commit {B}"',
        f"F=--commit; x $F {B}",
        f"x --{{commit,}}={B}",
        f"ssh host 'x --commit {B}'",
        f"ssh host <<E\nx --commit {B}\nE",
        f"cat > y.sh <<E\nx --commit {B}\nE",
        f'echo "x --commit {B}" | sh',
        f'echo "x --commit {B}" > y.sh',
        f"x ${{X:+--commit {B}}}",
        "bash -c 'x --commit $C'",
    ],
)
def test_a_flag_in_a_word_that_is_no_option_is_an_error(second: str) -> None:
    with pytest.raises(InputError, match="known only when this runs"):
        read(f"x --commit {A}\n{second}\n")


@pytest.mark.parametrize("second", [f'echo "usage: x --commit {B}" >&2', "cat <<E\nx --commit HASH\nE", "# --commit", 'y="--commitment"'])
def test_what_only_people_see_is_no_option(second: str) -> None:
    assert read(f"x --commit {A}\n{second}\n") == [A]


def test_both_signs_between_words_are_one() -> None:
    assert read("x --max-len 1\nx --max_len 2\nx --max_len=3", "--max-len") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("service", "values"),
    [
        (f"{{command: 'sh -c \"exec x --commit {B}\"'}}", [A, B]),
        (f"{{command: [sh, -c, 'exec x --commit {B}']}}", [A, B]),
        (f"{{entrypoint: [sh, -c], command: ['exec x --commit {B}']}}", [A, B]),
        (f"{{entrypoint: x --commit, command: ['{B}']}}", [A, B]),
    ],
)
def test_texts_that_a_container_hands_to_a_shell_are_read(service: str, values: list[str]) -> None:
    assert read(f"services:\n  e: {{command: 'x --commit {A}'}}\n  f: {service}\n", locator="compose-args") == values


def test_a_flag_inside_an_item_of_a_compose_command_is_an_error() -> None:
    with pytest.raises(InputError, match="known only when this runs"):
        read(f"services:\n  e: {{command: [x, '--port 1 --commit {B}']}}\n", locator="compose-args")
