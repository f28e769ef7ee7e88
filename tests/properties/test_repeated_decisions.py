"""A recorded decision can be made again from what was recorded with it, whatever the ledger has heard since."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from worlds import AT_131072, IMAGE, RESTORE, World

from countermark.actions.decisions import record_decisions
from countermark.actions.gate import Asked, gate
from countermark.actions.repeat import repeat
from countermark.attestations.errors import CannotTellError

from .real_ledgers import forked
from .sayings import SAYINGS, Saying, admit, signed
from .test_relabelled_records import FEW

OWN_PROFILE = '{"tensor": 4, "dcp": 1}'
PROFILE_MAP = """\
apiVersion: countermark.dev/v1
kind: ProfileMap
metadata: {id: own, version: 1}
spec: {fields: {topology.tp: /tensor, topology.dcp: /dcp}}
"""
PROFILE = f"""\
apiVersion: countermark.dev/v1
kind: Profile
metadata: {{id: small, version: 1}}
spec:
  {{topology: {{tp: 4, dcp: 1, pp: 1}}, model: {{repository: a/b, revision: "{"42" * 20}"}},
  max_num_seqs: 1, max_model_len_tokens: 131072, draft_tokens: 7}}
"""


@pytest.fixture(scope="module")
def begun(begun: World) -> Iterator[World]:
    """With a policy that asks a profile, and profiles to give it."""
    with forked(begun) as world:
        profiled = (world.folder / "lab.yaml").read_text().replace("topology: TP4/DCP1", "topology: $profile.topology")
        for name, text in {"profiled.yaml": profiled, "own.json": OWN_PROFILE, "map.yaml": PROFILE_MAP, "profile.yaml": PROFILE}.items():
            (world.folder / name).write_text(text)
        yield world


def asked(folder: Path, how: str) -> Asked:
    """The same question in each way in which it can be put."""
    image, policy = (str(IMAGE),), folder / "profiled.yaml"
    return {
        "by a policy": Asked(image, folder / "lab.yaml"),
        "by a requirement": Asked(image, None, (f"{RESTORE}@{AT_131072}",)),
        "by a requirement beside a policy": Asked(image, folder / "lab.yaml", (f"{RESTORE}@{AT_131072}",)),
        "with a profile": Asked(image, policy, profile=folder / "profile.yaml"),
        "with a profile of their own": Asked(image, policy, profile=folder / "own.json", profile_map=folder / "map.yaml"),
    }[how]


WAYS = ("by a policy", "by a requirement", "by a requirement beside a policy", "with a profile", "with a profile of their own")


def decide(world: World, how: str) -> str:
    """Decide, record it, and forget the files that it was decided by; the id."""
    decided = gate(world.workspace, asked(world.folder, how))
    (done,) = record_decisions(world.workspace, decided.decisions, decided.documents.files, str(world.key("release-gate")))
    for name in ("lab.yaml", "profiled.yaml", "own.json", "map.yaml", "profile.yaml"):
        (world.folder / name).unlink()
    return done.decision.id


@pytest.mark.parametrize("how", WAYS)
def test_however_it_was_asked(begun: World, how: str) -> None:
    with forked(begun) as world:
        world.receipt()
        decision = decide(world, how)
        world.reject()
        found = repeat(world.workspace, decision)
        assert (found.id, found.differences) == (decision, ())
        assert found.again.verdict == ("DENY" if how == "by a requirement" else "ALLOW")


def test_the_map_of_then_is_taken_and_not_one_of_its_name_since(begun: World) -> None:
    with forked(begun) as world:
        world.receipt()
        (world.folder / "lab2.yaml").write_text((world.folder / "profiled.yaml").read_text())
        first = decide(world, "with a profile of their own")
        (world.folder / "map.yaml").write_text(PROFILE_MAP.replace("topology.dcp: /dcp", "topology.dcp: /tensor"))
        (world.folder / "own.json").write_text(OWN_PROFILE)
        (world.folder / "profiled.yaml").write_text((world.folder / "lab2.yaml").read_text())
        other = gate(world.workspace, asked(world.folder, "with a profile of their own"))
        record_decisions(world.workspace, other.decisions, other.documents.files, str(world.key("release-gate")))
        assert repeat(world.workspace, first).differences == ()
        assert repeat(world.workspace, other.decisions[0].id).differences == ()


def test_without_what_it_was_decided_by_it_cannot_be_told(begun: World) -> None:
    with forked(begun) as world:
        world.receipt()
        decided = gate(world.workspace, asked(world.folder, "with a profile of their own"))
        without_map = [data for data in decided.documents.files if b"ProfileMap" not in data]
        record_decisions(world.workspace, decided.decisions, without_map, str(world.key("release-gate")))
        with pytest.raises(CannotTellError, match="own@1"):
            repeat(world.workspace, decided.decisions[0].id)


@settings(FEW, max_examples=6)
@given(before=SAYINGS, since=SAYINGS)
def test_whatever_was_said_since(begun: World, before: list[Saying], since: list[Saying]) -> None:
    with forked(begun) as world:
        admit(world, signed(world, before))
        decision = decide(world, "by a policy")
        admit(world, signed(world, since))
        assert repeat(world.workspace, decision).differences == ()
