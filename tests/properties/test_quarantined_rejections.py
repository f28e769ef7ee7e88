"""Rejections that were refused on entry: they count for nothing, and whoever decides is told of them, whatever the reason was."""

import base64
import json

import pytest
from worlds import IMAGE, OTHER, World

from countermark.attestations.digests import Digest

from .real_ledgers import ask, take
from .sayings import Draft


def refused(world: World, about: Digest, by: str, *, forged: bool = False) -> None:
    """Send in a rejection that is refused: by somebody who may not say it, or with a signature that does not hold."""
    draft = Draft.of(world)
    draft.reject(about, by=by)
    line = json.loads(draft.lines[-1])
    if forged:
        line["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    assert len(take(world, [json.dumps(line)]).refused) == 1


def notes(world: World, image: Digest) -> tuple[str, ...]:
    return ask(world.workspace, image, world.folder / "lab.yaml", at=None).notes


@pytest.mark.parametrize(("by", "forged"), [("release-gate", False), ("lab", True)], ids=["untrusted", "forged"])
def test_a_refused_rejection_is_noted_and_counts_for_nothing(world: World, by: str, forged: bool) -> None:
    world.receipt()
    refused(world, IMAGE, by, forged=forged)
    refused(world, OTHER, by, forged=forged)
    assert "QUARANTINED_REJECTIONS:1" in notes(world, IMAGE)
    assert ask(world.workspace, IMAGE, world.folder / "lab.yaml").verdict == "ALLOW"


def test_other_refused_statements_are_no_rejections(world: World) -> None:
    world.receipt()
    draft = Draft.of(world)
    draft.receipt(by="ci", reason="https://countermark.dev/predicate/rejection/v1")
    assert take(world, [draft.lines[-1]]).refused
    assert not [note for note in notes(world, IMAGE) if note.startswith("QUARANTINED")]
