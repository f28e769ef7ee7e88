"""What CI runs all day starts without the packages that its answer does not need."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from countermark.actions.init import initialise

IMAGE = f"oci-manifest:sha256:{'a1' * 32}"
HEAVY = {"alembic", "jinja2", "jsonschema", "matplotlib", "numpy", "pydantic", "requests", "rich", "scipy", "sigstore", "sqlalchemy"}
ASK = """
import json, sys
sys.argv = ["countermark", *json.loads(sys.stdin.read())]
from countermark.cli.entry import main
try:
    main()
finally:
    sys.stderr.write("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        return initialise(tmp_path_factory.mktemp("light") / "box").workspace.ledger


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["gate", IMAGE, "--require", "service.startup", "--ledger", "LEDGER", "-o", "json"], 1),
        (["verify", "contract", "contract.yaml", "-o", "json"], 0),
        (["search", "a1a1a1", "--ledger", "LEDGER", "-o", "json"], 5),
        (["schema"], 0),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_command_brings_in_nothing_heavy(ledger: Path, command: list[str], code: int) -> None:
    given = json.dumps([str(ledger) if word == "LEDGER" else word for word in command])
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=given, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    assert done.returncode == code, done.stderr
    assert HEAVY & modules == set()
