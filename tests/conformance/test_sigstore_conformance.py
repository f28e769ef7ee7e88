"""Every bundle of sigstore-conformance, each with the file at hand and with its digest alone, as that project's own suite asks.

Its checkout is named by COUNTERMARK_SIGSTORE_CONFORMANCE; it has no licence file and is never part of this repository.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from conformance_client import translated

from countermark.cli.app import run

ROOT = os.environ.get("COUNTERMARK_SIGSTORE_CONFORMANCE", "")
CASES = sorted(path for path in Path(ROOT, "test/assets/bundle-verify").glob("*") if path.is_dir()) if ROOT else []
BEACON = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/"
IDENTITY = f"{BEACON}extremely-dangerous-oidc-beacon.yml@refs/heads/main"
ISSUER = "https://token.actions.githubusercontent.com"
REASONS = {
    "trust-root-tsa-validity-end-inclusive": "the sigstore package takes the end of an authority's validity as excluded",
    "intoto-with-custom-trust-root": "the sigstore package reads no log entries of kind intoto",
}
"""Good bundles that are refused, and why; see docs/conformance.md. A bad bundle that passes has no place here."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CASES, reason="COUNTERMARK_SIGSTORE_CONFORMANCE names no checkout of sigstore-conformance"),
]


def _text(path: Path, otherwise: str) -> str:
    return path.read_text().strip() if path.exists() else otherwise


def _arguments(case: Path, artifact: str) -> list[str]:
    key, root = case / "key.pub", case / "trusted_root.json"
    identity = ["--certificate-identity", _text(case / "identity", IDENTITY), "--certificate-oidc-issuer", _text(case / "issuer", ISSUER)]
    options = ["--key", str(key)] if key.exists() else identity
    options += ["--trusted-root", str(root)] if root.exists() else []
    return ["verify-bundle", "--bundle", str(case / "bundle.sigstore.json"), *options, artifact]


def _artifact(case: Path) -> Path:
    own = case / "artifact"
    return own if own.exists() else case.parent / "a.txt"


def _verify(arguments: Sequence[str]) -> int:
    return run(translated(arguments))


@pytest.mark.parametrize("by", ["path", "digest"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, by: str) -> None:
    file = _artifact(case)
    text = str(file) if by == "path" else f"sha256:{sha256(file.read_bytes()).hexdigest()}"
    code = _verify(_arguments(case, text))
    if case.name.endswith("_fail"):
        assert code in (1, 3, 4), "a bad bundle passed"
    elif case.name in REASONS:
        assert code == 1
    else:
        assert code == 0


def test_no_more_is_refused_than_is_explained() -> None:
    """At least what the sigstore package itself passes, 66 of 70, and the managed keys."""
    assert len(CASES) >= 70
    assert len(CASES) - len(REASONS) >= 68
