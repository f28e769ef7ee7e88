"""`verify` and `gate` reach no network: in a process where a socket cannot be made they answer the same."""

from pathlib import Path

import pytest
from program import Program

from countermark.actions.demo import published

BLOCKED = """
import socket


class Blocked(socket.socket):
    def __new__(cls, *arguments, **options):
        raise RuntimeError("a socket was asked for")


socket.socket = socket.create_connection = socket.getaddrinfo = Blocked
"""
PEP740 = Path(__file__).parents[1] / "data" / "pep740" / "pypi_attestations-0.0.19.tar.gz.slsa.attestation"
IDENTITY = "https://github.com/trailofbits/pypi-attestations/.github/workflows/release.yml@refs/tags/v0.0.19"
ISSUER = "https://token.actions.githubusercontent.com"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("offline")
    (folder / "blocked").mkdir()
    (folder / "blocked" / "sitecustomize.py").write_text(BLOCKED)
    program = Program(folder, folder / "state")
    assert program("demo", "demo", "--quiet").code == 0
    return program


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, ("verify", "ledger", "--ledger", "demo/countermark.db")),
        (1, ("verify", "contract", "demo/release")),
        (0, ("verify", "image", "demo/image", "--ledger", "demo/countermark.db")),
        (0, ("verify", "source", "demo/engine", "--ledger", "demo/countermark.db")),
        (0, ("verify", "bundle", str(PEP740), "--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER)),
        (0, ("gate", published.LIVE, "--require", "service.startup@tp=4,dcp=1", "--policy", "demo/policies/lab-as-published.yaml")),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else str(value),
)
def test_the_answer_needs_no_socket(world: Program, code: int, command: tuple[str, ...]) -> None:
    done = world(*command, PYTHONPATH=str(world.folder / "blocked"), COUNTERMARK_LEDGER="demo/countermark.db")
    assert done.code == code, done.out + done.err


def test_the_block_blocks(world: Program) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", "import socket; socket.socket()"],
        env={"PYTHONPATH": str(world.folder / "blocked")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a socket was asked for" in done.stderr
