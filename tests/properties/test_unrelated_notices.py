"""Notices about other images: all are walked and read, and the signatures of those alone are verified that bear on the question."""

import pytest
from worlds import IMAGE, World, manifest

from countermark.actions.evidence import Gatherer
from countermark.attestations.verifier import SignatureResult
from countermark.ledger.read import Entry

from .real_ledgers import ask


def test_signatures_of_notices_about_other_images_are_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.receipt()
    others = [world.reject(manifest(byte)).index for byte in ("01", "02", "03")]
    judged: list[int] = []
    judge = Gatherer.signatures

    def watched(gatherer: Gatherer, entry: Entry) -> tuple[SignatureResult, ...]:
        judged.append(entry.index)
        return judge(gatherer, entry)

    monkeypatch.setattr(Gatherer, "signatures", watched)
    policy = world.folder / "lab.yaml"
    before = ask(world.workspace, IMAGE, policy)
    assert (before.verdict, before.head.notices) == ("ALLOW", len(others) + 1)
    assert not set(others) & set(judged)
    own = world.reject().index
    assert ask(world.workspace, IMAGE, policy).verdict == "DENY"
    assert own in judged
    assert not set(others) & set(judged)
