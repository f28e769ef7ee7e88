"""`-o FORMAT[=PATH]` through the whole program: a yes, a no, and a command that cannot answer."""

import json
from pathlib import Path

import pytest
from program import Program

from countermark.recorders.junit import read_report

COMMIT = "5ec6a9953ad5d39120298bbfc26e95a6fa4b1dc3"
CONTRACT = f"""\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {{id: small, version: 1}}
spec:
  pins: {{engine: {{commit: "{COMMIT}"}}}}
  places:
    - {{file: pins.json, json: /commit, is: engine.commit}}
    - {{file: lock.json, json: /commit, is: engine.commit}}
  invariants: [{{id: pins-agree, check: pins.agree}}]
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "contract.yaml").write_text(CONTRACT)
    for name in ("pins.json", "lock.json"):
        (folder / name).write_text(json.dumps({"commit": COMMIT}))
    return Program(folder, tmp_path / "state")


FILES = ("-o", "sarif=a.sarif", "-o", "junit=a.xml", "-o", "markdown=a.md", "-o", "github=a.log", "-o", "json")


def test_every_format_of_a_no(program: Program) -> None:
    (program.folder / "lock.json").write_text(json.dumps({"commit": COMMIT[:-1] + "0"}))
    done = program("verify", "contract", "contract.yaml", *FILES)
    assert (done.code, done.json["verdict"], len(done.json["findings"])) == (1, "FAIL", 1)
    (result,) = json.loads((program.folder / "a.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "lock.json"
    assert [bool(case.failed) for case in read_report((program.folder / "a.xml").read_bytes(), "a.xml")] == [True]
    assert "lock.json:1" in (program.folder / "a.md").read_text()
    assert (program.folder / "a.log").read_text().startswith("::error file=lock.json,line=1,")


def test_every_format_of_a_yes(program: Program) -> None:
    done = program("verify", "contract", "contract.yaml", *FILES)
    assert (done.code, done.json["verdict"]) == (0, "OK")
    assert json.loads((program.folder / "a.sarif").read_text())["runs"][0]["results"] == []
    assert [bool(case.failed) for case in read_report((program.folder / "a.xml").read_bytes(), "a.xml")] == [False]


def test_every_format_of_an_error(program: Program) -> None:
    (program.folder / "contract.yaml").write_text(CONTRACT.replace("pins.agree", "pins.agre"))
    done = program("verify", "contract", "contract.yaml", *FILES)
    assert (done.code, done.json["verdict"]) == (3, "INVALID")
    assert "did you mean 'pins.agree'?" in done.err
    (result,) = json.loads((program.folder / "a.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 9
    assert [bool(case.failed) for case in read_report((program.folder / "a.xml").read_bytes(), "a.xml")] == [True]
    assert "UNKNOWN\\_NAME" in (program.folder / "a.md").read_text()


def test_the_page_of_a_github_step_is_appended_to(program: Program, tmp_path: Path) -> None:
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    for _ in range(2):
        done = program("verify", "contract", "contract.yaml", "-o", "github", GITHUB_STEP_SUMMARY=str(page))
        assert done.code == 0
    assert page.read_text().startswith("before\n### OK")
    assert page.read_text().count("### OK") == 2
    assert program("verify", "contract", "contract.yaml", "-o", "markdown", GITHUB_STEP_SUMMARY=str(page)).code == 0
    assert page.read_text().count("### OK") == 2


def test_a_page_that_cannot_be_written_is_told(program: Program, tmp_path: Path) -> None:
    done = program("verify", "contract", "contract.yaml", "-o", "github", GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "page.md"))
    assert (done.code, "Traceback" in done.err) == (3, False)
    assert "page.md" in done.err


def test_a_command_offers_only_what_it_has(program: Program) -> None:
    done = program("verify", "trust", "trust.yaml", "-o", "sarif")
    assert (done.code, "this command prints text, json" in done.err) == (2, True)


def test_control_characters_of_a_file_do_not_reach_a_terminal(program: Program) -> None:
    (program.folder / "lock.json").write_text(json.dumps({"commit": "\x1b[2J\n::error::forged"}))
    done = program("verify", "contract", "contract.yaml")
    assert done.code == 1
    assert "\x1b" not in done.out
    assert not any(line.strip().startswith("::") for line in done.out.splitlines())


def test_a_denial_is_told_at_the_line_of_its_policy(program: Program) -> None:
    assert program("init", "box").code == 0
    image = f"oci-manifest:sha256:{'a' * 64}"
    arguments = ("gate", image, "--policy", "box/policy.yaml", "--ledger", "box/countermark.db")
    done = program(*arguments, *FILES)
    (decision,) = done.json["decisions"]
    core = decision["core"]
    assert (done.code, core["verdict"]) == (1, "DENY")
    assert [(item["code"], item["location"]["file"]) for item in done.json["findings"]] == [("SUBJECT_UNKNOWN", "box/policy.yaml")]
    results = json.loads((program.folder / "a.sarif").read_text())["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [place["artifactLocation"]["uri"] for place in places] == ["box/policy.yaml"] * len(core["requirements"])
    assert [place["region"]["startLine"] for place in places] == [item["location"]["line"] for item in core["requirements"]]
    assert {result["level"] for result in results} == {"error"}
    cases = read_report((program.folder / "a.xml").read_bytes(), "a.xml")
    assert [(case.name, bool(case.failed)) for case in cases] == [(f"{image}::{item['id']}", True) for item in core["requirements"]]
    assert program(*arguments, "--mode", "warn", "-o", "github").out.startswith("::warning file=box/policy.yaml,line=")


def test_a_requirement_of_the_command_line_is_in_no_file(program: Program) -> None:
    assert program("init", "box").code == 0
    done = program(
        "gate", f"oci-config:sha256:{'a' * 64}", "--require", "service.startup@tp=4", "--ledger", "box/countermark.db", "-o", "github"
    )
    assert (done.code, done.out.startswith("::error title=[SUBJECT_UNKNOWN]::")) == (1, True)
