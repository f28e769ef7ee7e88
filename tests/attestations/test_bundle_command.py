"""`verify bundle`: exit codes, what is printed, and what a verified bundle is in a ledger."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import REAL, SIGNER, STATEMENT, encoded, modern, root_of
from local_certificates import spki
from local_sigstore import ISSUER, SAN, p256
from trusting import ANYTHING, trust_policy

from countermark.actions.clock import now
from countermark.actions.init import initialise
from countermark.actions.verify_attestation import Expectation
from countermark.actions.verify_bundle import bundle_key, check_bundle, policy_verifier
from countermark.actions.workspace import open_writer
from countermark.attestations.bundle_trust import BundleTrust, ExpectedIdentity
from countermark.attestations.bundle_verifier import BundleVerifier
from countermark.attestations.codes import ExitCode
from countermark.attestations.keys import PublicKey
from countermark.attestations.trust import TrustPolicy
from countermark.cli.app import run
from countermark.ledger.audit import audit
from countermark.ledger.leaf import EntryKind, LeafSignature


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anchors of the ledgers made here lie here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


IDENTITY = ["--certificate-identity", SAN, "--certificate-oidc-issuer", ISSUER]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good bundle, one with a changed index, the trust root, and the signer of a managed-key bundle."""
    monkeypatch.chdir(tmp_path)
    good = modern().sign(STATEMENT)
    (tmp_path / "good.json").write_bytes(encoded(good))
    good["verificationMaterial"]["tlogEntries"][0]["logIndex"] = "77"
    (tmp_path / "changed.json").write_bytes(encoded(good))
    (tmp_path / "empty.json").write_bytes(b"\n")
    private = p256()
    (tmp_path / "keyed.json").write_bytes(encoded(modern().sign_with_key(STATEMENT, private)))
    (tmp_path / "signer.pub").write_bytes(PublicKey(spki(private.public_key())).to_pem())
    (tmp_path / "root.json").write_bytes(modern().root_bytes())
    return tmp_path


def verify(*arguments: str) -> int:
    return run(["verify", "bundle", "--trusted-root", "root.json", *arguments])


@pytest.mark.usefixtures("folder")
class TestExitCodes:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["good.json", *IDENTITY], 0),
            (["keyed.json", "--key", "signer.pub"], 0),
            (["good.json", *IDENTITY, "--type", ANYTHING], 0),
            (["good.json", *IDENTITY, "--type", "https://example.com/other/v1"], 1),
            (["good.json", *IDENTITY, "--subject", f"git-commit:{'a' * 40}"], 0),
            (["good.json", *IDENTITY, "--subject", f"git-commit:{'b' * 40}"], 1),
            (["changed.json", *IDENTITY], 1),
            (["good.json", "changed.json", *IDENTITY], 1),
            (["good.json", "--certificate-identity", "x", "--certificate-oidc-issuer", ISSUER], 1),
            (["good.json", "--certificate-identity", SAN], 2),
            (["good.json", *IDENTITY, "--key", "signer.pub"], 2),
            (["nowhere.json", "good.json", *IDENTITY], 3),
            (["root.json", *IDENTITY], 3),
            (["good.json"], 4),
            (["keyed.json", *IDENTITY], 4),
            (["good.json", "--key", "signer.pub"], 4),
            (["good.json", "--trust", "nowhere.yaml"], 4),
            (["empty.json", *IDENTITY], 5),
        ],
    )
    def test_a_case(self, arguments: list[str], code: int) -> None:
        assert verify(*arguments) == code

    def test_who_signed_is_told_when_nobody_is_believed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert verify("good.json") == 4
        assert f"give --certificate-identity '{SAN}' --certificate-oidc-issuer '{ISSUER}'" in capsys.readouterr().out

    def test_the_report_holds_what_was_verified(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert verify("good.json", *IDENTITY, "-o", "json") == 0
        report = json.loads(capsys.readouterr().out)
        (found,) = report["details"]["bundles"]
        assert report["details"]["trusted_root"]["digest"] == str(root_of(modern()).digest)
        assert found["identity"] == {"san": SAN, "issuer": ISSUER}
        assert found["times"] == [{"at": "2026-03-01T12:00:05Z", "by": "timestamp-authority"}]
        assert set(found["log"]) == {"origin", "index", "size", "root_hash"}
        assert not {"keyid", "hint", "logId", "integratedTime"} & set(json.dumps(found).split('"'))

    def test_a_file_of_lines(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        lines = [(folder / name).read_bytes() for name in ("good.json", "empty.json", "changed.json")]
        (folder / "all.sigstore.jsonl").write_bytes(b"\n".join(lines))
        assert verify("all.sigstore.jsonl", *IDENTITY) == 1
        assert "all.sigstore.jsonl:4" in capsys.readouterr().out


def policy_of_alice(folder: Path, **changes: Any) -> TrustPolicy:
    people = {"alice": {"keyless": [{"san": SAN, "issuer": ISSUER}]}}
    return trust_policy(
        folder, **{"principals": people, "roles": {"builder": {"any_of": ["alice"]}}, "makes": {"builder": [ANYTHING]}, **changes}
    )


def test_the_trust_policy_beside_the_ledger_is_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy_of_alice(folder)
    assert verify("good.json", "-o", "json") == 0
    (found,) = json.loads(capsys.readouterr().out)["details"]["bundles"]
    assert (found["principals"], found["roles"]) == (["alice"], ["builder"])


def test_a_policy_may_name_the_trust_root(folder: Path) -> None:
    policy_of_alice(folder, trusted_root="root.json")
    assert run(["verify", "bundle", "good.json"]) == 0
    document = yaml.safe_load((folder / "trust.yaml").read_text())
    del document["spec"]["trusted_root"]
    (folder / "trust.yaml").write_text(yaml.safe_dump(document))
    assert run(["verify", "bundle", "good.json"]) == 1


def test_a_published_attestation_under_the_root_that_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in REAL if path.name.startswith("gitlab"))
    san = "https://gitlab.com/facutuesca/gitlab-oidc-project//.gitlab-ci.yml@refs/heads/main"
    identity = ["--certificate-identity", san, "--certificate-oidc-issuer", "https://gitlab.com"]
    assert run(["verify", "bundle", str(path), *identity]) == 0
    assert "the public sigstore instance" in capsys.readouterr().out


def test_what_goes_into_a_ledger(tmp_path: Path) -> None:
    """The signature under the certificate's key, and the bundle as it came; an auditor gets the key back from it."""
    (tmp_path / "root.json").write_bytes(modern().root_bytes())
    verifier = policy_verifier(policy_of_alice(tmp_path), tmp_path / "root.json")
    data = encoded(modern().sign(STATEMENT))
    checked = check_bundle(data, "bundle", verifier, now(), Expectation())
    submission = checked.submission()
    assert checked.bundle is not None
    assert submission is not None
    assert (submission.kind, submission.payload, submission.bundle) == (EntryKind.ATTESTATION, STATEMENT, data)
    (result,) = checked.bundle.verified.signers
    assert result.key is not None
    assert submission.signatures == (LeafSignature(2, checked.bundle.key.fingerprint.raw, result.signature),)
    assert bundle_key(verifier)(data) == checked.bundle.key
    assert bundle_key(verifier)(data.replace(b'"logIndex": "', b'"logIndex": "1', 1)) is None
    assert check_bundle(data[:-1], "bundle", verifier, now(), Expectation()).submission() is None


def test_a_ledger_with_a_bundle_stands_its_audit(tmp_path: Path) -> None:
    """Only with the trust root, since nothing else says that the key was the signer's."""
    (tmp_path / "root.json").write_bytes(modern().root_bytes())
    verifier = policy_verifier(policy_of_alice(tmp_path), tmp_path / "root.json")
    submission = check_bundle(encoded(modern().sign(STATEMENT)), "bundle", verifier, now(), Expectation()).submission()
    assert submission is not None
    workspace = initialise(tmp_path / "ledger").workspace
    with open_writer(workspace) as writer:
        writer.append([submission])
    assert audit(workspace.ledger, workspace.trust().keys(), None, bundle_key=bundle_key(verifier)).exit is ExitCode.YES
    assert audit(workspace.ledger, workspace.trust().keys(), None).exit is not ExitCode.YES


def test_what_is_expected_of_the_statement_is_checked_after_the_bundle(tmp_path: Path) -> None:
    verifier = BundleVerifier(root_of(modern()), BundleTrust(ExpectedIdentity(SIGNER)))
    checked = check_bundle(encoded(modern().sign(STATEMENT)), "bundle", verifier, now(), Expectation(predicate_type="https://other.test"))
    assert checked.checked.error is not None
    assert checked.bundle is None
