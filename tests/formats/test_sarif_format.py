"""SARIF 2.1.0: the shape that the standard demands of what we write, and what code scanning demands beyond it."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from hypothesis import given, settings
from jsonschema import Draft202012Validator

from countermark.attestations.codes import Code, ExitCode, Outcome
from countermark.attestations.errors import InputError, Location
from countermark.attestations.findings import Finding
from countermark.cli.formats import render
from countermark.cli.report import Report

from .some_reports import DRIFTED, FAILED, GOOD, REPORTS

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}, "additionalProperties": False}
REGION = {
    "type": "object",
    "required": ["startLine"],
    "properties": {"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
ARTIFACT = {
    "type": "object",
    "required": ["uri"],
    "properties": {"uri": {"type": "string", "minLength": 1}, "uriBaseId": {"const": "%SRCROOT%"}},
    "additionalProperties": False,
}
PHYSICAL = {
    "type": "object",
    "required": ["artifactLocation", "region"],
    "properties": {"artifactLocation": ARTIFACT, "region": REGION},
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["physicalLocation"],
                "properties": {"physicalLocation": PHYSICAL},
                "additionalProperties": False,
            },
        },
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "properties": {"type": "object"},
    },
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "fullDescription", "help"],
    "properties": {"id": {"type": "string"}, "shortDescription": TEXT, "fullDescription": TEXT, "help": TEXT},
    "additionalProperties": False,
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "informationUri": {"type": "string", "format": "uri"},
        "rules": {"type": "array", "uniqueItems": True, "items": RULE},
    },
    "additionalProperties": False,
}
RUN = {
    "type": "object",
    "required": ["tool", "results"],
    "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}, "additionalProperties": False},
        "automationDetails": {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "invocations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["executionSuccessful"],
                "properties": {"executionSuccessful": {"type": "boolean"}, "exitCode": {"type": "integer"}},
                "additionalProperties": False,
            },
        },
        "results": {"type": "array", "items": RESULT},
    },
    "additionalProperties": False,
}
LOG = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": RUN},
    },
    "additionalProperties": False,
}
"""The members that we write, as sections 3.13 to 3.49 of the standard define them; no other may appear."""


def run_of(report: Report, command: str = "verify contract") -> Any:
    log = json.loads(render("sarif", command, report))
    assert list(Draft202012Validator(LOG).iter_errors(log)) == []
    return log["runs"][0]


@settings(deadline=None)
@given(REPORTS)
def test_every_report_has_the_shape_and_each_result_its_rule(report: Report) -> None:
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert len(run["results"]) == len(report.told)


@settings(deadline=None)
@given(REPORTS)
def test_every_uri_is_one(report: Report) -> None:
    for result in run_of(report)["results"]:
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        uri = artifact["uri"]
        assert uri.isascii()
        assert urlsplit(uri).scheme == ("" if "uriBaseId" in artifact else "file")


def test_the_place_is_that_of_the_finding() -> None:
    (result,) = run_of(FAILED)["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "profiles/dflash.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 4, "startColumn": 3},
    }
    assert (result["ruleId"], result["level"]) == ("pins.agree", "error")
    assert "8 of 9 places" in result["message"]["text"]


def test_what_is_in_no_file_has_a_place_all_the_same() -> None:
    option = replace(DRIFTED, location=Location("--require restore@tp=4"))
    image = replace(DRIFTED, location=None, subject="oci-config:sha256:ab")
    places = [result["locations"][0]["physicalLocation"] for result in run_of(Report(ExitCode.NO, findings=(option, image)))["results"]]
    assert [unquote(place["artifactLocation"]["uri"]) for place in places] == ["--require restore@tp=4", "oci-config:sha256:ab"]
    assert [place["region"] for place in places] == [{"startLine": 1}, {"startLine": 1}]


def test_a_yes_has_an_empty_list_of_results() -> None:
    run = run_of(GOOD)
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]


def test_an_error_is_a_result_at_its_place_and_no_success() -> None:
    error = InputError(Code.DUPLICATE_KEY, "a key stands twice", at=Location("contract.yaml", 7, 3), fix="keep one")
    run = run_of(Report.of_error(error))
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 7, "startColumn": 3}
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 3}]


def test_a_finding_keeps_its_fingerprint_when_lines_move() -> None:
    def fingerprint(finding: Finding) -> str:
        (result,) = run_of(Report(ExitCode.NO, findings=(finding,)))["results"]
        (value,) = result["partialFingerprints"].values()
        return str(value)

    moved = replace(DRIFTED, location=Location("profiles/dflash.yaml", 40, 3, "/source/commit"))
    elsewhere = replace(DRIFTED, location=Location("profiles/mtp.yaml", 4, 3, "/source/commit"))
    assert fingerprint(DRIFTED) == fingerprint(moved) != fingerprint(elsewhere)


def test_commands_do_not_close_the_alerts_of_each_other() -> None:
    assert run_of(GOOD, "verify claims")["automationDetails"] != run_of(GOOD)["automationDetails"]


def test_a_rule_is_told_in_the_sentence_of_its_checker() -> None:
    found = (DRIFTED, replace(DRIFTED, checker=None, code=Code.UNREADABLE, outcome=Outcome.ERROR))
    rules = run_of(Report(ExitCode.NO, findings=found))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["pins.agree", "UNREADABLE"]
    assert rules[0]["shortDescription"]["text"].startswith("Every place holds")
