"""A model that model-signing signed: verified by its key, found by its files, given out as it came, and changed files noticed."""

from hashlib import sha256
from pathlib import Path

import pytest
from bundles import modern
from worlds import World

from countermark.actions.download import download
from countermark.actions.queries.attestations import AttestationRow, attestation_listing
from countermark.attestations.bundle import Bundle
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.keys import PublicKey
from countermark.attestations.predicate_types import MODEL_SIGNATURE
from countermark.cli.app import run

MADE = Path(__file__).parents[1] / "data" / "model_signing"
SIGNED, KEY = MADE / "model.sig", MADE / "key.pub"
FILES = {"config.json": b'{"hidden": 8}\n', "weights.safetensors": bytes(300)}


@pytest.fixture
def world(world: World) -> World:
    """A world in which `trainer` builds, and signs models."""
    fingerprint = PublicKey.from_pem(KEY.read_bytes(), str(KEY)).fingerprint.hex
    people = {**world.people(), "trainer": {"keys": [{"file": str(KEY), "spki_sha256": fingerprint}]}}
    roles = {**world.roles(), "builder": {"any_of": ["ci", "trainer"]}}
    (world.folder / "root.json").write_bytes(modern().root_bytes())
    world.trust(principals=people, roles=roles, makes={"builder": [MODEL_SIGNATURE]}, trusted_root="root.json")
    return world


def test_by_its_key_and_by_no_other(world: World) -> None:
    verify = ["verify", "bundle", str(SIGNED), "--trusted-root", str(world.folder / "root.json")]
    assert run([*verify, "--key", str(KEY), "--type", MODEL_SIGNATURE]) == 0
    assert run([*verify, "--key", str(world.folder / "keys" / "ci.pub")]) == 1


@pytest.mark.parametrize("name", FILES)
def test_found_by_each_of_its_files(world: World, name: str) -> None:
    assert run(["import", str(SIGNED), "--ledger", str(world.workspace.ledger)]) == 0
    hexed = sha256(FILES[name]).hexdigest()
    (row,) = attestation_listing(world.workspace, f"sha256:{hexed}").rows
    assert isinstance(row, AttestationRow)
    assert (row.signer, row.predicate_type, row.outcome) == ("trainer", MODEL_SIGNATURE, None)
    assert row.says is not None
    assert row.says["files"] == [{"name": name, "algorithm": "sha256", "digest": sha256(data).hexdigest()} for name, data in FILES.items()]


def test_given_out_as_it_came(world: World) -> None:
    assert run(["import", str(SIGNED), "--ledger", str(world.workspace.ledger)]) == 0
    payload = Digest.of(DigestKind.PAYLOAD, Bundle.parse(SIGNED.read_bytes(), "model.sig").envelope.payload)
    (out,) = download(world.workspace, str(payload), "sigstore", world.folder / "out").files
    assert out.read_bytes() == SIGNED.read_bytes()


def test_a_certificate_is_asked_for_in_vain(world: World) -> None:
    """Under an identity, a bundle by a key is nobody's."""
    identity = ["--certificate-identity", "trainer@example.test", "--certificate-oidc-issuer", "https://login.example.test"]
    assert run(["verify", "bundle", str(SIGNED), "--trusted-root", str(world.folder / "root.json"), *identity]) == 4
