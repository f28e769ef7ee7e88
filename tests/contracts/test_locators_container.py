"""Dockerfiles and Compose files: what else has a say in what is built or runs is read, or it is an error."""

import pytest

from countermark.attestations.errors import InputError
from countermark.contracts.locators.base import Absent, Found
from countermark.contracts.locators.registry import LOCATORS

A, B = "27dfe854627c6eb5f0908d84297772e96b883aaf", "17dfe854627c6eb5f0908d84297772e96b883aaf"


def dockerfile(text: str, argument: str = "ARG C") -> list[object]:
    found = LOCATORS["dockerfile"].parse(text.encode(), "Dockerfile").find(argument)
    return [it.value for it in found if isinstance(it, Found)]


@pytest.mark.parametrize(
    "between",
    [
        "RUN echo $((1<<N))",
        "RUN cat <<<EOF",
        'RUN echo "<<E"',
        "RUN cat '<<EOF'",
        'RUN <<"E-F"\nARG C=no\nE-F',
        "run cat <<-E.1\n\tARG C=no\n\tE.1",
        "ADD <<A <<B /x/\nARG C=no\nA\nARG C=no\nB",
    ],
)
def test_what_is_no_here_document_of_a_dockerfile_hides_nothing(between: str) -> None:
    assert dockerfile(f"FROM scratch\nARG C={A}\n{between}\nARG C={B}\n") == [A, B]


def test_a_here_document_of_a_dockerfile_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="<<EOF is not closed"):
        dockerfile(f"FROM scratch\nARG C={A}\nRUN cat <<EOF\nARG C={B}\n EOF\n")


def test_an_empty_line_does_not_end_a_continued_instruction() -> None:
    assert dockerfile(f"FROM scratch\nARG X=1 \\\n\n C={B}\nARG C={A}\n") == [B, A]


def test_a_stage_has_what_its_base_has_and_a_variable_hides_an_argument() -> None:
    text = f"FROM scratch AS a\nENV C={B}\nARG D={B}\nFROM a\nARG C={A}\nLABEL c=$C d=$D\n"
    assert dockerfile(text, "LABEL c") == [B]
    assert dockerfile(text, "LABEL d") == [B]


def test_a_byte_order_mark_hides_no_line() -> None:
    assert dockerfile(f"\ufeffARG C={B}\nFROM scratch\nARG C={A}\n") == [B, A]


def test_a_label_that_the_last_stage_does_not_have_is_no_label_of_the_image() -> None:
    first = f"FROM scratch AS a\nLABEL c={A}\n"
    assert dockerfile(f"{first}FROM scratch\n", "LABEL c") == []
    assert dockerfile(f"{first}FROM a AS b\nFROM b\n", "LABEL c") == [A]
    assert dockerfile(f"{first}FROM scratch\nLABEL c={B}\n", "LABEL c") == [A, B]


def compose(text: str, argument: str = "/services/e/labels/c", locator: str = "compose", **beside: str) -> list[object]:
    names = {"env": ".env", "override": "compose.override.yaml"}
    others = {names[name]: content.encode() for name, content in beside.items()}
    found = LOCATORS[locator].parse(text.encode(), "compose.yaml", others).find(argument)
    return [it.value for it in found if not isinstance(it, Absent)]


def labelled(value: str) -> str:
    return f'services:\n  e: {{labels: {{c: "{value}"}}}}\n'


def test_the_default_of_a_name_that_is_set_counts_beside_it_where_it_differs() -> None:
    assert compose(labelled(f"${{C:-{B}}}"), env=f"C={A}") == [A, B]
    assert compose(labelled(f"${{C:-{A}}}"), env=f"C={A}") == [A]
    assert compose(labelled(f"${{C-{B}}}")) == [B]


def test_a_default_in_a_command_counts_too() -> None:
    text = f"services:\n  e: {{command: 'x --commit ${{C:-{B}}}'}}\n"
    assert compose(text, "--commit", "compose-args", env=f"C={A}") == [A, B]
    assert compose(f"services:\n  e: {{command: [sh, -c, 'x --commit ${{C:-{B}}}']}}\n", "--commit", "compose-args", env=f"C={A}") == [A, B]


def test_what_an_override_says_counts_beside_the_file() -> None:
    assert compose(labelled(A), override=labelled(B)) == [A, B]
    assert compose("services: {e: {image: x}}", override=labelled(B)) == [B]
    assert compose(labelled(A), override="services: {f: {image: x}}") == [A]
    command = "services:\n  e: {command: 'x --commit "
    assert compose(f"{command}{A}'}}\n", "--commit", "compose-args", override=f"{command}{B}'}}\n") == [A, B]


def test_the_override_and_the_environment_file_are_asked_for() -> None:
    groups = LOCATORS["compose"].companions("deploy/compose.yaml")
    assert groups[0] == ["deploy/.env", "deploy/.env.example"]
    assert "deploy/docker-compose.override.yml" in groups[1]
    assert "deploy/compose.override.yaml" in groups[1]
    assert LOCATORS["compose"].companions("deploy/compose.prod.yaml")[1] == []


def test_files_that_are_merged_by_name_and_tags_that_reset_are_errors() -> None:
    with pytest.raises(InputError, match="COMPOSE_FILE merges") as caught:
        compose(labelled(A), env="X=1\nCOMPOSE_FILE=compose.yaml:o.yaml")
    assert caught.value.at
    assert (caught.value.at.file, caught.value.at.line) == (".env", 2)
    assert compose(labelled(A), env="COMPOSE_FILE=compose.yaml") == [A]
    with pytest.raises(InputError, match="tag !reset"):
        compose(labelled(A), override="services: {e: {labels: !reset {}}}")
