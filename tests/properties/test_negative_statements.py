"""`reject`, `retract` and `supersede` refuse what would have no effect: who rejects something must be able to rely on it."""

import base64
import json
from typing import Any

import pytest
from worlds import ALIAS, AT_131072, COMMIT, IMAGE, OTHER, RESTORE, THIRD, World

from countermark.actions.appending import record
from countermark.actions.gate import Asked, gate
from countermark.actions.negative import Rejected, rejection, retraction, supersession
from countermark.attestations.codes import Code
from countermark.attestations.digests import Digest, DigestKind
from countermark.attestations.errors import InputError
from countermark.attestations.statement import Subject

from .real_ledgers import answer, ask
from .sayings import Draft


@pytest.fixture
def world(world: World) -> World:
    """A world in which one image passed at 131,072 tokens, TP4/DCP1."""
    world.receipt(scope={"hardware": {"system": "rig"}})
    return world


def reject(world: World, about: object, capability: str | None = None, **said: Any) -> None:
    recording = rejection(world.workspace, Rejected(str(about), "wrong", capability, **said))
    record(world.workspace, recording, "qualifier", str(world.key("lab")))


def now(world: World, image: object = IMAGE, *requires: str) -> tuple[str, str]:
    return answer(ask(world.workspace, image, world.folder / "lab.yaml", *requires))


@pytest.mark.parametrize("about", [IMAGE, f"sha256:{IMAGE.hex}", 2], ids=["typed", "bare", "entry"])
def test_what_is_rejected_is_denied(world: World, about: object) -> None:
    assert now(world) == ("ALLOW", "OK")
    reject(world, about)
    assert now(world)[0] == "DENY"


def test_an_image_can_be_rejected_before_anything_is_known_of_it(world: World) -> None:
    reject(world, OTHER)
    world.receipt(OTHER)
    assert now(world, OTHER) == ("DENY", "IMAGE_REJECTED")


@pytest.mark.parametrize(
    ("about", "capability", "code"),
    [
        (f"sha256:{OTHER.hex}", None, Code.SUBJECT_UNKNOWN),
        (f"git-commit:{COMMIT}", None, Code.BAD_DIGEST),
        (f"file:sha256:{IMAGE.hex}", None, Code.BAD_DIGEST),
        (f"payload:sha256:{IMAGE.hex}", None, Code.REF_NOT_HERE),
        ("0", None, Code.REF_NOT_HERE),
        ("99", None, Code.UNKNOWN_NAME),
        ("٢", None, Code.TAG_NOT_DIGEST),
        (IMAGE, "restor.correctness", Code.UNKNOWN_NAME),
        (IMAGE, f"{RESTORE}@tpp=4", Code.UNKNOWN_NAME),
        (IMAGE, f"{RESTORE}@topology=TP4/DCP1,tp=2", Code.SCHEMA_INVALID),
        (IMAGE, f"{RESTORE}@topology=TP4", Code.SCHEMA_INVALID),
    ],
)
def test_a_rejection_without_effect_is_refused(world: World, about: object, capability: str | None, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        reject(world, about, capability)
    assert caught.value.code is code
    assert caught.value.fix


@pytest.mark.parametrize(
    ("scope", "denied"),
    [
        ("", True),
        ("@context_tokens=131072", True),
        ("@topology=TP4/DCP1", True),
        ("@tp=4,pp=any", True),
        ("@system=rig", True),
        ("@concurrency=1,publication_mode=snapshot-v1", True),
        ("@context_tokens=262144", False),
        ("@tp=2", False),
        ("@system=another rig", False),
        (f"@settings=file:sha256:{'ab' * 32}", True),
    ],
)
def test_a_rejection_of_a_capability_reaches_what_it_names_and_no_further(world: World, scope: str, denied: bool) -> None:
    """The system of the machine is among what it may name, which was silently left out."""
    reject(world, IMAGE, f"{RESTORE}{scope}")
    found = now(world, IMAGE, f"{RESTORE}@{AT_131072},system=rig")
    assert found == (("DENY", "CAP_REJECTED") if denied else ("ALLOW", "OK"))


def test_a_rejection_is_of_the_kind_that_was_named(world: World) -> None:
    reject(world, ALIAS)
    assert now(world) == ("ALLOW", "OK")
    decided = gate(world.workspace, Asked((f"sha256:{ALIAS.hex}",), world.folder / "lab.yaml"))
    assert str(decided.decisions[0].subject) == str(ALIAS)
    assert answer(decided.decisions[0]) == ("DENY", "IMAGE_REJECTED")


def test_only_statements_are_taken_back(world: World) -> None:
    assert retraction(world.workspace, "2", "mistaken", None).subjects[0].typed[0].kind == "payload"
    with pytest.raises(InputError, match="no statement"):
        retraction(world.workspace, "0", "mistaken", None)
    with pytest.raises(InputError, match="no statement"):
        supersession(world.workspace, "2", "0", "repeated", raw_measurements_changed=False)


def test_a_subject_without_a_kind_is_rejected_as_every_kind_and_passes_as_none(world: World) -> None:
    """As a foreign tool writes it, with a bare sha256."""
    bare = Subject({"sha256": OTHER.hex})
    world.say(
        "rejection", bare, {"scope": "image-wide", "reason": "r", "rests_on": [], "observed_time": None, "capability": None}, by="lab"
    )
    for kind in (DigestKind.OCI_CONFIG, DigestKind.OCI_MANIFEST):
        assert now(world, Digest(kind, OTHER.hex)) == ("DENY", "IMAGE_REJECTED")
    draft = Draft.of(world)
    draft.receipt(THIRD)
    document, receipt = (json.loads(base64.b64decode(json.loads(line)["payload"])) for line in draft.lines)
    for said, by in ((document, "ci"), (receipt, "lab")):
        subject = Subject({"sha256": said["subject"][0]["digest"]["sha256"]})
        world.say(said["predicateType"], subject, said["predicate"], by=by)
    assert now(world, THIRD)[0] == "DENY"
