"""What a ledger gives out as files, another ledger takes in, and gives out the same bytes."""

import base64
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bundles import REAL, STATEMENT, encoded, instance, modern
from foreign import SAID
from local_sigstore import ISSUER, SAN
from worlds import IMAGE, World, make_world

from countermark.actions.appending import sign
from countermark.actions.download import download
from countermark.actions.workspace import open_reader
from countermark.attestations.bundle import Bundle
from countermark.attestations.certificate import Leaf
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.keys import Signer
from countermark.attestations.predicate_types import SLSA_PROVENANCE
from countermark.attestations.statement import Statement, Subject
from countermark.cli.app import run

EVERYTHING = {"builder": ["image", *SAID, "https://example.com/anything/v1"]}


@pytest.fixture
def other(world: World, tmp_path: Path) -> World:
    """A second ledger, which believes the people of the first."""
    second = make_world(tmp_path / "second")
    people: dict[str, Any] = world.people()
    for person in people.values():
        for held in person.get("keys", ()):
            held["file"] = str(world.folder / held["file"])
    second.trust(principals=people, roles=world.roles(), makes=EVERYTHING)
    return second


def take(world: World, *paths: Path) -> None:
    assert run(["import", *map(str, paths), "--ledger", str(world.workspace.ledger)]) == 0


def contents(paths: Sequence[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


def test_envelopes_come_out_of_a_second_ledger_as_out_of_the_first(world: World, other: World) -> None:
    """Payloads and signatures too: those of an envelope with two signatures, in the URL-safe alphabet, with other people's key ids."""
    world.trust(makes=EVERYTHING)
    world.image()
    made = sign(Statement((Subject.of(IMAGE),), SLSA_PROVENANCE, SAID[SLSA_PROVENANCE]), Signer.load(str(world.key("ci"))))
    second = Signer.load(str(world.key("alice"))).sign(made.pae())
    text = json.loads(made.to_json())
    text["signatures"] += [{"sig": base64.urlsafe_b64encode(second).decode(), "keyid": "whose?"}]
    text["payload"] = base64.urlsafe_b64encode(made.payload).decode()
    (world.folder / "in.json").write_text(json.dumps(text))
    take(world, world.folder / "in.json")
    first, again = world.folder / "first.intoto.jsonl", other.folder / "again.intoto.jsonl"
    assert download(world.workspace, str(IMAGE), "intoto", first).entries == (1, 2)
    take(other, first)
    assert download(other.workspace, str(IMAGE), "intoto", again).entries == (1, 2)
    assert again.read_bytes() == first.read_bytes()
    line = json.loads(first.read_text().splitlines()[1])
    assert base64.b64decode(line["payload"]) == made.payload
    assert {base64.b64decode(item["sig"]) for item in line["signatures"]} == {made.signatures[0].sig, second}
    for person in ("ci", "alice"):
        assert run(["verify", "attestation", str(world.folder / "in.json"), "--key", str(world.folder / "keys" / f"{person}.pub")]) == 0
    assert run(["verify", "attestation", str(again), "--key", str(world.folder / "keys" / "ci.pub"), "--subject", str(IMAGE)]) == 0


def test_bundles_of_envelopes_come_out_as_they_went_in(world: World, other: World) -> None:
    world.trust(makes=EVERYTHING)
    world.image()
    world.tests()
    first = download(world.workspace, str(IMAGE), "sigstore", world.folder / "first")
    key = str(world.folder / "keys" / "ci.pub")
    (world.folder / "root.json").write_bytes(modern().root_bytes())
    verify = ["verify", "bundle", "--trusted-root", str(world.folder / "root.json"), "--key", key]
    assert run([*verify, *map(str, first.files)]) == 0
    take(other, *first.files)
    again = download(other.workspace, str(IMAGE), "sigstore", other.folder / "again")
    assert contents(again.files) == contents(first.files)
    assert run([*verify, *map(str, again.files)]) == 0


def _keyless(world: World, san: str, issuer: str, **more: Any) -> None:
    people = {**world.people(), "robot": {"keyless": [{"san": san, "issuer": issuer}]}}
    roles = {**world.roles(), "builder": {"any_of": ["ci", "robot"]}}
    world.trust(principals=people, roles=roles, makes=EVERYTHING, **more)


@pytest.mark.parametrize("kind", ["Rekor v1", "Rekor v2", "0.1"])
def test_keyless_bundles_come_out_as_they_came_in(world: World, other: World, kind: str) -> None:
    """To the byte, white space and order of fields included; of each version and kind of log."""
    sigstore = modern() if kind == "Rekor v2" else instance()
    bundle = sigstore.sign(STATEMENT, promised=None if kind == "Rekor v2" else timedelta(seconds=3))
    if kind == "0.1":
        bundle["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.1"
        material = bundle["verificationMaterial"]
        material["x509CertificateChain"] = {"certificates": [material.pop("certificate")]}
    data = json.dumps(bundle, indent=1).encode() + b"\n\n"
    payload = Digest.of(DigestKind.PAYLOAD, STATEMENT)
    came = world.folder / "in.sigstore.json"
    came.write_bytes(data)
    for place in (world, other):
        (place.folder / "root.json").write_bytes(sigstore.root_bytes())
        _keyless(place, SAN, ISSUER, trusted_root="root.json")
        take(place, came)
        (came,) = download(place.workspace, str(payload), "sigstore", place.folder / "bundles").files
        assert came.read_bytes() == data
    identity = ["--certificate-identity", SAN, "--certificate-oidc-issuer", ISSUER]
    assert run(["verify", "bundle", str(came), "--trusted-root", str(world.folder / "root.json"), *identity]) == 0
    assert encoded(json.loads(came.read_bytes())) == encoded(bundle)


def test_a_published_attestation_comes_out_as_it_came_in(world: World) -> None:
    """A real one, with its real signer, under the public instance's root: provenance of a package on PyPI, in the form of PEP 740."""
    (path,) = (path for path in REAL if "slsa" in path.name)
    bundle = Bundle.parse(path.read_bytes(), path.name)
    assert bundle.certificate
    identity = Leaf.parse(bundle.certificate, path.name).identity
    _keyless(world, identity.san, identity.issuer)
    take(world, path)
    with open_reader(world.workspace) as reader:
        payload = reader.entry(1).digest
    (out,) = download(world.workspace, str(payload), "sigstore", world.folder / "bundles").files
    assert (out.name, out.read_bytes()) == ("1.attestation", path.read_bytes())
    assert run(["verify", "bundle", str(out), "--certificate-identity", identity.san, "--certificate-oidc-issuer", identity.issuer]) == 0
    done = download(world.workspace, str(payload), "intoto", world.folder / "out.intoto.jsonl")
    line = json.loads(done.files[0].read_text())
    assert base64.b64decode(line["payload"]) == bundle.envelope.payload
    assert base64.b64decode(line["signatures"][0]["sig"]) == bundle.signature
