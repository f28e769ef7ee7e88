"""Status words in JSON and YAML records: of which image they are said, and for what."""

import pytest

from countermark.attestations.codes import Code, Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.contracts.claims.quoted import Quoted
from countermark.contracts.claims.reading import TextReading
from countermark.contracts.claims.records import read_record

ONE, TWO, NOBODY = "1f" * 32, "2e" * 32, "3d" * 32
CAPABILITIES = {"service.startup": None, "restore.correctness": None}


def meaning(quoted: Quoted) -> list[Digest]:
    return [Digest(DigestKind.OCI_CONFIG, hex_) for hex_ in (ONE, TWO) if hex_.startswith(quoted.hex)]


def read(text: str, path: str = "recipe.yaml") -> TextReading:
    return read_record(text.encode(), path, meaning, CAPABILITIES)


def said(text: str, path: str = "recipe.yaml") -> list[tuple[Status, str]]:
    return [(claim.status, claim.image.hex) for claim in read(text, path).claims]


@pytest.mark.parametrize(
    ("text", "images"),
    [
        (f"status: qualified\nimage: sha256:{ONE}\n", [ONE]),
        (f"status: Qualified\nruntime: {{image_id: engine@sha256:{ONE}}}\n", [ONE]),
        (f"status: qualified\nimage: {ONE}\nhistory: [{TWO}]\n", [ONE]),
        (f"status: qualified\nimage: {ONE}\nparent_image_id: {TWO}\n", [ONE]),
        (f"image: {ONE}\ncache: {{release_status: qualified}}\n", [ONE]),
        (f"image: {ONE}\nother: {{image: {TWO}, status: qualified}}\n", [TWO]),
        (f"ranks: [{{image: {ONE}}}, {{image: {TWO}}}]\nstatus: qualified\n", [ONE, TWO]),
        (f"status: qualified\nimage: {NOBODY}\n", []),
        (f"verdict: qualified\nimage: {ONE}\n", [ONE]),
        (f"release_state: QUALIFIED\nimage: {ONE}\n", [ONE]),
        (f"statusNow: qualified\nimage: {ONE}\n", [ONE]),
        (f"qualified: true\nimage: {ONE}\n", [ONE]),
        (f"isQualified: true\nimage: {ONE}\n", [ONE]),
        (f"production_qualified: true\nimage: {ONE}\n", [ONE]),
        (f"expected_status: qualified\nimage: {ONE}\n", []),
        (f"qualified: false\nimage: {ONE}\n", []),
        (f"not_qualified: true\nimage: {ONE}\n", []),
        (f"previously-qualified: true\nimage: {ONE}\n", []),
        (f"qualified: 1\nimage: {ONE}\n", []),
        (f"statute: qualified\nimage: {ONE}\n", []),
        (f"qualified_by: true\nimage: {ONE}\n", []),
        (f"status: verified\nimage: {ONE}\n", []),
        (f"note: qualified\nimage: {ONE}\n", []),
        (f"status: [qualified]\nimage: {ONE}\n", []),
    ],
)
def test_of_which_image_a_status_is_said(text: str, images: list[str]) -> None:
    assert said(text) == [(Status.QUALIFIED, image) for image in images]


@pytest.mark.parametrize(("name", "status"), [("research_only", Status.RESEARCH_ONLY), ("unqualified", Status.UNQUALIFIED)])
def test_a_status_word_that_is_true(name: str, status: Status) -> None:
    assert said(f"{name}: true\nimage: {ONE}\n") == [(status, ONE)]


def test_json_is_read_as_yaml_is() -> None:
    assert said(f'{{"image": "{ONE}", "status": "research-only"}}', "a.json") == [(Status.RESEARCH_ONLY, ONE)]


def test_the_capability_and_the_scope_of_the_object() -> None:
    text = f"image: {ONE}\nclaims:\n- status: qualified\n  capability: restore.correctness\n  topology: {{tp: 4, dcp: 1}}\n"
    (claim,) = read(text + "  scope: {context_tokens: [131072, 262144]}\n").claims
    assert claim.asks == (
        ("restore.correctness@context_tokens=131072,tp=4,dcp=1",),
        ("restore.correctness@context_tokens=262144,tp=4,dcp=1",),
    )
    assert (claim.at.line, claim.at.column, claim.at.pointer) == (3, 3, "/claims/0/status")


def test_a_record_that_names_no_image_says_nothing_whatever_it_is() -> None:
    assert read("{{ template }}\n--- : [") == TextReading("recipe.yaml", (), (), (), (), frozenset(), rejects_unnamed=False)


def test_a_record_that_names_an_image_and_cannot_be_read_is_a_mistake() -> None:
    (mistake,) = read(f"image: {ONE}\nimage: {TWO}\n").mistakes
    assert (mistake.code, mistake.at and mistake.at.line) == (Code.DUPLICATE_KEY, 2)


def test_an_image_that_a_record_calls_rejected() -> None:
    reading = read(f"image: {ONE}\nstatus: rejected\n")
    assert {image.hex for image in reading.rejects} == {ONE}
