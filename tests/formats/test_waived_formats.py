"""A waived requirement in every format: shown as waived, and still red."""

import json
from xml.etree import ElementTree

import pytest

from countermark.attestations.codes import Code, Outcome, Severity
from countermark.attestations.errors import Location
from countermark.attestations.findings import Finding
from countermark.cli.formats import render
from countermark.cli.report import Check, Report

WAIVED = Finding(
    Code.EVIDENCE_EXPIRED,
    Outcome.FAIL,
    "measure it again",
    Severity.WARN,
    location=Location("policy.yaml", 10),
    subject=f"oci-config:sha256:{'a1' * 32}",
    waived_by="w-1@1 until 2026-12-05T00:00:00Z, approved by alice; OPS-77: the rig is down",
)
REPORT = Report(
    evaluated=2,
    of=2,
    findings=(WAIVED,),
    verdict="ALLOW",
    checks=(Check("image", "startup", Outcome.FAIL, (WAIVED,)), Check("image", "restore", Outcome.PASS)),
)


def test_sarif_suppresses_it_with_the_reason() -> None:
    (result,) = json.loads(render("sarif", "gate", REPORT))["runs"][0]["results"]
    (suppression,) = result["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert "approved by alice" in suppression["justification"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 10


def test_junit_stays_red() -> None:
    suite = ElementTree.fromstring(render("junit", "gate", REPORT).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find(".//failure")
    assert failure is not None
    assert "Waived by w-1@1" in str(failure.get("message"))


@pytest.mark.parametrize(("form", "told"), [("markdown", "✗ waived"), ("github", "::warning file=policy.yaml,line=10")])
def test_people_are_told(form: str, told: str) -> None:
    text = render(form, "gate", REPORT)
    assert told in text
    assert "aived by w-1@1" in text
