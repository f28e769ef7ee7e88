"""Claim markers: what they may say, and what is refused with its line."""

import pytest

from countermark.attestations.codes import Code
from countermark.attestations.errors import InputError
from countermark.contracts.claims.markers import NumberMarker, StatusMarker, markers

IMAGE = f"oci-config:sha256:{'a1' * 32}"
PAYLOAD = f"payload:sha256:{'d4' * 32}"
CAPABILITIES = {"service.startup": 1, "restore.correctness": 1}


def only(text: str) -> StatusMarker | NumberMarker | InputError:
    (found,) = markers(text.encode(), "README.md", CAPABILITIES)
    return found


def test_a_status_is_claimed_in_the_grammar_of_the_gate() -> None:
    found = only(f"Fast.\n<!-- claim: qualified restore.correctness@tp=4,dcp=1,context_tokens=131072\n  {IMAGE} -->\n")
    assert isinstance(found, StatusMarker)
    assert (str(found.status), found.ask, str(found.image)) == (
        "qualified",
        "restore.correctness@tp=4,dcp=1,context_tokens=131072",
        IMAGE,
    )
    assert found.at.line == 2


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        ("anything at all", Code.SCHEMA_INVALID),
        (f"perfect service.startup {IMAGE}", Code.SCHEMA_INVALID),
        (f"qualified service.startup {IMAGE} {IMAGE}", Code.SCHEMA_INVALID),
        (f"qualified service.start {IMAGE}", Code.UNKNOWN_NAME),
        (f"qualified restore.correctness@tpp=4 {IMAGE}", Code.UNKNOWN_NAME),
        (f"qualified restore.correctness@tp=four {IMAGE}", Code.SCHEMA_INVALID),
        (f"qualified restore.correctness@topology=4x1 {IMAGE}", Code.SCHEMA_INVALID),
        ("qualified service.startup engine:latest", Code.TAG_NOT_DIGEST),
        (f"qualified service.startup file:sha256:{'a1' * 32}", Code.BAD_DIGEST),
        (f"number {PAYLOAD}", Code.SCHEMA_INVALID),
        (f"number {IMAGE}#/predicate", Code.SCHEMA_INVALID),
        (f"number {PAYLOAD}#predicate", Code.SCHEMA_INVALID),
        (f"number {PAYLOAD}#/predicate", Code.SCHEMA_INVALID),
    ],
)
def test_what_is_no_claim_is_refused_at_its_line(claim: str, code: Code) -> None:
    found = only(f"# Title\n\nNone <!-- claim: {claim} -->\n")
    assert isinstance(found, InputError)
    assert (found.code, found.at.line if found.at else None) == (code, 3)
    assert found.fix


@pytest.mark.parametrize(
    ("before", "written"),
    [
        ("took 55.141 s", "55.141"),
        ("all 813,068,464 bytes", "813,068,464"),
        ("C8 and TP4 at 131,072-token contexts", "131,072"),
        ("from 3 to -4, as measured", "-4"),
        ("12 of v1.2.3", "12"),
        ("| 20.5 |", "20.5"),
    ],
)
def test_a_number_is_the_last_before_its_marker(before: str, written: str) -> None:
    found = only(f"99 lines\n{before} <!-- claim: number {PAYLOAD}#/predicate/x --> 7\n")
    assert isinstance(found, NumberMarker)
    assert (found.written, found.pointer, str(found.digest)) == (written, "/predicate/x", PAYLOAD)


@pytest.mark.parametrize(
    ("written", "recorded", "equal"),
    [
        ("55.141", 55.14106, True),
        ("55.14", "55.14106", True),
        ("55.142", 55.14106, False),
        ("131,072", 131072, True),
        ("131,073", 131072, False),
        ("20.5", "20.45", True),
        ("20.4", "20.45", True),
        ("20", 19.6, True),
        ("0.00001", 1e-05, True),
        ("1", True, False),
        ("1", None, False),
        ("1", "one", False),
        ("1", [1], False),
    ],
)
def test_a_number_with_fewer_decimals_is_compared_as_rounded(written: str, recorded: object, equal: bool) -> None:
    found = only(f"{written} <!-- claim: number {PAYLOAD}#/x -->")
    assert isinstance(found, NumberMarker)
    assert found.equals(recorded) is equal  # type: ignore[arg-type]  # a parameter that is any JSON value
