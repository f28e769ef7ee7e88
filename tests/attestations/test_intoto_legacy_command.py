"""`verify layout`, and links and layouts in a ledger."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from local_layout import BUILDER, OTHER, OWNER, Chain
from signing import pem, public
from trusting import trust_policy

from countermark.actions.clock import now
from countermark.actions.init import initialise
from countermark.actions.legacy import MAKES, compare, legacy_submissions
from countermark.actions.workspace import open_writer
from countermark.attestations.codes import Code, ExitCode
from countermark.attestations.envelope import PAYLOAD_TYPE, Envelope
from countermark.attestations.errors import CountermarkError, InputError
from countermark.attestations.intoto_legacy import LegacyFile, read_links
from countermark.attestations.trust import TrustPolicy
from countermark.attestations.verifier import PolicyTrust
from countermark.cli.app import run
from countermark.cli.legacy import layout
from countermark.cli.verify import app as verify_app
from countermark.ledger.audit import audit
from countermark.ledger.derive import derive
from countermark.ledger.leaf import EntryKind, LeafSignature

if "layout" not in [command.name for command in verify_app.registered_commands]:
    verify_app.command("layout")(layout)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anchors of the ledgers made here lie here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    monkeypatch.chdir(tmp_path)
    return Chain(tmp_path).write()


def verify(*more: str, key: str = "owner.pub") -> int:
    return run(["verify", "layout", "root.layout", "--links", "links", "--layout-key", key, *more])


@pytest.mark.usefixtures("chain")
class TestCommand:
    def test_it_holds(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert verify() == 0
        assert "not evaluated: product engine.bin" in capsys.readouterr().out
        assert verify("--artifacts", "products") == 0
        assert "not evaluated" not in capsys.readouterr().out

    def test_a_changed_product(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("products/engine.bin").write_bytes(b"something else")
        assert verify("--artifacts", "products") == 1
        assert "products/engine.bin  in-toto.products  [SUBJECT_MISMATCH]" in capsys.readouterr().out

    def test_a_missing_product(self) -> None:
        Path("products/engine.bin").unlink()
        assert verify("--artifacts", "products") == 1

    def test_a_file_that_no_step_made(self) -> None:
        Path("products/inner").mkdir()
        Path("products/inner/more.bin").write_bytes(b"")
        assert verify("--artifacts", "products") == 1

    def test_a_link_to_a_folder_is_not_followed(self) -> None:
        Path("elsewhere").mkdir()
        Path("products/inner").symlink_to(Path("elsewhere").absolute())
        assert verify("--artifacts", "products") == 1

    def test_a_missing_link(self) -> None:
        next(Path("links").iterdir()).unlink()
        assert verify("--artifacts", "products") == 1

    def test_an_expired_layout(self, chain: Chain) -> None:
        chain.days = -1
        chain.write()
        assert verify("--artifacts", "products") == 1

    def test_another_owner(self) -> None:
        Path("other.pub").write_bytes(pem(OTHER))
        assert verify(key="other.pub") == 1

    def test_inspections(self, chain: Chain) -> None:
        chain.inspect = ("pass",)
        chain.write()
        assert verify("--artifacts", "products") == 1
        assert verify("--run-inspections") == 2

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["root.layout", "--links", "links"], 2),
            (["nowhere.layout", "--links", "links", "--layout-key", "owner.pub"], 3),
            (["owner.pub", "--links", "links", "--layout-key", "owner.pub"], 3),
            (["root.layout", "--links", "nowhere", "--layout-key", "owner.pub"], 3),
            (["root.layout", "--links", "links", "--layout-key", "root.layout"], 3),
            (["root.layout", "--links", "links", "--layout-key", "owner.pub", "--artifacts", "nowhere"], 3),
        ],
    )
    def test_bad_input(self, arguments: list[str], code: int) -> None:
        assert run(["verify", "layout", *arguments]) == code

    def test_the_report_names_the_products(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert verify("-o", "json") == 0
        report = json.loads(capsys.readouterr().out)
        assert report["details"]["layout"]["steps"] == ["build"]
        assert set(report["details"]["layout"]["products"]["engine.bin"]) == {"sha256"}
        assert (report["evaluated"], report["of"]) == (1, 2)


def test_a_product_needs_a_hash_that_we_know(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    findings, compared = compare({"a": {"md5": "d41d8cd98f00b204e9800998ecf8427e"}}, tmp_path)
    assert ([finding.code for finding in findings], compared) == ([Code.SUBJECT_MISMATCH], 1)


def test_a_name_that_leads_out_of_the_folder_is_no_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "products").mkdir()
    findings, _ = compare({"../secret": {"sha256": sha256(b"x").hexdigest()}}, tmp_path / "products")
    assert len(findings) == 1


class TestLedger:
    def policy(self, folder: Path, *, link: str = "builder") -> TrustPolicy:
        for name, private in (("owner", OWNER), ("maker", BUILDER)):
            (folder / f"{name}.pub").write_bytes(pem(private))
        people = {
            name: {"keys": [{"file": f"{name}.pub", "spki_sha256": public(private).fingerprint.hex}]}
            for name, private in (("owner", OWNER), ("maker", BUILDER))
        }
        roles = {"approver": {"any_of": ["owner"]}, "builder": {"any_of": ["maker"]}}
        makes = {"approver": [MAKES["layout"]], "builder": ["source"]}
        makes[link] = [*makes[link], MAKES["link"]]
        return trust_policy(folder, principals=people, roles=roles, makes=makes)

    def files(self, chain: Chain) -> tuple[LegacyFile, list[LegacyFile]]:
        layout = LegacyFile.parse((chain.folder / "root.layout").read_bytes(), "root.layout")
        return layout, list(read_links(chain.folder / "links").values())

    def test_they_are_kept_as_they_were_signed(self, chain: Chain) -> None:
        layout, links = self.files(chain)
        submissions = legacy_submissions([layout, *links], PolicyTrust(self.policy(chain.folder)), now())
        for submission, file, private in zip(submissions, (layout, *links), (OWNER, BUILDER), strict=True):
            assert file.envelope is not None
            signature = file.envelope.signatures[0].sig
            assert (submission.kind, submission.payload_type, submission.payload) == (
                EntryKind.ATTESTATION,
                PAYLOAD_TYPE,
                file.envelope.payload,
            )
            assert submission.signatures == (LeafSignature(1, public(private).fingerprint.raw, signature),)
            assert submission.unverified == ()
            assert not derive(submission.kind, submission.payload_type, submission.payload).notice

    def test_they_go_into_a_ledger_and_stand_its_audit(self, chain: Chain) -> None:
        layout, links = self.files(chain)
        policy = self.policy(chain.folder)
        workspace = initialise(chain.folder / "ledger").workspace
        with open_writer(workspace) as writer:
            receipts = writer.append(legacy_submissions([layout, *links], PolicyTrust(policy), now()))
            again = writer.append(legacy_submissions([layout, *links], PolicyTrust(policy), now()))
        assert [receipt.index for receipt in receipts] == [1, 2]
        assert [receipt.duplicate for receipt in again] == [True, True]
        keys = {**workspace.trust().keys(), **policy.keys()}
        assert audit(workspace.ledger, keys, None).exit is ExitCode.YES

    def test_signers_make_what_their_role_makes(self, chain: Chain) -> None:
        layout, links = self.files(chain)
        with pytest.raises(CountermarkError) as caught:
            legacy_submissions([layout, *links], PolicyTrust(self.policy(chain.folder, link="approver")), now())
        assert caught.value.code == Code.SIGNER_UNTRUSTED

    def test_a_stranger_is_refused(self, chain: Chain) -> None:
        chain.functionaries = (OTHER,)
        layout, links = self.files(chain.write())
        with pytest.raises(CountermarkError) as caught:
            legacy_submissions([layout, *links], PolicyTrust(self.policy(chain.folder)), now())
        assert caught.value.code == Code.SIG_INVALID

    def test_a_signature_that_does_not_hold_is_kept_beside_the_tree(self, chain: Chain) -> None:
        layout, _ = self.files(chain)
        assert layout.envelope is not None
        value = json.loads(layout.envelope.to_json())
        value["signatures"].append({"keyid": "", "sig": "AAAA"})
        envelope = Envelope.parse(json.dumps(value).encode(), "root.layout")
        doubled = LegacyFile(layout.kind, layout.content, envelope, layout.text, layout.source)
        (submission,) = legacy_submissions([doubled], PolicyTrust(self.policy(chain.folder)), now())
        assert [item.outcome for item in submission.unverified] == [Code.SIG_UNVERIFIABLE]

    def test_the_older_form_is_not_kept(self, tmp_path: Path) -> None:
        layout, links = self.files(Chain(tmp_path, dsse=False).write())
        with pytest.raises(InputError, match="DSSE") as caught:
            legacy_submissions([layout, *links], PolicyTrust(self.policy(tmp_path)), now())
        assert caught.value.code == Code.UNSUPPORTED
