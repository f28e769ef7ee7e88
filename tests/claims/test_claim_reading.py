"""What a text says of images: which word of which image, in which capability and scope, and what says nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermark.attestations.codes import Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.contracts.claims.quoted import Quoted
from countermark.contracts.claims.reading import TextReading, read_text

ONE = Digest(DigestKind.OCI_CONFIG, "a1" * 32)
TWO = Digest(DigestKind.OCI_MANIFEST, "b2" * 32)
COMMIT = "c3" * 20
CAPABILITIES = {"service.startup": 1, "restore.correctness": 1, "restore.performance": 1, "prefix.shared-concurrent": 1}
ANY = tuple(CAPABILITIES)


def meaning(quoted: Quoted) -> Sequence[Digest]:
    return [image for image in (ONE, TWO) if image.hex.startswith(quoted.hex)]


def read(text: str) -> TextReading:
    return read_text(text.encode(), "README.md", meaning, CAPABILITIES)


def said(text: str) -> list[tuple[str, str]]:
    return [(str(claim.status), claim.image.hex[:2]) for claim in read(text).claims]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"The image sha256:{ONE.hex} is qualified.", [("qualified", "a1")]),
        (f"`{ONE}` is Qualified", [("qualified", "a1")]),
        ("a1a1a1a1… is research-only; b2b2b2b2 is rejected.", [("research-only", "a1"), ("rejected", "b2")]),
        (
            f"| image | status |\n|---|---|\n| {ONE.hex} | qualified |\n| {TWO.hex} | rejected |\n",
            [("qualified", "a1"), ("rejected", "b2")],
        ),
        (
            f"## {TWO.hex}\n\n| | {ONE.hex} | {TWO.hex} |\n|---|---|---|\n| a | qualified | rejected |\n| b | research-only | |\n",
            [("qualified", "a1"), ("rejected", "b2"), ("research-only", "a1")],
        ),
        (f"| what | status |\n|---|---|\n| {ONE.hex} \\| x | qualified |\n", [("qualified", "a1")]),
        (f"| a \\| b | {ONE.hex} |\n|---|---|\n| restore | qualified |\n", [("qualified", "a1")]),
        (f"Built from {COMMIT} the qualified image is\n{ONE.hex}.", [("qualified", "a1")]),
        (f"{ONE.hex} is not qualified.", []),
        (f"{ONE.hex} is not built here, but it is qualified.", [("qualified", "a1")]),
        (f"{ONE.hex} is not blocked any more and now qualified.", [("qualified", "a1")]),
        (f"{ONE.hex} runs without errors as a qualified build.", [("qualified", "a1")]),
        (f"{ONE.hex} runs without being qualified.", []),
        (f"{ONE.hex} is not tested and qualified.", []),
        (f"{ONE.hex} is unqualified.", [("unqualified", "a1")]),
        (f"{ONE.hex} is pre-qualified.", []),
        (f"{COMMIT} is qualified.", []),
        (f"It is qualified. {ONE.hex} is here.", []),
        (f"```\n{ONE.hex} qualified\n```\n", []),
        (f"<!-- {ONE.hex} is qualified -->\n", []),
        ("a1a1a1 is qualified.", []),
    ],
)
def test_a_word_is_said_of_the_image_nearest_to_it(text: str, wanted: list[tuple[str, str]]) -> None:
    assert said(text) == wanted


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("is qualified.", (ANY,)),
        ("is qualified for restore.correctness.", (("restore.correctness",),)),
        ("is qualified for restore correctness and service startup.", (("restore.correctness",), ("service.startup",))),
        (
            "is qualified for restore correctness at TP4/DCP1, C1 and 131,072 tokens.",
            (("restore.correctness@tp=4,dcp=1,concurrency=1,context_tokens=131072",),),
        ),
        (
            "is qualified for 131,072- and 262,144-token restore correctness.",
            (("restore.correctness@context_tokens=131072",), ("restore.correctness@context_tokens=262144",)),
        ),
        (
            "is qualified for prefix.shared-concurrent at C2, C8 and C16.",
            tuple((f"prefix.shared-concurrent@concurrency={n}",) for n in (2, 8, 16)),
        ),
        ("is qualified at TP2 with 7 draft tokens.", (tuple(f"{name}@tp=2,draft_tokens=7" for name in ANY),)),
        ("is qualified for restore.correctness with a 256-token logical geometry.", (("restore.correctness",),)),
        ("is qualified for unrestore.correctness-x.", (ANY,)),
    ],
)
def test_a_claim_is_asked_in_the_scope_that_its_sentence_names(text: str, asks: tuple[tuple[str, ...], ...]) -> None:
    (claim,) = read(f"{ONE.hex} {text}").claims
    assert claim.asks == asks
    assert claim.is_specific is (asks != (ANY,))


def test_a_scope_belongs_to_the_word_of_its_clause() -> None:
    text = (
        f"{ONE.hex} is not qualified for restore.performance at 262,144 tokens, only qualified for restore.correctness at 131,072 tokens."
    )
    (claim,) = read(text).claims
    assert claim.asks == (("restore.correctness@context_tokens=131072",),)
    both = read(f"At TP4, {ONE.hex} is qualified for service startup and research-only for restore performance at C1.").claims
    assert [claim.asks for claim in both] == [(("service.startup@tp=4",),), (("restore.performance@concurrency=1",),)]
    headed = read(f"{ONE.hex}, restore performance: research-only.").claims
    assert [claim.asks for claim in headed] == [(("restore.performance",),)]


def test_a_claim_stands_where_its_word_does() -> None:
    (claim,) = read(f"# Title\n\nThe image {ONE.hex}\n  is qualified.\n").claims
    assert (claim.at.line, claim.at.column) == (4, 6)


def test_an_abbreviation_of_two_images_speaks_of_both() -> None:
    both = [ONE, Digest(DigestKind.OCI_CONFIG, "a1" * 31 + "ff")]
    reading = read_text(b"a1a1a1a1 is qualified", "a.md", lambda quoted: both, CAPABILITIES)
    assert [claim.image for claim in reading.claims] == both


def test_images_are_named_in_code_too_and_once_each() -> None:
    reading = read(f"<!-- {TWO.hex} -->\n```\ndocker run x@sha256:{ONE.hex}\n```\n{ONE.hex}\n{COMMIT}\n")
    assert [(mention.images, mention.at.line) for mention in reading.mentions] == [((ONE,), 3)]


@pytest.mark.parametrize(
    ("text", "named", "unnamed"),
    [
        (f"{ONE.hex} is rejected.", {ONE}, False),
        (f"<!-- claim: rejected service.startup {ONE} -->", {ONE}, False),
        (f"{ONE.hex} is here.\n\nThe candidate image is rejected.", set(), True),
        (f"{ONE.hex} is here. Bad passwords are rejected.", set(), False),
        (f"{ONE.hex} is not rejected. The image is never rejected.", set(), False),
    ],
)
def test_what_a_text_calls_rejected(text: str, named: set[Digest], unnamed: bool) -> None:
    reading = read(text)
    assert (set(reading.rejects), reading.rejects_unnamed) == (named, unnamed)


def test_a_text_that_is_no_text_is_an_error() -> None:
    with pytest.raises(InputError):
        read_text(b"\xff\xfe", "a.md", meaning, CAPABILITIES)


PIECES = st.sampled_from(
    [
        "qualified",
        "rejected",
        "not ",
        ONE.hex,
        "a1a1a1a1",
        "\n\n",
        ". ",
        "| ",
        "```\n",
        "<!-- claim: ",
        " -->",
        "TP4/DCP1 ",
        "1,024 tokens ",
        "é",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join))
def test_no_text_crashes_the_reader(text: str) -> None:
    reading = read(text)
    lines = text.split("\n")
    for claim in reading.claims:
        assert claim.status in set(Status)
        assert claim.at.line is not None
        assert lines[claim.at.line - 1][(claim.at.column or 1) - 1 :].lower().startswith(str(claim.status))
