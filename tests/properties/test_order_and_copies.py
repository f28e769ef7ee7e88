"""A decision is a function of what was said: of a copy of the ledger, and of the same entries in another order."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import NOW, World

from countermark.actions.demo import published
from countermark.actions.evidence import Gatherer
from countermark.actions.gate import Asked, gate
from countermark.actions.workspace import Workspace, open_reader
from countermark.attestations.digests import Digest
from countermark.contracts.decision import Decision
from countermark.contracts.gate import Question, decide

from .real_ledgers import ask, envelopes, forked, in_state, take, without_places
from .sayings import SAYINGS, SUBJECTS, Saying, admit, signed
from .test_relabelled_records import FEW, FOLDER, POLICIES

EXAMPLES = settings(FEW, max_examples=12)
MANY = settings(EXAMPLES, max_examples=100, derandomize=False)


def answers(world: World) -> list[Decision]:
    return [ask(world.workspace, image, world.folder / "lab.yaml") for image in SUBJECTS]


def told(decision: Decision) -> dict[str, Any]:
    """What an answer says whichever of several equal receipts it rests on, the first of the log."""
    core = without_places(decision)
    for result in core["requirements"]:
        built = result["status"] == "implemented"  # the first recording with passing tests stands for all
        result["evidence"] = [] if built else [(item["payload"], item["signer"]) for item in result["evidence"]]
        del result["observed"]
        result.pop("next_expiry", None)
    return core


def check_orders(begun: World, sayings: list[Saying], shuffle: random.Random) -> None:
    lines = signed(begun, sayings)
    with forked(begun) as first:
        admit(first, lines)
        wanted = [told(decision) for decision in answers(first)]
    shuffle.shuffle(lines)
    with forked(begun) as second:
        admit(second, [*lines, *lines[:2]])
        assert [told(decision) for decision in answers(second)] == wanted


@EXAMPLES
@given(sayings=SAYINGS, shuffle=st.randoms(use_true_random=False))
def test_the_same_entries_in_another_order_give_the_same_answers(begun: World, sayings: list[Saying], shuffle: random.Random) -> None:
    check_orders(begun, sayings, shuffle)


@pytest.mark.slow
@MANY
@given(sayings=SAYINGS, shuffle=st.randoms(use_true_random=False))
def test_many_orders_give_the_same_answers(begun: World, sayings: list[Saying], shuffle: random.Random) -> None:
    check_orders(begun, sayings, shuffle)


def check_gathered(begun: World, sayings: list[Saying]) -> None:
    with forked(begun) as world:
        admit(world, signed(world, sayings))
        for image, decision in zip(SUBJECTS, answers(world), strict=True):
            assert without_strangers(whole(world, decision, image)) == without_strangers(decision)


def without_strangers(decision: Decision) -> dict[str, Any]:
    """The core without the count of other images' receipts, which are not looked up."""
    core = decision.core()
    for result in core["requirements"]:
        result["observed"] = re.sub(r"; \d+ receipts of other images match, and results do not transfer", "", result["observed"])
    return core


def whole(world: World, decision: Decision, image: Digest) -> Decision:
    """The decision about an image when every statement of the ledger is weighed, not only those that were looked up."""
    trust = world.workspace.trust()
    with open_reader(world.workspace, trust) as reader:
        records = Gatherer(reader, trust).statements(range(reader.head.size))
    documents = gate(world.workspace, Asked((str(image),), world.folder / "lab.yaml")).documents
    return decide(Question(image, documents.policy, trust, records, decision.head, NOW, at_override=True))


@EXAMPLES
@given(sayings=SAYINGS)
def test_what_is_looked_up_is_all_that_bears_on_an_image(begun: World, sayings: list[Saying]) -> None:
    check_gathered(begun, sayings)


@pytest.mark.slow
@MANY
@given(sayings=SAYINGS)
def test_what_is_looked_up_is_all_that_bears_on_an_image_in_many_ledgers(begun: World, sayings: list[Saying]) -> None:
    check_gathered(begun, sayings)


def publish(world: World) -> Workspace:
    """Record and endorse the published records in a world."""
    shutil.copytree(POLICIES, world.folder / "policies")
    for name, person in (("builder", "ci"), ("qualifier", "lab")):
        shutil.copy(world.key(person), world.folder / "keys" / f"{name}.pem")
    published.record_all(world.workspace, FOLDER)
    return world.workspace


def decisions(workspace: Workspace) -> list[Decision]:
    """The answers to all rows of the demo."""
    policies = workspace.ledger.parent / "policies"
    return [ask(workspace, row.image, policies / f"{row.policy}.yaml", row.require) for row in published.ROWS]


def test_a_copy_of_the_ledger_gives_the_same_bytes(begun: World, tmp_path: Path) -> None:
    with forked(begun) as world:
        wanted = [decision.core_bytes for decision in decisions(publish(world))]
        assert [decision.core_bytes for decision in decisions(world.workspace)] == wanted
        shutil.copytree(world.folder, tmp_path / "elsewhere")
    with in_state(tmp_path / "nothing remembered"):
        copy = Workspace.at(str(tmp_path / "elsewhere" / "countermark.db"))
        assert [decision.core_bytes for decision in decisions(copy)] == wanted


def test_the_published_records_in_another_order_give_the_same_cores(begun: World) -> None:
    """Not the head and the places in it, but all that is said of each requirement, word for word."""
    with forked(begun) as first:
        wanted = [without_places(decision) for decision in decisions(publish(first))]
        lines = [item.line for item in envelopes(first.workspace)]
    for seed in (1, 2):
        random.Random(seed).shuffle(lines)
        with forked(begun) as second:
            shutil.copytree(POLICIES, second.folder / "policies")
            assert not take(second, lines).refused
            assert [without_places(decision) for decision in decisions(second.workspace)] == wanted
