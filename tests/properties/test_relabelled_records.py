"""The verdict follows the data: published records under other digests and words yield what they yielded, and other answers other verdicts.

All of it on one ledger that grows: what is recorded of one image changes nothing for another.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from worlds import World, make_world

from countermark.actions.demo import published
from countermark.actions.evidence_records import endorse, record

from .real_ledgers import ROOT, answer, ask
from .relabelling import Change, Relabelling

FOLDER = ROOT / "tests" / "data" / "evidence"
POLICIES = ROOT / "apps" / "countermark" / "actions" / "demo" / "policies"
IMAGES = (published.LIVE, published.CHAIN, published.REJECTED, published.FENCED, published.CAMPAIGN)
BY_IMAGE = dict(zip(IMAGES, published.RECORDS, strict=True))
WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)  # each example grows a ledger, and its words are short already
FEW = settings(max_examples=2, deadline=None, derandomize=True, phases=WITHOUT_SHRINKING, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=12, derandomize=False)
WORDS = st.lists(st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=2, max_size=9), min_size=2, max_size=2, unique=True)
AT_131072 = "restore.correctness@tp=4,dcp=1,context_tokens=131072,concurrency=1"
GOOD_WORDS = {
    **dict.fromkeys(("passed", "qualified", "deployable", "oracle_match", "semantic_match", "all_ranks_verified"), True),
    **dict.fromkeys(("quality_passed", "semantic_checks_passed", "runtime_checks_passed", "long_context_passed"), True),
}


@dataclass(frozen=True)
class Lab:
    """A world to record into, with the two shipped policies; each relabelling is another."""

    world: World
    numbers: "count[int]"

    def tell(self, image: str, words: Mapping[str, str], changes: Mapping[str, Change] | None = None) -> str:
        """Record and endorse the relabelled record about an image; the image that it is about now."""
        item = BY_IMAGE[image]
        salt = f"{next(self.numbers)}:"
        relabelling = Relabelling(salt, words)
        paths = relabelling.write(item.files, FOLDER, self.world.folder / "in" / salt, changes or {})
        workspace = self.world.workspace
        done = record(workspace, paths, None, item.binds, str(self.world.key("ci")))
        documents = [str(entry.receipt.index) for entry in done.appended if entry.statement.predicate_type.endswith("evidence-document/v1")]
        endorse(workspace, documents, (), str(self.world.key("lab")))
        kind, _, hexed = image.rpartition(":")
        return f"{kind}:{relabelling.of(hexed)}"

    def ask(self, image: str, require: str, policy: str = "lab-as-published") -> tuple[str, str]:
        return answer(ask(self.world.workspace, image, self.world.folder / "policies" / f"{policy}.yaml", require, at=None))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    world = make_world(tmp_path_factory.mktemp("relabelled") / "box")
    (world.folder / "policies").mkdir()
    for path in POLICIES.glob("*.yaml"):
        (world.folder / "policies" / path.name).write_bytes(path.read_bytes())
    return Lab(world, count())


def check_renamed(lab: Lab, image: str, words: list[str]) -> None:
    """The rows of an image hold for it under another name, and nothing is known of it under its own."""
    renamed = lab.tell(image, dict(zip(("red", "spark"), words, strict=True)))
    for row in published.ROWS:
        if row.image == image:
            verdict, code = lab.ask(renamed, row.require, row.policy)
            assert verdict == row.verdict
            assert code in row.codes
            assert lab.ask(image, row.require, row.policy) == ("DENY", "SUBJECT_UNKNOWN")


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image[-8:])
@FEW
@given(words=WORDS)
def test_other_names_for_everything_yield_what_the_record_yields(lab: Lab, image: str, words: list[str]) -> None:
    check_renamed(lab, image, words)


@pytest.mark.slow
@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image[-8:])
@MANY
@given(words=WORDS)
def test_many_other_names_yield_what_the_record_yields(lab: Lab, image: str, words: list[str]) -> None:
    check_renamed(lab, image, words)


def dressed(value: Any) -> None:
    """Every stored word and boolean says that all is well."""
    if isinstance(value, dict):
        value.update({key: good for key, good in GOOD_WORDS.items() if key in value})
        if isinstance(value.get("status"), str):
            value["status"] = "qualified"
        if "conclusion" in value:
            value["conclusion"] = "two-exact-oracles-passed"
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        dressed(item)


def told(word: str, *places: tuple[str | int, ...]) -> Change:
    """The word is the answer at each place: an object, the name of its answer and of the hash of it."""

    def change(value: Any) -> None:
        for *path, name, sha256 in places:
            at = value
            for part in path:
                at = at[part]
            at |= {name: word, sha256: hashlib.sha256(f" {word}".encode()).hexdigest()}

    return change


def both(*changes: Change) -> Change:
    def change(value: Any) -> None:
        for one in changes:
            one(value)

    return change


RAW, SUMMED = ("observed_oracle", "response_sha256"), ("case", "restore_oracle", "restore_response_sha256")
OBSERVED: tuple[str | int, ...] = ("observations", 1, *RAW)


def replayed_otherwise(value: Any) -> None:
    value["measurements"]["persistent_restore_256k"]["replay_completion_token"] += 1


WRONG: list[tuple[str, str, dict[str, Change], str]] = [
    (published.REJECTED, AT_131072, {}, "IMAGE_REJECTED"),
    (published.CHAIN, AT_131072, {"restore.json": told("blue", RAW), "validation.json": told("blue", SUMMED)}, "IMAGE_REJECTED"),
    (published.CHAIN, AT_131072, {"validation.json": told("blue", SUMMED)}, "IMAGE_REJECTED"),
    (published.FENCED, AT_131072, {"event-fenced-flat-restore-861a965.json": told("blue", OBSERVED)}, "IMAGE_REJECTED"),
    (published.LIVE, AT_131072.replace("131072", "262144"), {"validation.json": replayed_otherwise}, "IMAGE_REJECTED"),
    (published.CAMPAIGN, "output.contract@draft_tokens=7", {}, "CAP_FAILED"),
]


@pytest.mark.parametrize(("image", "require", "changes", "code"), WRONG, ids=lambda item: item[-12:] if isinstance(item, str) else "")
@FEW
@given(words=WORDS)
def test_a_wrong_answer_denies_whatever_is_stored_beside_it(
    lab: Lab, image: str, require: str, changes: dict[str, Change], code: str, words: list[str]
) -> None:
    names = dict(zip(("red", "blue"), words, strict=True))
    files = [Path(name).name for name in BY_IMAGE[image].files]
    everywhere = {name: both(changes.get(name, lambda _: None), dressed) for name in files}
    assert lab.ask(lab.tell(image, names, everywhere), require) == ("DENY", code)


@FEW
@given(words=WORDS)
def test_the_right_answer_in_the_rejected_record_is_what_its_words_let_be_claimed(lab: Lab, words: list[str]) -> None:
    """The same file with the required word in it, and its conclusion changed with it, is a research result and no rejection."""
    place = ("semantic_restore", "observed", "response_sha256")
    right = both(
        told("red", place), lambda value: value["semantic_restore"].update(passed=True), lambda value: value.update(conclusion="passed")
    )
    (name,) = (Path(file).name for file in BY_IMAGE[published.REJECTED].files)
    renamed = lab.tell(published.REJECTED, dict(zip(("red", "spark"), words, strict=True)), {name: right})
    assert lab.ask(renamed, AT_131072) == ("DENY", "CAP_RESEARCH_ONLY")
