"""`attestation download`: what comes out verifies as what went in, with our program and byte for byte."""

from pathlib import Path

import pytest
from bundles import STATEMENT, encoded, modern
from worlds import IMAGE, World

from countermark.actions.download import download
from countermark.actions.workspace import open_reader
from countermark.attestations.errors import InputError, NothingError
from countermark.cli.app import run


@pytest.fixture
def said(world: World) -> World:
    world.image()
    world.tests()
    return world


def test_envelopes_verify_elsewhere(said: World) -> None:
    target = said.folder / "out.intoto.jsonl"
    done = download(said.workspace, str(IMAGE), "intoto", target)
    assert done.entries == (1, 2)
    assert len(target.read_text().splitlines()) == 2
    assert run(["verify", "attestation", str(target), "--key", str(said.folder / "keys" / "ci.pub"), "--subject", str(IMAGE)]) == 0
    assert run(["verify", "attestation", str(target), "--key", str(said.folder / "keys" / "lab.pub")]) == 1


def test_bundles_of_plain_envelopes_verify_by_key(said: World) -> None:
    done = download(said.workspace, IMAGE.hex, "sigstore", said.folder / "bundles")
    assert [path.name for path in done.files] == ["1.sigstore.json", "2.sigstore.json"]
    root = said.folder / "root.json"
    root.write_bytes(modern().root_bytes())
    files = [str(path) for path in done.files]
    assert run(["verify", "bundle", *files, "--trusted-root", str(root), "--key", str(said.folder / "keys" / "ci.pub")]) == 0


def test_a_bundle_comes_out_as_it_came_in(said: World) -> None:
    from local_sigstore import ISSUER, SAN

    data = encoded(modern().sign(STATEMENT))
    (said.folder / "in.sigstore.json").write_bytes(data)
    (said.folder / "root.json").write_bytes(modern().root_bytes())
    people = said.people()
    people["robot"] = {"keyless": [{"san": SAN, "issuer": ISSUER}]}
    roles = {**said.roles(), "builder": {"any_of": ["ci", "robot"]}}
    said.trust(principals=people, roles=roles, makes={"builder": ["https://example.com/anything/v1"]}, trusted_root="root.json")
    assert run(["import", str(said.folder / "in.sigstore.json"), "--ledger", str(said.workspace.ledger)]) == 0
    with open_reader(said.workspace) as reader:
        payload = reader.entry(reader.head.size - 1).digest
    done = download(said.workspace, str(payload), "sigstore", said.folder / "bundles")
    assert [path.read_bytes() for path in done.files] == [data]


def test_nothing_is_overwritten_invented_or_guessed(said: World) -> None:
    target = said.folder / "out.intoto.jsonl"
    target.write_text("mine")
    with pytest.raises(InputError, match="not overwritten"):
        download(said.workspace, str(IMAGE), "intoto", target)
    for text, form, error in (("ab" * 32, "intoto", NothingError), ("abcdef", "intoto", InputError), (str(IMAGE), "pem", InputError)):
        with pytest.raises(error):
            download(said.workspace, text, form, Path("nowhere"))
    assert target.read_text() == "mine"
