"""The project's own contract holds over this checkout, and sees what it says it sees."""

import shutil
from pathlib import Path

import pytest
from program import Program

ROOT = Path(__file__).parents[2]
READ = (
    "contract.yaml",
    "docs/countermark@2.lock.json",
    "attestations/countermark/attestations/codes.py",
    "apps/countermark/cli/entry.py",
    "apps/countermark/actions/templates/policy.yaml",
    "apps/countermark/actions/demo/policies",
    "ledger/countermark/ledger/schema.py",
    "ledger/countermark/ledger/leaf.py",
    "migrations/countermark/migrations/versions/r0002_refused_types.py",
    "docs",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "Makefile",
    ".ci/run",
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-cuda.txt",
)


@pytest.fixture
def copy(tmp_path: Path) -> Program:
    """What the contract reads, in a folder of its own."""
    for name in READ:
        source, target = ROOT / name, tmp_path / "project" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    return Program(tmp_path / "project", tmp_path / "state")


def test_the_project_keeps_its_contract(copy: Program) -> None:
    done = copy("verify", "contract", ".", "-o", "json")
    assert (done.code, done.json["findings"]) == (0, [])
    assert done.json["evaluated"] == done.json["of"] == 4


@pytest.mark.parametrize(
    ("file", "old", "new", "checker"),
    [
        ("README.md", "| 4 | cannot tell", "| 5 | cannot tell", "pins.agree"),
        ("pyproject.toml", 'python_version = "3.11"', 'python_version = "3.12"', "pins.agree"),
        ("requirements.txt", "sigstore==", "sigstore==9", "pins.agree"),
        ("ledger/countermark/ledger/leaf.py", "KEY_EVENT = 2", "KEY_EVENT = 7", "compat.fields-unchanged"),
        ("README.md", "$ make demo\n", "", "docs.commands"),
        ("examples/serving/README.md", "# serving\n", "# serving on 192.168.7.9\n", "publish.no-secrets"),
    ],
)
def test_one_slip_is_one_finding(copy: Program, file: str, old: str, new: str, checker: str) -> None:
    path = copy.folder / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    done = copy("verify", "contract", ".", "-o", "json")
    (finding,) = done.json["findings"]
    assert (done.code, finding["checker"], finding["location"]["file"]) == (1, checker, file)
