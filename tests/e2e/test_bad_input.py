"""Bad input of every kind: one line with file, place and fix; nothing half-written; no stack trace."""

from pathlib import Path

import pytest
from program import Program

CONTRACT = """\
apiVersion: countermark.dev/v1
kind: Contract
metadata: {id: c, version: 1}
spec:
  pins: {app: {commit: PIN}}
  places: [{file: pins.json, json: /commit, is: app.commit}]
  invariants: [{id: agree, check: pins.agree}, {id: whole, check: pins.full-length}]
"""
DIGITS = "1234567890" * 4

# what the file holds, a text that must be in the message
CONTRACTS = [
    pytest.param(b"", "Contract", id="empty file"),
    pytest.param(CONTRACT.replace("PIN", '"' + DIGITS + '"').encode()[:-60], "c.yaml:", id="truncated"),
    pytest.param(CONTRACT.replace("kind: Contract", "kind: Contract\nkind: Contract").encode(), "stands twice", id="duplicate key"),
    pytest.param(CONTRACT.replace("version: 1", "version: 1.0").encode(), "/metadata/version", id="1.0 for an integer"),
    pytest.param(CONTRACT.replace("version: 1", "version: true").encode(), "/metadata/version", id="bool for an integer"),
    pytest.param(CONTRACT.replace("invariants", "invarients").encode(), "invariants", id="misspelt field"),
    pytest.param(CONTRACT.replace("pins.agree", "pins.agrees").encode(), "pins.agree", id="unknown checker"),
    pytest.param(CONTRACT.replace("PIN", "abcdef012").encode(), "/spec/pins/app/commit", id="9-hex commit"),
    pytest.param(CONTRACT.replace("PIN", '"sha256:x"').encode(), "/spec/pins/app/commit", id="not a commit"),
    pytest.param(
        CONTRACT.replace("apiVersion: countermark.dev/v1", "apiVersion: countermark.dev/v2").encode(),
        "countermark.dev/v1",
        id="other version",
    ),
    pytest.param(CONTRACT.replace("kind: Contract", "kind: ReleasePolicy").encode(), "Contract", id="other kind"),
    pytest.param(b"\xff\xfe", "UTF-8", id="not UTF-8"),
    pytest.param(b"[" * 100_000, "c.yaml:1:", id="100,000 deep"),
    pytest.param(b"- " * 100_000, "nested deeper", id="100,000 deep in blocks"),
    pytest.param(b"a: *b\n", "anchor", id="alias to nothing"),
]


@pytest.mark.parametrize(("content", "told"), CONTRACTS)
def test_contracts(program: Program, content: bytes, told: str) -> None:
    (program.folder / "c.yaml").write_bytes(content.replace(b"PIN", DIGITS.encode()))
    done = program("verify", "contract", "c.yaml")
    assert (done.code, done.out) == (3, "")
    assert told in done.err
    assert all(line.startswith("countermark: ") and "; " in line for line in done.err.splitlines()), "each line has its fix"


def test_an_all_digit_commit_stays_a_commit(program: Program) -> None:
    (program.folder / "c.yaml").write_text(CONTRACT.replace("PIN", DIGITS))
    (program.folder / "pins.json").write_text(f'{{"commit": "{DIGITS}"}}')
    done = program("verify", "contract", "c.yaml")
    assert done.code == 0, done.err


def test_an_all_digit_commit_as_a_number_is_a_finding(program: Program) -> None:
    (program.folder / "c.yaml").write_text(CONTRACT.replace("PIN", DIGITS))
    (program.folder / "pins.json").write_text('{"commit": 1234567}')
    done = program("verify", "contract", "c.yaml")
    assert done.code == 1
    assert "pins.json:1" in done.out


@pytest.mark.parametrize(
    "digest", ["nginx:latest", "registry.example/app:v1", "sha256:abc", f"oci-config:sha256:{'AB' * 32}", "oci-image:sha256:00"]
)
def test_what_is_no_digest(program: Program, box: Path, digest: str) -> None:
    done = program("gate", digest, "--require", "service.startup", "--ledger", box)
    assert (done.code, done.out) == (3, "")
    assert len(done.err.splitlines()) == 1
    assert "; " in done.err


@pytest.mark.parametrize(
    ("require", "told"),
    [
        ("service.startap", "service.startup"),
        ("service.startup@tq=4", "tq"),
        ("service.startup@tp=four", "four"),
        ("service.startup@tp", "CAPABILITY@"),
        ("", "capability"),
    ],
)
def test_what_is_no_requirement(program: Program, box: Path, require: str, told: str) -> None:
    done = program("gate", f"oci-config:sha256:{'00' * 32}", "--require", require, "--ledger", box)
    assert done.code == 3
    assert told in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "source", "nowhere"],
        ["record", "source", ".", "--rev", "nothing"],
        ["record", "image", "nowhere"],
        ["record", "image", "junk"],
        ["record", "model", "nowhere", "--role", "target"],
        ["record", "model", "junk", "--role", "target"],
        ["record", "tests", "junk", "--subject", f"oci-config:sha256:{'00' * 32}"],
        ["record", "tests", "nowhere", "--subject", f"oci-config:sha256:{'00' * 32}"],
        ["attest", "--subject", "x:y", "--type", "source", "--predicate", "junk"],
        ["import", "junk"],
        ["import", "nowhere"],
    ],
    ids=" ".join,
)
def test_nothing_is_recorded_from_bad_input(program: Program, box: Path, arguments: list[str]) -> None:
    (program.folder / "junk").write_bytes(b"\x00junk\xff" * 30)
    before = program("ledger", "stats", "--ledger", box, "-o", "json").json["ledger"]
    done = program(*arguments, "--ledger", box)
    assert done.code == 3, (done.out, done.err)
    assert "Traceback" not in done.err + done.out
    assert program("ledger", "stats", "--ledger", box, "-o", "json").json["ledger"] == before
    assert program("verify", "ledger", "--ledger", box).code == 0


def test_an_unreadable_output_path_is_told(program: Program, box: Path) -> None:
    done = program("ledger", "stats", "--ledger", box, "-o", "json=nowhere/report.json")
    assert done.code == 3
    assert "nowhere/report.json" in done.err


def test_an_unknown_output_format_is_usage(program: Program, box: Path) -> None:
    done = program("ledger", "stats", "--ledger", box, "-o", "xml")
    assert (done.code, done.out) == (2, "")
