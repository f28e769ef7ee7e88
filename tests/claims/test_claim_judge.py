"""What a text says beside what is derived: more is a finding, as much or less is none."""

from collections.abc import Mapping, Sequence

import pytest

from countermark.attestations.codes import Code, Outcome, Status
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.attestations.located import JsonValue
from countermark.contracts.claims.judge import judge
from countermark.contracts.claims.quoted import Quoted
from countermark.contracts.claims.reading import read_text
from countermark.contracts.decision import Result
from countermark.contracts.weighed import Weighed

GOOD, LAB, BAD, NEW = (Digest(DigestKind.OCI_CONFIG, byte * 32) for byte in ("a1", "b2", "c3", "d4"))
KNOWN = (GOOD, LAB, BAD)
CAPABILITIES = {"restore.correctness": 1, "decode.rate": 1}
PAYLOAD = Digest(DigestKind.PAYLOAD, "e5" * 32)
ANSWERS = {
    (GOOD, "restore.correctness"): (Status.QUALIFIED, Code.OK),
    (GOOD, "restore.correctness@tp=4"): (Status.QUALIFIED, Code.OK),
    (GOOD, "restore.correctness@tp=2"): (Status.UNSUPPORTED, Code.CAP_SCOPE),
    (GOOD, "decode.rate"): (Status.UNSUPPORTED, Code.CAP_NO_EVIDENCE),
    (LAB, "restore.correctness"): (Status.UNQUALIFIED, Code.CAP_FAILED),
    (LAB, "decode.rate"): (Status.RESEARCH_ONLY, Code.CAP_RESEARCH_ONLY),
}


def derive(image: Digest) -> Mapping[str, Result]:
    asks = [f"{name}{scope}" for name in CAPABILITIES for scope in ("", "@tp=4", "@tp=2")]
    unknown = (Status.UNQUALIFIED, Code.SUBJECT_UNKNOWN)
    default = (Status.REJECTED, Code.IMAGE_REJECTED) if image == BAD else unknown if image == NEW else (Status.UNSUPPORTED, Code.CAP_SCOPE)
    return {ask: result(*ANSWERS.get((image, ask), default)) for ask in asks}


def result(status: Status, code: Code) -> Result:
    fix = "" if code is Code.OK else "test it"
    evidence = (Weighed(1, PAYLOAD, "lab", used=True),)
    return Result("id", status, code, Outcome.FAIL, "it", "seen", Location("--require"), fix, evidence=evidence)


def recorded(digest: Digest, pointer: str) -> JsonValue:
    if digest != PAYLOAD:
        raise InputError(Code.REF_NOT_HERE, "nothing here", fix="record it")
    values: dict[str, JsonValue] = {"/seconds": 55.14106, "/name": "x"}
    return values[pointer]


def meaning(quoted: Quoted) -> Sequence[Digest]:
    found = [image for image in KNOWN if image.hex.startswith(quoted.hex)]
    return found or ([Digest(DigestKind.OCI_CONFIG, quoted.hex)] if quoted.whole and quoted.marked else [])


def findings(text: str) -> tuple[Finding, ...]:
    return judge(read_text(text.encode(), "README.md", meaning, CAPABILITIES), derive, recorded, KNOWN)


def codes(text: str) -> list[Code]:
    return [finding.code for finding in findings(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"{GOOD.hex} is qualified.",
        f"{GOOD.hex} is research-only.",
        f"{GOOD.hex} is implemented.",
        f"{GOOD.hex} is rejected.",
        f"{GOOD.hex} is qualified for restore correctness at TP4.",
        f"{GOOD.hex} is unsupported for restore correctness at TP2.",
        f"{LAB.hex} is research-only.",
        f"{LAB.hex} is research-only for decode rate.",
        f"{BAD.hex} is rejected.",
        f"sha256:{NEW.hex} is unqualified.",
        "Nothing of any image.",
    ],
)
def test_as_much_as_is_derived_or_less(text: str) -> None:
    assert findings(text) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{BAD.hex} is qualified.", Code.CLAIM_EXCEEDS),
        (f"{BAD.hex} is implemented.", Code.CLAIM_EXCEEDS),
        (f"{LAB.hex} is qualified.", Code.CLAIM_EXCEEDS),
        (f"{GOOD.hex} is qualified for decode rate.", Code.CLAIM_EXCEEDS),
        (f"{GOOD.hex} is qualified for restore correctness at TP2 and TP4.", Code.CLAIM_EXCEEDS),
        (f"{GOOD.hex} is qualified at TP2.", Code.CLAIM_EXCEEDS),
        (f"sha256:{NEW.hex} is qualified.", Code.CLAIM_EXCEEDS),
        (f"{LAB.hex} is qualified for restore correctness.", Code.CLAIM_TRANSFER),
        (f"{GOOD.hex} is research-only for decode rate.", Code.CLAIM_TRANSFER),
        (f"<!-- claim: qualified restore.correctness@tp=2 {GOOD} -->", Code.CLAIM_EXCEEDS),
        (f"<!-- claim: qualified restore.correctness@tp=4 {LAB} -->", Code.CLAIM_TRANSFER),
    ],
)
def test_more_than_is_derived(text: str, code: Code) -> None:
    (finding,) = findings(text)
    assert (finding.code, finding.outcome) == (code, Outcome.FAIL)
    assert finding.location is not None
    assert finding.location.line == 1


def test_a_finding_says_what_is_derived_and_why() -> None:
    (finding,) = findings(f"# A\n\nThe image {BAD.hex} is qualified.")
    assert str(finding.location).startswith("README.md:3:")
    assert finding.required == f"at most rejected, which is derived for {BAD} [IMAGE_REJECTED]: seen"
    assert (finding.observed, finding.subject, finding.evidence) == ("qualified", str(BAD), (str(PAYLOAD),))
    assert finding.fix == "write rejected, or earn the word: test it"


def test_a_claim_that_another_image_bears_names_it() -> None:
    (finding,) = findings(f"{LAB.hex} is qualified for restore correctness.")
    assert str(GOOD) in (finding.observed or "")
    assert finding.checker == "claim.no-transfer"


def test_a_rejected_image_is_called_so() -> None:
    (finding,) = findings(f"Run `engine@sha256:{BAD.hex}`.\n\n```\nrun {BAD.hex}\n```\n")
    assert (finding.code, finding.location) == (Code.IMAGE_REJECTED, Location("README.md", 1, 13))
    assert codes(f"Run {BAD.hex}.\n\nThe image {BAD.hex} is rejected.") == []
    assert codes(f"Run {BAD.hex}.\n\nThis candidate image is rejected.") == []
    assert codes(f"Run {BAD.hex}. {GOOD.hex} is rejected.") == [Code.IMAGE_REJECTED]


def test_a_slip_of_a_known_digest_is_one_finding() -> None:
    slip = GOOD.hex[:-1] + "0"
    (finding,) = findings(f"Run sha256:{slip}.")
    assert (finding.code, GOOD.hex in finding.fix) == (Code.SUBJECT_UNKNOWN, True)
    (claimed,) = findings(f"sha256:{slip} is qualified.")
    assert (claimed.code, str(GOOD) in claimed.fix) == (Code.CLAIM_EXCEEDS, True)
    assert codes(f"Run sha256:{NEW.hex}.") == []


def test_a_number_stands_where_it_is_recorded() -> None:
    assert codes(f"55.141 s <!-- claim: number {PAYLOAD}#/seconds -->") == []
    (finding,) = findings(f"55.2 s <!-- claim: number {PAYLOAD}#/seconds -->")
    assert (finding.code, finding.observed) == (Code.CLAIM_EXCEEDS, "55.2")
    assert "55.14106" in finding.fix
    assert codes(f"1 <!-- claim: number {PAYLOAD}#/name -->") == [Code.CLAIM_EXCEEDS]
    assert codes(f"1 <!-- claim: number payload:sha256:{'00' * 32}#/x -->") == [Code.REF_NOT_HERE]


def test_a_marker_that_cannot_be_read_is_an_error_and_the_rest_is_judged() -> None:
    found = findings(f"<!-- claim: best {GOOD} -->\n\n{BAD.hex} is qualified.")
    assert [(finding.code, finding.outcome) for finding in found] == [
        (Code.SCHEMA_INVALID, Outcome.ERROR),
        (Code.CLAIM_EXCEEDS, Outcome.FAIL),
    ]
