"""Signing with keys in a PKCS #11 token, SoftHSM2: the program is run with the token's library as a user would."""

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from program import Done, Program

PIN = "4321"
TOOLS = ("softhsm2-util", "pkcs11-tool")
LIBRARIES = (
    Path("/usr/lib/softhsm/libsofthsm2.so"),
    *Path("/usr/lib").glob("*/softhsm/libsofthsm2.so"),
    Path("/usr/lib64/pkcs11/libsofthsm2.so"),
)
LIBRARY = next((path for path in LIBRARIES if path.exists()), None)

pytestmark = pytest.mark.skipif(
    LIBRARY is None or not all(map(shutil.which, TOOLS)) or importlib.util.find_spec("pkcs11") is None,
    reason="no SoftHSM2 with pkcs11-tool, or the extra [hsm] is not installed",
)


@dataclass(frozen=True)
class Token:
    """A token of this test run with a P-256 key of id 2 and a P-384 key of id 3, and the program in whose environment it is."""

    folder: Path
    program: Program
    environment: dict[str, str]

    def run(self, *arguments: str | Path, **changes: str) -> Done:
        return self.program(*arguments, stdin=None, **{**self.environment, **changes})

    def uri(self, number: int) -> str:
        return f"hsm:{number}?label=desk"


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Token:
    folder = tmp_path_factory.mktemp("token")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder / 'tokens'}\nobjectstore.backend = file\nlog.level = ERROR\n")
    environment = {"SOFTHSM2_CONF": str(folder / "softhsm2.conf"), "PYKCS11LIB": str(LIBRARY), "COUNTERMARK_PASSWORD": PIN}
    system = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment}
    subprocess.run(
        ["softhsm2-util", "--init-token", "--free", "--label", "desk", "--pin", PIN, "--so-pin", "1234"],
        env=system,
        check=True,
        capture_output=True,
    )
    tool = ["pkcs11-tool", "--module", str(LIBRARY), "--login", "--pin", PIN, "--token-label", "desk"]
    for number, curve in ((2, "secp256r1"), (3, "secp384r1")):
        make = ["--keypairgen", "--key-type", f"EC:{curve}", "--id", f"{number:02}", "--label", f"key{number}"]
        subprocess.run([*tool, *make], env=system, check=True, capture_output=True)
    made = Token(folder, Program(folder, folder / "state"), environment)
    assert made.run("init", "box", COUNTERMARK_PASSWORD="").code == 0
    return made


@pytest.mark.parametrize(("number", "algorithm"), [(2, "ECDSA_P256_SHA256"), (3, "ECDSA_P384_SHA384")])
def test_a_key_of_the_token_signs_into_a_ledger(token: Token, number: int, algorithm: str) -> None:
    shown = token.run("key", "show", token.uri(number), "-o", "json")
    assert (shown.code, shown.json["details"]["algorithm"]) == (0, algorithm)
    public = token.folder / f"desk{number}.pub"
    public.write_text(shown.json["details"]["pem"])
    ledger = ("--ledger", token.folder / "box" / "countermark.db")
    assert token.run("key", "import", public, "--role", "builder", *ledger).code == 0
    predicate = token.folder / "predicate.json"
    predicate.write_text('{"result": "PASSED", "configuration": []}')
    what = ("--type", "https://in-toto.io/attestation/test-result/v0.1", "--predicate", predicate)
    about = ("--subject", f"oci-config:sha256:{number:02}{'ab' * 31}")
    done = token.run("attest", *about, *what, "--key", token.uri(number), *ledger, "-o", "json")
    assert done.code == 0, done.err
    audited = token.run("verify", "ledger", *ledger, PYKCS11LIB="", COUNTERMARK_PASSWORD="")
    assert audited.code == 0, audited.out


def test_the_public_half_may_come_from_a_file(token: Token) -> None:
    shown = token.run("key", "show", token.uri(2), "-o", "json")
    public = token.folder / "named.pub"
    public.write_text(shown.json["details"]["pem"])
    other = token.run("key", "show", token.uri(2), "-o", "json", COUNTERMARK_PUBLIC_KEY=str(public), PYKCS11LIB="")
    assert (other.code, other.json["details"]["key"]) == (0, shown.json["details"]["key"])


@pytest.mark.parametrize(
    ("uri", "changes"),
    [
        ("hsm:2?label=desk", {"COUNTERMARK_PASSWORD": "0000"}),
        ("hsm:2?label=desk", {"COUNTERMARK_PASSWORD": ""}),
        ("hsm:2?label=desk", {"PYKCS11LIB": ""}),
        ("hsm:2?label=desk", {"PYKCS11LIB": "/nonexistent.so"}),
        ("hsm:9?label=desk", {}),
        ("hsm:2?label=none", {}),
        ("hsm:two?label=desk", {}),
    ],
)
def test_what_cannot_sign_is_exit_4_with_a_way_out(token: Token, uri: str, changes: dict[str, str]) -> None:
    ledger = ("--ledger", token.folder / "box" / "countermark.db")
    done = token.run("reject", f"oci-config:sha256:{'ab' * 32}", "--reason", "x", "--key", uri, *ledger, **changes)
    assert (done.code, "Traceback" in done.err) == (4, False), done.err
    assert "UNREADABLE" in done.err


def test_a_key_that_is_not_the_public_half_makes_nothing(token: Token) -> None:
    """The token signs with key 2 while the file says key 3: the signature does not verify, and nothing is appended."""
    public = token.folder / "other.pub"
    public.write_text(token.run("key", "show", token.uri(3), "-o", "json").json["details"]["pem"])
    ledger = ("--ledger", token.folder / "box" / "countermark.db")
    done = token.run(
        "reject", f"oci-config:sha256:{'cd' * 32}", "--reason", "x", "--key", token.uri(2), *ledger, COUNTERMARK_PUBLIC_KEY=str(public)
    )
    assert (done.code, "Traceback" in done.err) == (1, False), done.err
